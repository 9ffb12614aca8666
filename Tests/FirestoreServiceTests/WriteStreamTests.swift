// The Write stream through the service: handshake, order, tokens, failures, and a stream taken up again.

import Basics
import DocumentModel
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WriteStreamTests {
    /// A stream of a test.
    private final class Client {
        let harness: Harness
        let call: TestCall

        init(_ harness: Harness, _ handshake: WriteRequestMessage = WriteRequestMessage(database: Harness.database)) {
            self.harness = harness
            call = TestCall(loop: harness.loop, method: .write)
            harness.service.begin(call, Self.bytes(handshake))
        }

        private static func bytes(_ message: WriteRequestMessage) -> [UInt8] {
            var writer = ByteBuffer()
            message.encode(into: &writer)
            return writer.copyBytes()
        }

        func send(_ message: WriteRequestMessage) {
            call.send(Self.bytes(message))
        }

        /// Sends one write of an integer field.
        func set(_ path: String, _ value: Int64, token: [UInt8], precondition: Precondition? = nil) throws {
            var writes = try harness.emptyWrites()
            let fields = Harness.fields(["a": .integer(value)])
            try Harness.name(path).withUTF8Span {
                try writes.update($0, fields: fields.span.bytes, precondition: precondition)
            }
            send(WriteRequestMessage(writes: writes, streamToken: token))
        }

        /// Waits for so many answers and returns them all.
        func answers(_ count: Int) throws -> [WriteResponse] {
            expect(harness.loop.run { call.answer.messages.count >= count || call.answer.status != nil })
            return try call.answer.messages.map { try WriteResponse(wire: $0.span.bytes) }
        }

        func leave() { call.halfClose() }

        func status() -> TestAnswer {
            expect(harness.loop.run { call.answer.status != nil })
            return call.answer
        }
    }

    @Test
    func `A handshake, pipelined writes in order, and the end`() throws {
        let harness = try Harness()
        let client = Client(harness)
        let hello = try #require(try client.answers(1).first)
        expect(!hello.streamID.isEmpty && !hello.streamToken.isEmpty)
        expect(hello.commitTime == nil && hello.writeResults.isEmpty)
        for value in 1...10 { try client.set("c/x", Int64(value), token: hello.streamToken) }
        let answers = try client.answers(11)
        expectEqual(answers.count, 11)
        let times = answers.dropFirst().compactMap { $0.commitTime?.microseconds }
        expect(times.count == 10 && times == times.sorted() && Set(times).count == 10)
        expectEqual(Set(answers.map(\.streamToken)).count, 11)
        expect(answers.dropFirst().allSatisfy { $0.writeResults.count == 1 && $0.streamID.isEmpty })
        try expectEqual(harness.get("c/x")?.fields, Harness.fields(["a": .integer(10)]))
        client.send(WriteRequestMessage(streamToken: answers[10].streamToken))
        expectEqual(client.status().status, .ok)
    }

    @Test
    func `A message may repeat the stream's database and name no other`() throws {
        let harness = try Harness()
        let client = Client(harness)
        let hello = try #require(try client.answers(1).first)
        var writes = try harness.emptyWrites()
        let fields = Harness.fields(["a": .integer(1)])
        try Harness.name("c/x").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        client.send(
            WriteRequestMessage(database: Harness.database, writes: writes, streamToken: hello.streamToken))
        try expectEqual(client.answers(2).count, 2)
        client.send(
            WriteRequestMessage(database: "projects/p/databases/e", writes: writes, streamToken: hello.streamToken))
        let status = client.status()
        expectEqual(status.status, .invalidArgument)
        expect(
            status.text.contains(
                "Request specified a database (projects/p/databases/e) that did not match the expected database "
                    + "(\(Harness.database))"))
        expectEqual(status.messages.count, 2)
    }

    @Test
    func `Half-closing after writes still answers them`() throws {
        let harness = try Harness()
        let client = Client(harness)
        try client.set("c/x", 1, token: [])
        try client.set("c/x", 2, token: [])
        client.leave()
        expect(client.status().isOK)
        try expectEqual(client.answers(3).count, 3)
    }

    @Test
    func `A failed batch ends the stream, and nothing that followed it is applied`() throws {
        let harness = try Harness()
        let client = Client(harness)
        try client.set("c/a", 1, token: [])
        try client.set("c/b", 1, token: [], precondition: .exists(true))
        try client.set("c/c", 1, token: [])
        let answer = client.status()
        expectEqual(answer.status, .notFound)
        expect(answer.text.hasPrefix("No document to update: "))
        expectEqual(answer.messages.count, 2)
        try expect(harness.get("c/a") != nil)
        try expectNil(harness.get("c/c"))
    }

    @Test
    func `A message that is none ends the stream after what came before it`() throws {
        let harness = try Harness()
        let client = Client(harness)
        try client.set("c/a", 1, token: [])
        client.call.send([0x1A, 0x7F, 0])
        let answer = client.status()
        expectEqual(answer.status, .invalidArgument)
        expectEqual(answer.messages.count, 2)
    }

    @Test
    func `A stream taken up again applies nothing twice`() throws {
        let harness = try Harness()
        let first = Client(harness)
        let hello = try #require(try first.answers(1).first)
        try first.set("c/x", 1, token: hello.streamToken)
        let token = try first.answers(2)[1].streamToken
        try first.set("c/x", 2, token: token)
        let lost = try first.answers(3)[2]
        // The answer to the second write did not arrive: the client sends it again on a new stream.
        let second = Client(
            harness,
            WriteRequestMessage(database: Harness.database, streamID: hello.streamID, streamToken: token))
        try expect(second.answers(1)[0].streamID.isEmpty)
        try second.set("c/x", 2, token: token)
        let again = try second.answers(2)[1]
        expect(again.commitTime == lost.commitTime && again.writeResults == lost.writeResults)
        expectEqual(again.streamToken, lost.streamToken)
        try second.set("c/x", 3, token: again.streamToken)
        try expect(#require(try second.answers(3)[2].commitTime).microseconds > lost.commitTime!.microseconds)
        try expectEqual(harness.get("c/x")?.fields, Harness.fields(["a": .integer(3)]))
    }

    @Test
    func `A handshake with writes, a foreign stream id or no database is refused`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        try Harness.name("c/x").withUTF8Span { try writes.delete($0) }
        let handshakes = [
            WriteRequestMessage(database: Harness.database, writes: writes), WriteRequestMessage(),
            WriteRequestMessage(database: Harness.database, streamID: "17", streamToken: [1]),
        ]
        for handshake in handshakes { expectEqual(Client(harness, handshake).status().status, .invalidArgument) }
    }

    @Test
    func `A token with the largest number is refused, and the largest number that is taken can be committed after`()
        throws
    {
        let harness = try Harness()
        func handshake(_ token: String) -> WriteRequestMessage {
            WriteRequestMessage(
                database: Harness.database, streamID: String(repeating: "a", count: 32),
                streamToken: Array(token.utf8))
        }
        for token in ["ffffffffffffffff", "fffffffffffffffe", "4000000000000001"] {
            let client = Client(harness, handshake(token))
            expectEqual(client.call.answer.status, .invalidArgument, "\(token)")
            // Taken, the number after it would be that of the next commit.
            if client.call.answer.status == nil { return }
        }
        let client = Client(harness, handshake("4000000000000000"))
        try client.set("c/x", 1, token: [])
        try client.set("c/x", 2, token: [])
        try expectEqual(client.answers(3).last?.streamToken, Array("4000000000000002".utf8))
    }

    @Test
    func `Who sends faster than commits are made is asked to hold on`() throws {
        let harness = try Harness()
        let client = Client(harness)
        for value in 0..<100 { try client.set("c/x", Int64(value), token: []) }
        expect(client.call.answer.isPaused)
        try expectEqual(client.answers(101).count, 101)
        expect(!client.call.answer.isPaused)
    }
}
