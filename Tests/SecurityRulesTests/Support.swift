// What the tests of rules share.

import DocumentModel
import Expressions

@testable import SecurityRules

/// Documents that a test knows, and those that it supplies later.
final class TestDocuments: DocumentAccess {
    var documents: [String: MapValue] = [:]
    /// Documents as a commit leaves them; nil for a deleted one.
    var after: [String: MapValue?] = [:]
    /// Paths that are pending.
    var pending: Set<String> = []
    private(set) var accesses: [DocumentRead] = []

    init(_ documents: [String: MapValue] = [:]) { self.documents = documents }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        accesses.append(read)
        let path = read.address.description
        if pending.contains(path) { return .pending }
        if read.state == .after, let changed = after[path] {
            return changed.map { .found($0.documentBytes) } ?? .deleted
        }
        return documents[path].map { .found($0.documentBytes) } ?? .missing
    }
}

/// Rules for `/a/{id}` with a condition.
func rules(_ condition: String, methods: String = "read, write", version: Int = 2, functions: String = "") -> String {
    """
    rules_version = '\(version)';
    service cloud.firestore { match /databases/{database}/documents {
    \(functions)
    match /a/{id} { allow \(methods): if \(condition); }
    } }
    """
}

/// A request of alice for `a/x`.
func request(
    _ method: RulesRequest.Method = .get, path: [String] = ["a", "x"], resource: MapValue? = ["n": 1],
    new: MapValue? = nil, query: StructuredQuery? = nil
) -> RulesRequest {
    var request = RulesRequest(
        method, path: path, auth: RulesRequest.user("alice", token: ["admin": .boolean(true)]),
        time: TimestampValue(seconds: 1_700_000_000, nanoseconds: 0), resource: .known(resource?.documentBytes),
        query: query)
    if let new { request.newResource = .fields(new.documentBytes) }
    return request
}

extension Ruleset {
    /// The verdict of a request without other documents.
    func judge(_ request: RulesRequest, _ documents: [String: MapValue] = [:]) -> Verdict {
        judge(request, access: TestDocuments(documents))
    }
}
