import Basics
import ClientCache
import DocumentModel
import FirebaseCore
import Foundation

/// The indexes of a `firestore.indexes.json` file, as the cache can keep them.
///
///     { "indexes": [ { "collectionGroup": "books",
///                      "fields": [ { "fieldPath": "author", "order": "ASCENDING" },
///                                  { "fieldPath": "tags", "arrayConfig": "CONTAINS" } ] } ] }
///
/// An index of the cache has one field. An index of several fields becomes one index for each of them, and queries
/// merge these. The query scope, the direction of an order and the member `fieldOverrides` have no effect.
enum IndexConfiguration {
    /// Bytes of the text of a configuration.
    static let bytesMax = 1 << 20

    /// The indexes of a configuration without repetitions, in the order of the text. Fields that the cache cannot have
    /// an index of, such as vectors and the names of documents, are left out.
    ///
    /// - Parameter json: the text, in UTF-8.
    /// - Throws: INVALID_ARGUMENT for text in another format.
    static func indexes(_ json: [UInt8]) throws(RequestError) -> [LocalIndexDefinition] {
        if json.count > bytesMax { throw invalid("it has more than \(bytesMax) bytes") }
        guard let file = try? JSONSerialization.jsonObject(with: Data(json)) as? [String: Any] else {
            throw invalid("it is not a JSON object")
        }
        var result: [LocalIndexDefinition] = []
        var known: Set<LocalIndexDefinition> = []
        for index in try array("indexes", of: file) {
            guard let collectionID = try string("collectionGroup", of: index) else {
                throw invalid("'collectionGroup' of an index is missing")
            }
            for field in try array("fields", of: index) {
                guard let definition = try definition(field, collectionID) else { continue }
                if known.insert(definition).inserted { result.append(definition) }
            }
        }
        if result.count > LocalIndexDefinition.countMax {
            FirebaseLog.write(
                .warning,
                "The cache keeps \(LocalIndexDefinition.countMax) of the \(result.count) indexes of the configuration.")
        }
        return result
    }

    /// Nil for a field that the cache cannot have an index of.
    private static func definition(
        _ field: [String: Any], _ collectionID: String
    ) throws(RequestError) -> LocalIndexDefinition? {
        guard let path = try string("fieldPath", of: field) else { throw invalid("'fieldPath' of a field is missing") }
        let parsed: DocumentModel.FieldPath
        do {
            parsed = try DocumentModel.FieldPath(path)
        } catch {
            throw invalid("the field path '\(path.prefix(100))' is malformed")
        }
        let isOfElements = try string("arrayConfig", of: field) == "CONTAINS"
        _ = try string("order", of: field)
        if parsed.isDocumentName || field["vectorConfig"] != nil { return nil }
        return LocalIndexDefinition(collectionID: collectionID, field: parsed, isOfElements: isOfElements)
    }

    private static func array(_ name: String, of object: [String: Any]) throws(RequestError) -> [[String: Any]] {
        guard let member = object[name] else { return [] }
        guard let elements = member as? [[String: Any]] else { throw invalid("'\(name)' is not an array of objects") }
        return elements
    }

    /// Nil if there is no such member.
    private static func string(_ name: String, of object: [String: Any]) throws(RequestError) -> String? {
        guard let member = object[name] else { return nil }
        guard let text = member as? String else { throw invalid("'\(name)' is not a string") }
        return text
    }

    private static func invalid(_ problem: String) -> RequestError {
        RequestError(.invalidArgument, "The index configuration is invalid: \(problem).")
    }
}
