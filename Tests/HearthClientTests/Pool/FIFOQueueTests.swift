// The queue of waiting calls against a plain array.

import Basics
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct FIFOQueueTests {
    @Test
    func `It gives back what was put in, in order, through growth and removal`() {
        var queue = FIFOQueue<Int>()
        var model: [Int] = []
        for step in 0..<5000 {
            switch step % 7 {
            case 0, 1, 2, 3:
                queue.append(step)
                model.append(step)
            case 4, 5:
                expectEqual(queue.popFirst(), model.isEmpty ? nil : model.removeFirst())
            default:
                guard step % 91 == 90 else { continue }
                expectEqual(queue.removeAll { $0 % 3 == 0 }, model.filter { $0 % 3 == 0 })
                model.removeAll { $0 % 3 == 0 }
            }
            expectEqual(queue.count, model.count)
        }
        while let next = queue.popFirst() { expectEqual(next, model.removeFirst()) }
        expect(model.isEmpty)
        expect(queue.isEmpty)
    }

    @Test
    func `Elements are inserted at any position, between those that come and go at the ends`() {
        var queue = FIFOQueue<Int>()
        var model: [Int] = []
        var random = SplitMix64(seed: 7)
        for step in 0..<5000 {
            switch random.next() % 8 {
            case 0, 1:
                queue.append(step)
                model.append(step)
            case 2, 3: expectEqual(queue.popFirst(), model.isEmpty ? nil : model.removeFirst())
            default:
                // Mostly near the beginning.
                let position = Int(random.next() % UInt64(model.count + 1)) / (random.next() % 3 == 0 ? 1 : 8)
                queue.insert(step, at: position)
                model.insert(step, at: position)
            }
            expect(queue.count == model.count && queue.first == model.first && queue.last == model.last)
        }
        expectEqual(Array(queue), model)
        while let next = queue.popFirst() { expectEqual(next, model.removeFirst()) }
        expect(model.isEmpty && queue.isEmpty)
    }
}
