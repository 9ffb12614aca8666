// One connection of the native protocol on the server: performs what the session decides.
//
// Bytes ──▶ FrameDecoder ──▶ ServerSession ──action──▶ perform ──▶ handler.begin ──▶ call.respond ──▶ channel's output
//
// A call that is answered inside `begin` touches no table, timer or heap. What is answered later is parked in the session.
// Streaming replies are pulled: `produce` asks each ready source in turn, one message at a time, while the client's window and
// the channel have room.

import DocumentModel

final class ServerConnection: CallCarrier, ChannelDriver, TimerTarget, @unchecked Sendable {
    // Sendable: as CallCarrier says, confined to the loop.

    /// Output that the sources of one connection may produce before other connections have their turn.
    private static let bytesPerTurn = 256 << 10
    /// Token of the timer that looks after the connection; others are stream numbers.
    private static let housekeeping: UInt64 = 0

    let channel: Channel
    private let handler: any ServiceHandler
    private let configuration: ServerConfiguration
    private let server: ServerLoop
    private let hot: Confined<Hot>
    private let frameBytesMax: Int

    private let openedAt: UInt64
    private var housekeepingTimer: EventLoop.Timer?

    init(channel: Channel, handler: any ServiceHandler, server: ServerLoop, peerAddress: String, openedAt: UInt64) {
        self.channel = channel
        self.handler = handler
        self.server = server
        configuration = server.configuration
        let limits = server.configuration.session
        frameBytesMax = Int(limits.settings.frameBytesMax)
        self.openedAt = openedAt
        hot = Confined(Hot(session: ServerSession(limits: limits), lastFrameAt: openedAt))
        super.init(loop: channel.loop, peerAddress: peerAddress)
        channel.write { limits.settings.appendHello(to: &$0) }
        keepHouse()
    }

    /// What every call touches.
    private struct Hot {
        var session: ServerSession
        /// Where the message being written has its header.
        var messageStart = 0
        var lastFrameAt: UInt64
        /// When the frame that is still incomplete began.
        var partialSince: UInt64?
        var isOver = false
        /// Streams whose sources are to be asked.
        var ready: [UInt32] = []
        var callsBegun: UInt64 = 0
        /// What the server's sum of incomplete messages holds of ours.
        var assemblyBytesCounted = 0
    }

    private var session: ServerSession {
        _read { yield hot.state.session }
        _modify { yield &hot.state.session }
    }

    private var isOver: Bool { hot.state.isOver }

    /// Calls that came over this connection.
    var callsBegun: UInt64 { hot.state.callsBegun }

