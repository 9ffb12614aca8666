package import Basics
package import DocumentModel
package import FirestoreMessages

/// What the server has sent about a document of a target.
package enum WatchedChange: Sendable {
    /// The document is in the target.
    case found(StoredDocument)
    /// The document does not exist; with the time of this state.
    case deleted(TimestampValue?)
    /// The document is not in the target any more; with its contents, if the server has sent them.
    case left(StoredDocument?)

    /// The update time of a document that is in the target.
    fileprivate var updateTime: TimestampValue? {
        if case .found(let document) = self { document.updateTime } else { nil }
    }

    fileprivate var isFound: Bool { updateTime != nil }
}

/// A consistent state of a target, as the difference to the last one.
package struct WatchedSnapshot: Sendable {
    /// What has changed since the last snapshot, by the names of the documents. May be empty.
    package var changes: [UTF8Text: WatchedChange]
    /// Documents that are as in the last snapshot although the server has listed the target again: it may have lost
    /// later states of them, which the client knows in another way.
    package var confirmed: [NamedDocument] = []
    /// Continues from this snapshot on another stream.
    package var token: [UInt8]
    package var readTime: TimestampValue
}

/// What a Listen stream reports of one target.
package enum WatchEvent: Sendable {
    /// The target has changed, or is complete for the first time on its stream.
    case snapshot(WatchedSnapshot)
    /// The target has not the documents that the server counts: it is listed again.
    case mismatch
    /// The server has removed the target.
    case failure(RequestError)
}

