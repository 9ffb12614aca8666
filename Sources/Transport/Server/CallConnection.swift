// What a connection does for the calls on it, whichever protocol it speaks: deadlines, streaming replies, what handlers leave
// with a call, the bytes of incomplete messages, time limits, and the orderly end.
//
// A subclass knows the frames: it takes bytes in, opens and ends calls, and puts messages and statuses into the output. Nothing
// here is touched by a call that is answered at once.
//
// Streaming replies are pulled: `produce` asks each ready source in turn, one message at a time, while the client's window and
// the channel have room.

import Basics
import DocumentModel

/// A connection that serves calls. Confined to its loop's thread.
class CallConnection: CallCarrier, ChannelDriver, TimerTarget, @unchecked Sendable {
    // Sendable: as CallCarrier says, confined to the loop.

    /// Output that the sources of one connection may produce before other connections have their turn.
    private static let bytesPerTurn = 256 << 10
    /// Token of the timer that looks after the connection; others are stream numbers.
    private static let housekeeping: UInt64 = 0

    final let channel: Channel
    final let handler: any ServiceHandler
    final let configuration: ServerConfiguration
    final let server: ServerLoop
    /// Loop time at which the connection was accepted.
    final let openedAt: UInt64
    private final let calls = Confined(Calls())
    private final var housekeepingTimer: EventLoop.Timer?

    init(channel: Channel, handler: any ServiceHandler, server: ServerLoop, peerAddress: String, openedAt: UInt64) {
        self.channel = channel
        self.handler = handler
        self.server = server
        configuration = server.configuration
        self.openedAt = openedAt
        super.init(loop: channel.loop, peerAddress: peerAddress)
    }

    private struct Calls {
        var isOver = false
        /// What is kept with calls that are not answered at once.
        var attachments = StreamTable<CallAttachment>()
        /// Streams whose sources are to be asked.
        var ready: [UInt32] = []
        var begun: UInt64 = 0
        /// Loop time before which slowness is not held against the client.
        var readsAgainAt: UInt64 = 0
        /// What the server's sum of incomplete messages holds of ours.
        var assemblyBytesCounted = 0
    }

    /// Whether the connection has ended or is about to; nothing is served on it any more.
    final var isOver: Bool { calls.state.isOver }

    /// Calls that came over this connection.
    final var callsBegun: UInt64 { calls.state.begun }

    final func countBegun() { calls.state.begun &+= 1 }

    private final var attachments: StreamTable<CallAttachment> {
        _read { yield calls.state.attachments }
        _modify { yield &calls.state.attachments }
    }

    // MARK: What a subclass says

    /// Bytes of messages of which parts are missing.
    var assemblyBytes: Int { mustOverride() }
    /// Calls that are not over.
    var openCalls: Int { mustOverride() }
    /// Their streams, in no order.
    var openStreams: [UInt32] { mustOverride() }

