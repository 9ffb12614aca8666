// The rules of an HTTP/1.1 connection, without sockets.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct HTTP1SessionTests {
    private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Shows all of the bytes from `offset` on.
    private func receive(
        _ session: inout HTTP1Session, _ bytes: [UInt8], _ offset: inout Int, now: UInt64 = 0
    ) -> HTTP1Session.Action { session.receive(bytes.byteSpan, &offset, now: now) }

    private func reply(_ session: inout HTTP1Session, _ number: UInt32) throws -> String {
        let reply = try #require(session.reply(number))
        expectEqual(session.closeExchange(number), false)
        var output = ByteBuffer()
        session.appendWhole(reply, .ok, contentType: "text/x", text("yes").byteSpan, date: "now", to: &output)
        return String(decoding: output.copyBytes(), as: UTF8.self)
    }

    @Test(arguments: [200, 204, 304, 400, 401, 403, 404, 405, 409, 429, 499, 500, 501, 503, 504])
    func `A status that the server answers with has its phrase`(code: Int) {
        expect(HTTPStatus(code).phrase != HTTPStatus(599).phrase)
    }

    @Test func `The next request waits for the reply to the one before`() throws {
        var session = HTTP1Session(limits: HTTP1Limits())
        let bytes = text("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        var offset = 0
        expectEqual(receive(&session, bytes, &offset), .request(1, .inBytes(0..<0)))
        expect(session.isOpen(1))
        expectEqual(receive(&session, bytes, &offset), .awaitsReply)
        expectEqual(offset, bytes.count / 2)
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\nDate: now\r\n"
        try expect(reply(&session, 1).hasPrefix(head))
        expect(!session.isOpen(1))
        expectNil(session.closeExchange(1))
        expectEqual(session.endExchange(now: 5), true)
        expectNil(session.endExchange(now: 5))
        expectEqual(receive(&session, bytes, &offset), .request(2, .inBytes(0..<0)))
    }

    @Test(arguments: ["Via", "FORWARDED", "x-forwarded-for"])
    func `A header of a proxy marks the request and, from then on, the session`(name: String) throws {
        var session = HTTP1Session(limits: HTTP1Limits())
        var marks: [[Bool]] = []
        for (index, line) in ["X-Forwarded-Proto: https", "\(name): a", "Accept: */*"].enumerated() {
            var offset = 0
            let bytes = text("GET / HTTP/1.1\r\nHost: h\r\n\(line)\r\n\r\n")
            expectEqual(receive(&session, bytes, &offset), .request(UInt32(index + 1), .inBytes(0..<0)))
            marks.append([session.head.isProxied, session.hasProxiedRequests])
            _ = try reply(&session, UInt32(index + 1))
            expectEqual(session.endExchange(now: 0), true)
        }
        expectEqual(marks, [[false, false], [true, true], [false, true]])
    }

    @Test func `A body in one piece is a range, one in several is gathered`() {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n"
        var whole = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        let start = head.utf8.count
        expectEqual(receive(&whole, text(head + "body"), &offset), .request(1, .inBytes(start..<start + 4)))
        var pieces = HTTP1Session(limits: HTTP1Limits())
        offset = 0
        expectEqual(receive(&pieces, text(head + "bo"), &offset), .bodyGrew)
        expectEqual(pieces.assemblyBytes, 2)
        expectEqual(receive(&pieces, text(head + "bo"), &offset), .needsMore)
        offset = 0
        expectEqual(receive(&pieces, text("dy"), &offset), .bodyGrew)
        expectEqual(receive(&pieces, text("dy"), &offset), .request(1, .gathered(text("body"))))
        expectEqual(pieces.assemblyBytes, 0)
    }

    @Test func `A client that asks whether to send its body gets 100`() {
        var session = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        let head = text("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        expectEqual(receive(&session, head, &offset), .sendContinue)
        expectEqual(receive(&session, head, &offset), .needsMore)
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true), ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false),
        ("GET / HTTP/1.0\r\n\r\n", false), ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true),
    ])
    func `Whether the connection stays open is the client's choice`(request: String, stays: Bool) throws {
        var session = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        _ = receive(&session, text(request), &offset)
        try expectEqual(reply(&session, 1).contains("Connection: close\r\n"), !stays)
        expectEqual(session.endExchange(now: 0), stays)
    }

    @Test func `While draining, replies are the last of their connections`() throws {
        var session = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        _ = receive(&session, text("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), &offset)
        session.drain()
        expect(!session.isDrained)
        try expect(reply(&session, 1).contains("Connection: close\r\n"))
        expectEqual(session.endExchange(now: 0), false)
        expect(session.isDrained)
    }

    @Test func `A request that does not arrive is late, and one that waits for its reply is not`() {
        var session = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        expectNil(session.timeoutReason(now: 10_000, limit: 100))
        expectEqual(receive(&session, text("GET / HT"), &offset, now: 50), .needsMore)
        expectNil(session.timeoutReason(now: 149, limit: 100))
        expect(session.timeoutReason(now: 150, limit: 100) != nil)
        let request = text("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        expectEqual(receive(&session, request, &offset, now: 160), .request(1, .inBytes(0..<0)))
        expectNil(session.timeoutReason(now: 10_000, limit: 100))
    }

    @Test func `Bytes that are not HTTP fail the connection`() {
        var session = HTTP1Session(limits: HTTP1Limits())
        var offset = 0
        guard case .fail = receive(&session, text("GET  / HTTP/1.1\r\n\r\n"), &offset) else {
            Issue.record("accepted")
            return
        }
        let reply = session.beginLastReply([HTTPField("X-A", "1")])
        var output = ByteBuffer()
        session.appendWhole(reply, .badRequest, contentType: "text/x", RawSpan(), date: "now", to: &output)
        let text = String(decoding: output.copyBytes(), as: UTF8.self)
        expect(text.contains("X-A: 1\r\n") && text.contains("Connection: close\r\n"))
    }
}
