// Rules in the editor of the console: messages about a text, and what it decides in cases.
//
// Cases are in the format of `hearth rules test` (docs/rules.md). Nothing is kept. No document of the store is read.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import Expressions
internal import SecurityRules

/// Answers `{"text": RULES, "cases": TEXT}`.
enum ConsoleRules {
    /// Each judgement has the budget of one request.
    private static let casesMax = 100

    /// - Throws: `INVALID_ARGUMENT` for a body that is not of the form.
    static func answer(_ body: [UInt8]) throws(RequestError) -> JSONValue {
        let text: String
        let cases: String?
        do throws(JSONObject.Mistake) {
            let object = try JSONObject(body)
            text = try object.string("text") ?? ""
            cases = try object.string("cases")
        } catch {
            throw .invalidArgument("The body cannot be read: \(error).")
        }
        let source = SourceText(text)
        do throws(InvalidRules) {
            let ruleset = try Ruleset(text)
            var members = ["diagnostics": json(ruleset.warnings, source)]
            if let cases { members["cases"] = judge(cases, ruleset, &members) }
            return .object(members)
        } catch {
            return .object(["diagnostics": json(error.diagnostics, source)])
        }
    }

    private static func json(_ diagnostics: [RulesDiagnostic], _ source: SourceText) -> JSONValue {
        .array(
            diagnostics.map { diagnostic in
                let start = source.position(of: diagnostic.range.start)
                let end = source.position(of: max(diagnostic.range.end, diagnostic.range.start))
                return .object([
                    "severity": .string(diagnostic.severity.rawValue), "message": .string(diagnostic.message),
                    "remedy": diagnostic.remedy.map { .string($0) } ?? .null, "line": .integer(Int64(start.line)),
                    "column": .integer(Int64(start.column)), "endLine": .integer(Int64(end.line)),
                    "endColumn": .integer(Int64(end.column)),
                ])
            })
    }

    // MARK: Cases

    /// The documents of a case.
    private final class CaseDocuments: DocumentAccess {
        private let documents: [DocumentAddress: [UInt8]]

        init(_ documents: [DocumentAddress: [UInt8]]) { self.documents = documents }

        func document(_ read: DocumentRead) -> DocumentAnswer {
            documents[read.address].map { .found($0) } ?? .missing
        }
    }

    /// The verdicts; also adds `casesError` or the coverage to the answer.
    private static func judge(
        _ text: String, _ ruleset: Ruleset, _ members: inout [String: JSONValue]
    ) -> JSONValue {
        let file: RulesTestFile
        do throws(RulesTestError) {
            file = try RulesTestFile(text)
        } catch {
            members["casesError"] = .string(error.description)
            return .array([])
        }
        let coverage = ExpressionCoverage(expressions: ruleset.tree.count)
        let verdicts = file.cases.prefix(casesMax).map { oneCase in
            let verdict = ruleset.judge(oneCase.request, access: CaseDocuments(oneCase.documents), coverage: coverage)
            return json(verdict, of: oneCase, ruleset)
        }
        if file.cases.count > casesMax { members["casesError"] = .string("Only \(casesMax) cases are judged.") }
        if let report = try? JSONValue.read(Array(ruleset.coverageJSON(coverage, name: "firestore.rules").utf8)) {
            members["coverage"] = report
        }
        return .array(verdicts)
    }

    private static func json(_ verdict: Verdict, of oneCase: RulesTestCase, _ ruleset: Ruleset) -> JSONValue {
        .object([
            "line": .integer(Int64(oneCase.line)), "text": .string(oneCase.text),
            "expected": .boolean(oneCase.isAllowed), "allowed": .boolean(verdict.isAllowed),
            "statements": .array(
                verdict.statements.map { statement in
                    let position = ruleset.source.position(of: ruleset.statements[statement.index].range.start)
                    var members: [String: JSONValue] = ["line": .integer(Int64(position.line))]
                    switch statement.outcome {
                    case .allowed: members["outcome"] = .string("allowed")
                    case .refused: members["outcome"] = .string("refused")
                    case .failed(let message, let range):
                        members["outcome"] = .string("failed")
                        members["message"] = .string(message)
                        if let range {
                            members["failedLine"] = .integer(Int64(ruleset.source.position(of: range.start).line))
                        }
                    }
                    return .object(members)
                }),
            "debug": .array(verdict.debugLines.map { .string($0) }),
        ])
    }
}
