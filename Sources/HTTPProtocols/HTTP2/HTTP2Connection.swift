// One HTTP/2 connection on the server: carries bytes between the channel and the session, and calls between the session
// and the handler. Other requests than gRPC calls go to the HTTP handler (HTTP2Connection+HTTP.swift).
//
// Answers gather in the session while a turn lasts; at its end, or when there is enough for a write, `transfer` has
// them framed into the channel's output.

package import Basics
import CNGHTTP2
package import Calls
package import Connections
package import EventLoops

package final class HTTP2Connection: CallConnection, HTTP2SessionDelegate, @unchecked Sendable {
    // Sendable: confined to the loop, as CallCarrier says.

    package let core: ConnectionCore
    package let carriesCredentials = true

    /// Received bytes that are taken before their answers are sent: some hundred requests.
    private static let sliceBytes = 16 << 10
    /// How long a client may take to show that it knows of a drain, by answering a PING.
    private static let drainNoticeMilliseconds: UInt64 = 1_000

    private(set) var session: HTTP2Session!
    /// Serves requests other than gRPC calls; nil where these are refused.
    let http: (any HTTPHandler)?
    let date: HTTPDate
    let holdsConnection = false
    private let hot: Confined<Hot>

    private struct Hot {
        var assemblyBytesSeen = 0
        /// What the server's sum of kept back bytes includes of ours.
        var keptBackBytesSeen = 0
        /// When answers that nobody takes were looked for.
        var stallsCheckedAt: UInt64
        /// nghttp2 is calling us: it cannot be asked to send.
        var isReceiving = false
        /// The connection is to end as soon as nghttp2 has returned.
        var ending: (CloseReason, StatusCode, String)?
        var drain = Drain.not
        /// The message being written belongs to an HTTP exchange.
        var isExchangeMessage = false
    }

    private enum Drain {
        case not
        /// The client has got the announcement of the end.
        case announced
        /// The client has got the number of the last stream.
        case begun
    }

    package init(_ core: ConnectionCore, rpcs: RPCTable, http: (any HTTPHandler)?, date: HTTPDate) {
        self.core = core
        self.http = http
        self.date = date
        hot = Confined(Hot(stallsCheckedAt: core.openedAt))
        var limits = core.configuration.http2
        limits.servesHTTP = http != nil
        if core.isTrustedProxy { limits.trustedProxies = core.configuration.trustedProxies }
        session = HTTP2Session(
            limits: limits, rpcs: rpcs, delegate: self, checksFields: !core.socket.isUnix, now: loop.nowMilliseconds)
        channel.needsSettling()
        enforceTimeouts()
    }

    package var assemblyBytes: Int { session.assemblyBytes }
    package var openCalls: Int { session.openCalls }
    package var openStreams: [UInt32] { session.openStreams }
    package var lastReceivedAt: UInt64 { session.lastFrameAt }

    // Every call uses these: here they need no way over the witness table of CallConnection.
    var channel: Channel { core.channel }
    var loop: EventLoop { core.loop }
    var isOver: Bool { core.state.isOver }

    // MARK: Incoming bytes

    package func received(_ bytes: RawSpan) -> ReceiveProgress {
        let now = loop.nowMilliseconds
        var offset = 0
        while offset < bytes.byteCount, !isOver {
            let next = min(offset + Self.sliceBytes, bytes.byteCount)
            hot.state.isReceiving = true
            let progress = session.receive(bytes.extracting(offset..<next), now: now)
            hot.state.isReceiving = false
            offset = next
            if case .failed(let reason) = progress { fail(reason) }
            if let (reason, code, text) = hot.state.ending { end(reason, code, text) }
            guard !isOver else { break }
            noteAssembly()
            if session.unsentBytes >= Channel.flushBytes { transfer() }
            // There is enough to write, or too much to continue: the channel decides, and calls again for the rest.
            if channel.outputIsDue || channel.isCongested || channel.isSliceOver { break }
        }
        channel.needsSettling()
        return ReceiveProgress(consumed: isOver ? bytes.byteCount : offset)
    }

    private func noteAssembly() {
        guard session.assemblyBytes != hot.state.assemblyBytesSeen else { return }
        hot.state.assemblyBytesSeen = session.assemblyBytes
        countAssembly()
    }

    /// Adds the change of what streams keep back here to the server's sum.
    private func noteKeptBack() {
        let now = isOver ? 0 : session.keptBackBytes
        guard now != hot.state.keptBackBytesSeen else { return }
        let sum = owner.countKeptBack(now - hot.state.keptBackBytesSeen)
        hot.state.keptBackBytesSeen = now
        session.mayKeepBack = sum <= configuration.http2KeptBackBytesTotalMax
    }

    package func connectionOver() { noteKeptBack() }

    // MARK: HTTP2SessionDelegate

    func begin(_ stream: UInt32, _ head: RequestHead, _ payload: RawSpan) {
        guard !isOver else { return }
        handler.begin(core.makeCall(stream, head, on: self), payload: payload)
        if session.isOpen(stream) { armDeadline(stream, head.deadlineMilliseconds) }
        if head.isComplete, head.rpc.shape == .bidirectional { halfClose(stream) }
    }

    func message(_ stream: UInt32, _ payload: RawSpan, isLast: Bool) {
        guard !isOver else { return }
        deliver(payload, to: stream)
        if isLast { halfClose(stream) }
    }

    func halfClosed(_ stream: UInt32) { if !isOver { halfClose(stream) } }

    func waits(_ stream: UInt32, _ head: RequestHead) { armDeadline(stream, head.deadlineMilliseconds) }

    func cancelled(_ stream: UInt32) { cancel(stream, .client) }

    func endedEmpty(_ stream: UInt32) { finish(stream, .ok, "") }

    func refused(_ stream: UInt32, _ refusal: Refusal) { refuse(stream, refusal) }

    func pingAcknowledged() { if hot.state.drain == .announced { beginDrain() } }

    func takeBuffer() -> ByteBuffer { loop.takeWriter() }
    func recycle(_ writer: consuming ByteBuffer) { loop.recycle(writer) }

    // MARK: Outgoing bytes

    package var isCongested: Bool { channel.isCongested || session.isCongested }

    package func flushIfDue() {
        guard session.unsentBytes >= Channel.flushBytes else { return }
        transfer()
        if channel.outputIsDue { channel.flush() }
    }

    private func transfer() {
        if session.wantsToSend || session.hasStaged { channel.transfer { session.send(into: &$0, upTo: $1) } }
        noteKeptBack()
    }

    package func produce() {
        guard !isOver else { return }
        transfer()
        if session.hasWaiting || session.isInflating || core.state.calls.hasReady, !isCongested { channel.needsWork() }
        endIfDone()
    }

    package func work() {
        guard !isOver else { return }
        inflateMessages()
        guard !isOver else { return }
        beginWaiting()
        produceReplies()
    }

    /// Inflates long messages for the present share of the loop.
    private func inflateMessages() {
        guard session.isInflating else { return }
        while session.isInflating, !isOver, !isCongested, !loop.isShareSpent {
            session.inflatePiece()
            loop.spend(0)
            flushIfDue()
        }
        noteAssembly()
        // `produce` asks for the next share.
        channel.needsSettling()
    }

    /// Begins calls that waited until answers before them were taken, for the present share of the loop.
    private func beginWaiting() {
        while session.hasWaiting, !isCongested, !loop.isShareSpent {
            let before = session.unsentBytes
            session.beginWaiting(atMost: 1)
            loop.spend(max(0, session.unsentBytes - before))
            flushIfDue()
        }
        noteAssembly()
    }

    // MARK: CallConnection

    package func park(_ stream: UInt32) -> Bool { session.isOpen(stream) }

    package func forget(_ stream: UInt32) -> Bool? { session.endCall(stream) }

    package func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String) {
        if let exchange = session.exchange(stream) { return sendStatus(exchange.reply, code, text) }
        session.submitStatus(stream, code, text)
        channel.needsSettling()
    }

    package func hasWindow(_ stream: UInt32) -> Bool { session.hasWindow(stream) }

    package func replyWaits(_ stream: UInt32) {
        // The head of an HTTP reply has the status, which a waiting call does not know.
        if session.exchange(stream) == nil { session.submitHead(stream) }
    }

    // MARK: CallCarrier

    package func isOpen(_ stream: UInt32) -> Bool { !isOver && session.isOpen(stream) }

    package func beginMessage(_ stream: UInt32) -> ByteBuffer? {
        guard isOpen(stream) else { return nil }
        hot.state.isExchangeMessage = session.exchange(stream) != nil
        return hot.state.isExchangeMessage ? loop.takeWriter() : session.openMessage()
    }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        if hot.state.isExchangeMessage {
            guard let reply = openReply(stream), let form = reply.form else { return loop.recycle(output) }
            return endMessage(reply, form, output, isLast: isLast)
        }
        session.endMessage(stream, output, isLast: isLast)
        if isLast { detach(stream) }
        channel.needsSettling()
    }

    package func abandonMessage(_ output: consuming ByteBuffer) {
        if hot.state.isExchangeMessage { return loop.recycle(output) }
        session.abandonMessage(output)
    }

    package func setPaused(_ stream: UInt32, _ isPaused: Bool) {
        guard !isOver else { return }
        session.setPaused(stream, isPaused)
        channel.needsSettling()
    }

    package var isProxied: Bool { session.hasProxiedRequests || core.proxyHeader != nil }

    package func forwarding(_ stream: UInt32) -> Forwarding? {
        guard core.isTrustedProxy, let fields = session.find(stream)?.state.forwarding else { return core.forwarding }
        return core.forwarding(with: fields)
    }

    package func authorization(_ stream: UInt32) -> String? {
        if let exchange = session.exchange(stream) { return exchange.reply.authorization }
        guard let bytes = session.find(stream)?.state.authorization, !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Time limits and ending

    package func timeoutReason(now: UInt64, limit: UInt64) -> String? {
        if !session.hasSettings, now - core.openedAt >= limit { return "no SETTINGS within \(limit) ms" }
        session.resetLingering(now: now, limit: limit)
        session.refuseLate(now: now, limit: limit)
        channel.needsSettling()
        return session.isLate(now: now, limit: limit) ? "a request did not arrive in time" : nil
    }

    package func dropStalledOutput(now: UInt64, limit: UInt64) {
        guard now - hot.state.stallsCheckedAt >= limit else { return }
        hot.state.stallsCheckedAt = now
        session.dropStalledAnswers()
        channel.needsSettling()
    }

    package func drain() {
        guard !isOver, hot.state.drain == .not else { return }
        hot.state.drain = .announced
        session.announceDrain()
        channel.needsSettling()
        loop.schedule(afterMilliseconds: Self.drainNoticeMilliseconds) { [weak self] in self?.beginDrain() }
    }

    private func beginDrain() {
        guard !isOver, hot.state.drain == .announced else { return }
        hot.state.drain = .begun
        session.submitGoAway(NGHTTP2_NO_ERROR, "the server is draining")
        channel.needsSettling()
    }

    package func endIfDone() {
        guard !isOver else { return }
        transfer()
        let isLeaving = hot.state.drain == .begun || session.clientLeaves
        if session.isFinished, !isLeaving {
            // nghttp2 has sent a GOAWAY with the reason.
            owner.statistics.protocolErrors &+= 1
            return close(.http2(session.failure ?? "a violation of HTTP/2"))
        }
        guard isLeaving, session.streamCount == 0, !session.wantsToSend else { return }
        close(.finished)
    }

    private func fail(_ reason: String) {
        owner.statistics.protocolErrors &+= 1
        transfer()
        close(.http2(reason))
    }

    package func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) {
        guard !hot.state.isReceiving else { return hot.state.ending = (reason, code, text) }
        session.submitGoAway(code == .ok ? NGHTTP2_NO_ERROR : NGHTTP2_ENHANCE_YOUR_CALM, text)
        transfer()
        close(reason)
    }
}
