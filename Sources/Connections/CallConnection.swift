package import Basics
package import Calls
package import EventLoops

/// A connection of a server: a ``ConnectionCore``, a session machine of its protocol, and the code that joins them.
///
/// A protocol's connection says what the requirements ask. The extensions are the same for all protocols: the life of
/// a call (here), streaming replies (`CallConnection+Streaming.swift`), limits and the end
/// (`CallConnection+Limits.swift`). A call with an immediate reply touches none of them. Confined to its
/// loop's thread.
package protocol CallConnection: CallCarrier, ChannelDriver, TimerTarget {
    var core: ConnectionCore { get }

    // MARK: Calls

    /// Calls that are not over.
    var openCalls: Int { get }
    /// Their streams, in no order.
    var openStreams: [UInt32] { get }
    /// Makes the call findable by its number from now on; false when it is over.
    func park(_ stream: UInt32) -> Bool
    /// Forgets the call.
    ///
    /// - Returns: whether the handler knows of the call; nil when it was over already.
    func forget(_ stream: UInt32) -> Bool?
    /// Ends a call, which is forgotten already, for the client.
    func sendStatus(_ stream: UInt32, _ code: StatusCode, _ text: String)
    /// Whether the client's window permits a message.
    func hasWindow(_ stream: UInt32) -> Bool
    /// The call's source has nothing for now.
    func replyWaits(_ stream: UInt32)

    // MARK: Output

    /// Whether so much waits to be sent that no more should be made.
    var isCongested: Bool { get }
    /// Sends what has gathered, if it is worth a write before the turn ends.
    func flushIfDue()

    // MARK: Time limits and ending

    /// Loop time at which the client was last heard.
    var lastReceivedAt: UInt64 { get }
    /// Bytes of messages of which parts are missing.
    var assemblyBytes: Int { get }
    /// Why the client is too slow, if it is: it has begun something and does not continue.
    func timeoutReason(now: UInt64, limit: UInt64) -> String?
    /// Gives up output of calls that are over and that nobody takes.
    func dropStalledOutput(now: UInt64, limit: UInt64)
    /// Takes no new calls, finishes those it has, and closes.
    func drain()
    /// Closes if it drains and its last call is over.
    func endIfDone()
    /// Ends the connection with a last message to the client.
    func end(_ reason: CloseReason, _ code: StatusCode, _ text: String)
    /// The connection serves nothing any more: what the protocol holds for it may go.
    func connectionOver()
}

extension CallConnection {
    package var isCongested: Bool { channel.isCongested }
    package func flushIfDue() { if channel.outputIsDue { channel.flush() } }
    package func replyWaits(_ stream: UInt32) {}
    package func dropStalledOutput(now: UInt64, limit: UInt64) {}
    package func connectionOver() {}

    package var channel: Channel { core.channel }
    package var loop: EventLoop { core.loop }
    package var handler: any ServiceHandler { core.handler }
    /// Lent: a copy of the whole would cost more than what most of its readers do.
    package var configuration: ServerConfiguration { _read { yield core.configuration } }
    package var owner: any ConnectionOwner { core.owner }
    package var loopThread: any LoopThread { core.loop }
    package var peerAddress: String { core.peerAddress }
    package var isLocal: Bool { core.socket == .administration }
    package var isLoopback: Bool { core.isLoopback }
    package var certificateNames: [String] { core.certificateNames }
    package var address: NetworkAddress? { core.address }
    package func endConnection() { loop.execute { [weak self] in self?.drain() } }
    package var isProxied: Bool { core.proxyHeader != nil }
    package func forwarding(_ stream: UInt32) -> Forwarding? { core.forwarding }

    /// Whether the connection has ended or is about to.
    package var isOver: Bool { core.state.isOver }

    package var connectionContext: AnyObject? {
        get { core.state.connectionContext }
        set { core.state.connectionContext = newValue }
    }

    // MARK: Lifetime of a call

    /// Counts a call, which begins now.
    package func makeCall(_ stream: UInt32, _ head: RequestHead) -> Call { core.makeCall(stream, head, on: self) }

    /// Hands on a further message of a call.
    package func deliver(_ message: RawSpan, to stream: UInt32) {
        guard let receiver = core.state.calls.receiver(of: stream) else {
            return finish(stream, .unimplemented, "this method accepts exactly one message")
        }
        receiver.received(message)
    }

    /// The client sends no more messages on a bidirectional call.
    package func halfClose(_ stream: UInt32) { core.state.calls.receiver(of: stream)?.halfClosed() }

    package func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard !isOver, forget(stream) != nil else { return }
        let source = detach(stream)
        sendStatus(stream, code, message)
        source?.cancelled()
    }

    /// Takes what is kept with a call that is over; returns its source, if that has not ended.
    @discardableResult
    package func detach(_ stream: UInt32) -> (any ResponseSource)? {
        guard let ended = core.state.calls.remove(stream) else { return nil }
        if let timer = ended.timer { loop.cancel(timer) }
        return ended.source
    }

    /// Ends a call that the handler has not ended, and informs the handler. The caller informs the client.
    package func cancel(_ stream: UInt32, _ reason: CancellationReason) {
        guard let wasBegun = forget(stream) else { return }
        detach(stream)?.cancelled()
        if wasBegun { handler.abandoned(reason) }
        channel.needsSettling()
    }

    package func refuse(_ stream: UInt32, _ refusal: Refusal) {
        configuration.onEvent(.callRefused(peer: peerAddress, refusal))
        cancel(stream, .refused(refusal))
        sendStatus(stream, refusal.code, refusal.description)
    }

    // MARK: Deadlines

    /// Starts the deadline of a parked call: its own, or the one of calls that bring none.
    package func armDeadline(_ stream: UInt32, _ milliseconds: UInt32?) {
        let byDefault = core.configuration.defaultDeadlineMilliseconds
        guard let milliseconds = milliseconds ?? (byDefault > 0 ? byDefault : nil),
            core.state.calls.deadline(of: stream) == nil
        else { return }
        let timer = loop.schedule(afterMilliseconds: UInt64(milliseconds), self, token: UInt64(stream))
        let at = loop.nowMilliseconds + UInt64(milliseconds)
        core.state.calls.setDeadline(of: stream, CallTable.Deadline(at: at, timer: timer))
    }

    package func remainingMilliseconds(_ stream: UInt32) -> UInt64? {
        guard !isOver, park(stream), let deadline = core.state.calls.deadline(of: stream) else { return nil }
        let now = loop.nowMilliseconds
        return deadline.at > now ? deadline.at - now : 0
    }

    func deadlinePassed(_ stream: UInt32) {
        guard isOpen(stream) else { return }
        owner.statistics.deadlinesExceeded &+= 1
        cancel(stream, .deadlineExceeded)
        sendStatus(stream, .deadlineExceeded, "the deadline of the call has passed")
    }
}
