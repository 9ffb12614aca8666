// The admin API of databases, call by call, over the socket in the data directory.

import Basics
import Calls
import DocumentModel
import DocumentStore
import EventLoops
import FirestoreMessages
import FirestoreService
import NativeProtocol
import ServiceTestSupport
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20)))
struct DatabaseAdminTests {
    private final class Admin: AdminConnection {
        private static let nothing: [UInt8] = []

        func finish(_ started: LongRunningOperation) throws -> LongRunningOperation {
            var operation = started
            for _ in 0..<60 where operation.result == nil {
                operation = try reply(.waitOperation, WaitOperationRequest(name: operation.name))
            }
            return operation
        }

        func names(showsDeleted: Bool = false) throws -> [String] {
            let request = ListDatabasesRequest(parent: "projects/p", showsDeleted: showsDeleted)
            let listing: ListDatabasesResponse = try reply(.listDatabases, request)
            return listing.databases.map { String($0.name.dropFirst("projects/p/databases/".count)) }
        }

        func write(_ id: String, count: Int) throws {
            for start in stride(from: 0, to: count, by: 400) {
                var writes = WriteList(database: try DatabaseName(project: "p", database: id))
                for number in start..<min(start + 400, count) {
                    let name = Array("projects/p/databases/\(id)/documents/c/d\(number)".utf8)
                    try writes.update(name.byteSpan, fields: Self.nothing.byteSpan)
                }
                var bytes = ByteBuffer()
                bytes.append(CommitWrites(writes).request())
                let outcome = live.call(.commit, bytes.copyBytes(), on: connection).outcome
                try #require(outcome.code == .ok, "\(outcome.message)")
            }
        }
    }

    private static func create(
        _ id: String, _ change: (inout AdminDatabase) -> Void = { _ in }
    ) -> CreateDatabaseRequest {
        var database = AdminDatabase(name: "")
        change(&database)
        return CreateDatabaseRequest(parent: "projects/p", database: database, databaseID: id)
    }

    private static func name(_ id: String) -> NamedRequest { NamedRequest(name: "projects/p/databases/\(id)") }

    @Test
    func `A database is created, read, protected, and deleted with its documents; its operations are found`() throws {
        let admin = try Admin()
        let made: LongRunningOperation = try admin.reply(
            .createDatabase,
            Self.create("staging") {
                $0.location = "europe-west3"
                $0.deleteProtection = .on
            })
        try expectEqual(admin.reply(.getOperation, NamedRequest(name: made.name)), made)
        guard case .response(let response) = made.result else {
            Issue.record("the creation is not done")
            return
        }
        expectEqual(response.typeURL, "type.googleapis.com/google.firestore.admin.v1.Database")
        let database: AdminDatabase = try admin.reply(.getDatabase, Self.name("staging"))
        try expectEqual(AdminDatabase(wire: response.value.byteSpan), database)
        expect(database.location == "europe-west3" && database.deleteProtection == .on)
        expect(database.createTime != nil && database.retentionSeconds == 3_600 && database.typeNumber == 1)
        expect(database.concurrencyMode == .optimistic && database.pointInTimeRecovery == .off)
        expectEqual(admin.failure(.createDatabase, Self.create("staging")).code, .alreadyExists)
        try admin.write("staging", count: 1_000)
        try admin.write("implied", count: 1)
        try expectEqual(admin.names(), ["implied", "staging"])

        let deletion = DeleteDatabaseRequest(name: "projects/p/databases/staging")
        expectEqual(admin.failure(.deleteDatabase, deletion).code, .failedPrecondition)
        let stale = DeleteDatabaseRequest(name: deletion.name, etag: "stale")
        expectEqual(admin.failure(.deleteDatabase, stale).code, .aborted)
        var change = database
        change.deleteProtection = .off
        let updated: LongRunningOperation = try admin.reply(
            .updateDatabase, UpdateDatabaseRequest(database: change, mask: ["delete_protection_state"]))
        expect(updated.result != nil)
        let unprotected: AdminDatabase = try admin.reply(.getDatabase, Self.name("staging"))
        expect(unprotected.deleteProtection == .off && unprotected.etag != database.etag)
        expectEqual(unprotected.createTime, database.createTime)

        let begun: LongRunningOperation = try admin.reply(.deleteDatabase, deletion)
        expectEqual(begun.metadata?.typeURL, "type.googleapis.com/google.firestore.admin.v1.DeleteDatabaseMetadata")
        expectEqual(admin.failure(.getDatabase, Self.name("staging")).code, .notFound)
        try expectEqual(admin.names(), ["implied"])
        try expect(admin.finish(begun).result != nil)
        try expectEqual(admin.names(showsDeleted: true), ["implied"])
        expectEqual(admin.failure(.deleteDatabase, deletion).code, .notFound)
        try admin.write("staging", count: 1)
        try expectEqual(admin.names(), ["implied", "staging"])
        try expect(admin.finish(begun).result != nil, "the operation of a database that is there again")
        expectEqual(admin.failure(.getOperation, NamedRequest(name: made.name)).code, .notFound)
    }

