import Basics
import DocumentModel
import DocumentStore
import Listening
import Storage
import TestSupport
import Testing

/// A judge that decides by documents. A query over the collection `c` is allowed while `rules/c` has `ok: true` and
/// `locks/c` does not exist; so is each document below the collection `c` of the root. A document of the collection
/// `own` is allowed while it has `ok: true` itself.
final class TestJudge: TargetJudge {
    private unowned let harness: ListenHarness
    /// Whether everything is denied.
    var deniesAll = false
    /// Further documents that every verdict rests on.
    var furtherBasis: [String] = []
    /// Every judgement waits for what it reads, so that each step judges as many parts as it may.
    var alwaysWaits = false
    private var calls = 0
    /// The version of every verdict.
    private(set) var versions: [UInt64] = []

    init(_ harness: ListenHarness) { self.harness = harness }

    static let error = RequestError(.permissionDenied, "denied by the test")

    func judge(
        query: StructuredQuery, parent: RawSpan, at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]] {
        expect(String(repairingUTF8: parent).hasPrefix(harness.database.documentsRoot))
        return try decide(conditions(of: query), at: version, cold)
    }

    func judge(document path: RawSpan, at version: UInt64, _ cold: ColdRead) throws(RequestError) -> [[UInt8]] {
        try decide(conditions(of: String(repairingUTF8: path)), at: version, cold)
    }

    /// Whether all of a target is allowed at a version.
    func allows(_ subject: Subject, at version: UInt64) throws -> Bool {
        let conditions =
            switch subject {
            case .query(let query): self.conditions(of: query)
            case .documents(let paths): paths.flatMap { self.conditions(of: $0) }
            }
        return try !deniesAll && conditions.allSatisfy { try holds($0, at: version, .waits) }
    }

    private enum Condition {
        case isOK(String)
        case isMissing(String)

        var path: String {
            switch self {
            case .isOK(let path), .isMissing(let path): path
            }
        }
    }

    private func conditions(of query: StructuredQuery) -> [Condition] {
        conditions(ofCollection: query.from.first?.collectionID ?? "")
    }

    private func conditions(of document: String) -> [Condition] {
        let collection = String(document.prefix { $0 != "/" })
        return collection == "own" ? [.isOK(document)] : conditions(ofCollection: collection)
    }

    private func conditions(ofCollection id: String) -> [Condition] {
        [.isOK("rules/\(id)"), .isMissing("locks/\(id)")]
    }

    private func decide(
        _ conditions: [Condition], at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> [[UInt8]] {
        // Errors take long in tests, and a model has many judgements: most of them wait.
        calls += 1
        let cold = alwaysWaits || calls % 8 != 0 ? .waits : cold
        var isAllowed = true
        for condition in conditions where try !holds(condition, at: version, cold) { isAllowed = false }
        versions.append(version)
        if deniesAll || !isAllowed { throw Self.error }
        return (conditions.map(\.path) + furtherBasis).map { Array($0.utf8) }
    }

    private func holds(
        _ condition: Condition, at version: UInt64, _ cold: ColdRead
    ) throws(RequestError) -> Bool {
        let name = Array(harness.name(condition.path).utf8)
        let point = try harness.reader.readPoint(atReadTime: version, in: harness.database)
        var (exists, isOK) = (false, false)
        try harness.reader.withDocument(name.byteSpan, at: point, cold) { (found) throws(RequestError) in
            guard let found else { return }
            exists = true
            isOK = (try? MapValue(documentBytes: found.fields))?["ok"] == .boolean(true)
        }
        if case .isMissing = condition { return !exists }
        return isOK
    }
}
