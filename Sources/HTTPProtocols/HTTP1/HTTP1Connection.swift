package import Basics
package import Calls
package import Connections
package import EventLoops

/// One HTTP/1.1 connection on the server: performs what its session decides.
///
///     session's .request ──▶ HTTPHandler.handle ──▶ exchange.reply ──────────────────────▶ channel's output
///                                  └──▶ exchange.beginCall ──▶ service ──▶ ReplyForm ──▶
///
/// A streaming reply goes out in chunks at the pace at which the client takes them.
package final class HTTP1Connection: CallConnection, HTTPCarrier, @unchecked Sendable {
    // Sendable: confined to the loop, as CallCarrier says.

    package let core: ConnectionCore
    package let carriesCredentials = true
    private let http: any HTTPHandler
    private let date: HTTPDate
    let holdsConnection = true
    private var session: HTTP1Session

    package init(_ core: ConnectionCore, http: any HTTPHandler, date: HTTPDate) {
        self.core = core
        self.http = http
        self.date = date
        session = HTTP1Session(
            limits: core.configuration.http1, keepsAuthorization: core.configuration.keepsAuthorization,
            now: core.openedAt)
        enforceTimeouts()
    }

    // Every call uses these: here they need no way over the witness table of CallConnection.
    var channel: Channel { core.channel }
    var loop: EventLoop { core.loop }
    var isOver: Bool { core.state.isOver }

    // MARK: Incoming requests

    package func received(_ bytes: RawSpan) -> ReceiveProgress {
        var offset = 0
        while !isOver {
            switch session.receive(bytes, &offset, now: loop.nowMilliseconds) {
            case .needsMore: return ReceiveProgress(consumed: offset)
            case .awaitsReply:
                // What a client sends ahead stays in its kernel.
                if offset < bytes.byteCount || !session.watchesClient { channel.pauseInput() }
                return ReceiveProgress(consumed: offset)
            case .sendContinue: channel.write { $0.append(utf8: "HTTP/1.1 100 Continue\r\n\r\n") }
            case .bodyGrew: countAssembly()
            case .request(let number, let body):
                handle(number, body, bytes)
                if channel.outputIsDue || channel.isCongested || channel.isSliceOver {
                    return ReceiveProgress(consumed: offset)
                }
            case .fail(let violation): refuse(violation)
            }
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    /// A client may close its sending side after its request and still read the reply, which is the last one then.
    package func inputEnded() -> Bool {
        if session.watchesClient { return false }
        session.drain()
        if !session.hasExchange { close(.closedByPeer) }
        return true
    }

    private func handle(_ number: UInt32, _ body: HTTP1Session.Body, _ bytes: RawSpan) {
        countAssembly()
        let exchange = HTTPExchange(self, number)
        switch body {
        case .inBytes(let range): http.handle(exchange, session.head, body: bytes.extracting(range))
        case .gathered(let whole): http.handle(exchange, session.head, body: whole.byteSpan)
        }
    }

    private func refuse(_ violation: HTTP1Violation) {
        owner.statistics.protocolErrors &+= 1
        writeLastReply(violation.status, violation.status.errorName, violation.text)
        close(.malformedRequest(violation.text))
    }

    /// A reply to no request, after which the connection ends.
    private func writeLastReply(_ status: HTTPStatus, _ name: String, _ text: String) {
        let reply = session.beginLastReply(http.fields(ofRefusal: session.headSoFar, isSecure: isSecure))
        var content = loop.takeWriter()
        HTTPError.append(status, name, text, to: &content)
        content.append(utf8: "\n")
        write(reply, status, contentType: HTTPError.contentType, content.bytes)
        loop.recycle(content)
        _ = session.endExchange(now: loop.nowMilliseconds)
    }

    // MARK: HTTPCarrier

    func openReply(_ number: UInt32) -> HTTPReply? { isOpen(number) ? session.reply(number) : nil }

    func writeWhole(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan) {
        write(reply, status, contentType: contentType, content)
        exchangeEnded()
    }

    private func write(_ reply: HTTPReply, _ status: HTTPStatus, contentType: String, _ content: RawSpan) {
        let date = date.text()
        channel.write { session.appendWhole(reply, status, contentType: contentType, content, date: date, to: &$0) }
    }

    func writePart(_ reply: HTTPReply, contentType: String, _ content: RawSpan, isLast: Bool) {
        let date = date.text()
        channel.write {
            session.appendPart(reply, contentType: contentType, content, isLast: isLast, date: date, to: &$0)
        }
        if isLast { exchangeEnded() }
    }

    private func exchangeEnded() {
        guard let stays = session.endExchange(now: loop.nowMilliseconds) else { return }
        // The next request, if it has come already, is read when the turn ends.
        if stays { channel.needsSettling() } else { close(.finished) }
    }

    // MARK: Calls

    package var isProxied: Bool { session.hasProxiedRequests || core.proxyHeader != nil }

    package func forwarding(_ stream: UInt32) -> Forwarding? {
        // The head is that of the one exchange, until its reply is whole.
        guard core.isTrustedProxy, session.reply(stream) != nil else { return core.forwarding }
        return core.forwarding(with: session.head.forwarding(trusting: core.configuration.trustedProxies))
    }

    package func authorization(_ stream: UInt32) -> String? { session.reply(stream)?.authorization }

    package func isOpen(_ stream: UInt32) -> Bool { !isOver && session.isOpen(stream) }

    package func beginMessage(_ stream: UInt32) -> ByteBuffer? { isOpen(stream) ? loop.takeWriter() : nil }

    package func abandonMessage(_ output: consuming ByteBuffer) { loop.recycle(output) }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        guard let reply = openReply(stream), let form = reply.form else { return loop.recycle(output) }
        endMessage(reply, form, output, isLast: isLast)
    }

    package func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String) {
        if let reply = session.reply(stream) { writeStatus(reply, code, text) }
    }

    /// One message at a time is all that HTTP/1.1 takes in.
    package func setPaused(_ stream: UInt32, _ isPaused: Bool) {}

    package var openCalls: Int { session.hasExchange ? 1 : 0 }
    package var openStreams: [UInt32] { session.openExchange.map { [$0] } ?? [] }
    package func park(_ stream: UInt32) -> Bool { isOpen(stream) }
    package func hasWindow(_ stream: UInt32) -> Bool { true }
    package func forget(_ stream: UInt32) -> Bool? { session.closeExchange(stream) }

    // MARK: Time limits and ending

    package var assemblyBytes: Int { session.assemblyBytes }
    package var lastReceivedAt: UInt64 { session.heardAt }

    package func timeoutReason(now: UInt64, limit: UInt64) -> String? { session.timeoutReason(now: now, limit: limit) }

    package func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) {
        if !session.hasExchange, code != .ok {
            writeLastReply(reason == .handshakeTimeout ? .requestTimeout : HTTPStatus(code), "\(code)", text)
        }
        close(reason)
    }

    package func drain() {
        guard !isOver else { return }
        session.drain()
        endIfDone()
    }

    /// Between exchanges: the connection ends, or what the client has sent ahead is read.
    package func endIfDone() {
        guard !isOver, !session.hasExchange else { return }
        if session.isDrained { return close(.finished) }
        channel.resumeInput()
    }
}
