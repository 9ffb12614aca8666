// The messages about databases that move.

import Basics
import TestSupport
import Testing

@testable import FirestoreMessages

@Suite(.timeLimit(.minutes(20)))
struct MoveMessageTests {
    private func check<Message: FirestoreMessage & Equatable>(_ message: Message) throws {
        let bytes = message.encodedBytes()
        try expectEqual(Message(wire: bytes.byteSpan), message)
        // Unknown fields are skipped.
        try expectEqual(Message(wire: (bytes + [0x7A, 1, 0]).byteSpan), message)
        for length in 0..<bytes.count { _ = try? Message(wire: Array(bytes[..<length]).byteSpan) }
    }

    @Test
    func `Messages are read as they were written, and cut ones never trap`() throws {
        try check(MoveDatabaseRequest(database: "projects/p/databases/d", store: "b"))
        try check(MoveDatabaseRequest(database: "projects/p/databases/d"))
        var moved = MovedDatabase(store: "main")
        try check(moved)
        (moved.movingTo, moved.generation, moved.isReleasing, moved.documents) = ("b", .max, true, 7)
        moved.note = "the store b has no leader"
        try check(moved)
        let request = ReceiveDatabaseRequest(store: "b", database: "projects/p/databases/d", generation: 3)
        try check(request)
        try check(
            ReceiveDatabaseRequest(store: "b", database: "d", generation: 0, chunk: [UInt8](repeating: 9, count: 300)))
        for state in [ReceivedDatabase.State.owned, .receiving, .none] {
            var received = ReceivedDatabase(state, generation: 5, progress: [1, 2])
            received.indexWork = 9
            try check(received)
        }
    }

    @Test
    func `A state that is unknown counts as none`() throws {
        try expectEqual(ReceivedDatabase(wire: ([0x08, 9] as [UInt8]).byteSpan).state, .none)
    }
}
