// A connection to a service in this process: translates between the pool's calls and those of the service.

import Calls
import Connections
import DocumentModel
import FirestoreMessages
import NativeProtocol

/// A connection to the service of the pool's loop. For the thread of that loop.
final class HandlerConnection: PooledConnection, @unchecked Sendable {
    // Unchecked: everything runs on the thread of the pool's loop, where the service calls back, too.

    private let id: ConnectionPool.ConnectionID
    /// Refers to this connection too, until the connection is closed.
    private let pool: ConnectionPool
    private let connection: InProcessConnection
    /// Whether this side is closing it: calls that end now end for this reason.
    private var isClosing = false

    init(_ id: ConnectionPool.ConnectionID, pool: ConnectionPool, to service: any ServiceHandler) {
        self.id = id
        self.pool = pool
        connection = InProcessConnection(to: service, on: pool.loop)
    }

    func dial(_ configuration: HearthClient.Configuration, _ credential: Credential) {
        pool.loop.execute { [self] in
            if !isClosing { pool.connected(id) }
        }
    }

    func show(_ credential: Credential) {}

    func start(_ call: PooledCall, deadlineMilliseconds: UInt32?, requestID: RequestID?) -> (any StartedCall)? {
        let options = RequestOptions(deadlineMilliseconds: deadlineMilliseconds, requestID: requestID)
        return connection.start(
            call.method.rpc, call.request, isComplete: !call.isBidirectional, options,
            handler: Receiver(call: call, connection: self))
    }

    private func ended(_ call: PooledCall, _ outcome: CallOutcome) {
        pool.ended(call, on: id, outcome, isClosing: isClosing)
    }

    func close() {
        guard !isClosing else { return }
        isClosing = true
        connection.close()
        pool.closed(id, "the connection to the store in this process was closed")
    }

    /// Receives the messages of a call.
    private final class Receiver: StartedCallHandler {
        private let call: PooledCall
        private let connection: HandlerConnection

        init(call: PooledCall, connection: HandlerConnection) {
            self.call = call
            self.connection = connection
        }

        func received(_ message: RawSpan) { call.received(message) }
        func finished(_ outcome: CallOutcome) { connection.ended(call, outcome) }
    }
}
