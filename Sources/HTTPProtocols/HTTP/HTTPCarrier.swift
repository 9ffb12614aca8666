// What HTTP/1.1 and HTTP/2 have in common: from a call's messages, or a plain reply, to a head and parts of a body. How
// these are put on the wire is the connection's.

import Basics
import Calls
import Connections

/// A connection with exchanges of HTTP.
protocol HTTPCarrier: CallConnection {
    /// Whether the connection carries no other exchange until the present one has its reply.
    var holdsConnection: Bool { get }
    /// The reply of an exchange whose reply is not complete.
    func openReply(_ exchange: UInt32) -> HTTPReply?
    /// Writes a reply whose body is known, and ends the exchange.
    func writeWhole(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan)
    /// Writes a part of a streaming reply, after its head if that has not been written. The last part ends the
    /// exchange.
    func writePart(_ reply: HTTPReply, contentType: String, _ content: RawSpan, isLast: Bool)
}

extension HTTPCarrier {
    /// Whether the connection has TLS.
    var isSecure: Bool { channel.handshake != nil }

    package func noteRetry(_ stream: UInt32, afterSeconds seconds: Int) {
        openReply(stream)?.fields.append(HTTPField("Retry-After", "\(seconds)"))
    }

    func reply(_ exchange: UInt32, _ status: HTTPStatus, contentType: String, _ write: (inout ByteBuffer) -> Void) {
        guard let reply = openReply(exchange) else { return }
        _ = forget(exchange)
        detach(exchange)
        writeWhole(reply, status, contentType: contentType, write)
    }

    func writeWhole(
        _ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ write: (inout ByteBuffer) -> Void
    ) {
        withContent { content in
            write(&content)
            writeWhole(reply, status, contentType: contentType, content.bytes)
        }
    }

    /// Replies with an error that comes before any call.
    func writeError(_ reply: HTTPReply, _ status: HTTPStatus, _ name: String, _ text: String) {
        writeWhole(reply, status, contentType: HTTPError.contentType) { content in
            HTTPError.append(status, name, text, to: &content)
            content.append(utf8: "\n")
        }
    }

    /// Turns an exchange into a call. One that is over makes a call that is over.
    func beginCall(_ exchange: UInt32, _ head: RequestHead, _ form: any ReplyForm) -> Call {
        if let reply = openReply(exchange) {
            reply.form = form
            armDeadline(exchange, head.deadlineMilliseconds)
        }
        return makeCall(exchange, head)
    }

    /// Takes a message of an open call.
    func endMessage(_ reply: HTTPReply, _ form: any ReplyForm, _ message: consuming ByteBuffer, isLast: Bool) {
        withContent { content in
            do throws(RequestError) {
                try form.append(message.bytes, isFirst: !reply.hasBegun, to: &content)
            } catch {
                return finish(reply.number, error.code, error.message)
            }
            guard isLast || !form.isStreaming else {
                return writePart(reply, contentType: form.contentType, content.bytes, isLast: false)
            }
            _ = forget(reply.number)
            detach(reply.number)
            guard form.isStreaming else { return writeWhole(reply, .ok, contentType: form.contentType, content.bytes) }
            form.appendEnd(isFirst: false, to: &content)
            writePart(reply, contentType: form.contentType, content.bytes, isLast: true)
        }
        loop.recycle(message)
    }

    /// Ends an exchange, which is forgotten already, with a status.
    func writeStatus(_ reply: HTTPReply, _ code: StatusCode, _ text: String) {
        guard let form = reply.form else { return writeError(reply, HTTPStatus(code), "\(code)", text) }
        withContent { content in
            if code == .ok {
                form.appendEnd(isFirst: !reply.hasBegun, to: &content)
            } else {
                form.appendError(RequestError(code, text), isFirst: !reply.hasBegun, to: &content)
            }
            let contentType = code == .ok || reply.hasBegun ? form.contentType : form.errorContentType
            if reply.hasBegun {
                writePart(reply, contentType: contentType, content.bytes, isLast: true)
            } else {
                writeWhole(reply, HTTPStatus(code), contentType: contentType, content.bytes)
            }
        }
    }

    /// Lends a buffer of the loop's.
    private func withContent(_ body: (inout ByteBuffer) -> Void) {
        var content = loop.takeWriter()
        body(&content)
        loop.recycle(content)
    }
}
