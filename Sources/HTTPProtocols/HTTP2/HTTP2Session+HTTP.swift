// Requests on HTTP/2 other than gRPC calls, as REST over HTTP/2: a head and a body in, a head and parts of a body out.
// Windows, limits and the order of sending are those of gRPC's messages.

import Basics
import CNGHTTP2

/// A request other than a gRPC call, while its stream lasts. Confined to its loop's thread.
final class HTTP2Exchange {
    let head: HTTPHead
    let reply: HTTPReply

    init(_ stream: UInt32, _ head: HTTPHead, keepsAuthorization: Bool) {
        self.head = head
        reply = HTTPReply(number: stream, head: head, keepsAuthorization: keepsAuthorization)
    }
}

extension HTTP2Session {
    /// The exchange on a stream; nil when the stream is closed or carries a gRPC call.
    func exchange(_ identifier: UInt32) -> HTTP2Exchange? { find(identifier)?.state.http }

    // MARK: Requests

    /// The head of a request is complete.
    ///
    /// - Parameter refusal: why the request is not to be served whatever its body is.
    func exchangeBegins(_ stream: StreamPlace, _ head: HTTPHead, _ refusal: HTTPRefusal?) {
        let identifier = stream.state.identifier
        let exchange = HTTP2Exchange(identifier, head, keepsAuthorization: limits.keepsAuthorization)
        stream.state.http = exchange
        if let refusal { return unsafe delegate.refused(exchange, refusal) }
        if stream.state.clientEnded { return serve(stream) }
        stream.state.arrivingSince = hot.state.now
    }

    /// Part of a request's body has come.
    func takeBody(_ stream: StreamPlace, _ exchange: HTTP2Exchange, _ bytes: RawSpan) {
        guard stream.state.assembly.bytes.count + bytes.byteCount <= limits.messageBytesMax else {
            return unsafe delegate.refused(exchange, .bodyTooLarge(limits.messageBytesMax))
        }
        _ = keep(stream, bytes)
    }

    /// Hands on a request that is whole, once answers before it have been taken.
    func serve(_ stream: StreamPlace) {
        if isCongested { return hot.state.waiting.append(stream.state.identifier) }
        forwardRequest(stream)
    }

    func forwardRequest(_ stream: StreamPlace) {
        guard let exchange = stream.state.http else { return }
        let body = takeAssembly(stream)
        unsafe delegate.request(exchange, body.span.bytes)
    }

    // MARK: Replies

    /// Queues the head of a reply.
    ///
    /// - Parameter hasBody: whether the body's bytes, or its end, will follow; if not, the head is the whole reply.
    func submitHead(_ identifier: UInt32, _ status: HTTPStatus, _ fields: [HTTPField], hasBody: Bool) {
        guard let stream = find(identifier), !stream.state.hasHead else { return }
        stream.state.hasHead = true
        let head =
            [(":status", Array(String(status.code).utf8))] + fields.map { ($0.name.lowercased(), Array($0.value.utf8)) }
        guard hasBody else {
            stream.state.isEnding = true
            return submitAlone(stream, head)
        }
        var source = unsafe nghttp2_data_provider(
            source: nghttp2_data_source(ptr: stream.pointer), read_callback: HTTP2Callbacks.read)
        unsafe Self.withFields(head) { fields, count in
            unsafe nghttp2_submit_response(session, Int32(bitPattern: identifier), fields, count, &source)
        }
    }

    /// Adds bytes to a body whose head is queued.
    func appendBody(_ identifier: UInt32, _ content: RawSpan) {
        guard !content.isEmpty, let stream = find(identifier), stream.state.hasHead, !stream.state.isEnding else {
            return
        }
        var staged = takeStaged()
        let start = staged.count
        staged.append(content)
        enqueue(stream, start..<staged.count, staged.bytes)
        hot.state.staged = consume staged
        resume(stream)
    }

    /// Ends a body.
    func endBody(_ identifier: UInt32) {
        guard let stream = find(identifier), !stream.state.isEnding else { return }
        stream.state.isEnding = true
        resume(stream)
    }

    /// Gives up a reply that has begun: the client sees that it is not whole.
    func abandonBody(_ identifier: UInt32) {
        guard let stream = find(identifier) else { return }
        stream.state.isEnding = true
        dropUnsent(stream)
        stream.state.arrivingSince = nil
        unsafe nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), Int32(bitPattern: identifier), NGHTTP2_CANCEL.rawValue)
    }
}