/// The client's state of a Listen stream: messages in, events and requests out. Without I/O.
///
/// Changes are collected until the server reports that the stream is consistent (a global NO_CHANGE). Each target that
/// has changed then has one event. After a reconnect every target continues from its last snapshot.
package struct WatchState {
    /// An earlier snapshot of a target.
    package struct Resumption: Sendable {
        /// Nil lists the target from the start.
        package var place: ListenTarget.Resume?
        /// The update times of its documents.
        package var documents: [UTF8Text: TimestampValue]

        package init(place: ListenTarget.Resume?, documents: [UTF8Text: TimestampValue]) {
            self.place = place
            self.documents = documents
        }
    }

    fileprivate struct Target {
        let kind: ListenTarget.Kind
        /// The update times of the documents as of the last snapshot.
        var documents: [UTF8Text: TimestampValue] = [:]
        /// Changes since then.
        var changes: [UTF8Text: WatchedChange] = [:]
        /// The server has discarded what it sent before.
        var isReset = false
        /// The server has sent everything there is.
        var isCurrent = false
        /// It is removed to be listed again: what comes before the answer to that is not of the new list.
        var isBeingRemoved = false
        /// An event has been reported on this stream.
        var hasSnapshot = false
        /// Where the last snapshot is, unless the target is at the newest token of the stream; `nil` before the first.
        var place: ListenTarget.Resume?
        /// The read time of the last event.
        var reportedAt = TimestampValue(seconds: 0, nanoseconds: 0)
    }

    /// What a message leads to.
    package struct Step: Sendable {
        package var events: [(target: Int32, event: WatchEvent)] = []
        /// Requests to send.
        var requests: [ListenRequest] = []
        /// The time of the state, if this was a consistent snapshot of all targets.
        package var readTime: TimestampValue?
        /// Whether this was a consistent snapshot of all targets.
        package var isConsistent: Bool { readTime != nil }
    }

    private let database: String
    private var targets: [Int32: Target] = [:]
    /// Targets that may have something to report.
    private var changed: Set<Int32> = []
    /// The token of the last consistent state: all current targets continue from it.
    private var token: [UInt8] = []
    /// When a target is to be reported although it has not changed.
    private var nextReportSeconds = Int64.min

    init(database: String) { self.database = database }

    var isEmpty: Bool { targets.isEmpty }

    // MARK: Requests

    /// Time after which a target that has not changed is reported, so that its owner gets a newer token.
    private static let reportSeconds: Int64 = 300

    /// Adds a target. Ids are never used again.
    ///
    /// - Parameter resume: an earlier snapshot of the target.
    /// - Returns: the request for an open stream.
    mutating func add(_ id: Int32, _ kind: ListenTarget.Kind, resume: Resumption? = nil) -> ListenRequest {
        var target = Target(kind: kind)
        if let resume {
            target.place = resume.place
            target.documents = resume.documents
            target.isReset = resume.place == nil
        }
        targets[id] = target
        return request(id, target)
    }

    /// Removes a target.
    /// - Returns: the request for an open stream; `nil` if there is no such target.
    mutating func remove(_ id: Int32) -> ListenRequest? {
        targets.removeValue(forKey: id).map { _ in ListenRequest(database: database, .remove(id)) }
    }

    /// A new stream: forgets what came after the last snapshot.
    /// - Returns: the requests to begin with, one for each target.
    mutating func reconnect() -> [ListenRequest] {
        changed = []
        return targets.keys.sorted().compactMap { id in
            targets[id]?.interrupt(at: token)
            targets[id]?.beginStream()
            return targets[id].map { request(id, $0) }
        }
    }

    private func request(_ id: Int32, _ target: Target) -> ListenRequest {
        ListenRequest(
            database: database,
            .add(
                ListenTarget(
                    target.kind, id: id, resume: target.place,
                    expectedCount: target.place == nil ? nil : Int32(clamping: target.documents.count))))
    }

    // MARK: Responses

    /// Takes a message of the server.
    /// - Throws: if a document in it cannot be read.
    mutating func receive(_ response: ListenResponse) throws -> Step {
        var step = Step()
        switch response {
        case .targetChange(let change): apply(change, &step)
        case .documentChange(let change):
            let document = try NamedDocument(message: change.document.span.bytes)
            for id in change.targets { set(document.name, .found(document.content), in: id) }
            for id in change.removedTargets { set(document.name, .left(document.content), in: id) }
        case .documentDelete(let removal):
            for id in all(removal.removedTargets) { set(removal.name, .deleted(removal.readTime), in: id) }
        case .documentRemove(let removal):
            for id in all(removal.removedTargets) { set(removal.name, .left(nil), in: id) }
        case .filter(let filter): check(filter, &step)
        case .unknown: break
        }
        return step
    }

    private mutating func set(_ name: String, _ change: WatchedChange, in id: Int32) {
        guard targets[id]?.isBeingRemoved == false else { return }
        targets[id]?.changes[UTF8Text(name)] = change
        changed.insert(id)
    }

    private mutating func apply(_ change: ListenResponse.TargetChange, _ step: inout Step) {
        switch change.kind {
        case .add: break
        case .current:
            for id in all(change.targets) where targets[id]?.isBeingRemoved == false {
                targets[id]?.isCurrent = true
                changed.insert(id)
            }
        case .reset:
            for id in all(change.targets) where targets[id]?.isBeingRemoved == false { reset(id) }
        case .remove:
            for id in all(change.targets) { remove(id, change.cause, &step) }
        case .noChange:
            guard change.targets.isEmpty, let readTime = change.readTime else { return }
            step.readTime = readTime
            token = change.resumeToken
            for id in takeChanged(at: readTime) {
                if let event = takeSnapshot(of: id, readTime) { step.events.append((id, event)) }
            }
        }
    }

    /// The server has removed a target. One that this client has removed is not among the targets any more, unless it
    /// is listed again.
    private mutating func remove(_ id: Int32, _ cause: StatusMessage?, _ step: inout Step) {
        guard let isAnswer = targets[id]?.isBeingRemoved else { return }
        if isAnswer, cause == nil {
            targets[id]?.isBeingRemoved = false
            return
        }
        targets[id] = nil
        // The server lists it again all the same.
        if isAnswer { step.requests.append(ListenRequest(database: database, .remove(id))) }
        let error = cause.map { RequestError($0.code, $0.message) }
        step.events.append((id, .failure(error ?? Self.removedWithoutCause)))
    }

    /// The targets that have something to report, or may have: not all of them for each change of one.
    private mutating func takeChanged(at readTime: TimestampValue) -> [Int32] {
        defer { changed = [] }
        if readTime.seconds < nextReportSeconds { return changed.sorted() }
        let reports = targets.values.lazy.filter { $0.hasSnapshot }.map { target in
            let seconds = target.reportedAt.seconds + Self.reportSeconds
            // The target is reported now.
            return seconds <= readTime.seconds ? readTime.seconds + Self.reportSeconds : seconds
        }
        nextReportSeconds = reports.min() ?? readTime.seconds + Self.reportSeconds
        return targets.keys.sorted()
    }

    private static let removedWithoutCause = RequestError(.internal, "The server removed the target without a cause.")

    /// The targets that a message is about: an empty list stands for all.
    private func all(_ ids: [Int32]) -> [Int32] { ids.isEmpty ? Array(targets.keys) : ids }

    private mutating func reset(_ id: Int32) {
        targets[id]?.interrupt(at: token)
        targets[id]?.isReset = true
        // Its owner waits for the new list, also for one that is the same.
        targets[id]?.hasSnapshot = false
    }

    /// The number of documents does not agree with the server's: the target is listed again from the start.
    private mutating func check(_ filter: ListenResponse.ExistenceFilter, _ step: inout Step) {
        guard let target = targets[filter.target], !target.isBeingRemoved, target.count != Int(filter.count) else {
            return
        }
        reset(filter.target)
        targets[filter.target]?.place = nil
        targets[filter.target]?.isBeingRemoved = true
        let again = ListenTarget(target.kind, id: filter.target)
        step.events.append((filter.target, .mismatch))
        step.requests = [.init(database: database, .remove(filter.target)), .init(database: database, .add(again))]
    }

    /// The event of a target at a consistent snapshot; `nil` if nothing has changed.
    private mutating func takeSnapshot(of id: Int32, _ readTime: TimestampValue) -> WatchEvent? {
        guard targets[id]?.isCurrent ?? false else { return nil }
        // In place: a copy of the documents would cost their number.
        let (changes, confirmed) = targets[id]?.takeChanges() ?? ([:], [])
        let isDue = readTime.seconds - (targets[id]?.reportedAt.seconds ?? 0) >= Self.reportSeconds
        if changes.isEmpty, targets[id]?.hasSnapshot ?? false, !isDue { return nil }
        targets[id]?.hasSnapshot = true
        targets[id]?.reportedAt = readTime
        return .snapshot(
            WatchedSnapshot(changes: changes, confirmed: confirmed, token: token, readTime: readTime))
    }
}

