// HTTP requests on HTTP/2 streams of a real server: the handler of HTTP/1.1 serves them, in the frames, windows and
// limits of HTTP/2.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct HTTP2ExchangeTests {
    private func fields(_ method: String, _ path: String, _ more: [(String, String)] = []) -> [(String, String)] {
        [(":method", method), (":scheme", "http"), (":path", path), (":authority", "db.example")] + more
    }

    /// Sends a request, whole in one frame of each kind, and waits for the answer.
    private func exchange(
        _ client: HTTP2Client, _ method: String, _ path: String, _ body: String? = nil, _ more: [(String, String)] = []
    ) -> HTTP2Answer {
        let stream = client.newStream()
        client.send(.headers(fields(method, path, more), stream: stream, endStream: body == nil))
        if let body { client.send(.data(Array(body.utf8), stream: stream)) }
        return client.answer(stream)
    }

    private func text(_ answer: HTTP2Answer) -> String { String(decoding: answer.data, as: UTF8.self) }

    @Test func `A request gets the handler's reply, with its head`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2()
        let echoed = exchange(client, "POST", "/echo", "hello", [("content-type", "application/json")])
        expect(echoed.head[":status"] == "200" && text(echoed) == "hello" && echoed.reset == nil)
        expect(echoed.head["content-length"] == "5" && echoed.head["date"]?.hasSuffix(" GMT") == true)
        expectEqual(echoed.blocks.count, 1)
        let head = exchange(client, "GET", "/head?a=b", nil, [("origin", "http://o")])
        expect(text(head) == "get db.example a=b" && head.head["x-origin"] == "http://o")
        expectEqual(exchange(client, "GET", "/nowhere").head[":status"], "404")
        let nothing = exchange(client, "DELETE", "/nothing")
        expect(nothing.head[":status"] == "204" && nothing.head["content-length"] == nil && nothing.isEnded)
        let headOnly = exchange(client, "HEAD", "/head")
        expect(headOnly.head["content-length"] != "0" && headOnly.data.isEmpty && headOnly.isEnded)
    }

    @Test func `The authority counts before a host header`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2()
        expectEqual(text(exchange(client, "GET", "/head", nil, [("host", "other.example")])), "get db.example ")
        // With the path before the authority, and with a host header only.
        for fields in [
            [(":method", "GET"), (":path", "/head"), (":scheme", "http"), (":authority", "db.example")],
            [(":method", "GET"), (":path", "/head"), (":scheme", "http"), ("host", "db.example")],
        ] {
            let stream = client.newStream()
            client.send(.headers(fields, stream: stream, endStream: true))
            expectEqual(text(client.answer(stream)), "get db.example ")
        }
    }

    @Test func `Calls, streams and errors become bodies as over HTTP 1, beside gRPC calls`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2()
        let call = exchange(client, "POST", "/call", "xyz")
        expect(text(call) == "<xyz>" && call.head["content-type"] == "text/x-test")
        expectEqual(text(exchange(client, "POST", "/stream", "3")), "<0>1>2>.")
        expectEqual(text(exchange(client, "POST", "/stream", "0")), "<>")
        let broken = exchange(client, "POST", "/stream", "-2")
        expect(broken.head[":status"] == "200" && text(broken) == "<0>1!ABORTED enough")
        let failed = exchange(client, "POST", "/fail", "")
        expect(failed.head[":status"] == "404" && text(failed) == "!NOT_FOUND not here")
        expectEqual(exchange(client, "POST", "/silent", "").head[":status"], "504")
        expectEqual(client.callAndWait(.getDocument, [1, 2]).messages, [[1, 2]])
    }

    @Test func `A body larger than a window arrives whole, and a reply waits for windows`() throws {
        let fixture = try HTTPFixture { $0.http2WindowBytes = 65_535 }
        let client = fixture.connectHTTP2(settings: (4, 1_000))
        let stream = client.newStream()
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        client.send(.headers(fields("POST", "/echo"), stream: stream))
        var start = 0
        while start < body.count {
            // As much as the server's window is sure to have room for.
            client.send(
                .data(Array(body[start...].prefix(10_000)), stream: stream, endStream: start + 10_000 >= body.count))
            start += 10_000
            client.ping()
        }
        expect(client.read { $0.answers[stream]?.data.count == 1_000 })
        client.ping()
        expectEqual(client.transcript.answers[stream]?.data.count, 1_000)
        client.send(.window(1 << 20, stream: stream), .window(1 << 20, stream: 0))
        let answer = client.answer(stream)
        expect(answer.data.count == body.count && answer.data == body)
    }

    @Test func `A long stream is produced as its client takes it, and a deadline during a closed window resets it`()
        throws
    {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2(settings: (4, 100))
        let stream = client.newStream()
        client.send(.headers(fields("POST", "/stream"), stream: stream), .data(Array("100000".utf8), stream: stream))
        expect(client.read { $0.answers[stream]?.data.count == 100 })
        client.send(.window(1 << 30, stream: stream), .window(1 << 30, stream: 0))
        let answer = client.answer(stream)
        expect(text(answer).hasPrefix("<0>1>2") && text(answer).hasSuffix(">99999>."))
        let slow = client.newStream()
        client.send(.headers(fields("POST", "/slow"), stream: slow), .data([], stream: slow))
        expectEqual(client.answer(slow).reset, 8)
        expectEqual(text(exchange(client, "POST", "/echo", "on")), "on")
    }

    @Test func `Replies come in any order, and a reset request is forgotten`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2()
        let later = client.newStream()
        client.send(.headers(fields("GET", "/later"), stream: later, endStream: true))
        let waiting = try #require(fixture.waitForExchange())
        expectEqual(text(exchange(client, "POST", "/echo", "first")), "first")
        waiting.loop.execute { waiting.reply(.ok, "second") }
        expectEqual(text(client.answer(later)), "second")
        let given = client.newStream()
        client.send(.headers(fields("GET", "/later"), stream: given, endStream: true))
        let lost = try #require(fixture.waitForExchange())
        client.send(.reset(8, stream: given))
        client.ping()
        lost.loop.execute { lost.reply(.ok, "nobody") }
        expectEqual(text(exchange(client, "POST", "/echo", "on")), "on")
        expectNil(client.transcript.answers[given])
    }

    @Test func `What is too large or malformed is refused on its stream alone`() throws {
        let fixture = try HTTPFixture { configuration in
            configuration.messageBytesMax = 65_536
            configuration.metadataBytesMax = 2_000
            configuration.http1FieldsMax = 10
        }
        let client = fixture.connectHTTP2()
        let many = (0..<11).map { ("x-\($0)", "y") }
        let origin = [("origin", "http://o")]
        for (fields, status) in [
            (fields("GET", "/head", origin + [("x", String(repeating: "y", count: 3_000))]), "431"),
            (fields("GET", "/head", origin + many), "431"),
            (fields("GET", "/" + String(repeating: "y", count: 3_000), origin), "431"),
            (fields("GET", "/head", origin + [("authorization", "a"), ("authorization", "b")]), "400"),
            (fields("GET", "/a#b", origin), "400"), (fields("OPTIONS", "*x", origin), "400"),
        ] {
            let stream = client.newStream()
            client.send(.headers(fields, stream: stream, endStream: true))
            let answer = client.answer(stream)
            expect(answer.head[":status"] == status || answer.reset == 1, "\(fields.prefix(3))")
        }
        let large = client.newStream()
        client.send(.headers(fields("POST", "/echo", origin), stream: large))
        for _ in 0..<5 { client.send(.data([UInt8](repeating: 1, count: 16_000), stream: large, endStream: false)) }
        let answer = client.answer(large)
        expect(answer.head[":status"] == "413" && answer.head["x-refused"] == "http://o")
        expect(text(answer).contains("larger than 65536 bytes"))
        // Its client may send more, which is dropped.
        expectNil(answer.reset)
        for _ in 0..<100 {
            client.send(.data([UInt8](repeating: 1, count: 16_000), stream: large, endStream: false))
            client.ping()
        }
        client.send(.data([], stream: large))
        expectEqual(text(exchange(client, "POST", "/echo", "on")), "on")
    }

    @Test func `A client that sends after its reply is stopped in the end`() throws {
        let fixture = try HTTPFixture {
            $0.messageBytesMax = 65_536
            $0.headerMilliseconds = 100
        }
        let client = fixture.connectHTTP2()
        let large = client.newStream()
        client.send(.headers(fields("POST", "/echo"), stream: large))
        for _ in 0..<5 { client.send(.data([UInt8](repeating: 1, count: 16_000), stream: large, endStream: false)) }
        expectEqual(client.answer(large).head[":status"], "413")
        expect(client.read { $0.frames.contains { $0.isKind(.reset) && $0.stream == large && $0.code == 0 } })
        expect(client.transcript.goAways.isEmpty)
        expectEqual(text(exchange(client, "POST", "/echo", "on")), "on")
    }

    @Test func `Without an HTTP handler a request gets a status`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        expectEqual(exchange(client, "POST", "/v1/x", "{}").head[":status"], "415")
        expectEqual(exchange(client, "GET", "/").head[":status"], "405")
    }

    @Test func `A body that trickles is not waited for, whatever else arrives`() throws {
        let fixture = try HTTPFixture { $0.headerMilliseconds = 100 }
        let client = fixture.connectHTTP2()
        let stream = client.newStream()
        client.send(.headers(fields("POST", "/echo"), stream: stream))
        for _ in 0..<500 where client.transcript.answers[stream]?.isEnded != true {
            client.send(.data([1], stream: stream, endStream: false))
            client.ping()
        }
        expectEqual(client.answer(stream).head[":status"], "408")
        expectEqual(text(exchange(client, "POST", "/echo", "on")), "on")
    }

    @Test func `A drain finishes the exchange under way`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connectHTTP2()
        let later = client.newStream()
        client.send(.headers(fields("GET", "/later"), stream: later, endStream: true))
        let waiting = try #require(fixture.waitForExchange())
        let drained = Promise<Bool>()
        fixture.server.drain(graceMilliseconds: 60_000) { drained.fulfil(true) }
        waiting.loop.execute { waiting.reply(.ok, "done") }
        expectEqual(text(client.answer(later)), "done")
        expectEqual(drained.wait(), true)
    }
}
