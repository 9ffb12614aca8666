// The plan of a query or a pipeline, as `hearth query` prints it. Before the operators of an analyzed query stands what
// they did:
//
//        rows   entries  time (us)
//           2         0          3  Filter n == 1
//           2         0         11  └─ Fetch
//           2         2         25     └─ IndexScan (n ASC, __name__ ASC): n == 1

import DocumentJSON
import FirestoreMessages
import Server

/// A plan as lines.
struct PlanText {
    let text: String

    init(_ metrics: ExplainMetrics) {
        guard let execution = metrics.execution, !execution.operators.isEmpty else {
            text = metrics.tree
            return
        }
        // Below the operators are lines about indexes that are missing.
        let lines = metrics.tree.split(separator: "\n", omittingEmptySubsequences: false)
        var rows = [PlanText.row("rows", "entries", "time (us)", "")]
        for (position, line) in lines.enumerated() {
            guard position < execution.operators.count else {
                rows.append(String(line))
                continue
            }
            let one = execution.operators[position]
            let microseconds = execution.ownNanoseconds[position] / 1_000
            rows.append(PlanText.row("\(one.rows)", "\(one.entries)", "\(microseconds)", "  \(line)"))
        }
        text = rows.joined(separator: "\n")
    }

    /// Prints a plan, what its execution took, and the index that it lacks.
    /// - Parameter isJSON: prints one object.
    static func print(_ metrics: ExplainMetrics, isJSON: Bool) throws {
        if isJSON { return try StandardOutput.print(metrics.object.json) }
        try StandardOutput.print(PlanText(metrics).text)
        if let execution = metrics.execution {
            let microseconds = execution.durationNanoseconds / 1_000
            try StandardOutput.print(
                "\n\(execution.resultsReturned) results, \(execution.documentsScanned) documents and "
                    + "\(execution.indexEntriesScanned) index entries read, \(microseconds) us")
        }
        if !metrics.advice.isEmpty {
            try StandardOutput.print("\nThis index would make the query cheaper:\n\(metrics.advice)")
        }
    }

    private static func row(_ rows: String, _ entries: String, _ time: String, _ line: String) -> String {
        padded(rows) + padded(entries) + padded(time) + line
    }

    private static func padded(_ text: String) -> String {
        String(repeating: " ", count: max(11 - text.count, 1)) + text
    }
}
