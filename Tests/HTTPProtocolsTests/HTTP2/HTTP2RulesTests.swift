// Breaches of HTTP/2 itself, byte by byte: the connection or the stream ends with the code that RFC 9113 names, and the
// server continues.

import Basics
import ConnectionTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import HTTPProtocols
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct HTTP2RulesTests {
    /// RFC 9113 section 7.
    enum Code: UInt32 {
        case protocolError = 1
        case flowControl = 3
        case streamClosed = 5
        case frameSize = 6
        case compression = 9
        case enhanceYourCalm = 11
    }

    struct Breach: Sendable, CustomTestStringConvertible {
        var name: String
        var bytes: [UInt8]
        var code: Code
        var testDescription: String { name }

        init(_ name: String, _ code: Code, _ frames: HTTP2Frame...) {
            self.name = name
            self.code = code
            bytes = frames.flatMap(\.bytes)
        }
    }

    private static let get = path(.getDocument)
    private static let open = HTTP2Frame.request(get, stream: 1)

    static let ofConnection: [Breach] = [
        Breach("DATA on an idle stream", .protocolError, .data([0], stream: 5)),
        Breach("DATA on stream 0", .protocolError, .data([0], stream: 0)),
        Breach("HEADERS on stream 0", .protocolError, .headers(HTTP2Frame.grpcFields(get), stream: 0)),
        Breach("HEADERS on an even stream", .protocolError, .request(get, stream: 2)),
        Breach(
            "an index that HPACK does not have", .compression, HTTP2Frame(.headers, 4, stream: 1, [0xFF, 0x80, 0x01])),
        Breach("a header block cut off", .compression, HTTP2Frame(.headers, 4, stream: 1, [0x00, 0x05, 0x61])),
        Breach("index 0", .compression, HTTP2Frame(.headers, 4, stream: 1, [0x80])),
        Breach("a table size above ours", .compression, HTTP2Frame(.headers, 4, stream: 1, [0x3F, 0xE1, 0xFF, 0x03])),
        Breach("SETTINGS of an odd length", .frameSize, HTTP2Frame(.settings, [0, 1, 0])),
        Breach("SETTINGS on a stream", .protocolError, HTTP2Frame(.settings, stream: 1)),
        Breach("an acknowledgement with settings", .frameSize, HTTP2Frame(.settings, 1, [0, 1, 0, 0, 0, 0])),
        Breach("ENABLE_PUSH 2", .protocolError, .settings((2, 2))),
        Breach("a window above the largest", .flowControl, .settings((4, 0x8000_0000))),
        Breach("a frame size below the smallest", .protocolError, .settings((5, 100))),
        Breach("a short PING", .frameSize, HTTP2Frame(.ping, [1, 2, 3])),
        Breach("PING on a stream", .protocolError, HTTP2Frame(.ping, stream: 1, [UInt8](repeating: 0, count: 8))),
        Breach("a short GOAWAY", .frameSize, HTTP2Frame(.goAway, [1, 2, 3])),
        Breach("a window opened by nothing", .protocolError, .window(0, stream: 0)),
        Breach("a window opened too far", .flowControl, .window(0x7FFF_FFFF, stream: 0)),
        Breach("a short WINDOW_UPDATE", .frameSize, HTTP2Frame(.windowUpdate, [1])),
        Breach("WINDOW_UPDATE on an idle stream", .protocolError, .window(1, stream: 9)),
        Breach("RST_STREAM on an idle stream", .protocolError, .reset(8, stream: 9)),
        Breach("RST_STREAM on stream 0", .protocolError, .reset(8, stream: 0)),
        Breach("a short RST_STREAM", .frameSize, open, HTTP2Frame(.reset, stream: 1, [1])),
        Breach("CONTINUATION of nothing", .protocolError, HTTP2Frame(.continuation, 4, stream: 1, [0x82])),
        Breach(
            "another frame inside a header block", .protocolError, HTTP2Frame(.headers, 0, stream: 1, [0x83]),
            HTTP2Frame(.ping, [UInt8](repeating: 0, count: 8))),
        Breach(
            "CONTINUATION of another stream", .protocolError, HTTP2Frame(.headers, 0, stream: 1, [0x83]),
            HTTP2Frame(.continuation, 4, stream: 3, [0x82])),
        Breach(
            "PUSH_PROMISE from a client", .protocolError, open,
            HTTP2Frame(.pushPromise, 4, stream: 1, [0, 0, 0, 2, 0x82])),
        Breach(
            "padding longer than its frame", .protocolError, open,
            HTTP2Frame(.data, HTTP2Frame.padded, stream: 1, [200, 1])),
        Breach(
            "padding of HEADERS longer than they are", .protocolError,
            HTTP2Frame(.headers, 4 | 8, stream: 1, [200, 0x82])),
    ]

    @Test(arguments: ofConnection)
    func `A breach of the connection's rules ends it with its code`(breach: Breach) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.raw.send(breach.bytes)
        let goAway = client.readAll().goAways.last
        expectEqual(goAway?.code, breach.code.rawValue)
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
        expectEqual(live.statistics().protocolErrors, 1)
    }

    @Test func `A frame above our limit ends the connection`() throws {
        let live = try LiveServer { $0.frameBytesMax = 20_000 }
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.send(.request(Self.get, stream: 1), .data([UInt8](repeating: 0, count: 20_001), stream: 1))
        expectEqual(client.readAll().goAways.last?.code, Code.frameSize.rawValue)
    }

    @Test func `A connection that does not begin with SETTINGS ends`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(HTTP2Preface.bytes + HTTP2Frame(.ping, [UInt8](repeating: 0, count: 8)).bytes)
        var transcript = HTTP2Transcript()
        transcript.add(raw.receiveAll())
        expectEqual(transcript.goAways.last?.code, Code.protocolError.rawValue)
    }

    @Test(arguments: ["/run/hearth/admin.sock", "%2Frun%2Fadmin.sock", "./a b", "localhost", ""])
    func `A client on a Unix socket may give the socket's path as the authority`(authority: String) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let directory = TemporaryDirectory("authority")
        try live.server.administrate(atSocket: directory.path(of: "s"), rpcs: TestProcedures.table)
        let client = try HTTP2Client(RawClient(path: directory.path(of: "s")))
        let fields = HTTP2Frame.grpcFields(Self.get).map { $0.0 == ":authority" ? ($0.0, authority) : $0 }
        client.send(.headers(fields, stream: 1), .data(grpcMessage([1]), stream: 1))
        expectEqual(client.answer(1).messages, [[1]])
        // Trailers that do not end the stream.
        client.send(.headers(fields, stream: 3), .headers([("a", "b")], stream: 3))
        expectEqual(client.answer(3).reset, Code.protocolError.rawValue)
        client.send(.headers(fields, stream: 5), .data(grpcMessage([5]), stream: 5))
        expectEqual(client.answer(5).messages, [[5]])
    }

    static let ofStream: [Breach] = [
        Breach(
            "a path as the authority", .protocolError,
            .headers(
                HTTP2Frame.grpcFields(get).map { $0.0 == ":authority" ? ($0.0, "/run/admin.sock") : $0 }, stream: 1)),
        Breach(
            "no :path", .protocolError,
            .headers([(":method", "POST"), (":scheme", "http"), (":authority", "x")], stream: 1)),
        Breach("two :paths", .protocolError, .headers(HTTP2Frame.grpcFields(get) + [(":path", "/x")], stream: 1)),
        Breach(
            "an unknown pseudo field", .protocolError,
            .headers([(":color", "red")] + HTTP2Frame.grpcFields(get), stream: 1)),
        Breach(
            "a pseudo field after others", .protocolError,
            .headers([("a", "b")] + HTTP2Frame.grpcFields(get), stream: 1)),
        Breach(
            "a response's pseudo field", .protocolError,
            .headers([(":status", "200")] + HTTP2Frame.grpcFields(get), stream: 1)),
        Breach(
            "a name in capitals", .protocolError, .headers(HTTP2Frame.grpcFields(get) + [("Accept", "x")], stream: 1)),
        Breach("an empty name", .protocolError, .headers(HTTP2Frame.grpcFields(get) + [("", "x")], stream: 1)),
        Breach(
            "a connection field", .protocolError,
            .headers(HTTP2Frame.grpcFields(get) + [("connection", "close")], stream: 1)),
        Breach(
            "te that is not trailers", .protocolError,
            .headers(HTTP2Frame.grpcFields(get) + [("te", "gzip")], stream: 1)),
        Breach(
            "a content-length that is not kept", .protocolError,
            .headers(HTTP2Frame.grpcFields(get) + [("content-length", "3")], stream: 1), .data([0], stream: 1)),
        Breach("a stream's window opened by nothing", .protocolError, open, .window(0, stream: 1)),
        Breach("a stream's window opened too far", .flowControl, open, .window(0x7FFF_FFFF, stream: 1)),
    ]

    @Test(arguments: ofStream)
    func `A breach of a stream's rules ends the stream, or no more than its connection`(breach: Breach) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.raw.send(breach.bytes)
        expect(client.read { $0.answers[1]?.reset != nil || !$0.goAways.isEmpty })
        let code = client.transcript.answers[1]?.reset ?? client.transcript.goAways.last?.code
        expectEqual(code, breach.code.rawValue)
        if client.transcript.goAways.isEmpty {
            client.send(.request(Self.get, stream: 101), .data(grpcMessage([9]), stream: 101))
            expectEqual(client.answer(101).messages, [[9]])
        }
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test func `What RFC 9113 says to ignore is ignored`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live, settings: (0xFE03, 1), (77, 5))
        var unknown = HTTP2Frame(.ping, [1, 2, 3])
        unknown.kind = 99
        client.send(unknown, HTTP2Frame(.priority, stream: 3, [0, 0, 0, 0, 10]))
        let stream = client.newStream()
        // Padding, priority, and a header block in pieces.
        let block = HTTP2Frame.encode(HTTP2Frame.grpcFields(Self.get))
        client.send(
            HTTP2Frame(.headers, 8 | 0x20, stream: stream, [2] + [0, 0, 0, 0, 15] + block[..<10] + [0, 0]),
            HTTP2Frame(.continuation, 0, stream: stream, Array(block[10..<30])),
            HTTP2Frame(.continuation, 4, stream: stream, Array(block[30...])),
            HTTP2Frame(.data, 8 | 1, stream: stream, [3] + grpcMessage([4, 2]) + [0, 0, 0]))
        expectEqual(client.answer(stream).messages, [[4, 2]])
    }

    @Test func `A client that sends beyond its window is stopped`() throws {
        let live = try LiveServer {
            $0.http2WindowBytes = 65_535
            $0.messageBytesMax = 1 << 20
        }
        defer { live.stop() }
        let client = HTTP2Client(live)
        client.send(.request(path(.write), stream: 1), .data(grpcMessage([1]), stream: 1, endStream: false))
        expect(client.read { $0.answers[1]?.data.isEmpty == false })
        live.holdWrites()
        let part = HTTP2Frame.data(grpcMessage([UInt8](repeating: 1, count: 9_995)), stream: 1, endStream: false)
        for _ in 0..<20 { client.raw.send(part.bytes) }
        expect(client.read { $0.answers[1]?.reset != nil || !$0.goAways.isEmpty })
        let code = client.transcript.answers[1]?.reset ?? client.transcript.goAways.last?.code
        expectEqual(code, Code.flowControl.rawValue)
    }

    // MARK: Floods

    /// Sends the frames over and over until the server hangs up, and returns its last word.
    private func flood(_ live: LiveServer, times: Int, _ frames: (Int) -> [HTTP2Frame]) -> HTTP2Frame? {
        let client = HTTP2Client(live)
        for number in 0..<times where !client.raw.sendAll(frames(number).flatMap(\.bytes)) { break }
        return client.readAll().goAways.last
    }

    @Test func `Floods of frames that bring nothing end the connection`() throws {
        let live = try LiveServer {
            $0.idleFramesMax = 100
            $0.idleFramesPerSecond = 1
        }
        defer { live.stop() }
        let calm = Code.enhanceYourCalm.rawValue
        expectEqual(
            flood(live, times: 10_000) { _ in [HTTP2Frame(.ping, [UInt8](repeating: 0, count: 8))] }?.code, calm)
        expectEqual(flood(live, times: 10_000) { _ in [.settings((3, 5))] }?.code, calm)
        let padding = HTTP2Frame(.data, HTTP2Frame.padded, stream: 1, [1, 0])
        for empty in [.data([], stream: 1, endStream: false), padding] as [HTTP2Frame] {
            let emptyData = flood(live, times: 10_000) { number in
                number == 0 ? [.request(path(.write), stream: 1)] : [empty]
            }
            expectEqual(emptyData?.code, calm)
        }
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `A rapid reset ends the connection and cancels each of its calls`() throws {
        let live = try LiveServer {
            $0.resetsMax = 50
            $0.resetsPerSecond = 1
        }
        defer { live.stop() }
        let last = flood(live, times: 10_000) { number in
            let stream = UInt32(number * 2 + 1)
            return [
                .request(path(.commit), stream: stream), .data(grpcMessage([1]), stream: stream),
                .reset(8, stream: stream),
            ]
        }
        expectEqual(last?.code, Code.enhanceYourCalm.rawValue)
        expect(live.record.reaches { $0.pending.isEmpty })
        // The reset that was one too many ended the connection, and with it its own call.
        let expected = Array(repeating: CancellationReason.client, count: 50) + [.connectionClosed]
        expectEqual(live.record.state.withLock { $0.cancelled }, expected)
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `Streams that the server resets for a broken rule count like those that the client resets`() throws {
        let live = try LiveServer {
            $0.resetsMax = 50
            $0.resetsPerSecond = 1
        }
        defer { live.stop() }
        let message = grpcMessage([1])
        let last = flood(live, times: 1_000) { number in
            let stream = UInt32(number * 2 + 1)
            // More than the client has announced, after the call has begun.
            return [
                .request(path(.write), stream: stream, fields: [("content-length", "\(message.count)")]),
                .data(message, stream: stream, endStream: false), .data(message, stream: stream),
            ]
        }
        expectEqual(last?.code, Code.enhanceYourCalm.rawValue)
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `Header lists above the limit count like streams that the client resets`() throws {
        let live = try LiveServer {
            $0.resetsMax = 50
            $0.resetsPerSecond = 1
        }
        defer { live.stop() }
        let large = [("x", String(repeating: "y", count: 20_000)), ("z", "")]
        let last = flood(live, times: 1_000) { number in
            let stream = UInt32(number * 2 + 1)
            return [.request(Self.get, stream: stream, fields: large), .data(grpcMessage([1]), stream: stream)]
        }
        expectEqual(last?.code, Code.enhanceYourCalm.rawValue)
        expect(live.record.state.withLock { $0.heads.isEmpty })
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `Events have the reason of an end, and no field that breaks a rule and no query`() throws {
        let events = Mutex<[ServerEvent]>([])
        let changed = Signal()
        let live = try LiveServer {
            $0.onEvent = { event in
                events.withLock { $0.append(event) }
                changed.notify()
            }
        }
        defer { live.stop() }
        var client: HTTP2Client? = HTTP2Client(live)
        client?.send(.request("/no.such.Service/Method?key=canary", stream: 1), .data(grpcMessage([1]), stream: 1))
        expectEqual(client?.answer(1).text?.contains("canary"), false)
        client?.send(
            .request(Self.get, stream: 3, fields: [("authorization", "Bearer canary\u{1}")]),
            .data(grpcMessage([1]), stream: 3), .data([0], stream: 9))
        expectEqual(client?.readAll().goAways.last?.code, Code.protocolError.rawValue)
        // Closes its side before the server has given up waiting for that.
        client = nil
        func reasons() -> [CloseReason] {
            events.withLock { $0.compactMap { if case .connectionClosed(_, let reason) = $0 { reason } else { nil } } }
        }
        expect(changed.wait { !reasons().isEmpty })
        expectEqual(reasons(), [.http2("a violation of HTTP/2")])
        expect(!"\(events.withLock { $0 })".contains("canary"))
    }

    @Test func `A header list in endless pieces ends the connection`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let last = flood(live, times: 10_000) { number in
            number == 0
                ? [HTTP2Frame(.headers, 0, stream: 1, [0x83])]
                : [HTTP2Frame(.continuation, 0, stream: 1, [0x00, 1, 0x61, 0])]
        }
        expect(last != nil)
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]])
    }

    @Test func `A header list that unfolds without end ends the connection`() throws {
        let live = try LiveServer { $0.metadataBytesMax = 1_024 }
        defer { live.stop() }
        let client = HTTP2Client(live)
        // One long field enters the table, and then a byte each repeats it.
        let long = [0x40] + HTTP2Frame.encode([("x", String(repeating: "y", count: 3_000))]).dropFirst()
        client.send(HTTP2Frame(.headers, 4, stream: 1, long + [UInt8](repeating: 0xBE, count: 10_000)))
        expectEqual(client.readAll().goAways.last?.code, Code.enhanceYourCalm.rawValue)
    }

    @Test func `A header list of few bytes that unfolds to many times the limit ends the connection`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        let long = [0x40] + HTTP2Frame.encode([("x", String(repeating: "y", count: 4_000))]).dropFirst()
        func request(_ stream: UInt32, _ fields: [UInt8]) -> [UInt8] {
            let block = HTTP2Frame.encode(HTTP2Frame.grpcFields(Self.get)) + fields
            return HTTP2Frame(.headers, 4, stream: stream, block).bytes
                + HTTP2Frame.data(grpcMessage([7]), stream: stream).bytes
        }
        // The entry is long, but within the limit, also with its repetitions.
        client.raw.send(request(1, long) + request(3, [0xBE, 0xBE]))
        expectEqual(client.answer(1).messages, [[7]])
        expectEqual(client.answer(3).messages, [[7]])
        // Beyond it the request alone is refused.
        client.raw.send(request(5, [UInt8](repeating: 0xBE, count: 12)))
        expectEqual(client.answer(5).status, 8)
        client.raw.send(request(7, [UInt8](repeating: 0xBE, count: 240)))
        expectEqual(client.readAll().goAways.last?.code, Code.enhanceYourCalm.rawValue)
    }

    // MARK: Streams

    @Test func `A stream more than announced is refused, to be tried again, until the client must know better`() throws
    {
        let live = try LiveServer { $0.streamsPerConnectionMax = 2 }
        defer { live.stop() }
        func requests(_ acknowledgement: [HTTP2Frame]) -> HTTP2Transcript {
            let raw = RawClient(port: live.server.port)
            var frames = [HTTP2Frame.settings()] + acknowledgement
            for stream in [1, 3, 5] as [UInt32] {
                frames += [.request(path(.commit), stream: stream), .data(grpcMessage([1]), stream: stream)]
            }
            let ping = HTTP2Frame(.ping, [UInt8](repeating: 1, count: 8))
            raw.send(HTTP2Preface.bytes + (frames + [ping]).flatMap(\.bytes))
            var transcript = HTTP2Transcript()
            while transcript.answers[5]?.reset == nil, transcript.goAways.isEmpty { transcript.add(raw.receive()) }
            return transcript
        }
        expectEqual(requests([]).answers[5]?.reset, 7)
        expectEqual(
            requests([HTTP2Frame(.settings, HTTP2Frame.ack, [])]).goAways.last?.code, Code.protocolError.rawValue)
        expectEqual(HTTP2Client(live).callAndWait(.getDocument, [4]).messages, [[4]])
    }

    @Test func `The server's settings are those it is configured with`() throws {
        let live = try LiveServer {
            $0.streamsPerConnectionMax = 77
            $0.http2WindowBytes = 123_456
            $0.metadataBytesMax = 9_999
            $0.frameBytesMax = 50_000
        }
        defer { live.stop() }
        let client = HTTP2Client(live)
        let payload = client.transcript.frames[0].payload
        var values: [UInt8: UInt32] = [:]
        for offset in stride(from: 0, to: payload.count, by: 6) {
            values[payload[offset + 1]] = payload[offset + 2..<offset + 6].reduce(0) { $0 << 8 | UInt32($1) }
        }
        expectEqual(values, [3: 77, 4: 123_456, 5: 50_000, 6: 9_999, 9: 1])
    }

    // MARK: Random bytes

    @Test(arguments: [21, 22, 23] as [UInt64])
    func `Mutated conversations end cleanly and the server continues`(seed: UInt64) throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        var random = SeededGenerator(seed: seed)
        for round in 0..<60 {
            var bytes = HTTP2Conversation.random(&random)
            HTTP2Conversation.mutate(&bytes, &random)
            let raw = RawClient(port: live.server.port)
            raw.send(HTTP2Preface.bytes + bytes)
            raw.finishSending()
            _ = raw.receiveAll()
            if round % 20 == 0 {
                expectEqual(
                    HTTP2Client(live).callAndWait(.getDocument, [1]).messages, [[1]], "seed \(seed), round \(round)")
            }
        }
        live.drain()
        expectEqual(live.statistics().connectionsOpen, 0, "seed \(seed)")
    }
}
