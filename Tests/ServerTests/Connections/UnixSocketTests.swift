// The Unix socket for services: who may connect, what they may do, and whose file it is.

import AuthorizationTestSupport
import Basics
import Calls
import ConnectionTestSupport
import DocumentModel
import DocumentStore
import EventLoops
import FirestoreMessages
import Foundation
import Glibc
import NativeProtocol
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct UnixSocketTests {
    private let directory = TemporaryDirectory("unix-socket")
    private let get = GetDocumentRequest(name: Harness.name("c/x")).encodedBytes()

    private var path: String { directory.path(of: "socket") }

    /// A server that listens on the path.
    private func serve(
        mode: UInt32 = 0o660, group: UInt32? = nil, _ change: (inout DatabaseServerConfiguration) -> Void = { _ in }
    ) throws -> LiveDatabaseServer {
        try LiveDatabaseServer {
            $0.unixSocket = UnixSocketOptions(path: path, permissions: SocketPermissions(mode: mode, group: group))
            change(&$0)
        }
    }

    /// Runs calls on a connection to the socket.
    private func connected(_ body: (ClientConnection) throws -> Void) throws {
        let loop = EventLoopGroup(count: 1, name: "test-unix")
        defer { loop.stop() }
        let connection = try ClientConnection.connect(toSocketAt: path, on: loop.next())
        try body(connection)
        connection.close()
    }

    @Test
    func `Its clients have the rights of those of the port, not those of the data directory's socket`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: [])
        let live = try serve { $0.authorization = authorization }
        try connected { connection in
            expectEqual(live.call(.getDocument, get, on: connection).outcome.code, .unauthenticated)
            let backup = BackupRequest(directory: directory.path(of: "backup")).encodedBytes()
            expectEqual(live.call(.adminBackup, backup, on: connection).outcome.code, .unimplemented)
            let databases = ListDatabasesRequest(parent: "projects/p").encodedBytes()
            expectEqual(live.call(.listDatabases, databases, on: connection).outcome.code, .unauthenticated)
        }
    }

    @Test
    func `Many connections are served, on every loop, with all protocols`() throws {
        let live = try serve()
        for _ in 0..<5 {
            try connected { connection in
                expectEqual(live.call(.getDocument, get, on: connection).outcome.code, .notFound)
            }
            // What gRPC's C core sends as the authority.
            let http2 = try HTTP2Client(RawClient(path: path))
            let fields = HTTP2Frame.grpcFields("/google.firestore.v1.Firestore/GetDocument").map {
                $0.0 == ":authority" ? ($0.0, path) : $0
            }
            http2.send(.headers(fields, stream: 1), .data(grpcMessage(get), stream: 1))
            expectEqual(http2.answer(1).status, Int(StatusCode.notFound.rawValue))
            let http1 = try RawClient(path: path)
            http1.send(Array("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
            expect(String(decoding: http1.receiveAll(), as: UTF8.self).hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test(arguments: [UInt32(0o600), 0o660, 0o666])
    func `The file has the permissions and the group that were asked for, and goes with the server`(
        mode: UInt32
    ) throws {
        let live = try serve(mode: mode, group: getgid())
        var status = stat()
        expectEqual(stat(path, &status), 0)
        expectEqual(status.st_mode & 0o777, mode)
        expectEqual(status.st_gid, getgid())
        live.stop()
        expect(access(path, F_OK) != 0)
    }

    @Test
    func `Another server's path and a file of another kind are refused and not touched`() throws {
        let live = try serve()
        let refusal = #expect(throws: SocketError.self) { _ = try serve() }
        expectEqual(refusal?.code, EADDRINUSE)
        try connected { expectEqual(live.call(.getDocument, get, on: $0).outcome.code, .notFound) }
        live.stop()
        try Data("kept".utf8).write(to: URL(fileURLWithPath: path))
        let other = #expect(throws: SocketError.self) { _ = try serve() }
        expectEqual(other?.code, EEXIST)
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), "kept")
    }

    @Test
    func `The file of a process that was killed is replaced, and a path longer than an address is served`() throws {
        let long = TemporaryDirectory("unix-socket-" + String(repeating: "d", count: 120))
        for path in [path, long.path(of: "s")] {
            // A listener that ends without removing its file.
            closeDescriptor(try LocalSocket.listen(at: path))
            expectEqual(access(path, F_OK), 0)
            let live = try LiveDatabaseServer { $0.unixSocket = UnixSocketOptions(path: path) }
            let loop = EventLoopGroup(count: 1, name: "test-unix")
            defer { loop.stop() }
            let connection = try ClientConnection.connect(toSocketAt: path, on: loop.next())
            expectEqual(live.call(.getDocument, get, on: connection).outcome.code, .notFound)
            connection.close()
        }
    }

    @Test
    func `A directory that does not exist ends the start with the reason`() throws {
        let missing = directory.path(of: "missing/socket")
        let refusal = #expect(throws: SocketError.self) {
            _ = try LiveDatabaseServer { $0.unixSocket = UnixSocketOptions(path: missing) }
        }
        expectEqual(refusal?.description, "cannot listen on \(missing): No such file or directory")
    }
}
