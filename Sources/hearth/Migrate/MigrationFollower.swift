// The second step of a migration: the changes since the copied moment, as Listen reports them.
//
// There is a target for each collection group. Changes are applied in the order in which they come; a token is kept
// when all changes before it are durable. The root is looked at again and again: a collection that is new gets a target
// in another stream. The comparison at the end finds what Listen does not report: documents of groups that are new
// below documents, and documents that were deleted while nobody listened.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// Applies changes until it is cancelled.
struct MigrationFollower: Sendable {
    let source: MigrationSource
    let names: MigrationNames
    let target: HearthClient
    let targetPatience: Patience
    let ledger: MigrationLedger
    /// A message has come. Called on any thread.
    let heard: @Sendable () -> Void
    /// Gets the time of each consistent state that is at the target. Called on any thread.
    let reached: @Sendable (TimestampValue) -> Void

    /// The source does not continue a target where the state says.
    private struct Ended: Error {
        let error: RequestError
    }

    /// Time between two looks for new collections.
    let lookInterval: Duration

    func run() async throws {
        // Whether the next stream continues where the last one ended.
        var resumes = true
        /// Collections of the root that are not in the state yet: their documents are reported from the first on.
        var new: Set<String> = []
        while !Task.isCancelled {
            do {
                new.formUnion(try await followUntilNew(resumes: resumes, new))
            } catch let ended as Ended {
                guard resumes else { throw ended.error }
                CommandRouter.complain("the source reports all documents again: \(ended.error.message)")
                resumes = false
                continue
            } catch {
                if Task.isCancelled { return }
                throw error
            }
            resumes = true
        }
    }

    /// Follows changes until the root has collections that are not followed.
    /// - Returns: their ids.
    private func followUntilNew(resumes: Bool, _ new: Set<String>) async throws -> Set<String> {
        let followed = await ledger.state.groups.union(new)
        return try await withThrowingTaskGroup(of: Set<String>.self) { tasks in
            tasks.addTask { try await look(beyond: followed) }
            if !followed.isEmpty {
                tasks.addTask {
                    while true {
                        try await source.patience.call { try await follow(resumes: resumes, new) }
                        try Task.checkCancellation()
                    }
                }
            }
            defer { tasks.cancelAll() }
            return try await tasks.next() ?? []
        }
    }

    /// Waits until the root has collections beyond those that are known.
    private func look(beyond known: Set<String>) async throws -> Set<String> {
        while true {
            let found = Set(try await source.patience.call { try await source.rootCollections() }).subtracting(known)
            if !found.isEmpty { return found }
            try await Task.sleep(for: lookInterval)
        }
    }

    /// Applies the changes of one stream until it ends.
    private func follow(resumes: Bool, _ new: Set<String>) async throws {
        let state = await ledger.state
        let requests = state.groups.union(new).sorted().enumerated().map { index, group in
            let isKnown = resumes && state.groups.contains(group)
            return ListenRequest(database: "\(source.database)", .add(target(group, Int32(index + 1), state, isKnown)))
        }
        let messages = source.client.listen(requests)
        var stream = Stream(waiting: Set(1...Int32(requests.count)))
        var writer = TargetWriter(target, names.target, targetPatience)
        while let message = try await messages.next() {
            heard()
            switch message {
            case .documentChange(let change):
                let document = try HearthClient.decode { try NamedDocument(message: change.document.byteSpan) }.get()
                try await writer.set(
                    try names.target(document.name), fields: try names.fields(document.content.fields))
            case .documentDelete(let removal), .documentRemove(let removal):
                try await writer.delete(try names.target(removal.name))
            case .targetChange(let change):
                try stream.take(change)
                guard change.kind == .noChange, change.targets.isEmpty, let time = change.readTime else { break }
                try await writer.flush()
                if stream.isCurrent {
                    try await ledger.followed(to: change.resumeToken, writer.count - stream.counted, new)
                    stream.counted = writer.count
                    reached(time)
                }
            case .filter, .unknown: break
            }
        }
    }

    private func target(_ group: String, _ id: Int32, _ state: MigrationState, _ resumes: Bool) -> ListenTarget {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: group, allDescendants: true)])
        let resume: ListenTarget.Resume =
            state.token.isEmpty ? .readTime(state.listenFrom) : .token(state.token)
        return ListenTarget(
            .query(parent: source.database.documentsRoot, query), id: id, resume: resumes ? resume : nil)
    }

    /// What a stream has reported.
    private struct Stream {
        /// Targets that are not current.
        var waiting: Set<Int32>
        /// Changes that were counted.
        var counted = 0

        var isCurrent: Bool { waiting.isEmpty }

        mutating func take(_ change: ListenResponse.TargetChange) throws {
            switch change.kind {
            case .current:
                if change.targets.isEmpty { waiting = [] } else { waiting.subtract(change.targets) }
            case .reset: waiting.formUnion(change.targets)
            case .remove:
                let cause = change.cause ?? StatusMessage(code: .internal, message: "the source ended a target")
                let error = RequestError(cause.code, cause.message)
                if MigrationSource.isRefusal(cause.code) { throw Ended(error: error) }
                throw error
            case .add, .noChange: break
            }
        }
    }
}
