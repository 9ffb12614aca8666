// HTTP requests on an HTTP/2 connection: hands them to the loop's HTTPHandler, and its replies to the session.

import Basics

extension HTTP2Connection: HTTPCarrier {
    // MARK: HTTP2SessionDelegate

    func request(_ exchange: HTTP2Exchange, _ body: RawSpan) {
        guard !isOver else { return }
        http?.handle(HTTPExchange(self, exchange.reply.number), exchange.head, body: body)
    }

    func refused(_ exchange: HTTP2Exchange, _ refusal: HTTPRefusal) {
        let stream = exchange.reply.number
        guard !isOver, forget(stream) != nil else { return }
        detach(stream)
        exchange.reply.fields += http?.fields(ofRefusal: exchange.head, isSecure: isSecure) ?? []
        writeError(exchange.reply, refusal.status, refusal.status.errorName, refusal.text)
    }

    // MARK: HTTPCarrier

    func openReply(_ exchange: UInt32) -> HTTPReply? { isOpen(exchange) ? session.exchange(exchange)?.reply : nil }

    func writeWhole(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan) {
        var fields = [HTTPField("date", date.text())]
        if !status.isWithoutBody {
            fields += [HTTPField("content-type", contentType), HTTPField("content-length", String(content.byteCount))]
        }
        let hasBody = !reply.isHead && !status.isWithoutBody && !content.isEmpty
        session.submitHead(reply.number, status, fields + reply.fields, hasBody: hasBody)
        if hasBody {
            session.appendBody(reply.number, content)
            session.endBody(reply.number)
        }
        channel.needsSettling()
    }

    func writePart(_ reply: HTTPReply, contentType: String, _ content: RawSpan, isLast: Bool) {
        if !reply.hasBegun {
            let fields = [HTTPField("date", date.text()), HTTPField("content-type", contentType)]
            session.submitHead(reply.number, .ok, fields + reply.fields, hasBody: !reply.isHead)
        }
        reply.hasBegun = true
        if !reply.isHead {
            session.appendBody(reply.number, content)
            if isLast { session.endBody(reply.number) }
        }
        channel.needsSettling()
    }

    /// Ends an exchange, which is forgotten already, with a status.
    func sendStatus(_ reply: HTTPReply, _ code: StatusCode, _ text: String) {
        // A client that shuts its window would never see the end of the body.
        guard code == .deadlineExceeded, reply.hasBegun else { return writeStatus(reply, code, text) }
        session.abandonBody(reply.number)
        channel.needsSettling()
    }
}