    // MARK: Frames in

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        hot.state.lastFrameAt = loop.nowMilliseconds
        var offset = 0
        while !isOver {
            switch FrameDecoder.scan(bytes, at: offset, payloadBytesMax: frameBytesMax) {
            case .frame(let header):
                let start = offset + FrameHeader.byteCount
                offset = start + Int(header.length)
                take(header, bytes.extracting(start..<offset))
                // Full enough to write, or too full to go on: the channel decides, and comes back with the rest.
                if channel.outputIsDue || channel.isCongested {
                    hot.state.partialSince = nil
                    return ReceiveProgress(consumed: offset)
                }
            case .incomplete(let needed):
                notePartialFrame(isPresent: offset < bytes.byteCount, isNew: offset > 0)
                return ReceiveProgress(consumed: offset, bytesNeeded: needed)
            case .tooLarge(let header):
                fail(.frameTooLarge(length: header.length, max: frameBytesMax))
            }
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func notePartialFrame(isPresent: Bool, isNew: Bool) {
        guard isPresent else { return hot.state.partialSince = nil }
        if isNew || hot.state.partialSince == nil { hot.state.partialSince = hot.state.lastFrameAt }
    }

    @inline(__always)
    private func take(_ header: FrameHeader, _ payload: RawSpan) {
        switch session.receive(header, payload) {
        case .nothing, .opened, .pongReceived: break
        case .begin(let stream, let head, let place): begin(stream, head, place, payload)
        case .message(let stream, let place, let isLast): message(stream, place, isLast, payload)
        case .halfClosed(let stream): handler.halfClosed(Call(carrier: self, stream: stream))
        case .cancelled(let stream): cancel(stream, .client)
        case .windowOpened(let stream): makeReady(stream)
        case .pong(let opaque): channel.write { $0.appendPing(.pong, opaque) }
        case .refuse(let stream, let refusal): refuse(stream, refusal)
        case .clientLeaves: channel.needsSettling()
        case .fail(let violation): fail(violation)
        }
        if session.assemblyBytes != hot.state.assemblyBytesCounted { countAssembly() }
    }

    /// Adds the change of our incomplete messages to the server's sum, and leaves when that is too much.
    private func countAssembly() {
        let now = isOver ? 0 : session.assemblyBytes
        let change = now - hot.state.assemblyBytesCounted
        hot.state.assemblyBytesCounted = now
        let limit = configuration.assemblyBytesTotalMax
        if server.shared.countAssembled(change) > limit, change > 0 {
            end(.tooManyIncompleteMessages, .resourceExhausted, "the server's incomplete messages exceed \(limit) bytes")
        }
    }

    private func begin(_ stream: UInt32, _ head: RequestHead, _ place: MessageBytes, _ payload: RawSpan) {
        hot.state.callsBegun &+= 1
        let call = Call(carrier: self, stream: stream)
        switch place {
        case .inFrame(let offset):
            handler.begin(call, head, payload: payload.extracting(droppingFirst: offset))
        case .assembled:
            if let slot = session.streams.slot(of: stream) { armDeadline(slot, stream) }
            let message = session.assembled
            handler.begin(call, head, payload: unsafe message.span.bytes)
        }
        if session.current != 0 { _ = park(stream) }
    }

    private func message(_ stream: UInt32, _ place: MessageBytes, _ isLast: Bool, _ payload: RawSpan) {
        let call = Call(carrier: self, stream: stream)
        switch place {
        case .inFrame: handler.message(call, payload: payload)
        case .assembled:
            let message = session.assembled
            handler.message(call, payload: unsafe message.span.bytes)
        }
        if isLast {
            if isOpen(stream) { handler.halfClosed(call) }
        } else {
            permitMore(stream)
        }
    }

    private func permitMore(_ stream: UInt32) {
        guard let bytes = session.creditDue(stream) else { return }
        channel.write { $0.appendWindow(bytes, stream: stream) }
    }

    // MARK: The life of a call

    /// Gives the call a place in the table and starts its deadline; nil when it is over.
    private func park(_ stream: UInt32) -> Int? {
        let isNew = stream == session.current
        guard let slot = session.park(stream) else { return nil }
        if isNew { armDeadline(slot, stream) }
        return slot
    }

    private func armDeadline(_ slot: Int, _ stream: UInt32) {
        var milliseconds = session.streams[slot: slot].head.deadlineMilliseconds
        if milliseconds == nil, configuration.defaultDeadlineMilliseconds > 0 {
            milliseconds = configuration.defaultDeadlineMilliseconds
        }
        guard let milliseconds else { return }
        session.streams[slot: slot].attachment.deadline = loop.nowMilliseconds + UInt64(milliseconds)
        session.streams[slot: slot].attachment.deadlineTimer =
            loop.schedule(afterMilliseconds: UInt64(milliseconds), self, token: UInt64(stream))
    }

    /// Takes the call out; nil when it is over already.
    private func release(_ stream: UInt32) -> CallAttachment?? {
        guard let finished = session.finish(stream) else { return nil }
        if let timer = finished.attachment?.deadlineTimer { loop.cancel(timer) }
        return .some(finished.attachment)
    }

    /// Ends the call without the handler's doing, and tells it.
    private func cancel(_ stream: UInt32, _ reason: CancellationReason) {
        let wasBegun = session.streams.slot(of: stream).map { session.streams[slot: $0].hasBegun } ?? false
        guard let attachment = release(stream) else { return }
        attachment?.source?.cancelled()
        if wasBegun { handler.cancelled(Call(carrier: self, stream: stream), reason, context: attachment?.context) }
        if session.drainsAfter != nil { channel.needsSettling() }
    }

    private func refuse(_ stream: UInt32, _ refusal: Refusal) {
        configuration.onEvent(.callRefused(peer: peerAddress, refusal))
        cancel(stream, .refused(refusal))
        channel.write { $0.appendStatus(refusal.code, refusal.description, stream: stream) }
    }

    // MARK: CallCarrier

    override func isOpen(_ stream: UInt32) -> Bool { !isOver && session.isOpen(stream) }

    override func beginMessage(_ stream: UInt32) -> WireWriter? {
        guard isOpen(stream) else { return nil }
        return openMessage()
    }

    private func openMessage() -> WireWriter {
        var output = channel.takeOutput()
        hot.state.messageStart = output.count
        output.append(FrameHeader(length: 0, kind: .message))
        return output
    }

    override func endMessage(_ stream: UInt32, _ output: consuming WireWriter, isLast: Bool) {
        let length = output.count - hot.state.messageStart - FrameHeader.byteCount
        precondition(length >= 0, "a message's writer only appends")
        guard length <= Int(session.peer.messageBytesMax) else {
            abandonMessage(output)
            return finish(
                stream, .resourceExhausted,
                "the reply of \(length) bytes exceeds the client's limit of \(session.peer.messageBytesMax)")
        }
        output.finishMessage(
            at: hot.state.messageStart, FrameHeader(length: length, kind: .message, flags: isLast ? .endStream : [], stream: stream),
            frameBytesMax: Int(session.peer.frameBytesMax))
        channel.putOutput(output)
        if isLast {
            if !session.finishCurrent(stream) { _ = release(stream) }
        } else if let slot = park(stream) {
            session.streams[slot: slot].sendWindow.consume(length)
        }
    }

    override func abandonMessage(_ output: consuming WireWriter) {
        output.truncate(to: hot.state.messageStart)
        channel.putOutput(output)
    }

    override func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard !isOver, let attachment = release(stream) else { return }
        channel.write { $0.appendStatus(code, message, stream: stream) }
        attachment?.source?.cancelled()
    }