    @Test
    func `A long location is cut to whole characters of 63 bytes`() throws {
        let admin = try Admin()
        let _: LongRunningOperation = try admin.reply(
            .createDatabase, Self.create("staging") { $0.location = String(repeating: "é", count: 63) })
        let database: AdminDatabase = try admin.reply(.getDatabase, Self.name("staging"))
        expectEqual(database.location, String(repeating: "é", count: 31))
    }

    @Test(arguments: ["", "abc", "Upper", "1abc", "abc-", "a_bcd", String(repeating: "a", count: 64), "a/bcd"])
    func `An id that the cloud refuses is refused`(id: String) throws {
        expect(!DatabaseID.isValid(id))
    }

    @Test
    func `More databases than a response may have are refused`() throws {
        try IndexAdminService.check(listed: 10_000)
        let error = #expect(throws: RequestError.self) { try IndexAdminService.check(listed: 10_001) }
        expect(error?.code == .resourceExhausted && error?.message.contains("10001") == true)
    }

    @Test
    func `What this server cannot do is refused with the reason`() throws {
        let admin = try Admin()
        let requests: [((inout AdminDatabase) -> Void, String)] = [
            ({ $0.typeNumber = 2 }, "FIRESTORE_NATIVE"), ({ $0.concurrencyMode = .pessimistic }, "--concurrency-mode"),
            ({ $0.pointInTimeRecovery = .on }, "--retention"), ({ $0.appEngineIntegration = .on }, "App Engine"),
        ]
        for (change, text) in requests {
            let outcome = admin.failure(.createDatabase, Self.create("abcd", change))
            expect(outcome.code == .unimplemented && outcome.message.contains(text), "\(outcome)")
        }
        for parent in ["", "p", "projects/", "projects/p/databases", "projects"] {
            let request = CreateDatabaseRequest(parent: parent, database: nil, databaseID: "abcd")
            expectEqual(admin.failure(.createDatabase, request).code, .invalidArgument)
            expectEqual(admin.failure(.listDatabases, ListDatabasesRequest(parent: parent)).code, .invalidArgument)
        }
        expectEqual(admin.failure(.createDatabase, Self.create("bad id")).code, .invalidArgument)
        expectEqual(admin.failure(.updateDatabase, UpdateDatabaseRequest(database: nil)).code, .invalidArgument)
        let absent = AdminDatabase(name: "projects/p/databases/none")
        expectEqual(admin.failure(.updateDatabase, UpdateDatabaseRequest(database: absent)).code, .notFound)
        let immovable = UpdateDatabaseRequest(database: absent, mask: ["location_id"])
        expectEqual(admin.failure(.updateDatabase, immovable).code, .invalidArgument)
        expectEqual(admin.failure(.deleteDatabase, DeleteDatabaseRequest(name: absent.name)).code, .notFound)
        for operation in ["create-1", "delete-1", "update-x", "delete-", "delete--1"] {
            let name = NamedRequest(name: "projects/p/databases/none/operations/\(operation)")
            expectEqual(admin.failure(.getOperation, name).code, .notFound)
        }
    }
}
