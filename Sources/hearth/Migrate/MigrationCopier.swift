// The first step of a migration: all documents of one moment, part by part.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// Copies the parts that are not done, several at the same time. Memory is bounded by a page for each.
struct MigrationCopier: Sendable {
    let source: MigrationSource
    let names: MigrationNames
    let target: HearthClient
    let targetPatience: Patience
    let ledger: MigrationLedger
    /// Parts at the same time.
    let parallel: Int

    func run() async throws {
        let state = await ledger.state
        let parts = state.parts.indices.filter { !state.parts[$0].isDone }
        try await withThrowingTaskGroup(of: Void.self) { group in
            var next = 0
            while next < parts.count {
                if next >= parallel { try await group.next() }
                let part = parts[next]
                group.addTask { try await copy(part) }
                next += 1
            }
            try await group.waitForAll()
        }
    }

    private func copy(_ number: Int) async throws {
        let state = await ledger.state
        var reader = reader(of: state.parts[number], state.readTime)
        var writer = TargetWriter(target, names.target, targetPatience)
        while true {
            let page = try await next(&reader, number)
            if page.isEmpty { break }
            var groups: Set<String> = []
            for document in page {
                let name = try names.target(document.name)
                groups.insert(MigrationNames.collection(of: try names.path(document.name)).group)
                try await writer.set(name, fields: try names.fields(document.content.fields))
            }
            try await writer.flush()
            try await ledger.copied(number, until: page.last?.name, page.count, groups, isDone: false)
        }
        try await ledger.copied(number, until: nil, 0, [], isDone: true)
    }

    private func reader(of part: MigrationState.Part, _ time: TimestampValue?) -> SubtreeReader {
        SubtreeReader(
            source.client, source.database, from: part.start, after: part.last, before: part.end,
            time.map { .readTime($0) } ?? .latest)
    }

    /// The next page, at a new time if the source has forgotten the old one.
    private func next(_ reader: inout SubtreeReader, _ number: Int) async throws -> [NamedDocument] {
        do {
            return try await source.patience.call { try await reader.next() }
        } catch let error as RequestError where MigrationSource.isRefusal(error.code) {
            guard case .readTime(let old) = reader.consistency else { throw error }
            let now = try await source.patience.call { try await source.now() }
            let new = try await ledger.renewReadTime(after: old, now)
            if new == old { throw error }
            var part = await ledger.state.parts[number]
            part.last = reader.last ?? part.last
            reader = self.reader(of: part, new)
            return try await source.patience.call { try await reader.next() }
        }
    }
}
