// A streaming reply, produced only as fast as the client reads.

package import Basics
package import DocumentModel

/// What a source did when it was asked for its next message.
package enum SourceStep: Sendable {
    /// It wrote one message and may have more.
    case message
    /// It wrote one message, the last: the call ends with OK.
    case lastMessage
    /// It wrote nothing and is done: the call ends with OK.
    case finished
    /// It wrote nothing and cannot go on; anything it wrote is dropped.
    case failed(StatusCode, String)
    /// It has nothing now. It is not asked again until `Call.resume()`.
    case waiting
}

/// Where the messages of a streaming reply come from; used on the call's loop only.
package protocol ResponseSource: AnyObject {
    /// Appends at most one message. Asked only when the client's window and the connection's output have room.
    func next(into output: inout WireWriter) -> SourceStep

    /// The call ended before the source did. It is not asked again.
    func cancelled()
}