    override func stream(_ stream: UInt32, _ source: any ResponseSource) {
        guard !isOver, let slot = park(stream) else { return source.cancelled() }
        precondition(session.streams[slot: slot].attachment.source == nil, "a call has one source")
        session.streams[slot: slot].attachment.source = source
        makeReady(stream)
    }

    override func resume(_ stream: UInt32) {
        guard !isOver, let slot = session.streams.slot(of: stream) else { return }
        if session.streams[slot: slot].attachment.isWaiting {
            session.streams[slot: slot].attachment.isWaiting = false
            makeReady(stream)
        } else {
            session.streams[slot: slot].attachment.resumedEarly = true
        }
    }

    override func context(_ stream: UInt32) -> AnyObject? {
        session.streams.slot(of: stream).flatMap { session.streams[slot: $0].attachment.context }
    }

    override func setContext(_ stream: UInt32, _ context: AnyObject?) {
        guard !isOver, let slot = park(stream) else { return }
        session.streams[slot: slot].attachment.context = context
    }

    override func setHeld(_ stream: UInt32, _ isHeld: Bool) {
        guard !isOver, let slot = park(stream) else { return }
        session.streams[slot: slot].isHeld = isHeld
        if !isHeld { permitMore(stream) }
    }

    override func remainingMilliseconds(_ stream: UInt32) -> UInt64? {
        guard !isOver, let slot = park(stream), let deadline = session.streams[slot: slot].attachment.deadline else { return nil }
        let now = loop.nowMilliseconds
        return deadline > now ? deadline - now : 0
    }

    // MARK: Streaming replies

    private func makeReady(_ stream: UInt32) {
        guard let slot = session.streams.slot(of: stream), session.streams[slot: slot].attachment.source != nil,
            !session.streams[slot: slot].attachment.isReady, !session.streams[slot: slot].attachment.isWaiting
        else { return }
        session.streams[slot: slot].attachment.isReady = true
        hot.state.ready.append(stream)
        channel.needsSettling()
    }

    /// Asks the ready sources, one message each in turn.
    func produce() {
        var budget = Self.bytesPerTurn
        while !isOver, !hot.state.ready.isEmpty, budget > 0, !channel.isCongested {
            let round = hot.state.ready
            hot.state.ready = []
            for (index, stream) in round.enumerated() {
                guard budget > 0, !channel.isCongested, !isOver else {
                    hot.state.ready.append(contentsOf: round[index...])
                    break
                }
                budget -= ask(stream)
                if channel.outputIsDue { channel.flush() }
            }
        }
        if !hot.state.ready.isEmpty, budget <= 0, !channel.isCongested { channel.settleLater() }
        endIfDone()
    }

    /// Asks one source for one message, and returns how many bytes it made, at least one so that every question counts.
    private func ask(_ stream: UInt32) -> Int {
        guard let slot = session.streams.slot(of: stream), let source = session.streams[slot: slot].attachment.source else {
            return 1
        }
        session.streams[slot: slot].attachment.isReady = false
        session.streams[slot: slot].attachment.resumedEarly = false
        // WINDOW will make it ready again.
        guard session.streams[slot: slot].sendWindow.isOpen else { return 1 }
        var output = openMessage()
        let step = source.next(into: &output)
        let size = output.count - hot.state.messageStart
        // The source may have ended its own call.
        guard isOpen(stream) else {
            abandonMessage(output)
            return size
        }
        switch step {
        case .message:
            endMessage(stream, output, isLast: false)
            makeReady(stream)
        case .lastMessage:
            dropSource(stream)
            endMessage(stream, output, isLast: true)
        case .finished: endSource(stream, output, .ok, "")
        case .failed(let code, let message): endSource(stream, output, code, message)
        case .waiting:
            abandonMessage(output)
            wait(stream)
        }
        return size
    }

