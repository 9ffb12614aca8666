// The HTTP/1.1 parser: what it takes, what it refuses and how, and that it does not matter how the bytes are cut.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct HTTP1ParserTests {
    private func understand(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        return HTTP1ParserCheck.understand(bytes.span.bytes, chunk: .max).log
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", ["get 1 true none", "/?", "-", ""]),
        ("GET /a%20b?c=d?e HTTP/1.1\r\nhOST:h\r\nX: \t 1 2 \r\n\r\n", ["get 1 true none", "/a%20b?c=d?e", "1 2", ""]),
        ("GET http://h/p HTTP/1.1\r\nHost: h\r\n\r\n", ["get 1 true none", "/p?", "-", ""]),
        ("GET http://h:1 HTTP/1.1\r\nHost: h\r\n\r\n", ["get 1 true none", "/?", "-", ""]),
        ("GET HTTP://h?a=/b HTTP/1.1\r\nHost: h\r\n\r\n", ["get 1 true none", "/?a=/b", "-", ""]),
        ("OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n", ["options 1 true none", "*?", "-", ""]),
        ("OPTIONS http://h?a HTTP/1.1\r\nHost: h\r\n\r\n", ["options 1 true none", "/?a", "-", ""]),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", ["options 1 true none", "*?", "-", ""]),
        ("BREW / HTTP/1.7\r\nHost: h\r\n\r\n", ["other 1 true none", "/?", "-", ""]),
        ("GET / HTTP/1.0\r\n\r\n", ["get 0 false none", "/?", "-", ""]),
        ("GET / HTTP/1.0\r\nConnection: a, Keep-Alive\r\n\r\n", ["get 0 true none", "/?", "-", ""]),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
            ["get 1 false none", "/?", "-", ""]
        ),
        (
            "\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
            ["post 1 true length(3)", "/?", "-", "abc"]
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                + "3\r\nabc\r\nA;x=y\r\n0123456789\r\n000\r\nT: v\r\n\r\n",
            ["post 1 true chunked", "/?", "-", "abc0123456789"]
        ),
    ])
    func `Requests are read`(text: String, log: [String]) {
        expectEqual(understand(text), log)
    }

    /// A check of `Host` that looked at another name than the one in the target would check nothing.
    @Test(arguments: ["http://a:1", "http://a:1/p", "http://a:1?q", "HTTP://a:1/"])
    func `The host of a whole URI counts before the header Host`(target: String) throws {
        var parser = HTTP1Parser()
        let text = Array("GET \(target) HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n".utf8)
        var offset = 0
        try expectEqual(parser.next(text.byteSpan, &offset), .head)
        expectEqual(parser.head.value(of: "host"), "a:1")
        expectEqual(parser.head.value(of: "x"), "y")
    }

    @Test func `One request after the other is read from the same bytes`() {
        let first = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
        let second = "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
        expectEqual(understand(first + second + first), understand(first) + understand(second) + understand(first))
    }

    private static let eightFields = String(repeating: "X: 1\r\n", count: 8)
    private static let refused: [(String, Int)] = [
        // Line ends and spaces.
        ("GET / HTTP/1.1\nHost: h\n\n", 400), ("GET / HTTP/1.1\r\nHost: h\n\r\n", 400),
        ("GET / HTTP/1.1\rHost: h\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\n", 400), (" GET / HTTP/1.1\r\n", 400), ("GET / HTTP/1.1 \r\n", 400), ("GET /\r\n", 400),
        ("\r\n\r\nGET / HTTP/1.1\r\n", 400), ("GET /a b HTTP/1.1\r\n", 400), ("GET /\u{e9} HTTP/1.1\r\n", 400),
        ("G(T / HTTP/1.1\r\n", 400), ("GET a HTTP/1.1\r\n", 400), ("GET * HTTP/1.1\r\n", 400),
        ("GET /#f HTTP/1.1\r\n", 400),
        ("GET http:/// HTTP/1.1\r\n", 400), ("GET http:// HTTP/1.1\r\n", 400), ("GET http://?a HTTP/1.1\r\n", 400),
        ("GET http://u@h/ HTTP/1.1\r\n", 400), ("GET ftp://h/ HTTP/1.1\r\n", 400), ("CONNECT h:1 HTTP/1.1\r\n", 400),
        // Versions.
        ("GET / HTTP/2.0\r\n", 505), ("GET / HTTP/0.9\r\n", 505), ("GET / http/1.1\r\n", 400),
        ("GET / HTTP/1.10\r\n", 400),
        ("GET / HTTP/11\r\n", 400),
        // Headers.
        ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nauthorization: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n: h\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nExpect: something\r\n\r\n", 417),
        // The body's length, written in a way that another server could read differently.
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        // Chunks.
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", 413),
        // Sizes.
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 301\r\n\r\n", 413),
        ("GET /\(String(repeating: "a", count: 400)) HTTP/1.1\r\n", 414), (String(repeating: "G", count: 402), 414),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 400))\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: h\r\n\(eightFields)\r\n", 431),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\(eightFields)\r\n", 431),
    ]

    @Test(arguments: refused)
    func `What could be read in two ways, or is too much, is refused`(text: String, status: Int) {
        expectEqual(understand(text).last?.hasPrefix("\(status) "), true, "\(understand(text))")
    }

    @Test func `A head of exactly the limit is taken, and one byte more is not`() {
        let frame = "GET / HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n".utf8.count
        let room = HTTP1ParserCheck.limits.headBytesMax - frame
        func request(_ count: Int) -> String {
            "GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: count))\r\n\r\n"
        }
        expectEqual(understand(request(room)).first, "get 1 true none")
        expectEqual(understand(request(room + 1)).last?.hasPrefix("431 "), true)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Random requests, whole and damaged, are understood the same however they are cut`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<1_500 {
            var text = ""
            for _ in 0..<1 + random.below(3) {
                text +=
                    random.pick(["GET", "POST", "DELETE"]) + " /" + random.pick(["", "a?b", "c/d"])
                    + " HTTP/1.1\r\nHost: h\r\n"
                if random.oneIn(3) { text += "X: y\r\n" }
                let body = String(repeating: "b", count: random.below(40))
                if random.oneIn(2) {
                    text += "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
                } else {
                    text += "Transfer-Encoding: chunked\r\n\r\n"
                    if !body.isEmpty { text += String(body.utf8.count, radix: 16) + "\r\n\(body)\r\n" }
                    text += "0\r\n\r\n"
                }
            }
            var bytes = Array(text.utf8)
            for _ in 0..<random.below(3) {
                bytes[random.below(bytes.count)] = random.pick([0, 9, 10, 13, 32, 44, 48, 58, 97, 255])
            }
            let violation = HTTP1ParserCheck.violation(bytes.span.bytes)
            expectNil(violation, "seed \(seed), round \(round)")
        }
    }

    @Test func `Every saved input of the parser's fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("HTTP1Parser", over: 20) { HTTP1ParserCheck.violation($0.span.bytes) }
    }
}
