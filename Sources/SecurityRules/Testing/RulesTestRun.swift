// Running the cases of a test file.

package import Expressions

/// The documents of a case: before the request, and after its write.
private final class CaseDocuments: DocumentAccess {
    private let test: RulesTestCase

    init(_ test: RulesTestCase) { self.test = test }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        if read.state == .after, read.address == DocumentAddress(test.request.path) {
            switch test.request.newResource {
            case .fields(let fields): return .found(fields)
            case .deleted: return .deleted
            case .none: break
            }
        }
        return test.documents[read.address].map { .found($0) } ?? .missing
    }
}

extension RulesTestCase {
    /// Judges the case.
    package func verdict(by ruleset: Ruleset, coverage: ExpressionCoverage? = nil) -> Verdict {
        ruleset.judge(request, access: CaseDocuments(self), coverage: coverage)
    }
}

extension Ruleset {
    /// Why the statements that fit a request decided as they did, a line each.
    package func explanation(of verdict: Verdict) -> [String] {
        if verdict.statements.isEmpty { return ["no 'allow' fits the path and the operation"] }
        return verdict.statements.map { statement in
            let range = statements[statement.index].range
            let line = source.position(of: range.start).line
            let text = source.text(in: range).split(separator: "\n").first ?? ""
            switch statement.outcome {
            case .allowed: return "line \(line) allows: \(text)"
            case .refused: return "line \(line) is false: \(text)"
            case .failed(let message, let place):
                let position = place.map { source.position(of: $0.start) }
                let part = place.map { " in \(source.text(in: $0).prefix(100))" } ?? ""
                return "line \(position?.line ?? line) fails\(part): \(message)"
            }
        }
    }

    /// How often each condition, and each part of it that is true or false, was true, false or failed:
    ///
    ///     line 4: 3 true, 1 false, 0 failed: request.auth != null
    ///
    /// In the order of the text; expressions within others come after them.
    package func coverageLines(_ coverage: ExpressionCoverage) -> [String] {
        roots.flatMap { coverageLines(of: $0, coverage) }
    }

    private func coverageLines(of id: ExpressionID, _ coverage: ExpressionCoverage) -> [String] {
        var (isTrue, isFalse, failed, other) = (0, 0, 0, 0)
        for count in coverage.outcomes(of: id) {
            switch count.outcome {
            case .value(.boolean(true)): isTrue += count.count
            case .value(.boolean(false)): isFalse += count.count
            case .value: other += count.count
            case .failed: failed += count.count
            }
        }
        let parts = tree[id].operands.flatMap { coverageLines(of: $0, coverage) }
        if other > 0 { return parts }
        let range = range(of: id)
        let line = source.position(of: range.start).line
        let text = source.text(in: range).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return ["line \(line): \(isTrue) true, \(isFalse) false, \(failed) failed: \(text)"] + parts
    }
}
