// Requests in a form in which those with the same effect are equal.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreJSON
import FirestoreMessages

@testable import FirebaseFirestore

/// The effect of a write on the stored document.
struct CanonicalWrite: Equatable {
    var kind: Write.Kind
    var name: String
    /// The values of a document that is replaced, or of the mask's paths, by their paths; a map has those of its
    /// members.
    var values: [String: Value]
    /// The paths that are written or removed, without those that are only transformed; `nil` replaces the document.
    var mask: Set<String>?
    var precondition: Precondition?
    var transforms: Set<String>

    init(_ write: ScriptedDatabase.SeenWrite) throws {
        kind = write.kind
        name = write.name
        precondition = write.precondition
        transforms = Set(write.transforms.map { "\($0.path) \($0.operation)" })
        let transformed = write.transforms.map(\.path.segments)
        var leaves: [[String]: Value] = [:]
        let fields = try MapValue(documentBytes: write.fields.byteSpan)
        Self.collect(.map(fields), [], into: &leaves)
        // A transform makes the map that it is in.
        leaves = leaves.filter { path, value in
            value != .map(MapValue()) || !transformed.contains { $0.count > path.count && $0.starts(with: path) }
        }
        if let paths = try write.mask?.map({ try DocumentModel.FieldPath($0).segments }) {
            leaves = leaves.filter { path, _ in paths.contains { path.starts(with: $0) } }
            mask = Set(
                paths.filter { path in !transformed.contains(path) || leaves.keys.contains { $0.starts(with: path) } }
                    .map { $0.joined(separator: "/") })
        }
        values = Dictionary(uniqueKeysWithValues: leaves.map { ($0.joined(separator: "/"), $1) })
    }

    private static func collect(_ value: Value, _ path: [String], into leaves: inout [[String]: Value]) {
        guard case .map(let members) = value, !members.entries.isEmpty else {
            if !path.isEmpty { leaves[path] = value }
            return
        }
        for (name, member) in members.entries { collect(member, path + [name], into: &leaves) }
    }
}

/// Reads single fields of documents.
enum FieldBytes {
    /// The bytes of a field's value.
    static func value(at path: DocumentModel.FieldPath, in fields: [UInt8]) -> [UInt8]? {
        guard let value = DocumentBytes.value(at: path, in: fields.byteSpan) else { return nil }
        return [UInt8](copying: value)
    }
}

/// The messages of the cases' JSON.
enum ConformanceMessage {
    static func bytes(_ json: JSONValue, _ type: String) throws -> [UInt8] {
        var reader = JSONMessageReader()
        var output = ByteBuffer()
        let text = try json.text()
        try reader.append(text.byteSpan, Schema.shared.message("google.firestore.v1.\(type)"), to: &output)
        return output.copyBytes()
    }

    /// The writes of a CommitRequest.
    static func writes(_ request: JSONValue) throws -> [ScriptedDatabase.SeenWrite] {
        try ScriptedDatabase.writes(of: bytes(request, "CommitRequest"))
    }

    /// A StructuredQuery.
    static func query(_ query: JSONValue) throws -> StructuredQuery? {
        let request = JSONValue.object(["parent": .string("p"), "structuredQuery": query])
        let wire = try bytes(request, "RunQueryRequest")
        return try RunQueryRequest(wire: wire.byteSpan).query
    }
}

extension StructuredQuery {
    /// The same query with the orders that the server adds. The fields of inequalities come first.
    var withEffectiveOrders: StructuredQuery {
        var query = self
        let direction = orderBy.last?.direction ?? .ascending
        for field in Set(filter?.inequalityFields ?? []).sorted() where !field.isDocumentName {
            if !orderBy.contains(where: { $0.field == field }) {
                query.orderBy.append(Order(field: field, direction: direction))
            }
        }
        if !query.orderBy.contains(where: \.field.isDocumentName) {
            query.orderBy.append(Order(field: .documentName, direction: direction))
        }
        return query
    }
}
