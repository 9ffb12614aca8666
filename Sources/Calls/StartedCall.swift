/// A call that a client has started, on a connection or in this process. Its methods may be used from any thread.
package protocol StartedCall: AnyObject, Sendable {
    /// Ends the call with CANCELLED, unless it has ended.
    func cancel()
    /// Sends one more message of a bidirectional call.
    func send(_ payload: [UInt8], isLast: Bool)
    /// Asks the service to pause: only messages that are on their way still come.
    func pauseMessages()
    /// Lets the service continue.
    func resumeMessages()
}

/// Takes what comes back on a call that a client has started; used on the thread of the connection's loop.
package protocol StartedCallHandler: AnyObject {
    /// A message, lent for the call of this function.
    func received(_ message: RawSpan)
    /// The end; comes once.
    func finished(_ outcome: CallOutcome)
}
