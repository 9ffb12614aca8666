// One HTTP/1.1 connection on the server: one exchange after the other, each a plain reply or a call of the service.
//
// Bytes ──▶ HTTP1Parser ──head, body──▶ HTTPHandler.handle ──▶ exchange.reply ──────────────────────▶ channel's output
//                                                └──▶ exchange.beginCall ──▶ service ──▶ ReplyForm ──▶
//
// While an exchange waits for its reply nothing more is read, so that what a client sends ahead stays in its own kernel and the
// one read buffer. A streaming reply goes out in chunks at the pace at which the client takes them.

import Basics
import DocumentModel

final class HTTP1Connection: CallConnection, HTTPCarrier, @unchecked Sendable {
    // Sendable: as CallCarrier says, confined to the loop.

    private let http: any HTTPHandler
    private var parser: HTTP1Parser
    /// The body so far, when it comes in more than one piece.
    private var body: [UInt8] = []
    private var exchange: Exchange?
    private var exchangeCount: UInt32 = 0
    private var isDraining = false
    private var heardAt: UInt64
    /// When the request that is incomplete began.
    private var requestSince: UInt64?

    /// A request that waits for its reply.
    private struct Exchange {
        let reply: HTTPReply
        let keepsAlive: Bool
        let isChunkable: Bool
        /// Nobody may answer any more but the connection itself, which is about to.
        var isOpen = true
    }

    init(
        channel: Channel, handler: any ServiceHandler, http: any HTTPHandler, server: ServerLoop, peerAddress: String,
        openedAt: UInt64
    ) {
        self.http = http
        parser = HTTP1Parser(limits: server.configuration.http1)
        heardAt = openedAt
        super.init(channel: channel, handler: handler, server: server, peerAddress: peerAddress, openedAt: openedAt)
        keepHouse()
    }

    // MARK: Requests in

