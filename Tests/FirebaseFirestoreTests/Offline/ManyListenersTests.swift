// Many listeners of one client: a change costs those that it may concern.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct ManyListenersTests {
    private static let count = 300

    /// How many channels the engine has looked at.
    private static func examinedCount(_ engine: SyncEngine) -> Int {
        let count = Atomic(0)
        engine.queue.sync { count.store(engine.examinedChannelCount, ordering: .relaxed) }
        return count.load(ordering: .relaxed)
    }

    @Test
    func `What listeners cost each other does not grow with their number`() async throws {
        let database = try TestBackend.memory.start()
        let firestore = TestFirestore.make(host: database.host)
        let engine = try firestore.engine()
        // Of documents, and of a query each.
        let seen = Mutex<[Int: Int]>([:])
        let registrations = (0..<Self.count).map { number in
            let note = { @Sendable (value: Int?) in seen.withLock { $0[number] = value } }
            if number % 2 == 0 {
                return firestore.document("c/d\(number)").addSnapshotListener { snapshot, _ in
                    note(snapshot.map { $0.get("n") as? Int ?? 0 })
                }
            }
            return firestore.collection("c\(number)").addSnapshotListener { snapshot, _ in
                note(snapshot.map { $0.documents.first?.get("n") as? Int ?? 0 })
            }
        }
        try await eventually("all have begun") { seen.withLock { $0.count } == Self.count }
        let before = Self.examinedCount(engine)
        // Its own snapshots: of the cache, of the server.
        expect(before <= 10 * Self.count)
        for number in 0..<Self.count {
            try await firestore.document(number % 2 == 0 ? "c/d\(number)" : "c\(number)/d").setData(["n": 7])
        }
        try await eventually("all have seen their changes") { seen.withLock { $0.values.allSatisfy { $0 == 7 } } }
        // The write, its acknowledgement, what the server sends.
        expect(Self.examinedCount(engine) - before <= 10 * Self.count)
        for registration in registrations { registration.remove() }
        engine.queue.sync {}
        expect(engine.channels.isEmpty)
        try await firestore.terminate()
        expect(database.stop())
    }
}
