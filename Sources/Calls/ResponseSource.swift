package import Basics

/// What a source did when it was asked for its next message.
package enum SourceStep: Sendable {
    /// It wrote one message and may have more.
    case message
    /// It wrote one message, the last: the call ends with OK.
    case lastMessage
    /// It wrote nothing and is done: the call ends with OK.
    case finished
    /// It cannot continue: the call ends with this status, and anything it wrote is dropped.
    case failed(StatusCode, String)
    /// It has nothing now. It is asked again after ``Call/resume()`` or ``LoopSignal/raise()``.
    case waiting
}

/// Where the messages of a streaming reply come from. Used on the call's loop only.
///
/// The transport pulls: a source is asked while the client's window is open and the connection's output has room, in
/// turn with the other calls of its connection. So a slow client costs the server the memory of what the source
/// itself holds.
package protocol ResponseSource: AnyObject {
    /// Appends at most one message.
    func next(into output: inout ByteBuffer) -> SourceStep

    /// Whether the next message was made already. Such messages, at most a page of them, are sent in the share in which
    /// they were made: they are in the cache, and their memory can be used again.
    var hasMessageReady: Bool { get }

    /// Memory of the messages that were made and not sent, in bytes.
    var heldBytes: Int { get }

    /// The call ended before the source did: the client cancelled it, was too slow, or is gone. It is not asked again.
    func cancelled()
}

extension ResponseSource {
    package var hasMessageReady: Bool { false }
    package var heldBytes: Int { 0 }
}

/// The service's side of a bidirectional call. Used on the call's loop only.
///
///     client's messages ──▶ received, halfClosed ──▶ (work, also on other threads) ──▶ LoopSignal.raise
///     next(into:) ◀── asked while client and connection have room ◀── Call.resume ◀──┘
///
/// It ends by returning ``SourceStep/finished`` or ``SourceStep/failed(_:_:)`` from `next`, or `cancelled` is called
/// once. `Server`'s write stream is an example. Native frames and gRPC use the same code.
package protocol CallStream: ResponseSource {
    /// The client's next message, lent for the call of this function.
    func received(_ message: RawSpan)

    /// The client sends no more messages; comes at most once, after the last of them.
    func halfClosed()
}
