// A server, and a connection to the socket in its data directory.

import Calls
import EventLoops
import FirestoreMessages
import NativeProtocol
import Server
import ServiceTestSupport
import TestSupport
import Testing

/// Calls methods of administration, one after the other.
class AdminConnection {
    let live: LiveDatabaseServer
    let connection: ClientConnection
    private let loop = EventLoopGroup(count: 1, name: "test-admin")

    init(_ change: (inout DatabaseServerConfiguration) -> Void = { _ in }) throws {
        live = try LiveDatabaseServer(change)
        connection = try ClientConnection.connect(
            toSocketAt: AdminSocket.path(in: live.directory.path(of: "data")), on: loop.next())
    }

    deinit {
        connection.close()
        loop.stop()
    }

    /// How a call ends that is expected to fail.
    func failure(_ method: FirestoreMessages.Method, _ request: some FirestoreMessage) -> CallOutcome {
        live.call(method, request.encodedBytes(), on: connection).outcome
    }

    func reply<Reply: FirestoreMessage>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, as type: Reply.Type = Reply.self
    ) throws -> Reply {
        let (outcome, reply) = live.call(method, request.encodedBytes(), on: connection)
        try #require(outcome.code == .ok, "\(outcome.message)")
        return try Reply(wire: reply.byteSpan)
    }
}
