// What operators' tools ask of a running server, over the socket in its data directory.

import Basics
import DocumentModel
import DocumentStore
import EventLoops
import FirestoreMessages
import FirestoreService
import Foundation
import Indexing
import NativeProtocol
import Server
import ServiceTestSupport
import TestSupport
import Testing

@testable import FileSystem

#if canImport(Glibc)
    import Glibc
#endif

@Suite(.timeLimit(.minutes(20)))
struct AdministrationTests {
    private let one = Harness.fields(["n": .integer(1)])
    private let database = try! DatabaseName(Harness.database)

    /// A blocking connection to a unix socket, whose path must fit into an address; nil when nothing listens.
    private func connect(_ path: String) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let isConnected = withAddress(path) { Glibc.connect(descriptor, $0, $1) } == 0
        if !isConnected { close(descriptor) }
        return isConnected ? descriptor : nil
    }

    private func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    private func refusal(_ body: () throws(AdminClient.Failure) -> Void) -> String {
        do throws(AdminClient.Failure) {
            try body()
            return "no failure"
        } catch {
            return "\(error)"
        }
    }

    private func refusalOfBackup(_ data: String, to target: String) -> String {
        refusal { () throws(AdminClient.Failure) in try AdminClient.backup(directory: data, to: target) }
    }

    private func refusalOfCheckpoint(_ data: String) -> String {
        refusal { () throws(AdminClient.Failure) in try AdminClient.checkpoint(directory: data) }
    }

    @Test
    func `A running server writes a backup, and says why it does not`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(live.set("c/x", one).code, .ok)
        let data = live.directory.path(of: "data")
        let copy = live.directory.path(of: "copy")
        try AdminClient.backup(directory: data, to: copy)
        expect(refusalOfBackup(data, to: copy).contains(copy))
        expectEqual(refusalOfBackup(data, to: "copy"), "The directory of a copy must be an absolute path.")
        let store = try DocumentStore.open(StoreConfiguration(directory: copy))
        defer { store.close() }
        expectEqual(store.statistics.databases, 1)
    }

    @Test
    func `A backup whose tool has ended is given up, and nothing of it is left`() throws {
        let live = try LiveDatabaseServer { $0.loops = 1 }
        try expectEqual(live.set("c/x", one).code, .ok)
        let socket = AdminSocket.path(in: live.directory.path(of: "data"))
        let copy = live.directory.path(of: "copy")
        // The copy waits before its first file.
        let gate = Monitor((isReached: false, isOpen: false))
        let watch = DiskWatch.begin(copy) { change, call in
            if case .makeDirectory(let path) = change, path.hasSuffix("runs") {
                gate.update { $0.isReached = true }
                _ = gate.wait { $0.isOpen ? true : nil }
            }
            return call()
        }
        defer { watch.end() }
        let loop = EventLoopGroup(count: 1, name: "test-admin")
        defer { loop.stop() }
        let tool = try ClientConnection.connect(toSocketAt: socket, on: loop.next())
        tool.unary(FirestoreMessages.Method.adminBackup.rpc, BackupRequest(directory: copy).encodedBytes()) { _, _ in }
        try waitUntil("the copy has begun") { gate.withLock { $0.isReached } }
        tool.close()
        // The loop that answers this has seen the end of the connection.
        let other = try ClientConnection.connect(toSocketAt: socket, on: loop.next())
        expectEqual(live.call(.adminGetServer, EmptyMessage().encodedBytes(), on: other).outcome.code, .ok)
        other.close()
        gate.update { $0.isOpen = true }
        try waitUntil("the copy is removed") { !FileManager.default.fileExists(atPath: copy) }
    }

    @Test
    func `Where the server listens, and a checkpoint`() throws {
        let live = try LiveDatabaseServer()
        let data = live.directory.path(of: "data")
        try expectEqual(AdminClient.address(directory: data), "\(live.gateway.host):\(live.gateway.port)")
        try expectEqual(live.set("c/x", one).code, .ok)
        try AdminClient.checkpoint(directory: data)
    }

    @Test
    func `Without a server there is none to ask, also where the socket of one is left`() throws {
        let directory = TemporaryDirectory("gateway")
        let path = AdminSocket.path(in: directory.path)
        expect(refusalOfCheckpoint(directory.path).hasPrefix("no server"))
        let left = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        expectEqual(withAddress(path) { bind(left, $0, $1) }, 0)
        close(left)
        expectEqual(access(path, F_OK), 0)
        expect(refusalOfCheckpoint(directory.path).hasPrefix("no server"))
    }

    @Test
    func `The socket is for its owner, replaces one that was left, and goes with the server`() throws {
        let live = try LiveDatabaseServer()
        let data = live.directory.path(of: "data")
        let path = AdminSocket.path(in: data)
        var status = stat()
        expectEqual(stat(path, &status), 0)
        expectEqual(status.st_mode & 0o777, 0o600)
        live.stop()
        expect(access(path, F_OK) != 0)
        let left = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        expectEqual(withAddress(path) { bind(left, $0, $1) }, 0)
        close(left)
        let again = try DatabaseServer.start(
            DatabaseServerConfiguration(store: StoreConfiguration(directory: data), log: Log(level: .error) { _ in }))
        defer { again.stop() }
        try AdminClient.checkpoint(directory: data)
    }

    @Test
    func `A directory whose path is longer than a socket's address has its socket too`() throws {
        let directory = TemporaryDirectory("gateway")
        let data = directory.path(of: String(repeating: "d", count: 150))
        var configuration = DatabaseServerConfiguration(
            store: StoreConfiguration(directory: data), log: Log(level: .error) { _ in })
        configuration.transport.port = 0
        let gateway = try DatabaseServer.start(configuration)
        defer { gateway.stop() }
        try expect(AdminClient.address(directory: data).hasSuffix(":\(gateway.port)"))
    }

    @Test
    func `Over TCP the methods that write files are not served, and those of indexes, fields and databases are`()
        throws
    {
        let live = try LiveDatabaseServer()
        for method in [.adminBackup, .adminFork, .adminCheckpoint, .adminGetServer] as [FirestoreMessages.Method] {
            expect(!method.isServedOverTCP && live.call(method, []).outcome.code == .unimplemented)
        }
        for method in FirestoreMessages.Method.allCases
        where [.firestoreAdmin, .operations].contains(method.service) {
            expectEqual(live.call(method, []).outcome.code, .invalidArgument, "\(method)")
        }
        let request = ListIndexesRequest(database: Harness.database).encodedBytes()
        expectEqual(live.call(.adminListIndexes, request).outcome.code, .ok)
    }

    @Test
    func `Hostile bytes end their own connection or call`() throws {
        let live = try LiveDatabaseServer()
        let data = live.directory.path(of: "data")
        // The path fits: the directory is a temporary one.
        let path = AdminSocket.path(in: data)
        for bytes in [Array("backup /tmp/x\n".utf8), [0x89, 0xFF, 0, 1], [UInt8](repeating: 0x16, count: 5_000)] {
            let descriptor = try #require(connect(path))
            expectEqual(send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)), bytes.count)
            shutdown(descriptor, Int32(SHUT_WR))
            var rest = [UInt8](repeating: 0, count: 4_096)
            while recv(descriptor, &rest, rest.count, 0) > 0 {}
            close(descriptor)
        }
        let loop = EventLoopGroup(count: 1, name: "test-admin")
        defer { loop.stop() }
        let connection = try ClientConnection.connect(toSocketAt: path, on: loop.next())
        for method in FirestoreMessages.Method.allCases where method.service.isAdministrative {
            let code = live.call(method, [0xFF, 0xFF, 0x01], on: connection).outcome.code
            expectEqual(code, .invalidArgument, "\(method.name)")
        }
        let nameless = ApplyIndexesRequest(database: "d", indexes: [], fieldOverrides: [])
        expectEqual(
            live.call(.adminApplyIndexes, nameless.encodedBytes(), on: connection).outcome.code, .invalidArgument)
        connection.close()
        try AdminClient.checkpoint(directory: data)
    }

    @Test
    func `Indexes of every form are applied as they were declared, and listed`() throws {
        let live = try LiveDatabaseServer()
        let data = live.directory.path(of: "data")
        try expectEqual(live.set("c/x", one).code, .ok)
        let (a, b) = (try FieldPath("a"), try FieldPath("m.`x y`"))
        let wanted = IndexDeclaration(
            indexes: [
                IndexShape(
                    collectionID: "c", isGroup: false,
                    parts: [.init(field: a, kind: .ascending), .init(field: b, kind: .descending)]),
                IndexShape(
                    collectionID: "c", isGroup: true,
                    parts: [.init(field: a, kind: .contains), .init(field: b, kind: .ascending)], reversesName: true),
                IndexShape(
                    collectionID: "v", isGroup: false, parts: [.init(field: a, kind: .ascending)],
                    vector: .init(field: b, dimension: 3)),
            ],
            fieldOverrides: [
                FieldOverride(collectionID: "c", field: try FieldPath("notes"), indexes: []),
                FieldOverride(collectionID: "c", field: nil, indexes: [.ascending, .contains]),
                FieldOverride(collectionID: "c", field: try FieldPath("until"), indexes: nil, expires: true),
                FieldOverride(collectionID: "g", field: b, indexes: [.descending, .groupDescending, .groupContains]),
            ])
        try AdminClient.applyIndexes(wanted, in: database, directory: data)
        let listed = try AdminClient.listIndexes(of: database, directory: data)
        let expected = wanted.indexes.map(\.json) + wanted.fieldOverrides.map(\.json)
        expectEqual(Set(listed.map(\.json)), Set(expected))
        expect(listed.allSatisfy { ["BUILDING", "READY"].contains($0.state) })
        try AdminClient.applyIndexes(IndexDeclaration(), in: database, directory: data)
        try expect(AdminClient.listIndexes(of: database, directory: data).allSatisfy { $0.state == "DROPPING" })
    }

    @Test
    func `A declaration that is not possible is refused as a whole`() throws {
        let live = try LiveDatabaseServer()
        let data = live.directory.path(of: "data")
        let twice = FieldOverride(collectionID: "c", field: try FieldPath("a"), indexes: [])
        let wanted = IndexDeclaration(fieldOverrides: [twice, twice])
        let text = refusal { () throws(AdminClient.Failure) in
            try AdminClient.applyIndexes(wanted, in: database, directory: data)
        }
        expectEqual(text, "c.a is overridden twice.")
        try expect(AdminClient.listIndexes(of: database, directory: data).isEmpty)
    }
}
