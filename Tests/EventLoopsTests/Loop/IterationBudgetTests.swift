// What a loop may do in an iteration, with a clock that the tests step.

import TestSupport
import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct IterationBudgetTests {
    private final class Worker: LoopWork {
        func work() {}
    }

    @Test func `A share ends with its bytes, and the iteration with all bytes or its time`() {
        var budget = IterationBudget()
        expect(budget.isShareSpent, "outside of an iteration there are no shares")
        budget.begin(now: 1_000)
        var shares = 0
        while !budget.isIterationSpent {
            budget.beginShare()
            expect(!budget.isShareSpent)
            budget.spend(IterationBudget.shareBytes - 1, now: 1_000)
            expect(!budget.isShareSpent)
            budget.spend(1, now: 1_000)
            expect(budget.isShareSpent)
            shares += 1
        }
        expectEqual(shares, IterationBudget.iterationBytes / IterationBudget.shareBytes)

        budget.begin(now: 1_000)
        budget.beginShare()
        budget.spend(0, now: 999 + IterationBudget.shareNanoseconds)
        expect(!budget.isShareSpent)
        budget.spend(0, now: 1_000 + IterationBudget.shareNanoseconds)
        expect(budget.isShareSpent)
        expect(!budget.isIterationSpent)
        budget.beginShare()
        expect(!budget.isShareSpent)
        budget.spend(0, now: 1_000 + IterationBudget.iterationNanoseconds)
        expect(budget.isShareSpent)
        expect(budget.isIterationSpent)
        budget.endShare()
        expect(budget.isShareSpent)
    }

    @Test func `Work that makes no bytes ends too, even if the clock stands still`() {
        var budget = IterationBudget()
        budget.begin(now: 1)
        budget.beginShare()
        var steps = 0
        while !budget.isShareSpent {
            budget.spend(0, now: 1)
            steps += 1
        }
        expectEqual(steps, IterationBudget.shareBytes)
    }

    @Test func `Who has waited longest is first, however many come and go`() {
        let workers = (0..<100).map { _ in Worker() }
        var rotation = WorkRotation()
        for worker in workers { rotation.append(worker) }
        for turn in 0..<1_000 {
            guard let first = rotation.popFirst() else { return expect(Bool(false), "the rotation lost a worker") }
            expect(first === workers[turn % workers.count])
            rotation.append(first)
        }
        for _ in workers { expect(rotation.popFirst() != nil) }
        expect(rotation.isEmpty)
        expectNil(rotation.popFirst())
    }

    @Test func `The longest iteration is reported for one to two minutes`() {
        let second: UInt64 = 1_000_000_000
        var longest = LongestIteration()
        expectEqual(longest.value(now: second), 0)
        longest.record(7, now: 10 * second)
        longest.record(5, now: 50 * second)
        expectEqual(longest.value(now: 60 * second), 7)
        longest.record(3, now: 75 * second)
        expectEqual(longest.value(now: 100 * second), 7)
        expectEqual(longest.value(now: 140 * second), 3)
        expectEqual(longest.value(now: 1_000 * second), 0)
    }
}
