// What the targets of one step say about one document.

import Basics
import ClientCache
import ClientTestSupport
import DocumentModel
import TestSupport
import Testing

@testable import FirebaseFirestore
@testable import HearthClient

struct WatchedUpdatesTests {
    private let firestore = TestFirestore.make(host: "127.0.0.1:1")
    private var name: UTF8Text { UTF8Text("\(firestore.documentsRoot)/c/a") }

    /// The document as it was changed last at a time.
    private static func document(_ microseconds: Int64) -> StoredDocument {
        let time = TimestampValue(microseconds: microseconds)
        return StoredDocument(fields: [], createTime: TimestampValue(microseconds: 1), updateTime: time)
    }

    /// What a step at time 10 says of the document to the targets 0, 1, and so on.
    private func updates(_ changes: [WatchedChange]) -> WatchedUpdates {
        var updates = WatchedUpdates()
        for (target, change) in changes.enumerated() {
            let snapshot = WatchedSnapshot(
                changes: [name: change], token: [], readTime: TimestampValue(microseconds: 10))
            _ = updates.add(snapshot, of: UInt32(target))
        }
        return updates
    }

    /// The state of a client's document after steps, each with what it says to each target: the time of its last
    /// change, or of its absence.
    private func state(after steps: [[WatchedChange]]) throws -> MaybeDocument {
        let store = try LocalStore(LocalStore.Configuration(database: firestore.databaseName)) { _ in }
        for step in steps {
            let updates = updates(step)
            expectEqual(updates.targets.map(\.id), (0..<UInt32(step.count)).map { $0 })
            _ = try store.apply(Array(updates.documents.values))
        }
        return try store.state(of: name.string)
    }

    private func expectFound(_ microseconds: UInt64, after steps: [[WatchedChange]]) throws {
        try expectEqual(state(after: steps).document?.updateMicroseconds, microseconds)
    }

    @Test
    func `A document that left one target and changed again is as the target has it that it is in`() throws {
        let (left, found) = (WatchedChange.left(Self.document(5)), WatchedChange.found(Self.document(7)))
        try expectFound(7, after: [[left, found]])
        try expectFound(7, after: [[found, left]])
        try expectFound(7, after: [[.left(nil), found], [.left(nil)]])
        // Also if the other target had it in an earlier step.
        try expectFound(7, after: [[found], [left]])
        try expectFound(7, after: [[left], [found]])
    }

    @Test
    func `A document that left two targets is as it was when it left the second one`() throws {
        let changes = [5, 7, 6].map { WatchedChange.left(Self.document($0)) }
        try expectFound(7, after: [changes])
        try expectFound(7, after: changes.map { [$0] })
    }

    @Test
    func `A document that was deleted and made again is there, and one that was deleted last is not`() throws {
        let deleted = WatchedChange.deleted(TimestampValue(microseconds: 6))
        let (old, new) = (WatchedChange.left(Self.document(5)), WatchedChange.found(Self.document(7)))
        for changes in [[deleted, new], [new, deleted]] { try expectFound(7, after: [changes]) }
        for changes in [[deleted, old], [old, deleted]] {
            guard case .missing(6, _) = try state(after: [[.found(Self.document(3))], changes]) else {
                Issue.record("the document is there")
                return
            }
        }
    }

    @Test
    func `An older document that is in a target was restored, and is taken`() throws {
        let (lost, restored) = (WatchedChange.found(Self.document(9)), WatchedChange.found(Self.document(5)))
        try expectFound(5, after: [[lost], [restored]])
        try expectFound(5, after: [[lost], [.left(Self.document(5)), restored]])
    }
}
