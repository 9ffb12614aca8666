import Basics
import ClientCache
import DocumentJSON
import DocumentModel
import FirebaseCore

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
        guard let file = try? JSONObject(json) else { throw invalid("it is not a JSON object") }
        let result: [LocalIndexDefinition]
        do throws(JSONObject.Mistake) {
            result = try definitions(of: file)
        } catch {
            throw invalid(error.description)
        }
        if result.count > LocalIndexDefinition.countMax {
            FirebaseLog.write(
                .warning,
                "The cache keeps \(LocalIndexDefinition.countMax) of the \(result.count) indexes of the configuration.")
        }
        return result
    }

    private static func definitions(of file: JSONObject) throws(JSONObject.Mistake) -> [LocalIndexDefinition] {
        var result: [LocalIndexDefinition] = []
        var known: Set<LocalIndexDefinition> = []
        for index in try file.objects("indexes") ?? [] {
            guard let collectionID = try index.string("collectionGroup") else {
                throw JSONObject.Mistake("'collectionGroup' of an index is missing")
            }
            for field in try index.objects("fields") ?? [] {
                guard let definition = try definition(field, collectionID) else { continue }
                if known.insert(definition).inserted { result.append(definition) }
            }
        }
        return result
    }

    /// Nil for a field that the cache cannot have an index of.
    private static func definition(
        _ field: JSONObject, _ collectionID: String
    ) throws(JSONObject.Mistake) -> LocalIndexDefinition? {
        guard let path = try field.string("fieldPath") else {
            throw JSONObject.Mistake("'fieldPath' of a field is missing")
        }
        guard let parsed = try? DocumentModel.FieldPath(path) else {
            throw JSONObject.Mistake("the field path '\(path.prefix(100))' is malformed")
        }
        let isOfElements = try field.string("arrayConfig") == "CONTAINS"
        _ = try field.string("order")
        if parsed.isDocumentName || field.has("vectorConfig") || field.has("searchConfig") { return nil }
        return LocalIndexDefinition(collectionID: collectionID, field: parsed, isOfElements: isOfElements)
    }

    private static func invalid(_ problem: String) -> RequestError {
        RequestError(.invalidArgument, "The index configuration is invalid: \(problem).")
    }
}
