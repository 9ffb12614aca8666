// When the provider is asked: by events with the time, without a clock.

import Basics
import DocumentModel
import NativeProtocol
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct TokenStateTests {
    private static let error = RequestError(.unauthenticated, "no")

    /// A state whose first question got this answer at time 0.
    private func answered(_ token: String, wall: Int64 = 0) -> TokenState {
        var state = TokenState(jitterSeed: 1)
        expectEqual(state.need(now: 0), .wait)
        expectEqual(state.takeQuestion(), false)
        let isDone = state.answered(.success(Credential(token)!), now: 0, wall: wall)
        expect(isDone)
        return state
    }

    private func answer(_ token: String, _ generation: UInt64) -> TokenAnswer {
        .token(ClientToken(credential: Credential(token)!, generation: generation))
    }

    @Test
    func `There is one question at a time`() {
        var state = TokenState(jitterSeed: 1)
        expectEqual(state.need(now: 0), .wait)
        expectEqual(state.takeQuestion(), false)
        expectEqual(state.need(now: 1), .wait)
        expectEqual(state.renew(after: 0, now: 2), .wait)
        state.refresh(now: 3)
        expectNil(state.takeQuestion())
    }

    @Test
    func `A token with an end is kept until it is to be replaced, any other is asked for by each connection`() {
        let token = TestToken.make(#"{"iat":0,"exp":1000}"#)
        var state = answered(token)
        expectEqual(state.refreshAt, 800_000)
        expectEqual(state.need(now: 799_999), .have(answer(token, 1)))
        expectNil(state.takeQuestion())
        expectEqual(state.need(now: 800_000), .wait)
        expectEqual(state.takeQuestion(), false)
        var other = answered("plain")
        expectNil(other.refreshAt)
        expectEqual(other.need(now: 1), .wait)
        expectEqual(other.takeQuestion(), false)
    }

    @Test
    func `A refused token is renewed by force, once for all calls that had it`() {
        var state = answered("old")
        expectEqual(state.renew(after: 1, now: 10), .wait)
        expectEqual(state.takeQuestion(), true)
        expectEqual(state.renew(after: 1, now: 11), .wait)
        expectNil(state.takeQuestion())
        let isDone = state.answered(.success(Credential("new")!), now: 20, wall: 0)
        expect(isDone && state.renewed == answer("new", 2))
        // A call that had the old token.
        expectEqual(state.renew(after: 1, now: 21), .have(answer("new", 2)))
    }

    @Test
    func `The server refuses new tokens: the provider is asked ever more rarely`() {
        var state = answered("old")
        var now: UInt64 = 0
        var pauses: [UInt64] = []
        for _ in 0..<8 {
            let before = now
            while state.renew(after: state.token!.generation, now: now) == .have(.notAsked) { now += 100 }
            pauses.append(now - before)
            expectEqual(state.takeQuestion(), true)
            _ = state.answered(.success(Credential("old")!), now: now, wall: 0)
        }
        expectEqual(pauses[0], 0)
        for (pause, nominal) in zip(pauses.dropFirst(), [1, 2, 4, 8, 16, 32, 60] as [UInt64]) {
            expect((nominal * 700...nominal * 1_300 + 100).contains(pause))
        }
        // After a quiet time it is asked at once, and after that soon.
        now += 1_000_000
        expectEqual(state.renew(after: state.token!.generation, now: now), .wait)
        _ = state.takeQuestion()
        _ = state.answered(.success(Credential("old")!), now: now, wall: 0)
        expectEqual(state.renew(after: state.token!.generation, now: now + 1_400), .wait)
    }

    @Test
    func `A token that is refused while it is asked for again is then asked for by force`() {
        var state = answered("old")
        _ = state.need(now: 1)
        expectEqual(state.takeQuestion(), false)
        expectEqual(state.renew(after: 1, now: 2), .wait)
        let isDone = state.answered(.success(Credential("old")!), now: 3, wall: 0)
        expect(!isDone)
        expectEqual(state.takeQuestion(), true)
        let isDoneNow = state.answered(.success(Credential("new")!), now: 4, wall: 0)
        expect(isDoneNow && state.renewed == answer("new", 3))
    }

    @Test
    func `After a failure questions wait, and a token that has not expired is used`() {
        let token = TestToken.make(#"{"iat":0,"exp":1000}"#)
        var state = answered(token)
        state.refresh(now: 800_000)
        expectEqual(state.takeQuestion(), false)
        let isDone = state.answered(.failure(Self.error), now: 800_000, wall: 800_000)
        expect(isDone)
        expectEqual(state.usable(now: 800_001), answer(token, 1))
        expectEqual(state.renewed, .failure(Self.error))
        expectEqual(state.renew(after: 1, now: 800_001), .have(.failure(Self.error)))
        let next = state.refreshAt ?? 0
        expect((800_100...800_400).contains(next))
        state.refresh(now: next)
        expectEqual(state.takeQuestion(), false)
        _ = state.answered(.failure(Self.error), now: 1_000_000, wall: 1_000_000)
        expectEqual(state.need(now: 1_000_001), .have(.failure(Self.error)))
    }

    @Test
    func `A provider that is late fails what waits, and what comes, until it answers`() {
        var state = TokenState(jitterSeed: 1)
        _ = state.need(now: 0)
        expectEqual(state.takeQuestion(), false)
        state.timedOut(Self.error)
        expectEqual(state.usable(now: 1), .failure(Self.error))
        expectEqual(state.need(now: 2), .have(.failure(Self.error)))
        expectEqual(state.renew(after: 0, now: 3), .have(.failure(Self.error)))
        expectNil(state.takeQuestion())
        let isDone = state.answered(.success(Credential("late")!), now: 4, wall: 0)
        expect(isDone && state.usable(now: 5) == answer("late", 1))
    }

    @Test
    func `A provider that gives an expired token is asked by force, ever more rarely`() {
        let token = TestToken.make(#"{"iat":0,"exp":10}"#)
        var state = answered(token, wall: 20_000)
        var now: UInt64 = 0
        for nominal in [1, 2, 4, 8, 16, 32, 60, 60] as [UInt64] {
            let next = state.refreshAt ?? 0
            expect((nominal * 700...nominal * 1_300).contains(next - now))
            now = next
            state.refresh(now: now)
            expectEqual(state.takeQuestion(), true)
            _ = state.answered(.success(Credential(token)!), now: now, wall: 20_000)
        }
    }

    @Test
    func `When the user may have changed, the answer to an earlier question does not do`() {
        var state = TokenState(jitterSeed: 1)
        _ = state.need(now: 0)
        _ = state.takeQuestion()
        state.changed()
        expectNil(state.takeQuestion())
        let isDone = state.answered(.success(Credential("earlier")!), now: 1, wall: 0)
        expect(!isDone && state.token == nil)
        expectEqual(state.takeQuestion(), false)
        let isDoneNow = state.answered(.success(.none), now: 2, wall: 0)
        expect(isDoneNow && state.usable(now: 3) == answer("", 1))
        state.changed()
        expectEqual(state.takeQuestion(), false)
    }
}
