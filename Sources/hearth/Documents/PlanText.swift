// The plan of a query, as `hearth query` prints it. The operators of an analyzed query have what they did before them:
//
//        rows   entries  time (us)
//           2         0          3  Filter n == 1
//           2         0         11  └─ Fetch
//           2         2         25     └─ IndexScan (n ASC, __name__ ASC): n == 1

import FirestoreMessages

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

    private static func row(_ rows: String, _ entries: String, _ time: String, _ line: String) -> String {
        padded(rows) + padded(entries) + padded(time) + line
    }

    private static func padded(_ text: String) -> String {
        String(repeating: " ", count: max(11 - text.count, 1)) + text
    }
}
