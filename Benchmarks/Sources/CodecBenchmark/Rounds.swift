// Timing: all subjects run in turn, round after round, so that a change of the machine's speed affects all of them. The
// CPU time of the thread is measured: other programs on the machine do not change it.

import Foundation

/// What is timed, and what it took.
struct Subject {
    let name: String
    /// Runs the given number of documents.
    let run: (Int) throws -> Void
    /// Nanoseconds per document, a figure per round.
    var figures: [Double] = []

    init(_ name: String, _ body: @escaping () throws -> Void) {
        self.name = name
        run = { count in for _ in 0..<count { try body() } }
    }

    var median: Double { figures.sorted()[figures.count / 2] }
}

/// Times the subjects; each round of each takes about `milliseconds`.
func measure(_ subjects: inout [Subject], rounds: Int = 15, milliseconds: Double = 40) throws {
    let counts = try subjects.map { subject in
        try subject.run(2_000)
        let trial = 2_000
        let nanoseconds = try time { try subject.run(trial) }
        return max(100, Int(milliseconds * 1e6 / (nanoseconds / Double(trial))))
    }
    for _ in 0..<rounds {
        for index in subjects.indices {
            let count = counts[index]
            let nanoseconds = try time { try subjects[index].run(count) }
            subjects[index].figures.append(nanoseconds / Double(count))
        }
    }
}

/// Nanoseconds of CPU time that `body` takes on this thread.
private func time(_ body: () throws -> Void) rethrows -> Double {
    let start = threadNanoseconds()
    try body()
    return threadNanoseconds() - start
}

private func threadNanoseconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
}
