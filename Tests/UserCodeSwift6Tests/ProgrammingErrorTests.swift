// Broken rules of the API end the process with the rule on standard error, as an Objective-C exception of the SDK does.

import FirebaseCore
import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ProgrammingErrorTests {
    typealias Rule = (text: String, call: @Sendable (Firestore) async throws -> Void)

    private struct Strange {}

    private static let paths: [String: Rule] = [
        "a collection with two segments": ("odd number of segments, but a/b has 2", { $0.collection("a/b") }),
        "a document with one segment": ("even number of segments, but a has 1", { $0.document("a") }),
        "a document below a collection": ("a/b/c has 3", { $0.collection("a").document("b/c") }),
        "an empty path": ("Path cannot be empty", { $0.collection("") }),
        "an empty segment": ("Paths must not contain //", { $0.document("a//b") }),
        "an empty group": ("Collection ID cannot be nil or empty", { $0.collectionGroup("") }),
        "a group with a slash": ("Collection IDs must not contain /", { $0.collectionGroup("a/b") }),
    ]

    private static let values: [String: Rule] = [
        "a strange type": ("Unsupported type: Strange (found in field a.b)", { write($0, ["a": ["b": Strange()]]) }),
        "an array in an array": ("Nested arrays are not supported", { write($0, ["a": [[1]]]) }),
        "an empty name": ("Document fields must not be empty", { write($0, ["": 1]) }),
        "a reserved name": ("cannot begin and end with", { write($0, ["__x__": 1]) }),
        "a reserved name in an update": ("cannot begin and end with", { update($0, ["a.__x__": 1]) }),
        "a reference of another database": (
            "is for database", { write($0, ["a": UserDatabase.firestore("file::memory:").document("a/b")]) }
        ),
        "an empty part of a path": ("Invalid field path (a..b)", { update($0, ["a..b": 1]) }),
        "a forbidden character": ("Invalid field path (a~b)", { update($0, ["a~b": 1]) }),
        "a number as a key": ("Field paths must be String or FieldPath", { update($0, [5: 1]) }),
        "an empty field path": ("Provided names must not be empty", { _ in _ = FieldPath([]) }),
        "a merge field without a value": (
            "is specified in your field mask but not in your input data",
            { $0.document("a/b").setData(["a": 1], mergeFields: ["x"], completion: nil) }
        ),
        "a deletion in a set": ("setData() with merge:true", { write($0, ["a": FieldValue.delete()]) }),
        "a nested deletion in an update": (
            "FieldValue.delete() can only appear at the top level", { update($0, ["a": ["b": FieldValue.delete()]]) }
        ),
        "a sentinel in an array": (
            "not currently supported inside arrays", { write($0, ["a": [FieldValue.serverTimestamp()]]) }
        ),
        "an integer of 64 bits without sign": ("is too large", { write($0, ["a": UInt64.max]) }),
    ]

    private static let queries: [String: Rule] = [
        "a sentinel as operand": (
            "FieldValue.delete()", { $0.collection("c").whereField("a", isEqualTo: FieldValue.delete()) }
        ),
        "an empty list": ("A non-empty array is required for 'in'", { $0.collection("c").whereField("a", in: []) }),
        "notIn with in": (
            "You cannot use 'notIn' filters with 'in' filters",
            { $0.collection("c").whereField("a", in: [1]).whereField("b", notIn: [1]) }
        ),
        "notIn inside a composite filter": (
            "You cannot use",
            {
                $0.collection("c").whereField("a", isNotEqualTo: 1)
                    .whereFilter(.orFilter([.whereField("b", isEqualTo: 1), .whereField("c", notIn: [1])]))
            }
        ),
        "two isNotEqualTo": (
            "You cannot use more than one 'notEqual' filter",
            { $0.collection("c").whereField("a", isNotEqualTo: 1).whereField("b", isNotEqualTo: 1) }
        ),
        "an id with a slash": (
            "contains a '/' character", { $0.collection("c").whereField(.documentID(), isEqualTo: "a/b") }
        ),
        "an odd path in a group": (
            "odd number of segments", { $0.collectionGroup("c").whereField(.documentID(), isEqualTo: "a/b/c") }
        ),
        "an array operator on ids": (
            "document IDs are not arrays", { $0.collection("c").whereField(.documentID(), arrayContains: "a") }
        ),
        "a limit of zero": ("Limit must be positive", { $0.collection("c").limit(to: 0) }),
        "an order after a cursor": (
            "before specifying the order by", { $0.collection("c").order(by: "a").start(at: [1]).order(by: "b") }
        ),
        "more values than orders": ("using more values", { $0.collection("c").order(by: "a").start(at: [1, 2]) }),
        "the last ones without an order": (
            "at least one OrderBy() clause", { _ = try await $0.collection("c").limit(toLast: 1).getDocuments() }
        ),
        "a cursor that does not exist": (
            "a document that doesn't exist",
            { $0.collection("c").start(atDocument: try await $0.document("c/d").getDocument()) }
        ),
        "a cursor without the field": (
            "the field 'a' (used as the order by) does not exist",
            {
                try await $0.document("c/d").setData(["b": 1])
                $0.collection("c").order(by: "a").start(atDocument: try await $0.document("c/d").getDocument())
            }
        ),
        "a cursor with a pending timestamp": (
            "uncommitted server timestamp",
            {
                try await $0.disableNetwork()
                $0.document("c/d").setData(["a": FieldValue.serverTimestamp()], completion: nil)
                $0.collection("c").order(by: "a").start(atDocument: try await $0.document("c/d").getDocument())
            }
        ),
        "a number as a field": (
            "Field paths must be String or FieldPath", { try await $0.document("c/d").getDocument().get(5) }
        ),
        "a total that was not requested": (
            "'sum(a)' was not requested",
            { try await $0.collection("c").count.getAggregation(source: .server).get(.sum("a")) }
        ),
        "changes of metadata that nobody asked for": (
            "you must call addSnapshotListener",
            {
                for try await snapshot in $0.collection("c").snapshots {
                    snapshot.documentChanges(includeMetadataChanges: true)
                }
            }
        ),
    ]

    private static let calls: [String: Rule] = [
        "a batch after its commit": (
            "can no longer be used after commit",
            {
                let batch = $0.batch()
                batch.commit(completion: nil)
                batch.deleteDocument($0.document("a/b"))
            }
        ),
        "a second commit": (
            "can no longer be used after commit",
            {
                let batch = $0.batch()
                batch.commit(completion: nil)
                batch.commit(completion: nil)
            }
        ),
        "a reference of another object in a batch": (
            "but should be for database",
            { $0.batch().deleteDocument(UserDatabase.firestore("file::memory:").document("a/b")) }
        ),
        "a collection of another database in a pipeline": (
            "Invalid CollectionReference. It is for database",
            { _ = $0.pipeline().collection(UserDatabase.firestore("file::memory:").collection("a")) }
        ),
        "a document of another database in a pipeline": (
            "Invalid DocumentReference. It is for database",
            { _ = $0.pipeline().documents([UserDatabase.firestore("file::memory:").document("a/b")]) }
        ),
        "a transaction after its end": (
            "cannot be used after its update callback",
            { db in
                nonisolated(unsafe) var kept: Transaction?
                _ = try await db.runTransaction { transaction, _ in
                    kept = transaction
                    return nil
                }
                kept?.deleteDocument(db.document("a/b"))
            }
        ),
        "other settings after the first use": (
            "has already been started",
            {
                _ = try await $0.document("a/b").getDocument()
                $0.useEmulator(withHost: "localhost", port: 1)
            }
        ),
        "two ways to describe the cache": (
            "Cannot use both cacheSettings",
            {
                let settings = $0.settings
                settings.cacheSettings = MemoryCacheSettings()
                settings.isPersistenceEnabled = false
                $0.settings = settings
            }
        ),
        "an empty host": ("Host setting may not be", { $0.settings.host = "" }),
        "a small cache": ("at least 1048576 bytes", { $0.settings.cacheSizeBytes = 1 }),
        "a small persistent cache": ("at least 1048576 bytes", { _ in _ = PersistentCacheSettings(sizeBytes: 1) }),
        "a small memory cache": ("at least 1048576 bytes", { _ in _ = MemoryLRUGCSettings(sizeBytes: 1) }),
        "no attempts": ("must be greater than 0", { _ in TransactionOptions().maxAttempts = 0 }),
        "too many attempts": ("must not exceed", { _ in TransactionOptions().maxAttempts = .max }),
        "a use after the end": (
            "has already been terminated",
            {
                try await $0.terminate()
                $0.collection("a")
            }
        ),
        "a default app that exists": (
            "Default app has already been configured",
            { _ in
                FirebaseApp.configure()
                FirebaseApp.configure()
            }
        ),
    ]

    private static func write(_ db: Firestore, _ data: [String: Any]) {
        db.document("a/b").setData(data, completion: nil)
    }

    private static func update(_ db: Firestore, _ data: [AnyHashable: Any]) {
        db.document("a/b").updateData(data, completion: nil)
    }

    private static let rules = [paths, values, queries, calls].reduce(into: [:]) { $0.merge($1) { rule, _ in rule } }

    @Test(arguments: rules.keys.sorted())
    func `A broken rule ends the process with its text`(name: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [name = name as String] in
            try await Self.rules[name]!.call(UserDatabase.firestore("file::memory:"))
            exit(0)
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("Firestore: ") && text.contains(Self.rules[name]!.text), "\(text)")
    }
}
