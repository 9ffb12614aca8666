import Calls
import NativeProtocol

/// One connection of a pool: to a server, or to a store in this process. For the thread of the pool's loop.
///
/// It reports to its pool: `connected`, `goingAway`, the end of each call with `ended`, and once `closed`.
protocol PooledConnection: AnyObject, Sendable {
    var id: ConnectionPool.ConnectionID { get }
    /// Refers to the connection too, until it is closed.
    var pool: ConnectionPool { get }
    /// Whether this side is closing it: calls that end now end for this reason.
    var isClosing: Bool { get }

    /// Starts to connect.
    ///
    /// - Parameter credential: the token that the first calls show.
    func dial(_ configuration: HearthClient.Configuration, _ credential: Credential)

    /// Has calls that start from now on show another token.
    func show(_ credential: Credential)

    /// Sends a call.
    ///
    /// - Returns: an object that cancels the call; `nil` if the call has ended.
    func start(_ call: PooledCall, deadlineMilliseconds: UInt32?, requestID: RequestID?) -> (any StartedCall)?

    /// Closes immediately. Its calls are lost, and retried if they may be.
    func close()
}

extension PooledConnection {
    /// Reports the end of a call to the pool.
    func ended(_ call: PooledCall, _ outcome: CallOutcome) {
        pool.ended(call, on: id, outcome, isClosing: isClosing)
    }
}

/// Receives what a connection brings for a call of its pool.
final class PooledCallReceiver: StartedCallHandler, Sendable {
    private let call: PooledCall
    private let connection: any PooledConnection

    init(call: PooledCall, connection: any PooledConnection) {
        self.call = call
        self.connection = connection
    }

    func received(_ message: RawSpan) { call.received(message) }
    func finished(_ outcome: CallOutcome) { connection.ended(call, outcome) }
}