    override func received(_ bytes: RawSpan) -> ReceiveProgress {
        heardAt = loop.nowMilliseconds
        var offset = 0
        // Where the body stands, when all of it is in these bytes.
        var wholeBody = 0..<0
        while !isOver {
            guard exchange == nil else {
                channel.pauseInput()
                return ReceiveProgress(consumed: offset)
            }
            let event: HTTP1Parser.Event
            do throws(HTTP1Violation) {
                event = try parser.next(bytes, &offset)
            } catch {
                refuse(error)
                break
            }
            switch event {
            case .incomplete:
                if requestSince == nil, !parser.isBetweenRequests || offset < bytes.byteCount { requestSince = heardAt }
                return ReceiveProgress(consumed: offset)
            case .head:
                requestSince = requestSince ?? heardAt
                if parser.head.expectsContinue, parser.head.body != .none, offset == bytes.byteCount {
                    channel.write { $0.append(utf8: "HTTP/1.1 100 Continue\r\n\r\n") }
                }
            case .body(let range):
                if body.isEmpty, parser.bodyIsWhole {
                    wholeBody = range
                } else {
                    body.append(contentsOf: [UInt8](copying: bytes.extracting(range)))
                    countAssembly()
                }
            case .end:
                handle(bytes.extracting(wholeBody))
                wholeBody = 0..<0
                if channel.outputIsDue || channel.isCongested { return ReceiveProgress(consumed: offset) }
            }
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    /// Hands a whole request to the handler.
    private func handle(_ bytes: RawSpan) {
        requestSince = nil
        let head = parser.head
        exchangeCount &+= 1
        // Zero is the token of the housekeeping timer.
        if exchangeCount == 0 { exchangeCount = 1 }
        let reply = HTTPReply(number: exchangeCount, head: head, keepsAuthorization: configuration.keepsAuthorization)
        exchange = Exchange(reply: reply, keepsAlive: head.keepsAlive, isChunkable: head.minorVersion > 0)
        let gathered = body
        body = []
        countAssembly()
        http.handle(HTTPExchange(self, exchangeCount), head, body: gathered.isEmpty ? bytes : gathered.byteSpan)
    }

    private func refuse(_ violation: HTTP1Violation) {
        server.statistics.protocolErrors &+= 1
        sayLast(violation.status, violation.status.errorName, violation.text)
        close(.malformedRequest(violation.text))
    }

    /// A reply outside of any exchange, after which the connection ends.
    private func sayLast(_ status: HTTPStatus, _ name: String, _ text: String) {
        let head = parser.headSoFar
        let reply = HTTPReply(number: 0, head: head, keepsAuthorization: false)
        reply.fields = http.fields(ofRefusal: head)
        exchange = Exchange(reply: reply, keepsAlive: false, isChunkable: true, isOpen: false)
        var content = loop.takeWriter()
        HTTPError.append(status, name, text, to: &content)
        content.append(utf8: "\n")
        write(reply, status, contentType: HTTPError.contentType, content.bytes)
        loop.giveBack(content)
        exchange = nil
    }

    // MARK: HTTPCarrier

    func openReply(_ number: UInt32) -> HTTPReply? { isOpen(number) ? exchange?.reply : nil }

    func writeWhole(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan) {
        write(reply, status, contentType: contentType, content)
        exchangeEnded()
    }

    private func write(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan) {
        channel.write { output in
            let length = status.isWithoutBody ? "" : "Content-Type: \(contentType)\r\nContent-Length: \(content.byteCount)\r\n"
            appendHead(reply, status, length, to: &output)
            if !reply.isHead, !status.isWithoutBody { output.append(content) }
        }
    }

    private func appendHead(_ reply: HTTPReply, _ status: HTTPStatus, _ about: String, to output: inout WireWriter) {
        output.append(utf8: "HTTP/1.1 \(status.code) \(status.phrase)\r\n")
        output.append(utf8: about)
        output.append(utf8: "Date: \(server.date.text())\r\n")
        for field in reply.fields { output.append(utf8: "\(field.name): \(field.value)\r\n") }
        if let exchange {
            if !staysOpen(after: exchange) {
                output.append(utf8: "Connection: close\r\n")
            } else if !exchange.isChunkable {
                output.append(utf8: "Connection: keep-alive\r\n")
            }
        }
        output.append(utf8: "\r\n")
    }

    func writePart(_ reply: HTTPReply, contentType: String, _ content: RawSpan, isLast: Bool) {
        guard let isChunkable = exchange?.isChunkable else { return }
        channel.write { output in
            if !reply.hasBegun {
                let framing = isChunkable ? "Transfer-Encoding: chunked\r\n" : ""
                appendHead(reply, .ok, "Content-Type: \(contentType)\r\n\(framing)", to: &output)
            }
            guard !reply.isHead else { return }
            guard isChunkable else { return output.append(content) }
            if !content.isEmpty {
                output.append(utf8: String(content.byteCount, radix: 16))
                output.append(utf8: "\r\n")
                output.append(content)
                output.append(utf8: "\r\n")
            }
            if isLast { output.append(utf8: "0\r\n\r\n") }
        }
        reply.hasBegun = true
        if isLast { exchangeEnded() }
    }

    private func staysOpen(after exchange: Exchange) -> Bool {
        // A body that HTTP/1.0 streams has no other end than the connection's.
        exchange.keepsAlive && !isDraining && (exchange.isChunkable || exchange.reply.form?.isStreaming != true)
    }

    private func exchangeEnded() {
        guard let ended = exchange else { return }
        let stays = staysOpen(after: ended)
        exchange = nil
        // Idle from now on, however long the reply took.
        heardAt = loop.nowMilliseconds
        // The next request, if it has come already, is read when the turn ends.
        if stays { channel.needsSettling() } else { close(.finished) }
    }

    // MARK: Calls

    override var carriesCredentials: Bool { true }

    override func authorization(_ stream: UInt32) -> String? {
        exchange.flatMap { $0.reply.number == stream ? $0.reply.authorization : nil }
    }

    override func isOpen(_ stream: UInt32) -> Bool {
        guard !isOver, let exchange else { return false }
        return exchange.reply.number == stream && exchange.isOpen
    }

    override func beginMessage(_ stream: UInt32) -> WireWriter? {
        isOpen(stream) ? loop.takeWriter() : nil
    }

    override func abandonMessage(_ output: consuming WireWriter) { loop.giveBack(output) }

    override func endMessage(_ stream: UInt32, _ output: consuming WireWriter, isLast: Bool) {
        guard let reply = openReply(stream), let form = reply.form else { return loop.giveBack(output) }
        endMessage(reply, form, output, isLast: isLast)
    }

    override func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String) {
        guard let current = exchange, current.reply.number == stream else { return }
        writeStatus(current.reply, code, text)
    }

    /// One message at a time is all that HTTP/1.1 takes in.
    override func setHeld(_ stream: UInt32, _ isHeld: Bool) {}

    // MARK: What CallConnection asks

    override var assemblyBytes: Int { body.count }
    override var openCalls: Int { exchange == nil ? 0 : 1 }
    override var openStreams: [UInt32] { exchange.map { $0.isOpen ? [$0.reply.number] : [] } ?? [] }
    override var lastHeardAt: UInt64 { heardAt }

    override func park(_ stream: UInt32) -> Bool { isOpen(stream) }
    override func hasWindow(_ stream: UInt32) -> Bool { true }

    override func forget(_ stream: UInt32) -> Bool? {
        guard let current = exchange, current.reply.number == stream, current.isOpen else { return nil }
        exchange?.isOpen = false
        return current.reply.form != nil
    }

    override func slowness(now: UInt64, limit: UInt64) -> String? {
        guard exchange == nil, let since = requestSince,
            ArrivalTime.isOver(since: since, bytes: body.count, now: now, limit: limit)
        else { return nil }
        return "The request's \(parser.isInBody ? "body" : "head") did not arrive in time."
    }

    // MARK: The end

    override func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) {
        if exchange == nil, code != .ok {
            sayLast(reason == .tooSlowToSpeak ? .requestTimeout : HTTPStatus(code), "\(code)", text)
        }
        close(reason)
    }

    override func drain() {
        guard !isOver else { return }
        isDraining = true
        endIfDone()
    }

    /// Between exchanges: what the client has sent ahead is read on, or the connection ends.
    override func endIfDone() {
        guard !isOver, exchange == nil else { return }
        if isDraining, parser.isBetweenRequests { return close(.finished) }
        channel.resumeInput()
    }
}
