// Judges cases without a server: one JSON object a line from standard input, one verdict a line to standard output.
//
//     {"rules": TEXT}                                    sets the rules: {} or {"error": TEXT}
//     {"method": "get", "path": ["users", "alice"], "auth": {…} or null, "time": RFC 3339,
//      "resource": FIELDS or null, "newResource": FIELDS or null, "query": STRUCTURED QUERY,
//      "documents": {PATH: FIELDS}, "after": {PATH: FIELDS or null}}
//                                                        judges: {"allowed": true, "statements": […]}
//     {"coverage": true}                                 the coverage since the rules were set
//
// FIELDS are the `fields` of a document in Firestore's REST form.

import Basics
import DocumentJSON
import DocumentModel
import Expressions
import FirestoreJSON
import Foundation
import SecurityRules

/// The documents of one case.
final class CaseDocuments: DocumentAccess {
    let before: [DocumentAddress: [UInt8]]
    /// What the commit changes; an empty value means that it deletes the document.
    let after: [DocumentAddress: [UInt8]?]

    init(before: [DocumentAddress: [UInt8]], after: [DocumentAddress: [UInt8]?]) {
        self.before = before
        self.after = after
    }

    func document(_ read: DocumentRead) -> DocumentAnswer {
        if read.state == .after, let changed = after[read.address] {
            return changed.map { .found($0) } ?? .deleted
        }
        return before[read.address].map { .found($0) } ?? .missing
    }
}

/// A line that is not a case.
struct InvalidCase: Error {
    let message: String
}

/// Reads cases and judges them.
struct Judge {
    private var ruleset: Ruleset?
    private var coverage: ExpressionCoverage?

    /// The answer to a line, as JSON.
    mutating func answer(_ line: String) -> String {
        if line == "{\"coverage\": true}", let ruleset, let coverage {
            return ruleset.coverageJSON(coverage, name: "security.rules")
        }
        let answer = object(line)
        let data = try? JSONSerialization.data(withJSONObject: answer, options: [.sortedKeys])
        return String(decoding: data ?? Data("{}".utf8), as: UTF8.self)
    }

    private mutating func object(_ line: String) -> [String: Any] {
        do {
            guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
                throw InvalidCase(message: "a line is a JSON object")
            }
            if let rules = object["rules"] as? String { return set(rules) }
            guard let ruleset, let coverage else { throw InvalidCase(message: "there are no rules") }
            return try judge(object, ruleset, coverage)
        } catch {
            return ["error": "\(error)"]
        }
    }

    private mutating func set(_ rules: String) -> [String: Any] {
        do {
            let ruleset = try Ruleset(rules)
            self.ruleset = ruleset
            coverage = ExpressionCoverage(expressions: ruleset.tree.count)
            return ["warnings": ruleset.warnings.map(\.message)]
        } catch {
            let source = SourceText(rules)
            return ["error": error.diagnostics.map { $0.rendered(in: source, file: "rules") }.joined()]
        }
    }

    private func judge(
        _ object: [String: Any], _ ruleset: Ruleset, _ coverage: ExpressionCoverage
    ) throws -> [String: Any] {
        guard let method = (object["method"] as? String).flatMap(RulesRequest.Method.init),
            let path = object["path"] as? [String], let time = object["time"] as? String,
            let moment = RFC3339.timestamp(Array(time.utf8).span)
        else { throw InvalidCase(message: "method, path and time are needed") }
        var request = RulesRequest(method, path: path, time: moment)
        request.auth = operand(object["auth"] ?? NSNull())
        if let resource = object["resource"] { request.resource = .known(try fields(resource)) }
        if let new = object["newResource"] { request.newResource = try fields(new).map { .fields($0) } ?? .deleted }
        if let query = object["query"] {
            let wire = try message(query, "StructuredQuery")
            request.query = try StructuredQuery(wire: wire.byteSpan)
        }
        let documents = CaseDocuments(before: try before(object), after: try after(object))
        let verdict = ruleset.judge(request, access: documents, coverage: coverage)
        let statements = verdict.statements.map { statement -> String in
            let line = ruleset.source.position(of: ruleset.statements[statement.index].range.start).line
            return switch statement.outcome {
            case .allowed: "L\(line): allowed"
            case .refused: "L\(line): false"
            case .failed(let message, _): "L\(line): \(message)"
            }
        }
        return ["allowed": verdict.isAllowed, "statements": statements]
    }

    private func before(_ object: [String: Any]) throws -> [DocumentAddress: [UInt8]] {
        var documents: [DocumentAddress: [UInt8]] = [:]
        for (path, json) in object["documents"] as? [String: Any] ?? [:] {
            documents[DocumentAddress(path.split(separator: "/").map(String.init))] = try fields(json)
        }
        return documents
    }

    private func after(_ object: [String: Any]) throws -> [DocumentAddress: [UInt8]?] {
        var documents: [DocumentAddress: [UInt8]?] = [:]
        for (path, json) in object["after"] as? [String: Any] ?? [:] {
            documents.updateValue(
                try fields(json), forKey: DocumentAddress(path.split(separator: "/").map(String.init)))
        }
        return documents
    }

    /// Document bytes of fields in REST form; nil for null.
    private func fields(_ json: Any) throws -> [UInt8]? {
        if json is NSNull { return nil }
        let document = try message(["fields": json], "Document")
        return try MapValue(documentBytes: document.byteSpan).documentBytes
    }

    private func message(_ json: Any, _ name: String) throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        let bytes = [UInt8](try JSONSerialization.data(withJSONObject: json))
        try reader.append(bytes.byteSpan, Schema.shared.message("google.firestore.v1.\(name)"), to: &output)
        return output.copyBytes()
    }

    /// Claims of a token as rules see them: whole numbers are integers.
    private func operand(_ json: Any) -> Operand {
        switch json {
        case let text as String: .string(text)
        case let number as NSNumber:
            // Foundation keeps the kind of a number in its type encoding; "c" is a boolean.
            if String(cString: number.objCType) == "c" {
                .boolean(number.boolValue)
            } else {
                Int64(exactly: number).map { .integer($0) } ?? .double(number.doubleValue)
            }
        case let list as [Any]: .list(list.map { operand($0) })
        case let map as [String: Any]: .map(OperandMap(map.map { (key: $0.key, value: operand($0.value)) }))
        default: .null
        }
    }
}

var judge = Judge()
while let line = readLine() {
    FileHandle.standardOutput.write(Data((judge.answer(line) + "\n").utf8))
}
