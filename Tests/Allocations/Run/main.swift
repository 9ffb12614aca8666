// Counts allocations on the hot paths and compares them with committed limits. Exit status 1 if one is exceeded.
//
// Only a release build says something. `Tools/test-allocations` builds and runs it.
//
// usage: hearth-allocations [NAME ROUNDS]
//
// With a name it runs only the subjects whose names contain it, so that a profiler can count instructions: those of
// one operation are the difference of two runs, divided by the difference of their rounds.

import CAllocationCounter
import Glibc

private let chosenName = CommandLine.arguments.dropFirst().first ?? ""
private let chosenRounds = CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) }
private let warmingRounds = chosenRounds == nil ? 1_000 : 300
private let countedRounds = chosenRounds ?? 4_000

/// Allocations of the process while an operation is done `countedRounds` times.
private func count(_ subject: Subject) throws -> UInt64 {
    for _ in 0..<warmingRounds { try subject.operation() }
    let before = allocation_count()
    for _ in 0..<countedRounds { try subject.operation() }
    return allocation_count() - before
}

/// Proves that allocations of the Swift runtime are seen at all.
private func checkCounter() throws {
    final class Something {}
    let before = allocation_count()
    var kept: [Something] = []
    for _ in 0..<100 { kept.append(Something()) }
    guard allocation_count() - before >= 100, kept.count == 100 else {
        throw Failure(description: "the counter does not see the runtime's allocations")
    }
}

do {
    try checkCounter()
    let connection = try Connection()
    var failures = 0
    for subject in try Subjects.coding() + Subjects.calls(connection)
    where chosenName.isEmpty || subject.name.contains(chosenName) {
        let total = try count(subject)
        let each = total / UInt64(countedRounds)
        print("\(subject.name): \(each) allocations (\(total) in \(countedRounds)), limit \(subject.limit)")
        if each > subject.limit {
            print("error: that is more than the limit in Tests/Allocations/Run/Subjects.swift")
            failures += 1
        }
    }
    exit(failures == 0 ? 0 : 1)
} catch {
    print("error: \(error)")
    exit(1)
}
