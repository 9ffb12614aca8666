// Open and closed, and the slowing of failed logins.

import Identity
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct SecurityModeTests {
    private static let flags: [(name: String, path: any WritableKeyPath<SecuritySettings, Bool> & Sendable)] = [
        ("--rules", \.hasRules), ("--token-issuer", \.hasTokens), ("--principals", \.hasPrincipals),
        ("--tls-cert", \.hasCertificate), ("--allow-host", \.hasAllowedHosts),
    ]

    private func mode(_ change: (inout SecuritySettings) -> Void) throws -> SecurityMode {
        var settings = SecuritySettings()
        change(&settings)
        return try SecurityMode.of(settings)
    }

    @Test
    func `Loopback is open until one flag is given; elsewhere a flag or --insecure is needed`() throws {
        try expectEqual(mode { _ in }, .open)
        #expect(throws: SettingsFault.openToOthers) { try mode { $0.isLoopback = false } }
        for (name, path) in Self.flags {
            for isLoopback in [true, false] {
                let closed = try mode {
                    $0[keyPath: path] = true
                    $0.isLoopback = isLoopback
                }
                expectEqual(closed, .closed, "\(name)")
                let insecure = try mode {
                    $0[keyPath: path] = true
                    $0.isLoopback = isLoopback
                    $0.isInsecure = true
                }
                expectEqual(insecure, .insecure, "\(name)")
            }
            let emulator = try mode {
                $0[keyPath: path] = true
                $0.isEmulator = true
            }
            expectEqual(emulator, .emulator, "\(name)")
        }
        try expectEqual(mode { ($0.isLoopback, $0.isInsecure) = (false, true) }, .insecure)
        for isInsecure in [true, false] {
            #expect(throws: SettingsFault.emulatorForOthers) {
                try mode { ($0.isLoopback, $0.isEmulator, $0.isInsecure) = (false, true, isInsecure) }
            }
        }
        expect(SettingsFault.openToOthers.description.contains("--insecure"))
    }

    @Test
    func `Rules of the emulator's route switch an open server to the emulator's mode, and no other`() {
        expectEqual(SecurityMode.open.withRulesOfEmulator, .emulator)
        expectEqual(SecurityMode.emulator.withRulesOfEmulator, .emulator)
        expectNil(SecurityMode.insecure.withRulesOfEmulator)
        expectNil(SecurityMode.closed.withRulesOfEmulator)
    }

    /// The letters are: y allowed, r by the rules, u UNAUTHENTICATED, n PERMISSION_DENIED.
    ///
    /// The columns: anonymous, user, a principal outside of its role, one within it, one that bypasses rules, admin.
    @Test(
        arguments: [
            // Mode, purpose, loopback, proxied, rules.
            (.open, .documents, true, false, false, "yyyyyy"), (.open, .documents, true, true, false, "nnnnnn"),
            (.open, .administration, true, false, false, "yyyyyy"), (.open, .observation, true, true, false, "nnnnnn"),
            (.open, .health, true, true, false, "yyyyyy"),
            (.insecure, .documents, false, true, true, "yyyyyy"),
            (.insecure, .administration, false, true, false, "yyyyyy"),
            (.emulator, .documents, true, false, true, "rrnryy"), (.emulator, .documents, true, false, false, "yyyyyy"),
            (.emulator, .documents, true, true, true, "nnnnnn"),
            (.emulator, .administration, true, false, true, "yyyyyy"),
            (.closed, .documents, true, false, true, "rrnryy"), (.closed, .documents, false, false, true, "rrnryy"),
            (.closed, .documents, false, true, true, "rrnryy"), (.closed, .documents, true, false, false, "unnnyy"),
            (.closed, .observation, true, false, true, "yyyyyy"),
            (.closed, .observation, false, false, true, "unyyyy"),
            (.closed, .observation, true, true, true, "unyyyy"),
            (.closed, .administration, true, false, true, "unnyyy"),
            (.closed, .administration, false, false, false, "unnyyy"),
            (.closed, .health, false, true, false, "yyyyyy"),
        ] as [(SecurityMode, Purpose, Bool, Bool, Bool, String)])
    func `What each caller may do`(
        mode: SecurityMode, purpose: Purpose, isLoopback: Bool, isProxied: Bool, hasRules: Bool, expected: String
    ) {
        let callers: [Standing] = [
            .anonymous, .user, .service(permits: false, bypassesRules: true),
            .service(permits: true, bypassesRules: false), .service(permits: true, bypassesRules: true), .admin,
        ]
        let approach = Approach(isLoopback: isLoopback, isProxied: isProxied)
        let letters = callers.map { caller in
            switch mode.admission(of: caller, for: purpose, via: approach, hasRules: hasRules) {
            case .allowed: "y"
            case .byRules: "r"
            case .refused(.unauthenticated, _): "u"
            case .refused: "n"
            }
        }
        expectEqual(letters.joined(), expected)
    }

    @Test
    func `The summary has a line for each caller and way`() {
        let lines = SecurityMode.closed.summary(isLoopback: false, hasRules: true)
        expectEqual(lines.count, 10)
        expectEqual(
            lines[0], "without a credential: health yes, documents by the rules, observation no, administration no")
        expectEqual(lines[9], "admins, through a proxy: health yes, documents yes, observation yes, administration yes")
    }

    @Test
    func `A user of another project's issuer has the standing of no credential`() throws {
        let user = try TestIssuer.verifier().user(TestIssuer.token(), now: present)
        func standing(_ project: String) -> Standing {
            Standing(.user(user), .read, project: project, database: "(default)", collection: nil)
        }
        expectEqual(standing("shop"), .user)
        expectEqual(standing("other"), .anonymous)
    }
}

