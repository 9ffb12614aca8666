// Coverage as a page, in the place of the emulator's `:ruleCoverage.html`.

internal import Basics
package import Expressions

extension Ruleset {
    /// The text of the rules; each line has the outcomes of the conditions that begin on it.
    ///
    /// - Parameters:
    ///   - coverage: counted by judgements of this ruleset.
    ///   - name: the file name of the rules.
    package func coverageHTML(_ coverage: ExpressionCoverage, name: String) -> String {
        var notes: [Int: [String]] = [:]
        for root in roots {
            notes[source.position(of: range(of: root).start).line, default: []].append(Self.note(coverage, of: root))
        }
        var rows = ""
        for (index, line) in source.text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let note = notes[index + 1]
            let mark = note.map { $0.contains("not evaluated") ? " class=\"missed\"" : " class=\"met\"" } ?? ""
            rows += "<tr\(mark)><td>\(index + 1)</td><td><pre>\(Self.escaped(line))</pre></td>"
            rows += "<td>\(Self.escaped((note ?? []).joined(separator: "; ")[...]))</td></tr>\n"
        }
        return """
            <!DOCTYPE html><html><head><meta charset="utf-8"><title>\(Self.escaped(name[...]))</title><style>
            body { font: 14px monospace } pre { margin: 0 } td { padding: 0 8px; vertical-align: top }
            .met { background: #e6ffe6 } .missed { background: #ffe6e6 }
            </style></head><body><table>
            \(rows)</table></body></html>

            """
    }

    private static func note(_ coverage: ExpressionCoverage, of root: ExpressionID) -> String {
        let counts = coverage.outcomes(of: root)
        if counts.isEmpty { return "not evaluated" }
        return counts.map { count in
            switch count.outcome {
            case .value(let operand): "\(OperandText.text(operand, max: 80)) x\(count.count)"
            case .failed(let message): "failed x\(count.count): \(message)"
            }
        }.joined(separator: ", ")
    }

    private static func escaped(_ text: Substring) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
