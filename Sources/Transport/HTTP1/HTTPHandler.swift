// What a service implements to be reached over HTTP/1.1, and how it answers.

package import Basics
package import DocumentModel

/// Takes the HTTP requests of one loop; used on that loop's thread only.
package protocol HTTPHandler: AnyObject {
    /// A request has come whole.
    ///
    /// It is answered through `exchange`, at once or later: by one reply, or by turning it into a call of the service. The next
    /// request of the connection is not read before that.
    ///
    /// - Parameters:
    ///   - head: first line and headers.
    ///   - body: without its chunked form, lent for the call of this function.
    func handle(_ exchange: HTTPExchange, _ head: HTTP1Head, body: RawSpan)
}

/// A request that waits for its reply: a small value to answer with. All methods are for the thread of ``loop``; answering twice,
/// or after the connection has ended, does nothing.
package struct HTTPExchange: Sendable {
    private let connection: HTTP1Connection
    private let number: UInt32

    init(_ connection: HTTP1Connection, _ number: UInt32) {
        self.connection = connection
        self.number = number
    }

    package var loop: EventLoop { connection.loop }
    package var peerAddress: String { connection.peerAddress }

    /// Adds header lines, each with its CR LF, to whatever the reply will be.
    package func addHeaders(_ lines: String) { connection.addHeaders(number, lines) }

    /// Replies with the body that `write` appends.
    package func reply(
        _ status: HTTPStatus, contentType: String = "text/plain; charset=utf-8", _ write: (inout WireWriter) -> Void
    ) {
        connection.reply(number, status, contentType: contentType, write)
    }

    /// Replies with a text.
    package func reply(_ status: HTTPStatus, _ text: String) { reply(status) { $0.append(utf8: text) } }

    /// Turns the exchange into a call, whose messages `form` makes into the body of the reply.
    ///
    /// - Parameter deadlineMilliseconds: time that the client gives the call; nil = that of calls which bring none.
    package func beginCall(_ form: any ReplyForm, deadlineMilliseconds: UInt32? = nil) -> Call {
        connection.beginCall(number, form, deadlineMilliseconds)
        return Call(carrier: connection, stream: number)
    }
}

/// Makes the messages of a call into the body of an HTTP reply. One object for one reply.
package protocol ReplyForm: AnyObject {
    var contentType: String { get }
    /// Whether messages are sent as they come, in chunks, or the one message is the whole body.
    var isStreaming: Bool { get }

    /// Appends the text of a message.
    ///
    /// - Parameter isFirst: whether nothing of the body has been written before.
    func append(_ message: RawSpan, isFirst: Bool, to body: inout WireWriter) throws(RequestError)

    /// Appends what ends the body of a streaming reply.
    func appendEnd(isFirst: Bool, to body: inout WireWriter)

    /// Appends an error and what ends the body.
    func appendError(_ error: RequestError, isFirst: Bool, to body: inout WireWriter)
}
