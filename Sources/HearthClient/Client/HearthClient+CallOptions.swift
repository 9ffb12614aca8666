// How one call is to be made.

extension HearthClient {
    /// Options of one call.
    package struct CallOptions: Sendable {
        /// Time for the whole call, retries included; `nil` takes the client's default for the kind of call.
        package var timeout: Duration?
        /// Whether the call waits, up to its timeout, for a server that cannot be reached; otherwise it fails with
        /// UNAVAILABLE when the first dial fails. A commit that may have been applied waits in any case.
        package var waitsForConnection: Bool
        /// What ends the call with CANCELLED; `nil` if nothing does.
        package var cancellation: Cancellation?

        package init(timeout: Duration? = nil, waitsForConnection: Bool = true) {
            self.timeout = timeout
            self.waitsForConnection = waitsForConnection
        }

        /// The same options for a call that the cancellation ends.
        package func cancelled(by cancellation: Cancellation?) -> CallOptions {
            var copy = self
            copy.cancellation = cancellation
            return copy
        }

        /// The client's default timeout; waits for the server.
        package static let standard = CallOptions()
        /// The client's default timeout; fails at once while the server cannot be reached, as the SDK's reads do.
        package static let failFast = CallOptions(waitsForConnection: false)
    }
}
