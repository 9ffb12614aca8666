// A connection to a service in this process: translates between the pool's calls and those of the service.

import Calls
import Connections
import DocumentModel
import FirestoreMessages
import NativeProtocol

/// A connection to the service of the pool's loop. For the thread of that loop.
final class HandlerConnection: PooledConnection, @unchecked Sendable {
    // Unchecked: everything runs on the thread of the pool's loop, where the service calls back, too.

    let id: ConnectionPool.ConnectionID
    let pool: ConnectionPool
    private let connection: InProcessConnection
    private(set) var isClosing = false

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
            handler: PooledCallReceiver(call: call, connection: self))
    }

    func close() {
        guard !isClosing else { return }
        isClosing = true
        connection.close()
        pool.closed(id, "the connection to the store in this process was closed")
    }
}
