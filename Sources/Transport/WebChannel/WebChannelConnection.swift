package import Basics

/// What the request that opens a session says about its page.
package struct WebChannelOrigin: Sendable {
    /// The name of the database from the URL; empty without one.
    let database: String
    /// The `authorization` of the page; nil without one, and if it is not kept.
    let authorization: String?

    package init(database: String, authorization: String?) {
        self.database = database
        self.authorization = authorization
    }
}

/// One WebChannel session: a bidirectional call whose messages travel as JSON in many HTTP requests.
///
/// The session lives on the loop of the request that opened it, its home (docs/decisions/0014). Requests that arrive
/// on other loops are handed to it. Members are for the thread of ``loop``, if they do not say otherwise; ``loop``,
/// ``identifier`` and ``rpc`` never change.
package final class WebChannelConnection: TimerTarget, @unchecked Sendable {
    // Sendable: references are passed between threads, state is used on the home loop's thread only.

    package let loop: EventLoop
    package let peerAddress: String
    package let identifier: String
    package let rpc: RPC
    package var connectionContext: AnyObject?

    private let service: any WebChannelService
    private unowned let table: WebChannelTable
    private let origin: WebChannelOrigin
    var session: WebChannelSession
    private var backChannel: WebChannelBackChannel?
    private var timer: (due: UInt64, timer: EventLoop.Timer)?
    /// What the table's sum of bytes includes of ours.
    private var countedBytes = 0
    private var isOver = false

    /// The one call of a session.
    private struct OpenCall {
        var source: (any ResponseSource)?
        var receiver: (any CallStream)?
        /// The source has nothing, until `resume`.
        var isWaiting = false
        /// The service asks the page to stop; messages wait.
        var isHeld = false
    }

    private var call: OpenCall?
    private var hasBegun = false
    /// Whether the service has the call and has not ended it.
    package var hasCall: Bool { call != nil }
    private var isDelivering = false
    private var isProductionDue = false

    /// The number of the one call.
    private static let stream: UInt32 = 1
    /// Output that the source may produce before other work of the loop has its turn.
    private static let bytesPerTurn = 256 << 10

    init(
        _ identifier: String, _ rpc: RPC, _ service: any WebChannelService, in table: WebChannelTable, loop: EventLoop,
        peerAddress: String, _ origin: WebChannelOrigin
    ) {
        self.identifier = identifier
        self.rpc = rpc
        self.service = service
        self.table = table
        self.loop = loop
        self.peerAddress = peerAddress
        self.origin = origin
        session = WebChannelSession(limits: table.limits, now: loop.nowMilliseconds)
    }

    func start() { settle() }

    // MARK: Requests of the page

    /// The body of the response that opens the session.
    package var handshake: [UInt8] {
        WebChannelFrame.handshake(identifier, keepAliveMilliseconds: table.limits.keepAliveMilliseconds)
    }

    /// Takes the messages of a POST. On the thread of the loop of `exchange`.
    ///
    /// - Parameter reply: called on that thread with the body of the response; with nil if the session has ended.
    package func receive(
        _ post: WebChannelPost, acknowledged: UInt64?, for exchange: HTTPExchange,
        _ reply: @escaping @Sendable ([UInt8]?) -> Void
    ) {
        guard !loop.isCurrent else { return reply(receive(post, acknowledged: acknowledged)) }
        loop.execute { [self] in
            let body = receive(post, acknowledged: acknowledged)
            exchange.loop.execute { reply(body) }
        }
    }

    private func receive(_ post: WebChannelPost, acknowledged: UInt64?) -> [UInt8]? {
        guard accept(acknowledged) else { return nil }
        do throws(RequestError) {
            try session.receive(post.messages, from: post.offset, now: loop.nowMilliseconds)
        } catch {
            fail(error)
        }
        let reply = session.reply()
        deliver()
        settle()
        return reply
    }

    /// Makes a GET the back channel, which replaces the one that is open. On the thread of the loop of `exchange`.
    ///
    /// - Parameter holdMilliseconds: of a long poll; nil for a streaming response.
    package func openBackChannel(_ exchange: HTTPExchange, holdMilliseconds: UInt64?, acknowledged: UInt64) {
        // It lasts as long as the page likes.
        let call = exchange.beginCall(rpc, WebChannelForm(), deadlineMilliseconds: .max)
        let next = WebChannelBackChannel(call, of: self)
        call.stream(next)
        onHomeLoop { [self] in
            if open(next, holdMilliseconds: holdMilliseconds, acknowledged: acknowledged) { return }
            next.refuse(.unknownSession)
        }
    }

    private func open(_ next: WebChannelBackChannel, holdMilliseconds: UInt64?, acknowledged: UInt64) -> Bool {
        guard accept(acknowledged) else { return false }
        backChannel?.send([], isLast: true)
        backChannel = next
        session.openBackChannel(after: acknowledged, holdMilliseconds: holdMilliseconds, now: loop.nowMilliseconds)
        settle()
        return true
    }

    /// The connection of a back channel is gone; on the thread of its loop.
    func backChannelIsGone(_ gone: WebChannelBackChannel) {
        onHomeLoop { [self] in
            guard backChannel === gone else { return }
            backChannel = nil
            session.closeBackChannel(now: loop.nowMilliseconds)
            settle()
        }
    }

    private func onHomeLoop(_ work: @escaping @Sendable () -> Void) {
        loop.isCurrent ? work() : loop.execute(work)
    }

    /// The page has left; from any thread.
    package func terminate() { onHomeLoop { [self] in close(.client) } }

    /// Whether the session is open and has sent what the page says it has.
    private func accept(_ acknowledged: UInt64?) -> Bool {
        guard !isOver else { return false }
        if let acknowledged, !session.acknowledge(acknowledged, now: loop.nowMilliseconds) { return false }
        if session.isFinished { close(.client) }
        if !isOver { produceLater() }
        return !isOver
    }

    // MARK: Messages to the service

    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        defer { isDelivering = false }
        while !isOver, call?.isHeld != true, !session.isEnded, let json = session.takeMessage() {
            var message = loop.takeWriter()
            if !hasBegun { service.appendDatabase(origin.database, to: &message) }
            do throws(RequestError) {
                try service.appendMessage(json.byteSpan, to: &message)
                deliver(message.bytes)
            } catch {
                fail(error)
            }
            loop.giveBack(message)
        }
    }

    private func deliver(_ message: RawSpan) {
        if hasBegun {
            guard let receiver = call?.receiver else {
                return finish(Self.stream, .unimplemented, "this method accepts exactly one message")
            }
            return receiver.received(message)
        }
        hasBegun = true
        call = OpenCall()
        let head = RequestHead(rpc: rpc, isComplete: false)
        service.begin(
            Call(carrier: self, stream: Self.stream, head: head, begunAt: loop.turnNanoseconds), message)
    }

    // MARK: The call's messages

    /// Asks the source after the current work of the loop: several messages then leave in one frame.
    private func produceLater() {
        guard !isProductionDue, let call, call.source != nil, !call.isWaiting else { return }
        isProductionDue = true
        loop.execute { [self] in
            isProductionDue = false
            produce()
            settle()
        }
    }

    private func produce() {
        var budget = Self.bytesPerTurn
        while session.hasRoom, let source = call?.source, call?.isWaiting == false {
            guard budget > 0 else { return produceLater() }
            // A `resume` from within `next` sets it to false again.
            call?.isWaiting = true
            var output = loop.takeWriter()
            let step = source.next(into: &output)
            budget -= output.count + 1
            guard call != nil else { return loop.giveBack(output) }
            switch step {
            case .message:
                call?.isWaiting = false
                endMessage(Self.stream, output, isLast: false)
            case .lastMessage:
                call?.source = nil
                endMessage(Self.stream, output, isLast: true)
            case .finished: endSource(output, .ok, "")
            case .failed(let code, let text): endSource(output, code, text)
            case .waiting: loop.giveBack(output)
            }
        }
    }

    private func endSource(_ output: consuming ByteBuffer, _ code: StatusCode, _ text: String) {
        loop.giveBack(output)
        call?.source = nil
        finish(Self.stream, code, text)
    }

    private func append(_ message: RawSpan) {
        var text = loop.takeWriter()
        text.append(byte: UInt8(ascii: "["))
        do throws(RequestError) {
            try service.appendJSON(message, to: &text)
            text.append(byte: UInt8(ascii: "]"))
            session.append(text.copyBytes())
        } catch {
            finish(Self.stream, error.code, error.message)
        }
        loop.giveBack(text)
    }

    // MARK: The end

    /// Ends the session with an error that is not of the service.
    package func fail(_ error: RequestError) {
        guard !isOver, !session.isEnded else { return }
        cancelCall(.client)
        endSession(error.code, error.message)
    }

    private func endSession(_ code: StatusCode, _ text: String) {
        var payload = loop.takeWriter()
        if code == .ok {
            payload.append(utf8: "[\"close\"]")
        } else {
            payload.append(utf8: "[")
            HTTPError.append(HTTPStatus(code), "\(code)", text, isPretty: false, to: &payload)
            payload.append(utf8: "]")
        }
        session.end(with: payload.copyBytes())
        loop.giveBack(payload)
        settle()
    }

    /// Ends the call, if it has not ended, without a status.
    private func cancelCall(_ reason: CancellationReason) {
        guard let ended = call else { return }
        call = nil
        ended.source?.cancelled()
        service.abandoned(reason)
    }

    /// Ends the session now. The page gets nothing more.
    private func close(_ reason: CancellationReason) {
        guard !isOver else { return }
        isOver = true
        table.remove(identifier)
        cancelCall(reason)
        backChannel?.send([], isLast: true)
        backChannel = nil
        if let timer { loop.cancel(timer.timer) }
        timer = nil
        _ = table.count(-countedBytes)
        countedBytes = 0
        connectionContext = nil
        service.ended(self)
    }

    // MARK: Output and time

    /// Sends what there is, counts what is kept, and sets the timer. After every change of the session.
    private func settle() {
        guard !isOver else { return }
        if let output = session.takeOutput(now: loop.nowMilliseconds) {
            backChannel?.send(output.frame, isLast: output.isLast)
            if output.isLast { backChannel = nil }
        }
        let held = session.heldBytes
        let change = held - countedBytes
        countedBytes = held
        if change != 0, !table.count(change), change > 0 {
            return fail(RequestError(.resourceExhausted, "The sessions of the server hold too many bytes."))
        }
        setTimer()
    }

    private func setTimer() {
        let due = session.dueAt
        // A timer that is too early finds nothing to do and is set again.
        if let timer, timer.due <= due { return }
        if let timer { loop.cancel(timer.timer) }
        let now = loop.nowMilliseconds
        timer = (due, loop.schedule(afterMilliseconds: due > now ? due - now : 0, self))
    }

    package func timerFired(_ token: UInt64) {
        timer = nil
        guard !isOver else { return }
        if session.tick(now: loop.nowMilliseconds) == .expired { return close(.connectionClosed) }
        settle()
    }
}

