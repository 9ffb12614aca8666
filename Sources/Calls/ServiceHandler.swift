/// A service: it is given calls and answers them. One handler serves one loop; every method runs on that loop's thread.
package protocol ServiceHandler: AnyObject {
    /// A call has come with its first message. The reply comes at once or later; until then the transport watches its
    /// deadline and its connection.
    ///
    /// - Parameter payload: the message, lent for the call of this function: it is in the receive buffer.
    func begin(_ call: Call, payload: RawSpan)

    /// A call ended without a reply of this handler. Its source or stream, if any, was cancelled.
    func abandoned(_ reason: CancellationReason)

    /// The loop has handled everything that had come and is about to wait: the time to release what is held for one
    /// round only.
    func loopWillWait()
}

extension ServiceHandler {
    package func abandoned(_ reason: CancellationReason) {}

    package func loopWillWait() {}
}

/// Why a call ended without an answer of the handler.
package enum CancellationReason: Equatable, Sendable {
    /// The client sent CANCEL.
    case client
    /// Its deadline passed; the client got DEADLINE_EXCEEDED.
    case deadlineExceeded
    /// It took nothing of a streaming reply for too long and got DEADLINE_EXCEEDED.
    case stalled
    /// The client broke a rule of the call and got that rule's status.
    case refused(Refusal)
    /// The connection is gone, or is being closed at the end of a drain.
    case connectionClosed
}