    private func endSource(_ stream: UInt32, _ output: consuming WireWriter, _ code: StatusCode, _ message: String) {
        abandonMessage(output)
        dropSource(stream)
        finish(stream, code, message)
    }

    /// The source has ended by itself and is not to be told of the call's end.
    private func dropSource(_ stream: UInt32) {
        guard let slot = session.streams.slot(of: stream) else { return }
        session.streams[slot: slot].attachment.source = nil
    }

    private func wait(_ stream: UInt32) {
        guard let slot = session.streams.slot(of: stream) else { return }
        if session.streams[slot: slot].attachment.resumedEarly {
            makeReady(stream)
        } else {
            session.streams[slot: slot].attachment.isWaiting = true
        }
    }

    // MARK: Time

    func timerFired(_ token: UInt64) {
        guard !isOver else { return }
        token == Self.housekeeping ? keepHouse() : deadlinePassed(UInt32(truncatingIfNeeded: token))
    }

    private func deadlinePassed(_ stream: UInt32) {
        guard session.streams.contains(stream) else { return }
        server.statistics.deadlinesExceeded &+= 1
        cancel(stream, .deadlineExceeded)
        channel.write { $0.appendStatus(.deadlineExceeded, "the deadline of the call has passed", stream: stream) }
    }

    /// Ends the connection if it is too slow or idle, else looks again when it could be.
    private func keepHouse() {
        let now = loop.nowMilliseconds
        let limit = configuration.headerMilliseconds
        if !session.isOpen, now - openedAt >= limit {
            return end(.tooSlowToSpeak, .deadlineExceeded, "no HELLO within \(limit) ms")
        }
        if let partialSince = hot.state.partialSince, now - partialSince >= limit {
            return end(.tooSlowToSpeak, .deadlineExceeded, "a frame did not end within \(limit) ms")
        }
        if session.assemblyBytes > 0, now - hot.state.lastFrameAt >= limit {
            return end(.tooSlowToSpeak, .deadlineExceeded, "a message in parts did not go on within \(limit) ms")
        }
        let idle = configuration.idleMilliseconds
        if idle > 0, session.openCalls == 0, now - hot.state.lastFrameAt >= idle {
            return end(.idle, .ok, "idle for \(idle) ms")
        }
        let pause = idle > 0 ? min(limit, idle) : limit
        housekeepingTimer = loop.schedule(afterMilliseconds: pause, self, token: Self.housekeeping)
    }

    // MARK: The end

    /// Takes no new calls, finishes those it has, and closes.
    func drain() {
        guard !isOver, session.drainsAfter == nil else { return }
        let last = session.drain()
        channel.write { $0.appendGoAway(.ok, "the server is draining", lastStream: last) }
    }

    /// Gives up the calls that are left, telling their clients, and closes.
    func abandon() {
        guard !isOver else { return }
        for stream in session.streams.streams {
            cancel(stream, .connectionClosed)
            channel.write { $0.appendStatus(.unavailable, "the server is shutting down", stream: stream) }
        }
        endIfDone()
    }

    private func endIfDone() {
        guard !isOver, session.drainsAfter != nil || session.clientLeaves, session.openCalls == 0 else { return }
        close(.finished)
    }

    private func fail(_ violation: ProtocolViolation) {
        server.statistics.protocolErrors &+= 1
        end(.violation(violation), violation.code, violation.description)
    }

    private func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) {
        channel.write { $0.appendGoAway(code, text, lastStream: session.lastStream) }
        close(reason)
    }

    private func close(_ reason: CloseReason) {
        over()
        channel.closeAfterFlush(reason)
    }

    func channelClosed(_ reason: CloseReason) {
        over()
        server.connectionEnded(self, reason)
    }

    /// No call survives its connection.
    private func over() {
        guard !isOver else { return }
        hot.state.isOver = true
        if let timer = housekeepingTimer { loop.cancel(timer) }
        for stream in session.streams.streams { cancel(stream, .connectionClosed) }
        countAssembly()
    }
}