@Suite(.timeLimit(.minutes(20))) struct LoginLimiterTests {
    private final class Clock: Sendable {
        let milliseconds = Mutex<UInt64>(1_000_000)
        var now: UInt64 { milliseconds.withLock { $0 } }
        func step(_ by: UInt64) { milliseconds.withLock { $0 += by } }
    }

    private let clock = Clock()

    private func limiter(_ max: Int = 1000) -> LoginLimiter {
        LoginLimiter(entriesMax: max) { [clock] in clock.now }
    }

    private func network(_ text: String) throws -> CallerNetwork { try #require(CallerNetwork(text)) }

    @Test
    func `Failures double the wait up to a minute, and are forgotten`() throws {
        let limiter = limiter()
        let caller = try network("192.0.2.1")
        var waits: [UInt64] = []
        for _ in 0..<14 {
            limiter.failed(caller)
            waits.append(limiter.waitMilliseconds(caller))
        }
        expectEqual(waits, [0, 0, 0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
        expectEqual(limiter.waitMilliseconds(try network("192.0.2.2")), 0)
        clock.step(59_999)
        expectEqual(limiter.waitMilliseconds(caller), 1)
        clock.step(1)
        expectEqual(limiter.waitMilliseconds(caller), 0)
        clock.step(3_600_000)
        limiter.failed(caller)
        expectEqual(limiter.waitMilliseconds(caller), 0)
    }

    @Test
    func `A name is slowed over all networks, and a network over all names`() throws {
        let limiter = limiter()
        for number in 0..<6 { limiter.failed(try network("192.0.2.\(number)"), name: "key") }
        let other = try network("198.51.100.1")
        expectEqual(limiter.waitMilliseconds(other, name: "key"), 1000)
        expectEqual(limiter.waitMilliseconds(other, name: "other"), 0)
        for number in 0..<6 { limiter.failed(other, name: "n\(number)") }
        expectEqual(limiter.waitMilliseconds(other), 1000)
    }

    @Test
    func `A name that many networks guess waits for seconds at most, and not where it has logged in`() throws {
        let limiter = limiter()
        let (home, other) = (try network("198.51.100.1"), try network("198.51.100.2"))
        limiter.succeeded(home, name: "key")
        limiter.succeeded(nil, name: "key")
        expect(!limiter.slowsNames)
        var waits: [UInt64] = []
        for number in 0..<12 {
            limiter.failed(try network("192.0.2.\(number)"), name: "key")
            waits.append(limiter.waitMilliseconds(other, name: "key"))
        }
        expectEqual(waits, [0, 0, 0, 0, 0, 1000, 2000, 4000, 8000, 8000, 8000, 8000])
        expect(limiter.slowsNames)
        expectEqual(limiter.waitMilliseconds(nil, name: "key"), 0)
        expectEqual(limiter.waitMilliseconds(home, name: "key"), 0)
        expectEqual(limiter.waitMilliseconds(home, name: "other"), 0)
        for _ in 0..<6 { limiter.failed(home, name: "key") }
        expectEqual(limiter.waitMilliseconds(home, name: "key"), 1000)
        clock.step(8_000)
        expect(!limiter.slowsNames && limiter.waitMilliseconds(other, name: "key") == 0)
    }

    @Test
    func `Memory is bounded`() throws {
        let limiter = limiter(100)
        for number in 0..<5000 {
            limiter.failed(
                try network("10.0.\(number / 256).\(number % 256)"), name: String(repeating: "n", count: number))
            limiter.succeeded(try network("10.1.\(number / 256).\(number % 256)"), name: "n\(number)")
            expect(limiter.count <= 100 && limiter.loginCount <= 100)
        }
    }

    @Test(arguments: [
        ("2001:db8::1", "2001:db8::ffff:1", true), ("2001:db8::1", "2001:db8:0:1::1", false),
        ("::ffff:192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
        ("fe80::1%eth0", "fe80::2%eth1", true), ("::", "0.0.0.0", false),
    ])
    func `IPv6 callers share a /64; IPv4 within IPv6 is IPv4`(one: String, other: String, isSame: Bool) throws {
        try expectEqual(network(one) == network(other), isSame)
    }

    @Test(arguments: ["", "localhost", "1.2.3", "%eth0", "1.2.3.4:80"])
    func `What is not an address has no network`(text: String) { expectNil(CallerNetwork(text)) }
}