extension WatchState.Target {
    /// The number of documents, changes since the last snapshot included.
    fileprivate var count: Int {
        var count = isReset ? 0 : documents.count
        for (name, change) in changes {
            let wasFound = !isReset && documents[name] != nil
            if change.isFound != wasFound { count += change.isFound ? 1 : -1 }
        }
        return count
    }

    /// The target is not current any more, and forgets what came after its last snapshot.
    ///
    /// - Parameter token: of the stream.
    fileprivate mutating func interrupt(at token: [UInt8]) {
        if isCurrent, hasSnapshot { place = .token(token) }
        isCurrent = false
        changes = [:]
    }

    /// The target is about to be on a new stream.
    fileprivate mutating func beginStream() {
        // Listed from the start, it has what is sent and nothing else.
        isReset = place == nil
        isBeingRemoved = false
        hasSnapshot = false
    }

    /// Makes the changes part of the documents.
    /// - Returns: those that are none against the last snapshot apart, if the target was listed again.
    fileprivate mutating func takeChanges() -> (effective: [UTF8Text: WatchedChange], confirmed: [NamedDocument]) {
        var confirmed: [NamedDocument] = []
        if isReset {
            for name in documents.keys where changes[name] == nil { changes[name] = .left(nil) }
        }
        let effective = changes.filter { name, change in
            if case .deleted = change { return true }
            if documents[name] != change.updateTime { return true }
            if isReset, case .found(let document) = change {
                confirmed.append(NamedDocument(name: name.string, content: document))
            }
            return false
        }
        for (name, change) in effective { documents[name] = change.updateTime }
        changes = [:]
        isReset = false
        return (effective, confirmed)
    }
}
