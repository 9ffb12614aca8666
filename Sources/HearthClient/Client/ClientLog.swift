/// How much a message of a client matters.
package enum ClientLogLevel: Sendable {
    /// Every connection and every call.
    case debug
    /// A server that cannot be reached.
    case warning
    /// A failure of a store in this process.
    case error
}

/// Takes the messages of a client, on any thread. The text is only made if it is asked for.
package typealias ClientLog = @Sendable (ClientLogLevel, _ message: () -> String) -> Void
