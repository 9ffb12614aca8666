// REST paths, and whose pages may call.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import HTTPProtocols
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct RESTRouteTests {
    private static let database = "projects/p/databases/(default)"
    private static let root = "\(database)/documents"

    private func route(_ method: HTTPMethod, _ path: String) throws(RequestError) -> RESTRoute? {
        let bytes = Array("/\(path)".utf8)
        return try RESTRoute(method, URLText.segments(bytes.byteSpan))
    }

    @Test(arguments: [
        (HTTPMethod.get, "\(root)/c/d", FirestoreMessages.Method.getDocument, ["\(root)/c/d"]),
        (.get, "projects/p/databases/%28default%29/documents/c/%C3%A9%3Acommit", .getDocument, ["\(root)/c/é:commit"]),
        (.get, "\(root)/c/d:runQuery", .getDocument, ["\(root)/c/d:runQuery"]),
        (.delete, "\(root)/c/d/e/f", .deleteDocument, ["\(root)/c/d/e/f"]),
        (.patch, "\(root)/c/d", .updateDocument, []), (.get, "\(root)/c", .listDocuments, [root, "c"]),
        (.get, "\(root)/c/d/e", .listDocuments, ["\(root)/c/d", "e"]),
        (.post, "\(root)/c", .createDocument, [root, "c"]), (.post, "\(root)/a:b", .createDocument, [root, "a:b"]),
        (.post, "\(root):commit", .commit, [database]), (.post, "\(root):batchGet", .batchGetDocuments, [database]),
        (.post, "\(root):beginTransaction", .beginTransaction, [database]),
        (.post, "\(root):rollback", .rollback, [database]),
        (.post, "\(root):executePipeline", .executePipeline, [database]),
        (.post, "\(root):batchWrite", .batchWrite, [database]), (.post, "\(root):runQuery", .runQuery, [root]),
        (.post, "\(root)/c/d:runQuery", .runQuery, ["\(root)/c/d"]),
        (.post, "\(root)/c/d:runAggregationQuery", .runAggregationQuery, ["\(root)/c/d"]),
        (.post, "\(root)%3Acommit", .commit, [database]), (.post, "\(root)/c/d%3arunQuery", .runQuery, ["\(root)/c/d"]),
        (.post, "\(root)/a%3Acommit", .createDocument, [root, "a:commit"]),
        (.get, "\(root)/c/d%3Acommit", .getDocument, ["\(root)/c/d:commit"]),
        (.post, "\(root):partitionQuery", .partitionQuery, [root]),
        (.post, "\(root)/c/d:listCollectionIds", .listCollectionIds, ["\(root)/c/d"]),
    ])
    func `A path and a method mean an RPC`(
        method: HTTPMethod, path: String, rpc: FirestoreMessages.Method, values: [String]
    ) throws {
        let found = try route(method, path)
        expectEqual(found?.method, rpc)
        expectEqual(found?.bindings.map(\.value), values)
    }

    @Test(arguments: [
        (HTTPMethod.get, root), (.post, root), (.put, "\(root)/c/d"), (.post, "\(root)/c/d"),
        (.get, "\(root):runQuery"), (.post, "\(root)/c:runQuery"),
        (.post, "\(root)/c/d:commit"), (.get, "projects/p"), (.get, "projects/p/databases/d/indexes/c"),
        (.get, "a/p/databases/d/documents/c"),
    ])
    func `Other paths mean nothing`(method: HTTPMethod, path: String) throws {
        try expectNil(route(method, path))
    }

    @Test(arguments: [
        "\(root)/c/%2", "\(root)/c/%zz", "\(root)/c/%ff", "\(root)/c//d", "\(root)/c/d/", "\(root)/c/a%2fb",
    ])
    func `Paths that do not name a resource are refused`(path: String) {
        #expect(throws: RequestError.self) { try route(.get, path) }
    }

    private static let group = "projects/p/databases/d/collectionGroups/c"

    @Test(arguments: [
        (HTTPMethod.get, "projects/p/databases", FirestoreMessages.Method.listDatabases, ["projects/p"]),
        (.post, "projects/p/databases", .createDatabase, ["projects/p"]),
        (.get, "projects/p/databases/d", .getDatabase, ["projects/p/databases/d"]),
        (.patch, "projects/p/databases/d", .updateDatabase, []),
        (.delete, "projects/p/databases/d", .deleteDatabase, ["projects/p/databases/d"]),
        (.get, "\(group)/indexes", .listIndexes, [group]), (.post, "\(group)/indexes", .createIndex, [group]),
        (.get, "\(group)/indexes/i", .getIndex, ["\(group)/indexes/i"]),
        (.delete, "\(group)/indexes/i", .deleteIndex, ["\(group)/indexes/i"]),
        (.get, "\(group)/fields", .listFields, [group]), (.patch, "\(group)/fields/a", .updateField, []),
        (.get, "\(group)/fields/*", .getField, ["\(group)/fields/*"]),
        (.get, "projects/p/databases/d/operations", .listOperations, ["projects/p/databases/d/operations"]),
        (.get, "projects/p/databases/d/operations/o", .getOperation, ["projects/p/databases/d/operations/o"]),
        (.delete, "projects/p/databases/d/operations/o", .deleteOperation, ["projects/p/databases/d/operations/o"]),
        (.post, "projects/p/databases/d/operations/o:wait", .waitOperation, ["projects/p/databases/d/operations/o"]),
        (
            .post, "projects/p/databases/d/operations/o:cancel", .cancelOperation,
            ["projects/p/databases/d/operations/o"]
        ),
    ])
    func `A path of the admin API means an RPC`(
        method: HTTPMethod, path: String, rpc: FirestoreMessages.Method, values: [String]
    ) throws {
        let found = try route(method, path)
        expectEqual(found?.method, rpc)
        expectEqual(found?.bindings.map(\.value), values)
    }

    @Test(arguments: [
        "databases/d/backupSchedules", "databases/d/userCreds/u", "locations/l/backups", "locations/l/backups/b",
        "databases/d:nonsense", "databases/d/operations/o:nonsense", "databases/d/collectionGroups/c/indexes/i",
    ]) func `Other paths of the admin API are unimplemented`(path: String) {
        let error = #expect(throws: RequestError.self) { try route(.post, "projects/p/\(path)") }
        expectEqual(error?.code, .unimplemented)
        expect(error?.message.contains("admin.sock") == true || error?.message.contains("CreateIndex") == true)
    }

    @Test(arguments: [
        ("databases/d:exportDocuments", "ExportDocuments is not implemented by this server: use the command hearth"),
        ("databases/d:importDocuments", "use the command hearth import"),
        ("databases/d:bulkDeleteDocuments", "use the command hearth delete --recursive"),
        ("databases:restore", "hearth restore"), ("databases:clone", "hearth restore"),
    ]) func `Verbs of the admin API say what to use instead`(path: String, text: String) {
        let error = #expect(throws: RequestError.self) { try route(.post, "projects/p/\(path)") }
        expectEqual(error?.code, .unimplemented)
        expectEqual(error?.message.contains(text), true)
    }

    @Test(arguments: [
        ("http://localhost", true), ("http://localhost:5173", true), ("https://app.localhost:8443", true),
        ("http://127.0.0.1:80", true), ("http://127.9.9.9", true),
        ("http://[::1]:3000", true), ("http://[::1]", true), ("null", false), ("https://example.org", false),
        ("http://localhost.example.org", false),
        ("http://127.0.0.1.example.org", false), ("http://127.0.0.1@example.org", false),
        ("http://localhost:80@example.org", false), ("file://localhost", false),
        ("http://[::1].example.org", false), ("http://128.0.0.1", false), ("http://localhost:x", false), ("", false),
    ])
    func `Local origins are those of this machine`(origin: String, isLocal: Bool) {
        expectEqual(AllowedOrigins.local.contains(origin), isLocal)
    }

    @Test func `Origins are listed, or all, or none`() {
        expectEqual(
            AllowedOrigins("https://a.example,http://b.example:80"),
            .listed(["https://a.example", "http://b.example:80"]))
        expectEqual(AllowedOrigins("https://a.example,http://b.example:80")?.contains("http://b.example:80"), true)
        expectEqual(AllowedOrigins("any")?.contains("https://x.example"), true)
        expectEqual(AllowedOrigins("none")?.contains("http://localhost"), false)
        for text in ["", "*", "a.example", "https://a.example/", "local,any"] { expectNil(AllowedOrigins(text)) }
    }
}
