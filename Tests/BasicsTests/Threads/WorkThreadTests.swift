// Threads that exist while there is something to do, under every order of those that add work, wake and stop.

import Basics
import TestSupport
import Testing

/// Numbers that threads hand over to one that exists while there are some. One thread of a simulation runs at a time.
private final class Numbers: @unchecked Sendable {
    // Sendable: what is not in `thread` is used by the thread that exists alone, or by one simulated thread at a time.

    struct State {
        var waiting: [Int] = []
        var isStopping = false
    }

    let thread = WorkThread(name: "numbers", State())
    private(set) var done: [Int] = []
    private(set) var problem: String?
    private(set) var starts = 0
    private var isWorking = false

    func add(_ number: Int) throws { try thread.add(run: { [self] in run() }) { $0.waiting.append(number) } }

    /// Hands a number over to a thread that exists, if there is one.
    func addIfRunning(_ number: Int) throws {
        if !thread.updateIfRunning({ $0.waiting.append(number) }) { try add(number) }
    }

    func stop() {
        thread.update { $0.isStopping = true }
        thread.waitForEnd()
    }

    private func run() {
        if isWorking { problem = "there are two threads" }
        isWorking = true
        starts += 1
        while let number = next() {
            yieldPoint("at work")
            done.append(number)
        }
    }

    private func next() -> Int? {
        thread.take { state in
            if !state.isStopping, let number = state.waiting.first {
                state.waiting.removeFirst()
                return number
            }
            isWorking = false
            return nil
        }
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct WorkThreadTests {
    @Test
    func `All work is done once, by one thread at a time, whenever it comes`() {
        let problem = SimulatedSeeds.problem(of: "work thread", count: 300, soak: 1_000_000) { simulation in
            let numbers = Numbers()
            func add(_ range: Range<Int>) throws { for number in range { try numbers.add(number) } }
            try simulation.concurrently([
                { try add(0..<4) }, { try add(4..<8) },
                { for number in 8..<12 { try numbers.addIfRunning(number) } },
            ])
            numbers.thread.waitForEnd()
            if let problem = numbers.problem { return problem }
            return numbers.done.sorted() == Array(0..<12) ? nil : "\(numbers.done) was done"
        }
        expectNil(problem)
    }

    @Test
    func `After a stop nothing is done, also if the thread was starting or ending`() {
        let problem = SimulatedSeeds.problem(of: "stop of a work thread", count: 300, soak: 1_000_000) { simulation in
            let numbers = Numbers()
            var doneAtStop = 0
            try simulation.concurrently([
                { for number in 0..<4 { try numbers.add(number) } },
                {
                    numbers.stop()
                    doneAtStop = numbers.done.count
                },
            ])
            numbers.thread.waitForEnd()
            if let problem = numbers.problem { return problem }
            return numbers.done == Array(0..<doneAtStop)
                ? nil : "\(numbers.done) was done, \(doneAtStop) before the stop"
        }
        expectNil(problem)
    }

    @Test
    func `Threads of the system hand work over too, and a thread without work is gone`() throws {
        let numbers = Numbers()
        let threads = try (0..<4).map { thread in
            try SystemThread(name: "adding") {
                for number in 0..<500 {
                    do { try numbers.add(thread * 500 + number) } catch { Issue.record(error) }
                }
            }
        }
        for thread in threads { thread.join() }
        numbers.thread.waitForEnd()
        expect(numbers.problem == nil && numbers.done.sorted() == Array(0..<2_000))
        expect(!numbers.thread.updateIfRunning { _ in })
        let starts = numbers.starts
        try numbers.add(7)
        numbers.thread.waitForEnd()
        expect(numbers.starts == starts + 1 && numbers.done.last == 7)
    }

    @Test
    func `A pause ends with a change or at its deadline`() throws {
        let work = WorkThread(name: "paused", false)
        let deadline = SystemClock.monotonicNanoseconds()
        work.pause(untilNanoseconds: deadline) { $0 }
        try work.add(run: {
            repeat { work.pause(untilNanoseconds: .max / 2) { $0 } } while work.take { $0 ? nil : () } != nil
        }) { _ in }
        work.update { $0 = true }
        work.waitForEnd()
    }
}
