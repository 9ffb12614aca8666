// Requests of WebChannel: what the official web SDK sends, as recorded, and what nobody should send.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(20))) struct WebChannelRequestTests {
    private func request(_ query: String, isPost: Bool = true) throws(RequestError) -> WebChannelRequest {
        let bytes = Array(query.utf8)
        return try WebChannelRequest(isPost: isPost, query: bytes.byteSpan)
    }

    private func post(_ body: String) throws(RequestError) -> WebChannelPost {
        let bytes = Array(body.utf8)
        return try WebChannelPost(bytes.byteSpan)
    }

    private static let database = "database=projects%2Fdemo%2Fdatabases%2F(default)"
    private static let session = "SID=kc0Xaz3r7fSZq06wQM-Kcw%3D%3D"

    @Test(arguments: [
        // 10.12.2, then 9.8.1.
        "VER=8&\(database)&RID=59074&CVER=22&X-HTTP-Session-Id=gsessionid&zx=w1204pn6923k&t=1",
        """
        \(database)&VER=8&RID=58661&CVER=22&X-HTTP-Session-Id=gsessionid&%24httpHeaders=X-Goog-Api-Client%3Agl-js%2F%20\
        fire%2F9.8.1%0D%0AContent-Type%3Atext%2Fplain%0D%0AX-Firebase-GMPID%3Aa%0D%0A&zx=3n5e20rmvnd1&t=1
        """,
    ]) func `A request without SID opens a session`(query: String) throws {
        let request = try request(query)
        expect(request.kind == .open && request.session.isEmpty && request.acknowledged == nil)
        expectEqual(request.database, "projects/demo/databases/(default)")
        #expect(throws: RequestError.self) { try self.request(query, isPost: false) }
    }

    @Test func `Requests of a session`() throws {
        let forward = try request("VER=8&\(Self.database)&\(Self.session)&RID=52047&AID=2&zx=ouglf485t4tr&t=1")
        expect(forward.kind == .forward && forward.acknowledged == 2)
        expectEqual(forward.session, "kc0Xaz3r7fSZq06wQM-Kcw==")
        let back = "VER=8&\(Self.database)&RID=rpc&\(Self.session)&AID=7&TYPE=xmlhttp&zx=a&t=1"
        try expectEqual(request(back + "&CI=0", isPost: false).kind, .back(holdMilliseconds: nil))
        try expectEqual(request(back + "&CI=0&TO=6000", isPost: false).kind, .back(holdMilliseconds: nil))
        try expectEqual(request(back + "&CI=1", isPost: false).kind, .back(holdMilliseconds: .max))
        try expectEqual(request(back + "&CI=1&TO=6000", isPost: false).kind, .back(holdMilliseconds: 6_000))
        let leave = "VER=8&\(Self.database)&\(Self.session)&RID=18895&TYPE=terminate&zx=fk707p6ti7ox"
        try expectEqual(request(leave).kind, .terminate)
        try expectEqual(request(leave, isPost: false).kind, .terminate)
    }

    @Test(arguments: [
        "", "VER=7&RID=1", "RID=1", "VER=8&SID=&RID=1", "VER=8&SID=a&AID=x", "VER=8&SID=a&AID=-1", "VER=8&SID=a&AID=",
        "VER=8&SID=a&AID=99999999999999999999", "VER=8&SID=\(String(repeating: "a", count: 65))", "VER=8&SID=%",
        "VER=8&SID=%FF", "VER=8&\(String(repeating: "a&", count: 64))",
    ]) func `Anything else is refused`(query: String) {
        #expect(throws: RequestError.self) { try request(query) }
    }

    @Test(arguments: [
        "VER=8&SID=a&RID=1", "VER=8&SID=a", "VER=8&SID=a&RID=rpc&CI=1&TO=soon", "VER=8&MODE=init&RID=rpc",
    ])
    func `So is any other GET`(query: String) {
        #expect(throws: RequestError.self) { try request(query, isPost: false) }
    }

    @Test func `The body of the first request has headers and messages`() throws {
        let post = try post(
            """
            headers=X-Goog-Api-Client%3Agl-js%2F%20fire%2F10.12.2%0D%0AContent-Type%3Atext%2Fplain%0D%0A&count=1&ofs=0&\
            req0___data__=%7B%22database%22%3A%22projects%2Fwcdemo%2Fdatabases%2F(default)%22%7D
            """)
        expectEqual(post.headers, "X-Goog-Api-Client:gl-js/ fire/10.12.2\r\nContent-Type:text/plain\r\n")
        expectEqual(post.offset, 0)
        expectEqual(post.messages, [Array("{\"database\":\"projects/wcdemo/databases/(default)\"}".utf8)])
    }

    /// A session keeps a part of them: the token of its page.
    @Test func `Headers in a body are bounded`() throws {
        let most = String(repeating: "x", count: WebChannelPost.headersBytesMax - 2)
        try expect(post("headers=A:\(most)&count=0").headers.hasSuffix("x"))
        #expect(throws: RequestError.self) { try post("headers=A:\(most)x&count=0") }
    }

    @Test func `Messages have the order of their numbers`() throws {
        let post = try post(
            "req1___data__=b&count=2&ofs=7&req0___data__=%C3%A9%F0%9F%98%80+&req9___data__=x&req0_other=y")
        expect(post.offset == 7 && post.headers.isEmpty)
        expectEqual(post.messages, [Array("é😀 ".utf8), Array("b".utf8)])
        try expectEqual(self.post("").messages, [])
        try expectEqual(self.post("count=0").messages, [])
    }

    @Test(arguments: [
        "count=1", "count=2&req0___data__=a", "count=-1", "count=x", "count=1001", "count=1&req0___data__=%",
        "count=1&req0___data__=%FF", "count=1&ofs=99999999999999999999&req0___data__=a",
        String(repeating: "a&", count: 1_009),
    ]) func `A body of another form is refused`(body: String) {
        #expect(throws: RequestError.self) { try post(body) }
    }
}
