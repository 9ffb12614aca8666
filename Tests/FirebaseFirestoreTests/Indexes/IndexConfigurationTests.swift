// Configurations of the cache's indexes: what is read from them, and that the cache follows them.

import Basics
import ClientCache
import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct IndexConfigurationTests {
    private static func read(_ json: String) throws -> [String] {
        try IndexConfiguration.indexes(Array(json.utf8)).map { index in
            "\(index.collectionID) \(index.field)\(index.isOfElements ? " elements" : "")"
        }
    }

    @Test
    func `Every usable field of every index is read once`() throws {
        let json = """
            {
              "indexes": [
                { "collectionGroup": "books", "queryScope": "COLLECTION", "fields": [
                    { "fieldPath": "author", "order": "ASCENDING" },
                    { "fieldPath": "m.`a b`", "order": "DESCENDING" } ] },
                { "collectionGroup": "books", "queryScope": "COLLECTION_GROUP", "fields": [
                    { "fieldPath": "author", "order": "DESCENDING" },
                    { "fieldPath": "tags", "arrayConfig": "CONTAINS" },
                    { "fieldPath": "__name__", "order": "ASCENDING" },
                    { "fieldPath": "v", "vectorConfig": { "dimension": 3, "flat": {} } } ] },
                { "collectionGroup": "books", "fields": [
                    { "fieldPath": "text", "searchConfig": { "textSpec": {} } } ] },
                { "collectionGroup": "empty" }
              ],
              "fieldOverrides": [ { "collectionGroup": "x", "fieldPath": "y", "indexes": [] } ]
            }
            """
        try expectEqual(Self.read(json), ["books author", "books m.`a b`", "books tags elements"])
        try expectEqual(Self.read("{}"), [])
        try expectEqual(Self.read(#"{"indexes": []}"#), [])
    }

    @Test(arguments: [
        ("", "it is not a JSON object"), ("[]", "it is not a JSON object"), ("{", "it is not a JSON object"),
        (String(repeating: "[", count: 100_000), "it is not a JSON object"),
        (#"{"indexes": 1}"#, "'indexes' is not an array of objects"),
        (#"{"indexes": [1]}"#, "'indexes' is not an array of objects"),
        (#"{"indexes": [{}]}"#, "'collectionGroup' of an index is missing"),
        (#"{"indexes": [{"collectionGroup": 5}]}"#, "'collectionGroup' is not a string"),
        (#"{"indexes": [{"collectionGroup": "c", "fields": {}}]}"#, "'fields' is not an array of objects"),
        (#"{"indexes": [{"collectionGroup": "c", "fields": [{}]}]}"#, "'fieldPath' of a field is missing"),
        (
            #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a..b"}]}]}"#,
            "the field path 'a..b' is malformed"
        ),
        (
            #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": 1}]}]}"#,
            "'order' is not a string"
        ),
        (String(repeating: " ", count: 1 << 20) + "{}", "it has more than 1048576 bytes"),
    ])
    func `Text in another format is refused`(json: String, problem: String) {
        #expect(throws: RequestError(.invalidArgument, "The index configuration is invalid: \(problem).")) {
            try Self.read(json)
        }
    }

    @Test
    func `A persistent cache has the indexes of the last valid configuration`() async throws {
        let directory = TemporaryDirectory("index-configuration")
        let firestore = TestFirestore.make(
            host: "127.0.0.1:1", project: "p", cache: directory.path(of: "cache"))
        try await firestore.disableNetwork()
        for n in 0..<20 { firestore.document("c/d\(n)").setData(["a": n, "b": n % 2], completion: nil) }
        func configure(_ fields: [String]) async throws {
            let list = fields.map { #"{"fieldPath": "\#($0)", "order": "ASCENDING"}"# }.joined(separator: ",")
            try await firestore.setIndexConfiguration(#"{"indexes":[{"collectionGroup":"c","fields":[\#(list)]}]}"#)
        }
        func indexes() async throws -> [String] {
            let engine = try firestore.engine()
            return await withCheckedContinuation { continuation in
                engine.queue.async {
                    continuation.resume(returning: engine.store.hasIndexWork ? ["work"] : engine.store.completeIndexes)
                }
            }
        }
        try await configure(["a", "b"])
        try await eventually("two indexes") { try await indexes() == ["c (a)", "c (b)"] }
        let query = firestore.collection("c").whereField("a", isGreaterThan: 17)
        try await expectEqual(query.getDocuments(source: .cache).documents.map(\.documentID), ["d18", "d19"])
        await #expect(throws: NSError.self) { try await firestore.setIndexConfiguration("[]") }
        try await expectEqual(indexes(), ["c (a)", "c (b)"])
        try await configure(["b"])
        try await eventually("one index") { try await indexes() == ["c (b)"] }
        try await expectEqual(query.getDocuments(source: .cache).documents.map(\.documentID), ["d18", "d19"])
        try await firestore.terminate()
    }
}
