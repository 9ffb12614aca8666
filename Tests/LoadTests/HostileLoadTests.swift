// Clients that do not read, that send too much, or that send nonsense: the server's memory stays bounded, each gets a
// clear answer or a closed connection, and everybody else is served.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct HostileLoadTests {
    /// What a stalled stream may hold: a page of results, and its share of the connection's output.
    private static let streamMegabytesMax = 2

    @Test
    func `Readers that never read do not grow the server`() async throws {
        // The server closes the connection of a reader that takes nothing for 30 s, and so would end what is measured
        // here whenever the commits below take longer than that.
        let fixture = try LoadFixture(["--slow-reader-time", "1h", "--stalled-reply-time", "1h"])
        let client = try fixture.client()
        // 64 MB in one collection, asked for by 30 connections of which none reads.
        let text = Value.string(String(repeating: "x", count: 64_000))
        for batch in 0..<20 {
            var writes = CommitWrites(database: LoadFixture.database)
            for number in 0..<50 {
                writes.set(
                    LoadFixture.name("large/\(batch)-\(number)"), fields: MapValue([("text", text)]).documentBytes)
            }
            try await client.commit(writes)
        }
        let before = try fixture.privateMegabytes()
        let query = RunQueryRequest(
            parent: LoadFixture.database.documentsRoot,
            query: StructuredQuery(from: [CollectionSelector(collectionID: "large")]))
        // RUN_QUERY is method 10; flag 1 ends the request; a window of 1 GiB asks for everything at once.
        let window: [UInt8] = [4, 0, 0xFF, 0xFF, 0xFF, 0x3F]
        let readers = try (0..<30).map { _ in
            let connection = try RawConnection(port: fixture.server.port)
            // In one write, so that the server reads all four queries before it pauses the connection.
            var bytes = RawConnection.preface + RawConnection.frame(kind: 1, code: 1, payload: window)
            for stream in [UInt32(1), 3, 5, 7] {
                bytes += RawConnection.frame(kind: 2, flags: 1, code: 10, stream: stream, payload: query.encodedBytes())
            }
            expect(connection.send(bytes))
            return connection
        }
        // Each reader's socket holds what it is given without reading, so each query is under way and stopped.
        try await eventually("60,000 bytes stand in each socket") { readers.allSatisfy { $0.waitingBytes > 60_000 } }
        // Four on each connection, and the request of the page itself.
        try expectEqual(fixture.metric("hearth_calls_open"), 121)
        // Meanwhile everybody else is served.
        for number in 0..<200 {
            var writes = CommitWrites(database: LoadFixture.database)
            writes.set(
                LoadFixture.name("small/\(number)"), fields: MapValue([("n", .integer(Int64(number)))]).documentBytes)
            try await client.commit(writes)
            try await expect(client.getDocument(LoadFixture.name("small/\(number)")) != nil)
        }
        // 120 streams of 64 MB would be 7.7 GB; none of their bytes has been taken, and each is held up.
        let after = try fixture.privateMegabytes()
        expect(after - before < 120 * Self.streamMegabytesMax, "private memory went from \(before) to \(after) MB")
        try expectEqual(fixture.metric("hearth_calls_open"), 121)
        withExtendedLifetime(readers) {}
        await client.close()
        try fixture.expectSoundEnd()
    }

    @Test
    func `Requests over the limits get a clear status and leak no memory`() async throws {
        let fixture = try LoadFixture()
        let client = try fixture.client()
        func refusal(_ build: (inout CommitWrites) -> Void) async throws -> RequestError? {
            var writes = CommitWrites(database: LoadFixture.database)
            build(&writes)
            do {
                try await client.commit(writes)
                return nil
            } catch { return error }
        }
        let half = Value.string(String(repeating: "x", count: 600_000))
        func round() async throws {
            let tooLarge = try await refusal {
                $0.set(LoadFixture.name("c/large"), fields: MapValue([("a", half), ("b", half)]).documentBytes)
            }
            expectEqual(tooLarge?.code, .invalidArgument)
            let tooLong = try await refusal {
                for number in 0..<20 {
                    $0.set(LoadFixture.name("c/\(number)"), fields: MapValue([("a", half)]).documentBytes)
                }
            }
            expect(
                tooLong?.code == .resourceExhausted || tooLong?.code == .invalidArgument,
                "\(String(describing: tooLong))")
            let badName = try await refusal { $0.set(LoadFixture.name("c/__reserved__"), fields: [UInt8]()) }
            expectEqual(badName?.code, .invalidArgument)
            let badBytes = try await refusal { $0.set(LoadFixture.name("c/bad"), fields: [0x12, 0x7F, 0x01]) }
            expectEqual(badBytes?.code, .invalidArgument)
        }
        for _ in 0..<10 { try await round() }
        let before = try fixture.privateMegabytes()
        for _ in 0..<30 { try await round() }
        // A round sends 13 MB: a leak of one in ten of them would show.
        let after = try fixture.privateMegabytes()
        expect(after - before < 32, "private memory went from \(before) to \(after) MB in 30 rounds")
        try await expect(
            client.runQuery(
                RunQueryRequest(
                    parent: LoadFixture.database.documentsRoot,
                    query: StructuredQuery(from: [CollectionSelector(collectionID: "c")]))
            ).isEmpty)
        await client.close()
        try fixture.expectSoundEnd()
    }

    @Test
    func `Frames with wrong lengths close the connection, and no other client notices`() async throws {
        let fixture = try LoadFixture()
        let client = try fixture.client()
        let lies: [[UInt8]] = [
            RawConnection.hello + RawConnection.frame(kind: 2, flags: 1, code: 1, stream: 1, length: .max),
            RawConnection.hello + RawConnection.frame(kind: 2, flags: 1, code: 1, stream: 0),
            RawConnection.hello + RawConnection.frame(kind: 2, flags: 0xFF, code: 1, stream: 1),
            RawConnection.hello + RawConnection.frame(kind: 99),
            RawConnection.preface + RawConnection.frame(kind: 2, flags: 1, code: 1, stream: 1),
            RawConnection.preface + RawConnection.frame(kind: 1, code: 77),
            RawConnection.frame(kind: 1, code: 1),
            [UInt8](repeating: 0xFF, count: 4096),
        ]
        for lie in lies {
            let connection = try RawConnection(port: fixture.server.port)
            expect(connection.send(lie))
            expect(connection.readToEnd() != nil, "the connection stayed open after \(lie.prefix(24))")
        }
        // Random bytes, and random bytes after a valid beginning.
        var random = SeededGenerator(seed: .random(in: 0...UInt64.max))
        print("seed \(random.seed)")
        for _ in 0..<100 * LoadFixture.scale {
            let connection = try RawConnection(port: fixture.server.port)
            let noise = (0..<random.below(2000)).map { _ in UInt8.random(in: 0...255, using: &random) }
            expect(connection.send((random.oneIn(2) ? RawConnection.hello : []) + noise))
        }
        var writes = CommitWrites(database: LoadFixture.database)
        writes.set(LoadFixture.name("c/after"), fields: MapValue([("n", 1)]).documentBytes)
        try await client.commit(writes)
        try await expect(client.getDocument(LoadFixture.name("c/after")) != nil, "seed \(random.seed)")
        await client.close()
        try fixture.expectSoundEnd()
    }
}
