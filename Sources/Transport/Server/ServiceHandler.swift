// What a service implements to be reached over the transport.

/// A service: it is given calls and answers them. One handler serves one loop; every method runs on that loop's thread.
///
/// A call is answered through its ``Call``, at once or later. Until it is, the transport keeps it, watches its deadline and its
/// connection, and says so with ``cancelled(_:_:context:)`` when there is no one left to answer.
package protocol ServiceHandler: AnyObject {
    /// A call has come with its first message.
    ///
    /// - Parameters:
    ///   - head: method, deadline, request id, and whether the client will send more messages.
    ///   - payload: the message, lent for the call of this function: it stands in the receive buffer.
    func begin(_ call: Call, _ head: RequestHead, payload: RawSpan)

    /// A further message of a bidirectional call has come, lent like the first.
    func message(_ call: Call, payload: RawSpan)

    /// The client will send no more messages on a bidirectional call; comes once, after the last message.
    func halfClosed(_ call: Call)

    /// The call ended before it was answered. Nothing can be sent on it any more.
    ///
    /// - Parameter context: what `call.context` held.
    func cancelled(_ call: Call, _ reason: CancellationReason, context: AnyObject?)

    /// The loop has dealt with all that had come and is about to wait: a moment to let go of what is held for a while only.
    func loopWillWait()
}

extension ServiceHandler {
    package func message(_ call: Call, payload: RawSpan) {
        call.fail(.unimplemented, "this method accepts exactly one message")
    }

    package func halfClosed(_ call: Call) {}

    package func cancelled(_ call: Call, _ reason: CancellationReason, context: AnyObject?) {}

    package func loopWillWait() {}
}

/// Why a call ended without an answer of the handler.
package enum CancellationReason: Equatable, Sendable {
    /// The client sent CANCEL.
    case client
    /// Its deadline has passed; the client was told DEADLINE_EXCEEDED.
    case deadlineExceeded
    /// It took nothing of a streaming reply for too long; it was told DEADLINE_EXCEEDED.
    case stalled
    /// The client broke a rule of the call and was told so.
    case refused(Refusal)
    /// The connection is gone, or is being closed at the end of a drain.
    case connectionClosed
}