    /// Sees to it that the call is known by its number from now on; false when it is over.
    func park(_ stream: UInt32) -> Bool { mustOverride() }
    /// Forgets the call and what is attached to it.
    ///
    /// - Returns: whether the handler knows of the call; nil when it was over already.
    func forget(_ stream: UInt32) -> Bool? { mustOverride() }
    /// Ends a call that is forgotten already.
    func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String) { mustOverride() }
    /// Whether the client's window permits a message.
    func hasWindow(_ stream: UInt32) -> Bool { mustOverride() }
    /// The call's source has nothing to say for now.
    func replyWaits(_ stream: UInt32) {}
    /// A turn of asking sources has ended.
    func endIfDone() { mustOverride() }
    /// Ends the connection with a last word to the client.
    func end(_ reason: CloseReason, _ code: StatusCode, _ text: String) { mustOverride() }
    /// Why the client is too slow, if it is: it has begun something and does not go on.
    func slowness(now: UInt64, limit: UInt64) -> String? { mustOverride() }
    /// Loop time at which the client was last heard.
    var lastHeardAt: UInt64 { mustOverride() }

    func received(_ bytes: RawSpan) -> ReceiveProgress { mustOverride() }
    /// Takes no new calls, finishes those it has, and closes.
    func drain() { mustOverride() }

    /// Whether so much waits to be sent that no more should be made.
    var isCongested: Bool { channel.isCongested }
    /// Sends what has gathered, if it is worth a write before the turn ends.
    func flushIfDue() { if channel.outputIsDue { channel.flush() } }

    // MARK: Attachments

    /// What is attached to the call, for a change; nil when the call is over.
    private final func attach(_ stream: UInt32) -> Int? {
        guard !isOver, park(stream) else { return nil }
        return attachments.slot(of: stream) ?? attachments.insert(stream, CallAttachment())
    }

    /// Takes what is attached to a call that is over.
    final func detach(_ stream: UInt32) -> CallAttachment? {
        guard let attachment = attachments.remove(stream) else { return nil }
        if let timer = attachment.deadlineTimer { loop.cancel(timer) }
        return attachment
    }

    final override func context(_ stream: UInt32) -> AnyObject? {
        attachments.slot(of: stream).flatMap { attachments[slot: $0].context }
    }

    final override func setContext(_ stream: UInt32, _ context: AnyObject?) {
        guard let slot = attach(stream) else { return }
        attachments[slot: slot].context = context
    }

    // MARK: The life of a call

    override func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard !isOver, forget(stream) != nil else { return }
        let attachment = detach(stream)
        sendStatus(stream, code, message)
        attachment?.source?.cancelled()
    }

    /// Ends the call without the handler's doing, and tells it. The client is told by the caller.
    final func cancel(_ stream: UInt32, _ reason: CancellationReason) {
        guard let wasBegun = forget(stream) else { return }
        let attachment = detach(stream)
        attachment?.source?.cancelled()
        if wasBegun { handler.cancelled(Call(carrier: self, stream: stream), reason, context: attachment?.context) }
        channel.needsSettling()
    }

    final func refuse(_ stream: UInt32, _ refusal: Refusal) {
        configuration.onEvent(.callRefused(peer: peerAddress, refusal))
        cancel(stream, .refused(refusal))
        sendStatus(stream, refusal.code, refusal.description)
    }

    // MARK: Deadlines

    /// Starts the deadline of a call that is parked: its own, or the one of calls that bring none.
    final func armDeadline(_ stream: UInt32, _ milliseconds: UInt32?) {
        let byDefault = configuration.defaultDeadlineMilliseconds
        guard let milliseconds = milliseconds ?? (byDefault > 0 ? byDefault : nil) else { return }
        let slot = attachments.slot(of: stream) ?? attachments.insert(stream, CallAttachment())
        guard attachments[slot: slot].deadline == nil else { return }
        attachments[slot: slot].deadline = loop.nowMilliseconds + UInt64(milliseconds)
        attachments[slot: slot].deadlineTimer =
            loop.schedule(afterMilliseconds: UInt64(milliseconds), self, token: UInt64(stream))
    }

    final override func remainingMilliseconds(_ stream: UInt32) -> UInt64? {
        guard let slot = attach(stream), let deadline = attachments[slot: slot].deadline else { return nil }
        let now = loop.nowMilliseconds
        return deadline > now ? deadline - now : 0
    }

    final func timerFired(_ token: UInt64) {
        guard !isOver else { return }
        token == Self.housekeeping ? keepHouse() : deadlinePassed(UInt32(truncatingIfNeeded: token))
    }

    private final func deadlinePassed(_ stream: UInt32) {
        guard isOpen(stream) else { return }
        server.statistics.deadlinesExceeded &+= 1
        cancel(stream, .deadlineExceeded)
        sendStatus(stream, .deadlineExceeded, "the deadline of the call has passed")
    }

    // MARK: Streaming replies

    override func stream(_ stream: UInt32, _ source: any ResponseSource) {
        guard let slot = attach(stream) else { return source.cancelled() }
        precondition(attachments[slot: slot].source == nil, "a call has one source")
        attachments[slot: slot].source = source
        makeReady(stream)
    }

    final override func resume(_ stream: UInt32) {
        guard !isOver, let slot = attachments.slot(of: stream) else { return }
        if attachments[slot: slot].isWaiting {
            attachments[slot: slot].isWaiting = false
            makeReady(stream)
        } else {
            attachments[slot: slot].resumedEarly = true
        }
    }

    /// The call's source may be asked, if it has one.
    final func makeReady(_ stream: UInt32) {
        guard let slot = attachments.slot(of: stream), attachments[slot: slot].source != nil,
            !attachments[slot: slot].isReady, !attachments[slot: slot].isWaiting
        else { return }
        attachments[slot: slot].isReady = true
        calls.state.ready.append(stream)
        channel.needsSettling()
    }

    /// The same for every call: a window of them all has opened.
    final func makeAllReady() {
        for stream in attachments.streams { makeReady(stream) }
    }

    /// Asks the ready sources, one message each in turn.
    func produce() {
        var budget = Self.bytesPerTurn
        while !isOver, !calls.state.ready.isEmpty, budget > 0, !isCongested {
            let round = calls.state.ready
            calls.state.ready = []
            for (index, stream) in round.enumerated() {
                guard budget > 0, !isCongested, !isOver else {
                    calls.state.ready.append(contentsOf: round[index...])
                    break
                }
                budget -= ask(stream)
                flushIfDue()
            }
        }
        if !calls.state.ready.isEmpty, budget <= 0, !isCongested { channel.settleLater() }
        endIfDone()
    }

    /// Asks one source for one message, and returns how many bytes it made, at least one so that every question counts.
    private final func ask(_ stream: UInt32) -> Int {
        guard let slot = attachments.slot(of: stream), let source = attachments[slot: slot].source else { return 1 }
        attachments[slot: slot].isReady = false
        attachments[slot: slot].resumedEarly = false
        guard hasWindow(stream) else {
            // Whatever opens the window makes it ready again.
            if attachments[slot: slot].stalledSince == nil { attachments[slot: slot].stalledSince = loop.nowMilliseconds }
            return 1
        }
        attachments[slot: slot].stalledSince = nil
        guard var output = beginMessage(stream) else { return 1 }
        let start = output.count
        let step = source.next(into: &output)
        let size = output.count - start + 1
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

    private final func endSource(_ stream: UInt32, _ output: consuming WireWriter, _ code: StatusCode, _ message: String) {
        abandonMessage(output)
        dropSource(stream)
        finish(stream, code, message)
    }

    /// The source has ended by itself and is not to be told of the call's end.
    private final func dropSource(_ stream: UInt32) {
        guard let slot = attachments.slot(of: stream) else { return }
        attachments[slot: slot].source = nil
    }

    private final func wait(_ stream: UInt32) {
        guard let slot = attachments.slot(of: stream) else { return }
        if attachments[slot: slot].resumedEarly {
            makeReady(stream)
        } else {
            attachments[slot: slot].isWaiting = true
            replyWaits(stream)
        }
    }

    // MARK: Limits

    /// Adds the change of our incomplete messages to the server's sum, and leaves when that is too much.
    final func countAssembly() {
        let now = isOver ? 0 : assemblyBytes
        let change = now - calls.state.assemblyBytesCounted
        guard change != 0 else { return }
        calls.state.assemblyBytesCounted = now
        let limit = configuration.assemblyBytesTotalMax
        if server.shared.countAssembled(change) > limit, change > 0 {
            end(.tooManyIncompleteMessages, .resourceExhausted, "the server's incomplete messages exceed \(limit) bytes")
        }
    }

    /// Ends the connection if it is too slow or idle, else looks again when it could be.
    final func keepHouse() {
        let now = loop.nowMilliseconds
        let limit = configuration.headerMilliseconds
        // What is not read cannot arrive: a client whose connection is paused, because it does not read either, is given the time anew.
        if channel.isCongested { calls.state.readsAgainAt = now + limit }
        if now >= calls.state.readsAgainAt, let text = slowness(now: now, limit: limit) {
            return end(.tooSlowToSpeak, .deadlineExceeded, text)
        }
        let idle = configuration.idleMilliseconds
        if idle > 0, openCalls == 0, now - lastHeardAt >= idle { return end(.idle, .ok, "idle for \(idle) ms") }
        let stalled = configuration.stalledReplyMilliseconds
        if stalled > 0 { endStalledReplies(now: now, limit: stalled) }
        let pause = [limit, idle, stalled].filter { $0 > 0 }.min() ?? limit
        housekeepingTimer = loop.schedule(afterMilliseconds: pause, self, token: Self.housekeeping)
    }

    /// Ends the replies of which their clients have taken nothing for too long. What they hold would be held for ever: windows of
    /// HTTP/2 and of the native protocol can stay shut while the connection is alive.
    func endStalledReplies(now: UInt64, limit: UInt64) {
        for stream in attachments.streams {
            guard let slot = attachments.slot(of: stream), let since = attachments[slot: slot].stalledSince,
                now - since >= limit
            else { continue }
            server.statistics.repliesStalled &+= 1
            cancel(stream, .stalled)
            sendStatus(stream, .deadlineExceeded, "the client has not read this response for \(limit) ms")
        }
    }

    // MARK: The end

    /// Gives up the calls that are left, telling their clients, and closes.
    final func abandon() {
        guard !isOver else { return }
        for stream in openStreams {
            cancel(stream, .connectionClosed)
            sendStatus(stream, .unavailable, "the server is shutting down")
        }
        endIfDone()
    }

    final func close(_ reason: CloseReason) {
        over()
        channel.closeAfterFlush(reason)
    }

    final func channelClosed(_ reason: CloseReason) {
        over()
        server.connectionEnded(self, reason)
    }

    /// No call survives its connection.
    private final func over() {
        guard !isOver else { return }
        calls.state.isOver = true
        if let timer = housekeepingTimer { loop.cancel(timer) }
        for stream in openStreams { cancel(stream, .connectionClosed) }
        countAssembly()
        connectionOver()
    }

    /// The connection serves nothing any more: whatever the protocol holds for it may go.
    func connectionOver() {}
}
