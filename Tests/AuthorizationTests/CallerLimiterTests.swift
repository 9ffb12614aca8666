// How often callers may ask, by network and by user.

import AuthorizationTestSupport
import Calls
import Identity
import Synchronization
import TestSupport
import Testing

@testable import Authorization

@Suite(.timeLimit(.minutes(20))) struct CallerLimiterTests {
    private final class Clock: Sendable {
        let milliseconds = Mutex<UInt64>(1_000_000)
        var now: UInt64 { milliseconds.withLock { $0 } }
        func step(_ by: UInt64) { milliseconds.withLock { $0 += by } }
    }

    private let clock = Clock()

    private func limiter(_ rates: CallerRates, entriesMax: Int = 1_000) -> CallerLimiter {
        CallerLimiter(rates, entriesMax: entriesMax) { [clock] in clock.now }
    }

    private func network(_ number: Int) throws -> NetworkAddress {
        try #require(NetworkAddress("198.51.\(number / 256).\(number % 256)"))
    }

    private func user(_ uid: String) throws -> Caller {
        try TestAuthorization.authenticator().authenticate(authorization: TestAuthorization.user(uid), now: 0).caller
    }

    /// Requests that are served, of so many.
    private func served(_ shares: [CallerLimiter.Share], by limiter: CallerLimiter, of count: Int = 100) -> Int {
        (0..<count).count { _ in limiter.take(shares) == nil }
    }

    @Test func `A network has its rate, and twice of it at once`() throws {
        let limiter = limiter(CallerRates(networkRequests: 10))
        let shares = limiter.shares(of: .anonymous, at: try network(1))
        expectEqual(served(shares, by: limiter), 20)
        let exceeded = try #require(limiter.take(shares))
        expect(exceeded.error.code == .resourceExhausted && exceeded.seconds == 1)
        expectEqual(exceeded.error.message, "Too many requests from this address; try again in 1 s.")
        expectEqual(served(limiter.shares(of: .anonymous, at: try network(2)), by: limiter), 20)
        clock.step(1_000)
        expectEqual(served(shares, by: limiter), 10)
        clock.step(3_600_000)
        expectEqual(served(shares, by: limiter), 20)
        let refused: UInt64 = 80 + 1 + 80 + 90 + 80
        expectEqual(limiter.refused[0].count, refused)
    }

    @Test func `A user has one rate from all networks`() throws {
        let limiter = limiter(CallerRates(networkRequests: 100, userRequests: 10))
        let ada = try user("ada")
        let (here, there) = (try network(1), try network(2))
        expectEqual(served(limiter.shares(of: ada, at: here), by: limiter, of: 15), 15)
        expectEqual(served(limiter.shares(of: ada, at: there), by: limiter), 5)
        expectEqual(limiter.take(limiter.shares(of: ada, at: nil))?.error.message.contains("of this user"), true)
        expectEqual(served(limiter.shares(of: try user("eve"), at: here), by: limiter), 20)
    }

    @Test func `Principals have no rate, and 0 sets none`() throws {
        let limiter = limiter(CallerRates(networkRequests: 1, userRequests: 1))
        expect(limiter.shares(of: .admin, at: try network(1)).isEmpty)
        let open = self.limiter(CallerRates())
        expect(open.shares(of: .anonymous, at: try network(1)).isEmpty)
        expect(open.shares(of: try user("ada"), at: try network(1)).isEmpty)
        open.refused(try network(1))
        expect(open.refusalsExceeded(try network(1)) == nil && open.count == 0 && !open.limitsNetworks)
    }

    @Test func `A network that is refused too often waits, and one that does not wait is hopeless`() throws {
        let limiter = limiter(CallerRates(networkRefusals: 120))
        let (one, other) = (try network(1), try network(2))
        for _ in 0..<119 { limiter.refused(one) }
        expectNil(limiter.refusalsExceeded(one))
        limiter.refused(one)
        for number in 1...(CallerLimiter.refusalsInRowMax + 1) {
            let exceeded = try #require(limiter.refusalsExceeded(one))
            expectEqual(exceeded.isHopeless, number > CallerLimiter.refusalsInRowMax)
        }
        expect(limiter.refusalsExceeded(other) == nil && limiter.refusalsExceeded(nil) == nil)
        // Two come back in a second.
        clock.step(1_020)
        expectNil(limiter.refusalsExceeded(one))
        for _ in 0..<2 { limiter.refused(one) }
        expect(limiter.refusalsExceeded(one)?.isHopeless == false && limiter.refusalsExceeded(one)?.seconds == 1)
    }

    // MARK: Commits, work of rules, listeners

    private func rates(_ change: (inout CallerRates) -> Void) -> CallerRates {
        var rates = CallerRates()
        change(&rates)
        return rates
    }

    @Test func `Commits have a separate rate`() throws {
        let limiter = limiter(
            rates {
                $0.networkCommits = 3
                $0.userCommits = 2
            })
        let ada = limiter.shares(of: try user("ada"), at: try network(1))
        let eve = limiter.shares(of: try user("eve"), at: try network(1))
        expectEqual((0..<100).count { _ in limiter.takeCommit(ada) == nil }, 4)
        expectEqual(limiter.takeCommit(ada)?.error.message, "Too many commits from this address; try again in 1 s.")
        clock.step(1_000)
        expectEqual((0..<100).count { _ in limiter.takeCommit(eve) == nil }, 3)
        clock.step(60_000)
        for _ in 0..<4 { expectNil(limiter.takeCommit(ada)) }
        expectEqual(limiter.takeCommit(ada)?.error.message, "Too many commits of this user; try again in 1 s.")
        expectEqual(served(ada, by: limiter), 100)
    }

    @Test func `A caller whose rules have worked too much waits until that is paid`() throws {
        let limiter = limiter(
            rates {
                $0.networkRuleWork = 1_000
                $0.userRuleWork = 100
            })
        let ada = limiter.shares(of: try user("ada"), at: try network(1))
        let eve = limiter.shares(of: try user("eve"), at: try network(1))
        limiter.spend(ruleWork: 199, of: ada)
        expect(limiter.take(ada) == nil && limiter.takeCommit(ada) == nil && limiter.openListener(ada) == nil)
        limiter.spend(ruleWork: 301, of: ada)
        let exceeded = try #require(limiter.take(ada))
        expect(exceeded.error.code == .resourceExhausted && exceeded.seconds == 4)
        expect(exceeded.error.message.hasPrefix("Too much work of security rules for this user; try again in "))
        expect(limiter.takeCommit(ada) != nil && limiter.openListener(ada) != nil)
        expectNil(limiter.take(eve))
        clock.step(2_999)
        expect(limiter.take(ada) != nil)
        clock.step(11)
        expectNil(limiter.take(ada))
        // No debt is older than a minute.
        limiter.spend(ruleWork: .max, of: ada)
        clock.step(60_010)
        expect(limiter.take(ada) == nil && limiter.take(eve) == nil)
        expectEqual(limiter.refused.first { $0.label == "user_rule_work" }?.count, 4)
    }

    @Test func `Listeners are counted until they are closed`() throws {
        let limiter = limiter(
            rates {
                $0.networkListeners = 3
                $0.userListeners = 2
            })
        let ada = limiter.shares(of: try user("ada"), at: try network(1))
        let eve = limiter.shares(of: try user("eve"), at: try network(1))
        let elsewhere = limiter.shares(of: try user("eve"), at: try network(2))
        expect(limiter.openListener(ada) == nil && limiter.openListener(ada) == nil)
        expectEqual(limiter.openListener(ada)?.error.message, "Too many listeners of this user.")
        expectNil(limiter.openListener(eve))
        expectEqual(limiter.openListener(eve)?.error.message, "Too many listeners of this address.")
        // What was refused is not counted anywhere.
        expectNil(limiter.openListener(elsewhere))
        expectEqual(limiter.openListener(elsewhere)?.error.code, .resourceExhausted)
        limiter.closeListener(ada)
        expect(limiter.openListener(ada) == nil && limiter.openListener(ada) != nil)
        limiter.closeListener(elsewhere)
        limiter.closeListener(eve)
        expect(limiter.openListener(eve) == nil && limiter.openListener(eve) != nil)
        expectNil(limiter.openListener(limiter.shares(of: .admin, at: try network(1))))
    }

    @Test func `Memory is bounded, and who asks is not forgotten`() throws {
        let limiter = limiter(CallerRates(networkRequests: 10, networkRefusals: 10), entriesMax: 100)
        expectEqual(served(limiter.shares(of: .anonymous, at: try network(0)), by: limiter), 20)
        for number in 1...5_000 {
            limiter.refused(try network(number))
            expect(limiter.count <= 100)
            if number % 20 == 0 {
                expect(limiter.take(limiter.shares(of: .anonymous, at: try network(0))) != nil)
            }
        }
    }
}
