// Connections of another protocol than the native one, which the program brings along: a client that needs none is
// built without their libraries.

package import Calls
package import EventLoops
package import FirestoreMessages
import NativeProtocol

/// Opens connections to the server of a client. Thread-safe.
package protocol ClientTransport: Sendable {
    /// Begins to connect, and returns at once.
    ///
    /// - Parameters:
    ///   - token: what calls show first; empty = none.
    ///   - onEvent: called on the loop's thread.
    func connect(
        to host: String, port: UInt16, on loop: EventLoop, token: String,
        onEvent: @escaping @Sendable (TransportEvent) -> Void
    ) -> any TransportConnection
}

/// What a connection reports to its pool.
package enum TransportEvent: Sendable {
    case ready
    /// The server takes no more calls here; open ones continue.
    case goingAway
    /// The end, with the reason in words that name the address; comes once, after every call has ended.
    case closed(String)
}

/// A connection of a ``ClientTransport``. For the thread of its loop.
package protocol TransportConnection: AnyObject {
    /// Has calls that start from now on show another token.
    func show(token: String)

    /// Sends a call.
    ///
    /// - Parameter isComplete: whether the request is the client's last message.
    func start(
        _ method: Method, _ request: [UInt8], isComplete: Bool, deadlineMilliseconds: UInt32?,
        handler: any StartedCallHandler & Sendable
    ) -> any StartedCall

    /// Closes immediately; open calls end.
    func close()
}

/// A connection of a transport as the pool sees it: translates between the pool's calls and the transport's.
final class ForeignConnection: PooledConnection, @unchecked Sendable {
    // Unchecked: everything runs on the thread of the pool's loop, where the transport calls back, too.

    let id: ConnectionPool.ConnectionID
    let pool: ConnectionPool
    private let transport: any ClientTransport
    private var connection: (any TransportConnection)?
    private var isDialled = false
    private(set) var isClosing = false

    init(_ id: ConnectionPool.ConnectionID, pool: ConnectionPool, over transport: any ClientTransport) {
        self.id = id
        self.pool = pool
        self.transport = transport
    }

    func dial(_ configuration: HearthClient.Configuration, _ credential: Credential) {
        isDialled = true
        connection = transport.connect(
            to: configuration.host, port: configuration.port, on: pool.loop, token: credential.token
        ) { event in
            switch event {
            case .ready: self.pool.connected(self.id)
            case .goingAway: self.pool.goingAway(self.id)
            case .closed(let reason):
                self.connection = nil
                self.pool.closed(self.id, reason)
            }
        }
    }

    func show(_ credential: Credential) { connection?.show(token: credential.token) }

    func start(_ call: PooledCall, deadlineMilliseconds: UInt32?, requestID: RequestID?) -> (any StartedCall)? {
        guard let connection else {
            ended(call, CallOutcome(.unavailable, "the connection is closed", isUnprocessed: true))
            return nil
        }
        return connection.start(
            call.method, call.request, isComplete: !call.isBidirectional, deadlineMilliseconds: deadlineMilliseconds,
            handler: PooledCallReceiver(call: call, connection: self))
    }

    func close() {
        guard !isClosing else { return }
        isClosing = true
        if isDialled { connection?.close() } else { pool.closed(id, "the connection was closed before it was opened") }
    }
}
