// HTTP/1.1 connections of a real server: replies, calls, streams, limits, the end.

import Basics
import ConnectionTestSupport
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct HTTP1ConnectionTests {
    @Test func `A connection serves one request after the other, plain and chunked`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        let reply = client.request("POST", "/echo", body: "hello")
        expect(reply?.status == 200 && reply?.body == "hello" && reply?.headers["date"]?.hasSuffix(" GMT") == true)
        client.send(
            "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        expectEqual(client.reply()?.body, "abcde")
        expectEqual(client.request("HEAD", "/echo")?.headers["content-length"], "0")
        expectEqual(client.request("GET", "/nowhere")?.status, 404)
    }

    @Test func `Replies to pipelined requests have their order, also when one takes long`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        var text = "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"
        for number in 0..<50 { text += "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n\(10 + number)" }
        client.send(text)
        let waiting = try #require(fixture.waitForExchange())
        waiting.loop.execute { waiting.reply(.ok, "first") }
        expectEqual(client.reply()?.body, "first")
        for number in 0..<50 { expectEqual(client.reply()?.body, "\(10 + number)") }
    }

    @Test(arguments: ["", "Connection: close\r\n"])
    func `A client that closes its sending side after the request gets the whole reply`(field: String) throws {
        let fixture = try HTTPFixture()
        let client = RawClient(port: fixture.server.port)
        client.send(Array("GET /later HTTP/1.1\r\nHost: h\r\n\(field)\r\n".utf8))
        client.finishSending()
        let waiting = try #require(fixture.waitForExchange())
        // More than the kernel takes at once.
        let body = String(repeating: "0123456789abcdef", count: 1 << 20)
        waiting.loop.execute { waiting.reply(.ok, body) }
        let reply = client.receiveAll()
        expect(reply.count > body.utf8.count && reply.suffix(16) == body.utf8.suffix(16), "\(reply.count) bytes")
        // Without a request nothing is awaited.
        let silent = RawClient(port: fixture.server.port)
        silent.send(Array("GET /later HTTP/1.1\r\n".utf8))
        silent.finishSending()
        expect(silent.receiveAll().isEmpty)
    }

    @Test func `A large body in many pieces arrives whole, and 100 Continue asks for it`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        let body = String(repeating: "0123456789", count: 100_000)
        client.send(
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\nExpect: 100-continue\r\n\r\n")
        expectEqual(client.reply()?.status, 100)
        client.send(body)
        expectEqual(client.reply()?.body, body)
    }

    @Test func `A call's message and error become the body, and the service gets the deadline`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        let reply = client.request("POST", "/call", body: "xyz")
        expect(reply?.status == 200 && reply?.body == "<xyz>" && reply?.headers["content-type"] == "text/x-test")
        let failed = client.request("POST", "/fail", body: "")
        expect(failed?.status == 404 && failed?.body == "!NOT_FOUND not here")
        expectEqual(client.request("POST", "/silent", body: "")?.status, 504)
        expectEqual(client.request("POST", "/echo", body: "still here")?.body, "still here")
    }

    @Test func `A streaming reply comes in chunks, ends, and the connection stays usable`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        let reply = client.request("POST", "/stream", body: "3")
        expectEqual(reply?.chunks, ["<0", ">1", ">2", ">."])
        expectEqual(client.request("POST", "/stream", body: "0")?.body, "<>")
        expectEqual(client.request("POST", "/stream", body: "-2")?.chunks, ["<0", ">1", "!ABORTED enough"])
        let long = client.request("POST", "/stream", body: "100000")
        expectEqual(long?.chunks.count, 100_001)
    }

    @Test func `HTTP 1.0 gets no chunks, and its connection ends with the stream`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        client.send("POST /stream HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n2")
        let reply = client.reply()
        expect(reply?.body == "<0>1>." && reply?.headers["connection"] == "close")
        let other = fixture.connect()
        other.send("POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n2")
        expectEqual(other.reply()?.headers["connection"], "keep-alive")
        other.send("POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\n3")
        expectEqual(other.reply()?.headers["connection"], "close")
        expect(other.isClosed())
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/3.0\r\n", 505),
        ("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 99999\r\n\r\n", 413),
        ("GET /\(String(repeating: "x", count: 5_000)) HTTP/1.1\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "x", count: 5_000))\r\n\r\n", 431),
    ])
    func `A request that is refused ends its connection with the reason`(text: String, status: Int) throws {
        let fixture = try HTTPFixture { configuration in
            configuration.http1HeadBytesMax = 4_096
            configuration.messageBytesMax = 65_536
        }
        let client = fixture.connect()
        client.send(text)
        let reply = client.reply()
        expect(reply?.status == status && reply?.headers["connection"] == "close" && reply?.body.isEmpty == false)
        expect(client.isClosed())
    }

    @Test func `A client that does not finish a head or a body gets 408; an idle one is closed`() throws {
        let fixture = try HTTPFixture { configuration in
            configuration.headerMilliseconds = 50
            configuration.idleMilliseconds = 200
        }
        let slowHead = fixture.connect()
        slowHead.send("GET / HTTP/1.1\r\nHo")
        expectEqual(slowHead.reply()?.status, 408)
        expect(slowHead.isClosed())
        let slowBody = fixture.connect()
        slowBody.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        expectEqual(slowBody.reply()?.status, 408)
        let idle = fixture.connect()
        expectEqual(idle.request("POST", "/echo", body: "x")?.body, "x")
        expect(idle.isClosed())
    }

    @Test(arguments: [
        "GET /echo HTTP/1.1\r\nHost: ", "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
    ])
    func `A head or a body that trickles is not waited for`(start: String) throws {
        let fixture = try HTTPFixture { $0.headerMilliseconds = 100 }
        let raw = RawClient(port: fixture.server.port)
        raw.send(Array(start.utf8))
        var sent = 0
        while sent < 500, !raw.hasInput {
            raw.send([UInt8(ascii: "x")])
            sent += 1
            usleep(10_000)
        }
        expect(sent < 500)
        expect(String(decoding: raw.receive(), as: UTF8.self).hasPrefix("HTTP/1.1 408 "))
    }

    @Test func `A drain finishes the exchange under way and closes idle connections`() throws {
        let fixture = try HTTPFixture()
        let idle = fixture.connect()
        expectEqual(idle.request("POST", "/echo", body: "x")?.body, "x")
        let busy = fixture.connect()
        busy.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        let waiting = try #require(fixture.waitForExchange())
        let drained = Promise<Bool>()
        fixture.server.drain(graceMilliseconds: 60_000) { drained.fulfil(true) }
        expect(idle.isClosed())
        waiting.loop.execute { waiting.reply(.ok, "done") }
        let reply = busy.reply()
        expect(reply?.body == "done" && reply?.headers["connection"] == "close")
        expectEqual(drained.wait(), true)
    }

    @Test func `A drain's grace ends with 503 for what is still open`() throws {
        let fixture = try HTTPFixture()
        let client = fixture.connect()
        client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try #require(fixture.waitForExchange())
        let drained = Promise<Bool>()
        fixture.server.drain(graceMilliseconds: 0) { drained.fulfil(true) }
        expectEqual(client.reply()?.status, 503)
        expectEqual(drained.wait(), true)
    }
}