extension WebChannelConnection: CallCarrier {
    package var carriesCredentials: Bool { true }
    package func authorization(_ stream: UInt32) -> String? { origin.authorization }

    package func isOpen(_ stream: UInt32) -> Bool { stream == Self.stream && call != nil }
    package func hasRoom(_ stream: UInt32) -> Bool { isOpen(stream) && session.hasRoom }
    package func remainingMilliseconds(_ stream: UInt32) -> UInt64? { nil }

    package func beginMessage(_ stream: UInt32) -> ByteBuffer? { isOpen(stream) ? loop.takeWriter() : nil }
    package func abandonMessage(_ output: consuming ByteBuffer) { loop.giveBack(output) }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        if isOpen(stream) { append(output.bytes) }
        loop.giveBack(output)
        if isLast { finish(stream, .ok, "") }
    }

    package func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard isOpen(stream), let ended = call else { return }
        call = nil
        endSession(code, message)
        ended.source?.cancelled()
    }

    package func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        guard isOpen(stream) else { return source.cancelled() }
        precondition(call?.source == nil, "a call has one source")
        call?.source = source
        call?.receiver = receiver
        produceLater()
    }

    package func resume(_ stream: UInt32) {
        guard isOpen(stream) else { return }
        call?.isWaiting = false
        produceLater()
    }

    package func setHeld(_ stream: UInt32, _ isHeld: Bool) {
        guard isOpen(stream), call?.isHeld != isHeld else { return }
        call?.isHeld = isHeld
        guard !isHeld else { return }
        loop.execute { [self] in
            deliver()
            settle()
        }
    }
}
