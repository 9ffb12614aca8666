// The change feed as a subscriber uses it.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .inSimulations) struct ChangeFeedTests {
    /// A subscriber that takes changes as a hub does.
    private final class Subscriber {
        let store: DocumentStore
        let subscription: ChangeSubscription
        var position: UInt64

        init(_ store: DocumentStore) {
            self.store = store
            subscription = store.subscribeToChanges {}
            position = store.currentReadTime
        }

        /// What changed since the last call: `path: before -> after`, where `-` means no document; nil if the feed has
        /// not all of it any more.
        func take() -> [String]? {
            let readTime = store.currentReadTime
            guard let batches = subscription.changes(after: position, through: readTime) else { return nil }
            var found: [String] = []
            for batch in batches {
                batch.forEachChange(after: position, through: readTime) { change in
                    let path = String(decoding: [UInt8](copying: change.path), as: UTF8.self)
                    let before = change.existedBefore ? Self.number(in: change.before) : "-"
                    let after = change.existsAfter ? Self.number(in: change.after) : "-"
                    found.append("\(path): \(before) -> \(after)")
                }
            }
            position = readTime
            return found
        }

        private static func number(in fields: RawSpan) -> String {
            guard let value = try? MapValue(documentBytes: fields)["n"], case .integer(let number) = value else {
                return "?"
            }
            return "\(number)"
        }
    }

    @Test
    func `A subscriber gets each change once, with the document before and after, in the order of commits`()
        async throws
    {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let subscriber = Subscriber(harness.store)
        expectEqual(subscriber.take(), [])
        try await harness.commit([.set("c/a", fields(2)), .set("c/b", fields(3))])
        expectEqual(subscriber.take(), ["c/a: 1 -> 2", "c/b: - -> 3"])
        try await harness.commit([.increment("c/a", field: "n", by: 5)])
        try await harness.commit([.delete("c/b")])
        expectEqual(subscriber.take(), ["c/a: 2 -> 7", "c/b: 3 -> -"])
        expectEqual(subscriber.take(), [])
        try harness.finish()
    }

    @Test
    func `The first subscriber learns that it lacks a commit that was on its way to the disk when it came`()
        async throws
    {
        let gate = Gate(isOpen: true)
        let harness = try StoreHarness {
            $0.engine.fault = {
                if $0 == .syncLog { gate.pass() }
                return 0
            }
        }
        try await harness.commit([.set("c/a", fields(1))])
        gate.close()
        async let inFlight: Void = harness.commit([.set("c/a", fields(2))])
        try await gate.reached()
        let subscriber = Subscriber(harness.store)
        gate.open()
        try await inFlight
        expectNil(subscriber.take())
        // From a read on it has everything.
        try expectEqual(harness.integer("c/a"), 2)
        subscriber.position = harness.store.currentReadTime
        try await harness.commit([.set("c/a", fields(3))])
        expectEqual(subscriber.take(), ["c/a: 2 -> 3"])
        try harness.finish()
    }

    @Test
    func `A commit that fails leaves no changes, also between others of its group`() async throws {
        let harness = try StoreHarness()
        let subscriber = Subscriber(harness.store)
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let writes: [StepWrite] = [
                        .set("c/\(number)", fields(Int64(number))),
                        .set("c/x", fields(0), number % 2 == 0 ? nil : .exists(false)),
                    ]
                    return (try? await harness.failure(writes)) == .some(nil)
                }
            }
            return await group.reduce(into: 0) { count, succeeded in count += succeeded ? 1 : 0 }
        }
        let taken = try #require(subscriber.take())
        let created = taken.filter { $0.hasPrefix("c/") && !$0.hasPrefix("c/x") }
        expectEqual(created.count, outcomes)
        expectEqual(Set(created).count, outcomes)
        expect(taken.count { $0.hasPrefix("c/x") } >= 1)
        let stored = try harness.ids("c")
        expectEqual(stored.count, outcomes + 1)
        try harness.finish()
    }

    @Test
    func `A subscriber that takes late gets all that fits, then nil; another one is not concerned`() async throws {
        let harness = try StoreHarness { $0.changeFeedBytesMax = 4_096 }
        let (quick, slow, slowest) = (Subscriber(harness.store), Subscriber(harness.store), Subscriber(harness.store))
        for number in 1...20 {
            try await harness.commit([.set("c/a", fields(Int64(number)))])
            expectEqual(quick.take(), ["c/a: \(number == 1 ? "-" : "\(number - 1)") -> \(number)"])
        }
        expectEqual(slow.take()?.count, 20)
        for number in 21...120 {
            try await harness.commit([.set("c/a", fields(Int64(number)))])
            expectEqual(quick.take(), ["c/a: \(number - 1) -> \(number)"])
        }
        expectNil(slow.take())
        expectNil(slowest.take())
        slow.position = harness.store.currentReadTime
        try await harness.commit([.set("c/a", fields(121))])
        expectEqual(slow.take(), ["c/a: 120 -> 121"])
        try harness.finish()
    }

    @Test
    func `Changes that all subscribers have taken are not kept`() async throws {
        let harness = try StoreHarness()
        let (first, second) = (Subscriber(harness.store), Subscriber(harness.store))
        let start = first.position
        try await harness.commit([.set("c/a", fields(1))])
        expectEqual(first.take()?.count, 1)
        // The second has not taken the change.
        expectEqual(first.subscription.changes(after: start, through: first.position)?.count, 1)
        expectEqual(second.take()?.count, 1)
        expectEqual(first.take(), [])
        expectNil(first.subscription.changes(after: start, through: first.position))
        try harness.finish()
    }
}
