import Calls
import NativeProtocol

/// One connection of a pool: to a server, or to a store in this process. For the thread of the pool's loop.
///
/// It reports to its pool: `connected`, `goingAway`, the end of each call with `ended`, and once `closed`.
protocol PooledConnection: AnyObject, Sendable {
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
