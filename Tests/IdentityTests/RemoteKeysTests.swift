// Keys of a URL, with a fetcher and a clock of the test.

import DocumentJSON
import Synchronization
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct RemoteKeysTests {
    /// Keeps requests until the test answers them.
    private final class Fetcher: KeyFetcher {
        let open = Mutex<[@Sendable (KeyResponse?) -> Void]>([])
        let count = Mutex(0)

        func fetch(_ url: String, _ done: @escaping @Sendable (KeyResponse?) -> Void) {
            expectEqual(url, "https://keys.example")
            count.withLock { $0 += 1 }
            open.withLock { $0.append(done) }
        }

        func respond(_ response: KeyResponse?) {
            let done = open.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            done?(response)
        }

        var requests: Int { count.withLock { $0 } }
    }

    private let fetcher = Fetcher()
    private let clock = TestClock()
    private let keys: RemoteKeys

    init() {
        keys = RemoteKeys(url: "https://keys.example", fetcher: fetcher) { [clock] in clock.now }
    }

    private func response(_ identifiers: String..., cacheControl: String? = "max-age=600") -> KeyResponse {
        let members = identifiers.map { ($0, JSONValue.string(TestIssuer.certificatePEM(TestKeys.rsa))) }
        let text = JSONValue.object(Dictionary(uniqueKeysWithValues: members)).json
        return KeyResponse(body: Array(text.utf8), cacheControl: cacheControl)
    }

    @Test
    func `A response holds for its Cache-Control; then it is fetched once more`() {
        keys.tick()
        keys.tick()
        expectEqual(fetcher.requests, 1)
        expectEqual(keys.keys.count, 0)
        expectNil(keys.ageSeconds)
        fetcher.respond(response("a"))
        expect(keys.keys.key("a") != nil)
        clock.step(599)
        keys.tick()
        expectEqual(fetcher.requests, 1)
        expectEqual(keys.ageSeconds, 599)
        clock.step(1)
        keys.tick()
        expectEqual(fetcher.requests, 2)
        expect(keys.keys.key("a") != nil)
        fetcher.respond(response("b"))
        expectNil(keys.keys.key("a"))
        expect(keys.keys.key("b") != nil)
    }

    @Test
    func `The same body keeps the same set, so that verified tokens stay remembered`() {
        keys.tick()
        let same = response("a")
        fetcher.respond(same)
        let first = keys.keys
        clock.step(600)
        keys.tick()
        fetcher.respond(same)
        expect(keys.keys === first)
        expectEqual(keys.ageSeconds, 0)
    }

    @Test
    func `The last good set stays while the URL fails, lies or is silent`() {
        keys.tick()
        fetcher.respond(response("a"))
        clock.step(600)
        for wrong in [
            nil, KeyResponse(body: Array("<html>".utf8), cacheControl: "max-age=86400"),
            KeyResponse(body: Array("{}".utf8), cacheControl: nil),
            KeyResponse(body: [UInt8](repeating: 0x20, count: 2 << 20), cacheControl: nil),
        ] {
            let before = fetcher.requests
            keys.tick()
            expectEqual(fetcher.requests, before + 1)
            fetcher.respond(wrong)
            expect(keys.keys.key("a") != nil)
            clock.step(29)
            keys.tick()
            expectEqual(fetcher.requests, before + 1)
            clock.step(1)
        }
        // A fetch that does not end is given up; what it brings later is ignored.
        let before = fetcher.requests
        keys.tick()
        clock.step(59)
        keys.tick()
        expectEqual(fetcher.requests, before + 1)
        clock.step(1)
        keys.tick()
        expectEqual(fetcher.requests, before + 2)
        fetcher.respond(response("late"))
        expectNil(keys.keys.key("late"))
        fetcher.respond(response("b"))
        expect(keys.keys.key("b") != nil)
    }

    @Test
    func `An unknown key asks at most once in 30 seconds; tokens wait for the fetch that is open`() {
        let calls = Mutex(0)
        let count = { @Sendable () -> Void in calls.withLock { $0 += 1 } }
        keys.tick()
        expect(keys.refresh(count))
        expectEqual(fetcher.requests, 1)
        fetcher.respond(response("a"))
        expectEqual(calls.withLock { $0 }, 1)

        expect(keys.refresh(count))
        expect(keys.refresh(count))
        expectEqual(fetcher.requests, 2)
        expectEqual(calls.withLock { $0 }, 1)
        fetcher.respond(nil)
        expectEqual(calls.withLock { $0 }, 3)
        clock.step(29)
        expect(!keys.refresh(count))
        clock.step(1)
        expect(keys.refresh(count))
        expectEqual(fetcher.requests, 3)
        fetcher.respond(response("b"))
        expect(keys.keys.key("b") != nil)
        expectEqual(calls.withLock { $0 }, 4)
    }

    @Test
    func `Waiting tokens are bounded`() {
        keys.tick()
        let accepted = (0..<1100).filter { _ in keys.refresh {} }
        expectEqual(accepted.count, 1000)
        fetcher.respond(nil)
        expectEqual(fetcher.requests, 1)
    }

    @Test(
        arguments: [
            (nil, 3600), ("", 3600), ("max-age=600", 600), ("public, max-age=19000, must-revalidate", 19_000),
            ("max-age=1", 60), ("max-age=0", 60), ("max-age=999999999", 86_400),
            ("max-age=99999999999999999999", 86_400), ("max-age=-5", 60), ("max-age=x", 60), ("Max-Age = 700", 700),
            ("no-store", 60), ("no-cache, max-age=600", 60), ("s-maxage=600", 3600),
        ] as [(String?, Int64)])
    func `Cache-Control is between a minute and a day`(field: String?, seconds: Int64) {
        expectEqual(RemoteKeys.holdsSeconds(field), seconds)
    }

    @Test
    func `A token of a new key is verified after the fetch`() throws {
        let verifier = TokenVerifier([.firebase(project: "shop", keys: keys)])
        let token = try TestIssuer.token()
        // Keys are fetched for what was refused, without a further look at it.
        expect(!verifier.refreshKeys(for: token) {})
        #expect(throws: TokenError.unknownKey) { try verifier.user(token, now: present) }
        let isCalled = Mutex(false)
        expect(verifier.refreshKeys(for: token) { isCalled.withLock { $0 = true } })
        fetcher.respond(response("k1"))
        expect(isCalled.withLock { $0 })
        try expectEqual(verifier.user(token, now: present).uid, "ada")
        expect(!verifier.refreshKeys(for: Array("a.b.c".utf8)) {})
    }
}
