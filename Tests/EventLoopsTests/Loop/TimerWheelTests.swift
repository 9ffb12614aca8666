// The timer wheel, stepped by hand.

import Basics
import TestSupport
import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct TimerWheelTests {
    @Test func `A timer fires at its tick, once`() {
        var wheel = TimerWheel<String>(slots: 8)
        _ = wheel.insert(at: 5, "a")
        expectEqual(wheel.takeDue(upTo: 4), [])
        expectEqual(wheel.takeDue(upTo: 5), ["a"])
        expectEqual(wheel.takeDue(upTo: 100), [])
        expectEqual(wheel.count, 0)
    }

    @Test func `A timer that is due already fires at the next step`() {
        var wheel = TimerWheel<String>(slots: 8, now: 10)
        _ = wheel.insert(at: 3, "late")
        expectEqual(wheel.takeDue(upTo: 11), ["late"])
    }

    @Test func `A timer more than a turn away waits for its turn`() {
        var wheel = TimerWheel<String>(slots: 8)
        _ = wheel.insert(at: 20, "far")
        for tick in 1..<20 as Range<UInt64> { expectEqual(wheel.takeDue(upTo: tick), []) }
        expectEqual(wheel.takeDue(upTo: 20), ["far"])
    }

    @Test func `A removed timer does not fire, and a stale name removes nothing`() {
        var wheel = TimerWheel<String>(slots: 8)
        let first = wheel.insert(at: 2, "a")
        expectEqual(wheel.remove(first), true)
        expectEqual(wheel.remove(first), false)
        let second = wheel.insert(at: 2, "b")
        expectEqual(wheel.remove(first), false, "the place was taken over by another timer")
        expectEqual(wheel.takeDue(upTo: 2), ["b"])
        expectEqual(wheel.remove(second), false)
    }

    @Test(arguments: [1, 7, 0xC0FFEE] as [UInt64])
    func `The wheel fires what a sorted list fires`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var wheel = TimerWheel<Int>(slots: 16)
        var model: [Int: (tick: UInt64, timer: TimerWheel<Int>.Timer)] = [:]
        var now: UInt64 = 0
        for step in 0..<5_000 {
            switch random.next() % 4 {
            case 0, 1:
                let tick = now + 1 + random.next() % 60
                model[step] = (tick, wheel.insert(at: tick, step))
            case 2:
                if let key = model.keys.randomElement(using: &random) {
                    expectEqual(wheel.remove(model.removeValue(forKey: key)!.timer), true)
                }
            default:
                now += random.next() % 40
                let due = Set(model.filter { $0.value.tick <= now }.keys)
                expectEqual(Set(wheel.takeDue(upTo: now)), due, "seed \(seed), step \(step)")
                for key in due { model[key] = nil }
            }
            expectEqual(wheel.count, model.count)
            // Never later than the earliest timer.
            if let earliest = model.values.map(\.tick).min() { expect(wheel.nextTick! <= earliest) }
        }
    }
}
