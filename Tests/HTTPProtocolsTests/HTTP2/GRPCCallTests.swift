// gRPC calls over a real socket: framing, statuses, compression, deadlines, flow control, the end.

import Basics
import ConnectionTestSupport
import Foundation
import Glibc
import TestSupport
import Testing

@testable import HTTPProtocols
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct GRPCCallTests {
    // MARK: Shapes

    @Test func `A unary call brings back what the handler wrote`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 1 << 24))
        client.send(.window(1 << 28, stream: 0))
        for size in [0, 1, 100, 16_379, 16_384, 20_000, 70_000, 1_000_000] {
            let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let stream = client.newStream()
            client.send(.request(path(.getDocument), stream: stream))
            let message = grpcMessage(payload)
            for start in stride(from: 0, to: message.count, by: 16_384) {
                let part = Array(message[start..<min(start + 16_384, message.count)])
                client.send(.data(part, stream: stream, endStream: start + 16_384 >= message.count))
            }
            let answer = client.answer(stream)
            expectEqual(
                answer.head,
                [":status": "200", "content-type": "application/grpc", "grpc-accept-encoding": "identity,deflate,gzip"])
            expectEqual(answer.messages, [payload])
            expectEqual(answer.blocks.last, ["grpc-status": "0"])
        }
    }

    @Test func `A message may be cut into DATA frames anywhere`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let message = grpcMessage([1, 2, 3])
        for cut in 0...message.count {
            let stream = client.newStream()
            client.send(.request(path(.getDocument), stream: stream))
            client.send(.data(Array(message[..<cut]), stream: stream, endStream: false))
            client.ping()
            client.send(.data(Array(message[cut...]), stream: stream))
            expectEqual(client.answer(stream).messages, [[1, 2, 3]], "cut at \(cut)")
        }
    }

    @Test func `A frame may arrive byte by byte, and padding does not matter`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let frames: [HTTP2Frame] = [
            .request(path(.getDocument), stream: 1),
            HTTP2Frame(.data, 8 | 1, stream: 1, [2] + grpcMessage([6, 6]) + [0, 0]),
        ]
        for byte in frames.flatMap(\.bytes) { client.raw.send([byte]) }
        expectEqual(client.answer(1).messages, [[6, 6]])
    }

    @Test func `The end may come after the message, in an empty frame`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let stream = client.request(.getDocument, [5], endStream: false)
        client.ping()
        expectNil(client.transcript.answers[stream])
        client.send(.data([], stream: stream))
        expectEqual(client.answer(stream).messages, [[5]])
    }

    @Test func `A streaming reply arrives whole and in order`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 1 << 30))
        client.send(.window(1 << 30, stream: 0))
        let answer = client.callAndWait(.runQuery, littleEndianBytes(5_000, 2_000))
        expectEqual(answer.messages?.count, 5_000)
        expectEqual(
            answer.messages?.enumerated().allSatisfy {
                $1.prefix(4) == littleEndianBytes(UInt32($0))[...] && $1.count == 2_000
            }, true)
        expectEqual(answer.status, 0)
    }

    @Test func `A bidirectional call carries messages both ways, several in one frame too`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let stream = client.newStream()
        client.send(.request(path(.write), stream: stream))
        // The head comes before any message does.
        expect(client.read { $0.answers[stream]?.blocks.count == 1 })
        client.send(.data(grpcMessage([1]), stream: stream, endStream: false))
        expect(client.read { $0.answers[stream]?.messages == [[1]] })
        client.send(.data(grpcMessage([2]) + grpcMessage([3]) + grpcMessage([]), stream: stream, endStream: false))
        expect(client.read { $0.answers[stream]?.messages?.count == 4 })
        client.send(.data(grpcMessage([4]), stream: stream))
        let answer = client.answer(stream)
        expectEqual(answer.messages, [[1], [2], [3], [], [4]])
        expectEqual(answer.status, 0)
    }

    @Test func `A thousand streams are open at once`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let streams = (0..<1_000).map { client.request(.commit, [UInt8(truncatingIfNeeded: $0)]) }
        expect(live.record.reaches { $0.pending.count == 1_000 })
        for call in live.record.state.withLock({ $0.pending }) {
            call.loop.execute { call.respond { $0.append(littleEndian: call.stream) } }
        }
        for stream in streams { expectEqual(client.answer(stream).messages, [littleEndianBytes(stream)]) }
    }

    // MARK: Statuses

    @Test func `An error is one frame, its text percent-encoded`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let answer = HTTP2Client(live).callAndWait(.rollback, Array("é%\n zu spät".utf8))
        expectEqual(
            answer.blocks,
            [
                [
                    ":status": "200", "content-type": "application/grpc", "grpc-status": "10",
                    "grpc-message": "%C3%A9%25%0A zu sp%C3%A4t",
                ]
            ])
        expectEqual(answer.data, [])
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        var name: String
        var status: Int
        var text: String
        var frames: [HTTP2Frame]
        var testDescription: String { name }

        init(_ name: String, _ status: StatusCode, _ text: String, _ frames: HTTP2Frame...) {
            self.name = name
            self.status = Int(status.rawValue)
            self.text = text
            self.frames = frames
        }
    }

    private static let get = path(.getDocument)

    static let refused: [Refused] = [
        Refused(
            "an unknown method", .unimplemented, "unknown method /test.Store/Nothing",
            .request("/test.Store/Nothing", stream: 1), .data(grpcMessage([1]), stream: 1)),
        Refused(
            "a method that is known and not served", .unimplemented, "Later is not implemented yet: use Now",
            .request("/test.Store/Later", stream: 1), .data(grpcMessage([1]), stream: 1)),
        Refused(
            "an unknown service", .unimplemented, "unknown method /a.b/C",
            .request("/a.b/C", stream: 1, endStream: true)),
        Refused(
            "no message", .unimplemented, "GetDocument takes exactly one message",
            .request(get, stream: 1, endStream: true)),
        Refused(
            "no message, later", .unimplemented, "GetDocument takes exactly one message",
            .request(get, stream: 1), .data([], stream: 1)),
        Refused(
            "two messages", .unimplemented, "GetDocument takes exactly one message",
            .request(get, stream: 1), .data(grpcMessage([1]) + grpcMessage([2]), stream: 1)),
        Refused(
            "a second message in a separate frame", .unimplemented, "GetDocument takes exactly one message",
            .request(get, stream: 1), .data(grpcMessage([1]), stream: 1, endStream: false),
            .data(grpcMessage([2]), stream: 1)),
        Refused(
            "the end inside a prefix", .internal, "the request ended inside a message",
            .request(get, stream: 1), .data([0, 0], stream: 1)),
        Refused(
            "the end inside a message", .internal, "the request ended inside a message",
            .request(get, stream: 1), .data(Array(grpcMessage([1, 2, 3]).dropLast()), stream: 1)),
        Refused(
            "a reserved flag", .internal, "a message begins with 2, which is neither 0 nor 1",
            .request(get, stream: 1), .data(grpcMessage([1], flag: 2), stream: 1)),
        Refused(
            "a message above the limit", .resourceExhausted, "a message exceeds the limit of 10485760 bytes",
            .request(get, stream: 1), .data([0, 0, 0xA0, 0, 1, 7], stream: 1)),
        Refused(
            "metadata above the limit", .resourceExhausted,
            "the metadata of the request exceeds the limit of 16384 bytes",
            .request(get, stream: 1, fields: [("x", String(repeating: "y", count: 16_200))]),
            .data(grpcMessage([1]), stream: 1)),
        Refused(
            "two credentials", .invalidArgument, "the request has more than one authorization",
            .request(get, stream: 1, fields: [("authorization", "a"), ("authorization", "b")]),
            .data(grpcMessage([1]), stream: 1)),
        Refused(
            "a timeout without a unit", .internal, "grpc-timeout is malformed",
            .request(get, stream: 1, fields: [("grpc-timeout", "30")]), .data(grpcMessage([1]), stream: 1)),
        Refused(
            "compression that was not declared", .internal,
            "a message is compressed, but the request names no grpc-encoding",
            .request(get, stream: 1), .data(grpcMessage([1], flag: 1), stream: 1)),
        Refused(
            "damaged compression", .internal, "a compressed message is damaged",
            .request(get, stream: 1, fields: [("grpc-encoding", "gzip")]),
            .data(grpcMessage([1, 2, 3], flag: 1), stream: 1)),
    ]

    @Test(arguments: refused)
    func `What cannot be served is refused with its status, and the connection stays usable`(refused: Refused) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.raw.send(refused.frames.flatMap(\.bytes))
        let answer = client.answer(1)
        expectEqual(answer.status, refused.status)
        expectEqual(answer.text, refused.text)
        expectEqual(answer.head[":status"], "200")
        client.send(.request(Self.get, stream: 3), .data(grpcMessage([9]), stream: 3))
        expectEqual(client.answer(3).messages, [[9]])
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test(arguments: [false, true])
    func `A stream of messages that ends without one ends with OK`(withHead: Bool) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.raw.send(
            withHead
                ? HTTP2Frame.request(path(.write), stream: 1, endStream: true).bytes
                : [.request(path(.write), stream: 1), .data([], stream: 1)].flatMap { (frame: HTTP2Frame) in frame.bytes
                })
        let answer = client.answer(1)
        expectEqual(answer.status, 0)
        expectEqual(answer.messages, [])
        client.send(.request(Self.get, stream: 3), .data(grpcMessage([9]), stream: 3))
        expectEqual(client.answer(3).messages, [[9]])
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test func `A call refused while its client still sends is closed in good order`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.send(.request("/a.b/C", stream: 1))
        expect(client.read { $0.frames.contains { $0.isKind(.reset) } })
        expectEqual(client.transcript.answers[1]?.status, 12)
        expectEqual(client.transcript.frames.last { $0.isKind(.reset) }?.code, 0)
    }

    @Test func `An unknown compression is refused with the known ones`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let answer = HTTP2Client(live).callAndWait(.getDocument, [1], fields: [("grpc-encoding", "snappy")])
        expectEqual(answer.status, 12)
        expectEqual(answer.head["grpc-accept-encoding"], "identity,deflate,gzip")
    }

    @Test func `A request that is not gRPC gets a status of HTTP`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        func status(_ fields: [(String, String)]) -> String? {
            let stream = client.newStream()
            client.send(.headers(fields, stream: stream, endStream: true))
            return client.answer(stream).head[":status"]
        }
        let common = [(":scheme", "http"), (":path", Self.get), (":authority", "x")]
        expectEqual(status([(":method", "GET")] + common), "405")
        expectEqual(status([(":method", "POST")] + common), "415")
        expectEqual(status([(":method", "POST")] + common + [("content-type", "application/json")]), "415")
        expectEqual(status([(":method", "POST")] + common + [("content-type", "application/grpc+json")]), "415")
        expectEqual(status([(":method", "POST")] + common + [("content-type", "application/grpcweb")]), "415")
        for accepted in [
            "application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8",
            "application/grpc+proto;a=b",
        ] {
            let stream = client.newStream()
            client.send(.headers([(":method", "POST")] + common + [("content-type", accepted)], stream: stream))
            client.send(.data(grpcMessage([1]), stream: stream))
            expectEqual(client.answer(stream).messages, [[1]], "\(accepted)")
        }
    }

    @Test func `Metadata of Firestore's clients pass`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let answer = HTTP2Client(live).callAndWait(
            .getDocument, [1],
            fields: [
                ("authorization", "Bearer owner"), ("google-cloud-resource-prefix", "projects/p/databases/(default)"),
                ("x-goog-request-params", "database=projects/p/databases/%28default%29"), ("grpc-timeout", "60100m"),
                ("grpc-accept-encoding", "identity, deflate, gzip"), ("x-goog-api-client", "gl-python/3.11"),
                ("binary-bin", "AAEC"),
            ])
        expectEqual(answer.messages, [[1]])
        expectEqual(live.record.state.withLock { $0.heads[0].deadlineMilliseconds }, 60_100)
    }

    @Test func `What clients show is kept for the service if it asks for it`() throws {
        for isKept in [false, true] {
            let live = try LiveServer { $0.keepsAuthorization = isKept }
            defer { live.stop() }
            let client = HTTP2Client(live)
            _ = client.callAndWait(.getDocument, [1], fields: [("authorization", "Bearer a.b.c")])
            _ = client.callAndWait(.getDocument, [1])
            expectEqual(live.record.state.withLock { $0.authorizations }, [isKept ? "Bearer a.b.c" : nil, nil])
        }
    }

    // MARK: Compression

    @Test func `Compressed requests are inflated, whole and in parts`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 1 << 24))
        // `printf 'hearth hearth hearth' | gzip -n`, and the same through zlib's format.
        let gzip: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48, 0x4D, 0x2C, 0x2A, 0xC9, 0x50, 0xC8, 0x40, 0xA6, 0, 0x74,
            0x96, 0x22, 0x94,
            0x14, 0, 0, 0,
        ]
        let plain = Array("hearth hearth hearth".utf8)
        let zlib = Compressed.zlib(plain)
        for (name, bytes) in [("gzip", gzip), ("deflate", zlib)] {
            let stream = client.newStream()
            let message = grpcMessage(bytes, flag: 1)
            client.send(
                .request(Self.get, stream: stream, fields: [("grpc-encoding", name)]), .data(message, stream: stream))
            expectEqual(client.answer(stream).messages, [plain], "\(name)")
            let parts = client.newStream()
            client.send(.request(Self.get, stream: parts, fields: [("grpc-encoding", name)]))
            for byte in message { client.send(.data([byte], stream: parts, endStream: false)) }
            client.send(.data([], stream: parts))
            expectEqual(client.answer(parts).messages, [plain], "\(name) in parts")
        }
        // A message may be plain although compression is declared.
        expectEqual(client.callAndWait(.getDocument, [1], fields: [("grpc-encoding", "gzip")]).messages, [[1]])
    }

    @Test func `A bomb is given up at the limit`() throws {
        let live = try LiveServer { $0.messageBytesMax = 100_000 }
        defer { live.stop() }
        let client = HTTP2Client(live)
        let fitting = Compressed.zlib([UInt8](repeating: 0, count: 100_000))
        let bomb = Compressed.zlib([UInt8](repeating: 0, count: 50_000_000))
        expect(bomb.count < 100_000)
        let first = client.newStream()
        client.send(.request(Self.get, stream: first, fields: [("grpc-encoding", "deflate")]))
        for start in stride(from: 0, to: bomb.count + 5, by: 16_000) {
            let message = grpcMessage(bomb, flag: 1)
            client.send(
                .data(
                    Array(message[start..<min(start + 16_000, message.count)]), stream: first,
                    endStream: start + 16_000 >= message.count))
        }
        expectEqual(client.answer(first).status, 8)
        let second = client.newStream()
        client.send(.request(path(.deleteDocument), stream: second, fields: [("grpc-encoding", "deflate")]))
        client.send(.data(grpcMessage(fitting, flag: 1), stream: second))
        expectEqual(client.answer(second).status, 0)
    }

    // MARK: Time

    @Test func `A deadline ends the call with its status`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let answer = client.callAndWait(.commit, [1], fields: [("grpc-timeout", "20m")])
        expectEqual(answer.status, 4)
        expect(live.record.reaches { $0.cancelled == [.deadlineExceeded] })
        expectEqual(client.callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test(arguments: [RPC.write, .commit])
    func `A deadline counts from the head, and ends a call whose client sends no message`(rpc: RPC) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let stream = client.newStream()
        client.send(.request(path(rpc), stream: stream, fields: [("grpc-timeout", "20m")]))
        let answer = client.answer(stream)
        expectEqual(answer.status, 4)
        expectEqual(answer.text, "the deadline of the call has passed")
        expectEqual(client.callAndWait(.getDocument, [1]).messages, [[1]])
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test func `A deadline ends a stream whose client does not read`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (4, 0))
        let stream = client.request(.runQuery, littleEndianBytes(10, 100), fields: [("grpc-timeout", "1S")])
        let answer = client.answer(stream)
        expectEqual(answer.status, 4)
        expect(live.record.reaches { $0.sourcesCancelled + $0.cancelled.count > 0 })
    }

    @Test func `A request that stalls is not waited for`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 50 }
        defer { live.stop() }
        let silent = RawClient(port: live.server.port)
        silent.send(HTTP2Preface.bytes)
        var transcript = HTTP2Transcript()
        transcript.add(silent.receiveAll())
        expectEqual(transcript.goAways.last?.text, "no SETTINGS within 50 ms")
        let client = HTTP2Client(live)
        client.send(HTTP2Frame(.headers, 0, stream: 1, [0x83]))
        expectEqual(client.readAll().goAways.last?.text, "a request did not arrive in time")
    }

    @Test func `A call whose message stalls ends, and other calls of the connection continue`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        let client = HTTP2Client(live)
        let other = client.request(.commit, [1])
        for part in [[], [0, 0, 0, 0, 9, 1]] as [[UInt8]] {
            let stream = client.newStream()
            client.send(.request(Self.get, stream: stream), .data(part, stream: stream, endStream: false))
            let answer = client.answer(stream)
            expect(answer.status == 4 && answer.text == "a message did not arrive in time")
        }
        let call = try #require(live.record.state.withLock { $0.pending.first })
        call.loop.execute { call.respond { $0.append([7]) } }
        expect(client.answer(other).messages == [[7]] && client.transcript.goAways.isEmpty)
    }

    @Test func `PINGs do not prolong the time of a request`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        for frames in [
            [HTTP2Frame.request(Self.get, stream: 1)],
            [HTTP2Frame.request(Self.get, stream: 1), .data([0, 0, 0, 0, 9, 1], stream: 1, endStream: false)],
            // A whole message whose stream does not end.
            [HTTP2Frame.request(Self.get, stream: 1), .data(grpcMessage([1]), stream: 1, endStream: false)],
            // The second message of a call that takes several.
            [
                HTTP2Frame.request(path(.write), stream: 1), .data(grpcMessage([1]), stream: 1, endStream: false),
                .data([0, 0, 0, 0, 9, 1], stream: 1, endStream: false),
            ],
        ] {
            let client = HTTP2Client(live)
            client.raw.send(frames.flatMap(\.bytes))
            for _ in 0..<500 where client.transcript.answers[1]?.isEnded != true {
                usleep(10_000)
                client.ping()
            }
            expectEqual(client.transcript.answers[1]?.status, 4)
        }
    }

    @Test func `A header list that trickles is not waited for`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        let whole = HTTP2Frame.request(Self.get, stream: 1, fields: [("x", String(repeating: "y", count: 2_000))]).bytes
        let client = HTTP2Client(live)
        client.ping()
        var sent = 0
        while sent < 500, !client.raw.hasInput {
            client.raw.send([whole[sent]])
            sent += 1
            usleep(10_000)
        }
        expect(sent < 500)
        expectEqual(client.readAll().goAways.last?.text, "a request did not arrive in time")
    }

    @Test func `A message that arrives slowly has time for its size`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        let client = HTTP2Client(live)
        // As much as the reply may be without an update of the client's window.
        let payload = [UInt8](repeating: 5, count: 60_000)
        let message = grpcMessage(payload)
        client.send(.request(Self.get, stream: 1))
        // Half a second, which is much less than the time that 60,000 bytes allow.
        for start in stride(from: 0, to: message.count, by: 6_000) {
            client.send(
                .data(Array(message[start...].prefix(6_000)), stream: 1, endStream: start + 6_000 >= message.count))
            // Half a second in all is longer than the time of a request that stalls.
            usleep(50_000)
        }
        expectEqual(client.answer(1).messages?.first?.count, payload.count)
    }

    @Test func `An idle connection is closed in good order, one with an open call is not`() throws {
        let live = try LiveServer { $0.idleMilliseconds = 50 }
        defer { live.stop() }
        let busy = HTTP2Client(live)
        let stream = busy.request(.commit, [1])
        expect(live.record.reaches { $0.pending.count == 1 })
        let idle = HTTP2Client(live)
        let goAway = idle.readAll().goAways.last
        expectEqual(goAway?.code, 0)
        expectEqual(goAway?.text, "idle for 50 ms")
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute { call.respond { $0.append([3]) } }
        expectEqual(busy.answer(stream).messages, [[3]])
    }

    // MARK: Cancellation

    @Test func `A reset cancels the call, and its source`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let commit = client.request(.commit, [1])
        expect(live.record.reaches { $0.pending.count == 1 })
        let pending = live.record.state.withLock { $0.pending[0] }
        client.send(.reset(8, stream: commit))
        expect(live.record.reaches { $0.cancelled == [.client] })
        pending.loop.execute { pending.respond { $0.append([1]) } }
        let query = client.request(.runQuery, littleEndianBytes(1_000_000, 10_000))
        expect(client.read { $0.answers[query]?.data.isEmpty == false })
        client.send(.reset(8, stream: query), .window(1 << 20, stream: 0))
        expect(live.record.reaches { $0.sourcesCancelled == 1 })
        expectEqual(client.callAndWait(.getDocument, [5]).messages, [[5]])
        expectNil(client.transcript.answers[commit])
        expect(live.record.state.withLock { $0.messagesProduced } < 1_000)
    }

    @Test func `A connection that is lost cancels its calls`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        do {
            let client = HTTP2Client(live)
            client.sendRequest(.commit, [1])
            expect(live.record.reaches { $0.pending.count == 1 })
        }
        expect(live.record.reaches { $0.cancelled == [.connectionClosed] })
    }
}
