// The progress of the commands that take long.

import Foundation
import Storage
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct ProgressTests {
    @Test
    func `Every command that may take long shows progress on standard error, and none if it is to be quiet`() throws {
        let directory = TemporaryDirectory("progress")
        let data = directory.path(of: "data")
        let file = directory.path(of: "c.jsonl")
        let lines = (0..<2_000).map { #"{"__name__":"d\#($0)","n":\#($0)}"# }
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
        /// Runs a command with progress as often as it can be, and without.
        func run(_ words: [String], _ prefixes: [String], undo: String? = nil) throws {
            for isQuiet in [true, false] {
                let outcome = try HearthBinary.run(words + ["--progress", "0s"] + (isQuiet ? ["--quiet"] : []))
                expectEqual(outcome.status, 0, "\(words): \(outcome.errors)")
                if isQuiet { expect(outcome.errors.isEmpty, "\(words): \(outcome.errors)") }
                if isQuiet, let undo { try FileManager.default.removeItem(atPath: undo) }
                for prefix in prefixes where !isQuiet {
                    let isThere = outcome.errors.split(separator: "\n").contains { $0.contains(prefix) }
                    expect(isThere, "\(words): no \(prefix) in \(outcome.errors)")
                }
            }
        }
        let server = try ServerProcess(data: data)
        let address = ["--address", "127.0.0.1:\(server.port)"]
        try run(["load", file, "--collection", "c"] + address, [" documents/s"])
        try run(["export", "--collection", "c"] + address, [" documents/s"])
        let (first, second) = (directory.path(of: "first"), directory.path(of: "second"))
        try run(["backup", "--data", data, first], ["copying: "], undo: first)
        expectEqual(server.stop(), 0)
        try run(["backup", "--data", data, second], ["copying: "], undo: second)
        let forked = directory.path(of: "forked")
        try run(["fork", data, forked], ["copying: "], undo: forked)
        let stages = ["checking the runs: ", "comparing the runs: ", "checking the documents: "]
        try run(["check", "--data", first], stages)
        let restored = directory.path(of: "restored")
        try run(["restore", "--data", restored, first], ["copying: "] + stages, undo: restored)
    }

    @Test
    func `The amount, and the share where the total is known`() {
        expectEqual(
            ProgressLine.text(WorkProgress("checking the runs", done: 1_234_567, total: 2_469_134, .entries)),
            "checking the runs: 1,234,567 entries of 2,469,134 entries, 50.0 %")
        expectEqual(ProgressLine.text(WorkProgress("copying", done: 1_500_000, total: 0, .bytes)), "copying: 1.5 MB")
        expectEqual(
            ProgressLine.text(WorkProgress("copying", done: 3_000_000, total: 2_000_000, .bytes)),
            "copying: 3.0 MB of 3.0 MB, 100.0 %")
    }
}
