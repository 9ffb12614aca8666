// Keys over HTTPS from servers that rotate, are silent, and lie.

import Basics
import DocumentJSON
import Foundation
import Identity
import Synchronization
import TLS
import TLSTestSupport
import TestSupport
import Testing

@testable import KeyFetching

@Suite(.timeLimit(.minutes(20))) struct KeyFetchingTests {
    private let directory = TemporaryDirectory("hearth-keys")
    private let authority = TestAuthority()
    private let reasons = Reasons()

    /// What fetchers report.
    private final class Reasons: Sendable {
        let all = Mutex<[String]>([])
    }

    /// A context with a certificate for `names`.
    private func context(
        _ names: [String] = ["IP:127.0.0.1"], by signer: TestAuthority? = nil, valid: ClosedRange<Int> = -3600...86_400
    ) throws -> TLSContext {
        let issued = (signer ?? authority).issue(names, valid: valid)
        let credential = TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM)
        return try TLSContext(server: TLSServerSettings(credential: credential), tickets: TicketKeys { 0 })
    }

    private func fetcher(_ limits: FetchLimits = FetchLimits()) throws -> CurlKeyFetcher {
        let file = directory.path(of: "ca.pem")
        try Data(authority.certificate).write(to: URL(fileURLWithPath: file))
        return CurlKeyFetcher(authorities: file, limits: limits) { [reasons] url, reason in
            reasons.all.withLock { $0.append("\(url): \(reason)") }
        }
    }

    private func fetch(_ url: String, _ fetcher: CurlKeyFetcher) async -> KeyResponse? {
        await withCheckedContinuation { continuation in fetcher.fetch(url) { continuation.resume(returning: $0) } }
    }

    /// Fetches a path from a server that answers all requests with `reply`.
    private func fetch(
        _ path: String = "/keys", from context: TLSContext? = nil, limits: FetchLimits = FetchLimits(),
        _ reply: @escaping @Sendable (_ path: String) -> KeyServer.Reply?
    ) async throws -> KeyResponse? {
        let server = KeyServer(try context ?? self.context(), reply)
        server.start()
        defer { server.stop() }
        return await fetch("https://127.0.0.1:\(server.port)\(path)", try fetcher(limits))
    }

    @Test
    func `A response arrives with its body and its Cache-Control`() async throws {
        let body = Array("keys".utf8)
        let one = try await fetch("/keys?v=1") { path in
            path == "/keys?v=1" ? KeyServer.Reply(fields: ["cache-control: max-age=7"], body: body) : nil
        }
        expect(one?.body == body && one?.cacheControl == "max-age=7")
        let fields = ["Cache-Control: public", "Cache-Control: max-age=8"]
        let two = try await fetch { _ in KeyServer.Reply(fields: fields, body: body, hasLength: false) }
        expect(two?.body == body && two?.cacheControl == "public, max-age=8")
        try await expectNil(fetch { _ in KeyServer.Reply() }?.cacheControl)
        expectEqual(reasons.all.withLock { $0 }, [])
    }

    @Test
    func `Certificates are verified: authority, name and dates`() async throws {
        let contexts = [
            try context(by: TestAuthority("Others")), try context(["DNS:example.org"]),
            try context(valid: -7200 ... -3600),
        ]
        for context in contexts {
            try await expectNil(fetch(from: context) { _ in KeyServer.Reply(body: [1]) })
        }
        let reasons = reasons.all.withLock { $0 }
        expect(reasons.count == 3 && reasons.allSatisfy { $0.contains("certificate") }, "\(reasons)")
    }

    @Test(arguments: [301, 304, 400, 404, 500, 503])
    func `Another status than 200 is a failure`(status: Int) async throws {
        try await expectNil(fetch("/keys?secret=1") { _ in KeyServer.Reply(status: status, body: [1]) })
        let reasons = reasons.all.withLock { $0 }
        expect(reasons.count == 1 && reasons[0].hasSuffix("/keys?…: the status is \(status)"), "\(reasons)")
    }

    @Test(arguments: [true, false])
    func `A response may have a mebibyte and no more`(hasLength: Bool) async throws {
        let body = [UInt8](repeating: 0x20, count: 1 << 20)
        let fits = try await fetch { _ in KeyServer.Reply(body: body, hasLength: hasLength) }
        expectEqual(fits?.body.count, 1 << 20)
        try await expectNil(fetch { _ in KeyServer.Reply(body: body + [0x20], hasLength: hasLength) })
        expectEqual(reasons.all.withLock { $0 }.last?.hasSuffix("the response has more than 1048576 bytes"), true)
    }

    @Test
    func `A server that is silent, before its response or within it, is given up`() async throws {
        var limits = FetchLimits()
        limits.totalMilliseconds = 200
        try await expectNil(fetch(limits: limits) { _ in nil })
        try await expectNil(fetch(limits: limits) { _ in KeyServer.Reply(body: [1], missingBytes: 1) })
        let reasons = reasons.all.withLock { $0 }
        expect(reasons.count == 2 && reasons.allSatisfy { $0.hasSuffix("Timeout was reached") }, "\(reasons)")
    }

    @Test
    func `A redirect leads to https alone, three times at most`() async throws {
        let last = KeyServer(try context()) { path in
            let hops = path.dropFirst().prefix { $0.isNumber }.count
            let next = "Location: /\(String(repeating: "1", count: max(hops - 1, 0)))"
            return hops == 0 ? KeyServer.Reply(body: [7]) : KeyServer.Reply(status: 302, fields: [next], body: [1, 2])
        }
        let plain = KeyServer(nil) { _ in KeyServer.Reply(body: [9]) }
        for server in [last, plain] { server.start() }
        defer { for server in [last, plain] { server.stop() } }
        let (port, plainPort) = (last.port, plain.port)
        func first(_ location: String) async throws -> KeyResponse? {
            try await fetch { _ in KeyServer.Reply(status: 307, fields: ["Location: \(location)"]) }
        }
        try await expectEqual(first("https://127.0.0.1:\(port)/11")?.body, [7])
        try await expectNil(first("https://127.0.0.1:\(port)/111"))
        try await expectNil(first("http://127.0.0.1:\(plainPort)/"))
        try await expectNil(first("file:///etc/hosts"))
        expectEqual(reasons.all.withLock { $0 }.count, 3)
        await expectEqual(fetch("http://127.0.0.1:\(plainPort)/", try fetcher())?.body, [9])
    }

    @Test
    func `Nothing else than https is fetched, but http of this machine`() async throws {
        let accepted = [
            "https://a", "https://a.example:8443/x?y=z", "http://127.0.0.1", "http://localhost:80/x", "http://[::1]:1/",
        ]
        for text in accepted { expectEqual(KeyURL(text)?.text, text) }
        let refused = [
            "", "https://", "https:///x", "http://a", "http://127.0.0.1.example/", "http://127.0.0.1:80@a/",
            "http://localhost.example", "http://127.0.0.1:x", "https://user:secret@a/", "ftp://a", "file:///etc/hosts",
            "https://a b", "https://a\\b", "https://a\u{E9}", "HTTPS://a", "https://a\n",
        ]
        for text in refused {
            expectNil(KeyURL(text), "\(text)")
            await expectNil(fetch(text, try fetcher()), "\(text)")
        }
        let reasons = reasons.all.withLock { $0 }
        expect(reasons.count == refused.count && !reasons.joined().contains("secret"), "\(reasons)")
    }

    // MARK: Rotation

    /// What a server of keys has at the moment.
    private final class Published: Sendable {
        let reply = Mutex<KeyServer.Reply?>(KeyServer.Reply())
    }

    private func reply(_ identifier: String) -> KeyServer.Reply {
        let certificate = String(decoding: authority.issue([]).certificate, as: UTF8.self)
        let text = JSONValue.object([identifier: .string(certificate)]).json
        return KeyServer.Reply(fields: ["Cache-Control: max-age=600"], body: Array(text.utf8))
    }

    @Test
    func `Keys rotate; while the server lies, is silent or is gone the last good ones stay`() throws {
        let published = Published()
        let server = KeyServer(try context()) { _ in published.reply.withLock { $0 } }
        server.start()
        var limits = FetchLimits()
        limits.totalMilliseconds = 200
        let clock = Mutex<Int64>(0)
        let keys = RemoteKeys(url: "https://127.0.0.1:\(server.port)/", fetcher: try fetcher(limits)) {
            clock.withLock { $0 }
        }
        for identifier in ["a", "b"] {
            published.reply.withLock { $0 = reply(identifier) }
            clock.withLock { $0 += 600 }
            keys.tick()
            try waitUntil("the key is there") { keys.keys.key(identifier) != nil }
        }
        expectEqual(keys.keys.count, 1)
        for lie in [KeyServer.Reply(body: Array("<html>".utf8)), KeyServer.Reply(status: 500), nil] {
            published.reply.withLock { $0 = lie }
            clock.withLock { $0 += 600 }
            let isOver = Mutex(false)
            expect(keys.refresh { isOver.withLock { $0 = true } })
            try waitUntil("the fetch is over") { isOver.withLock { $0 } }
            expect(keys.keys.key("b") != nil)
        }
        server.stop()
        clock.withLock { $0 += 600 }
        let isOver = Mutex(false)
        expect(keys.refresh { isOver.withLock { $0 = true } })
        try waitUntil("the fetch is over") { isOver.withLock { $0 } }
        expect(keys.keys.key("b") != nil)
    }
}
