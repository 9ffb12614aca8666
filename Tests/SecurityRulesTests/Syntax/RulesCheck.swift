// What must hold for a text as security rules, whatever its bytes. Called by tests and by the fuzzer.

import DocumentModel

#if canImport(Expressions)
    import Expressions
#endif
#if canImport(SecurityRules)
    @testable import SecurityRules
#endif

enum RulesCheck {
    /// Documents that exist under every name.
    private final class AnyDocuments: DocumentAccess {
        let fields: [UInt8]

        init(_ fields: [UInt8]) { self.fields = fields }

        func document(_ read: DocumentRead) -> DocumentAnswer {
            read.address.utf8.count % 3 == 0 ? .missing : .found(fields)
        }
    }

    private static let fields: MapValue = [
        "n": 1, "f": 2.5, "s": "text", "b": true, "l": [1, "a", nil], "m": ["x": ["y": "z"]], "none": nil,
        "t": .timestamp(TimestampValue(seconds: 1_700_000_000, nanoseconds: 5)), "bytes": .bytes([0, 255]),
        "place": .geoPoint(GeoPointValue(latitude: 1, longitude: 2)),
        "ref": .reference("projects/p/databases/(default)/documents/a/b"),
    ]

    /// The broken property, or nil.
    ///
    /// Nothing traps, and nothing runs without bound. A text that is refused has a diagnostic that can be shown. A
    /// ruleset decides a request in the same way each time, with and without coverage.
    static func violation(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        return violation(text) ?? violation(wrapped(text))
    }

    /// Rules with the text as the condition of one statement.
    private static func wrapped(_ text: String) -> String {
        """
        rules_version = '2';
        service cloud.firestore { match /databases/{database}/documents {
        function f(x, y) { let z = x; return z; }
        match /{path=**}/a/{id} { allow read, write: if \(text); }
        } }
        """
    }

    private static func violation(_ text: String) -> String? {
        let ruleset: Ruleset
        do {
            ruleset = try Ruleset(text)
        } catch {
            let source = SourceText(text)
            let shown = error.diagnostics.map { $0.rendered(in: source, file: "f") }
            if !error.diagnostics.contains(where: { $0.severity == .error }) { return "refused without an error" }
            return shown.contains("") ? "a diagnostic is empty" : nil
        }
        for method in RulesRequest.Method.allCases {
            if let violation = violation(of: ruleset, request(method)) { return violation }
        }
        return nil
    }

    private static func request(_ method: RulesRequest.Method) -> RulesRequest {
        let documentBytes = fields.documentBytes
        var request = RulesRequest(
            method, path: method == .list ? ["a"] : ["a", "x"],
            auth: RulesRequest.user("alice", token: ["admin": .boolean(true)]),
            time: TimestampValue(seconds: 1_700_000_000, nanoseconds: 0), resource: .known(documentBytes))
        if method == .create || method == .update { request.newResource = .fields(documentBytes) }
        if method == .delete { request.newResource = .deleted }
        if method == .list {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")], limit: 10)
            query.filter = .and([
                .field(FieldPath(fieldName: "n"), .greaterThan, EncodedValue(1)),
                .field(FieldPath(fieldName: "s"), .isIn, EncodedValue(["a", "text"])),
                .field(FieldPath(fieldName: "l"), .arrayContains, EncodedValue("a")),
            ])
            request.query = query
        }
        return request
    }

    private static func violation(of ruleset: Ruleset, _ request: RulesRequest) -> String? {
        let documents = AnyDocuments(fields.documentBytes)
        let coverage = ExpressionCoverage(expressions: ruleset.tree.count)
        let first = ruleset.judge(request, access: documents)
        let second = ruleset.judge(request, access: documents, coverage: coverage)
        if first.decision != second.decision { return "two decisions for one request" }
        if first.isAllowed != (first.deciding != nil) { return "the statement that decided is not named" }
        if ruleset.explanation(of: first).isEmpty { return "a decision without explanation" }
        // Deep trees make long reports.
        if ruleset.tree.count < 200, ruleset.coverageJSON(coverage, name: "f").isEmpty { return "no coverage" }
        return nil
    }
}
