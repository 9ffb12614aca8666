// When a message says that a server cannot be reached.

import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct OutageNoticeTests {
    @Test
    func `The first notice comes after some seconds, further ones ever more rarely`() throws {
        var notice = OutageNotice(firstAfterMilliseconds: 3000)
        let didStart1 = notice.callWaits()
        var timer = try #require(didStart1)
        expectEqual(timer.afterMilliseconds, 3000)
        let second = notice.callWaits()
        expectNil(second)
        var waits: [UInt64] = []
        for _ in 0..<7 {
            let step = notice.timerFired(timer, isOutage: true, isReasonKnown: true)
            expect(step.speaks)
            timer = try #require(step.next)
            waits.append(timer.afterMilliseconds / 1000)
        }
        expectEqual(waits, [60, 120, 240, 480, 600, 600, 600])
        let wasNotified = notice.connected()
        expect(wasNotified)
    }

    @Test
    func `A notice waits for the reason of the outage`() throws {
        var notice = OutageNotice(firstAfterMilliseconds: 3000)
        let didStart2 = notice.callWaits()
        let timer = try #require(didStart2)
        let early = notice.timerFired(timer, isOutage: true, isReasonKnown: false)
        expect(!early.speaks)
        let late = notice.timerFired(try #require(early.next), isOutage: true, isReasonKnown: true)
        expect(late.speaks)
    }

    @Test
    func `An outage that ends in time causes no message, and the next one is reported again`() throws {
        var notice = OutageNotice(firstAfterMilliseconds: 3000)
        let didStart3 = notice.callWaits()
        let timer = try #require(didStart3)
        let wasNotified = notice.connected()
        expect(!wasNotified)
        let didStart4 = notice.callWaits()
        let next = try #require(didStart4)
        // The first outage's timer has no say any more.
        let stale = notice.timerFired(timer, isOutage: true, isReasonKnown: true)
        expect(stale == (false, nil))
        let step = notice.timerFired(next, isOutage: true, isReasonKnown: true)
        expect(step.speaks)
    }

    @Test
    func `Watching ends when no call waits any more`() throws {
        var notice = OutageNotice(firstAfterMilliseconds: 3000)
        let didStart5 = notice.callWaits()
        let timer = try #require(didStart5)
        let ended = notice.timerFired(timer, isOutage: false, isReasonKnown: true)
        expect(ended == (false, nil))
        let again = notice.callWaits()
        expect(again != nil)
    }
}
