// How the messages of a call become the body of an HTTP reply.

package import Basics

/// Makes the messages of a call into the body of an HTTP reply. One object for one reply.
package protocol ReplyForm: AnyObject {
    var contentType: String { get }
    /// That of a reply which is an error from the start.
    var errorContentType: String { get }
    /// Whether messages are sent as they come or the one message is the whole body.
    var isStreaming: Bool { get }

    /// Whether the connection is read during the reply, which may last long, so that a client that closes it is
    /// noticed at once. A client that only closes its sending side gets no reply then.
    var watchesClient: Bool { get }

    /// Appends the text of a message.
    ///
    /// - Parameter isFirst: whether nothing of the body has been written before.
    func append(_ message: RawSpan, isFirst: Bool, to body: inout ByteBuffer) throws(RequestError)

    /// Appends what ends the body of a streaming reply.
    func appendEnd(isFirst: Bool, to body: inout ByteBuffer)

    /// Appends an error and what ends the body.
    func appendError(_ error: RequestError, isFirst: Bool, to body: inout ByteBuffer)
}

extension ReplyForm {
    package var errorContentType: String { contentType }
    package var watchesClient: Bool { false }
}
