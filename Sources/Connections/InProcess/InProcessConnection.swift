package import Basics
package import Calls
package import EventLoops

/// Calls of a client on a service of the same event loop: the bytes of a message go from one to the other without
/// frames and without a socket.
///
///     start ──▶ service.begin ──▶ reply ──────────────────────────▶ handler.received, finished
///                    ├──▶ (commit thread) ──▶ reply ─────────────▶        "
///                    └──▶ source ◀──next── while the client reads ▶        "
///
/// To the service it is a connection like any other: a call has a deadline, it can be cancelled, and a client that does
/// not read gets no messages. The service and the client never call each other from within a call of the other: what a
/// handler starts or sends while it takes a message waits until the service has returned.
///
/// `start`, and the methods of a call, may be used from any thread; the rest is for the loop's thread.
package final class InProcessConnection: CallCarrier, TimerTarget, LoopWork, @unchecked Sendable {
    // Sendable: the variables are touched on the loop's thread only.

    package let loop: EventLoop
    package var loopThread: any LoopThread { loop }
    package let peerAddress = "in process"
    package var connectionContext: AnyObject?

    private let service: any ServiceHandler
    private let messageBytesMax: UInt32
    private var calls = StreamTable<InProcessCall>()
    /// Sources, receivers and deadlines.
    private var table = CallTable()
    private var lastNumber: UInt32 = 0
    private var isClosed = false

    /// What the client wants of the service, in order.
    private var requests: [Work] = []
    private var isWorking = false
    private var isWorkDue = false
    /// A handler of the client is being called.
    private var isDelivering = false

    private enum Work {
        case begin(InProcessCall)
        case message(InProcessCall)
    }

    /// - Parameters:
    ///   - loop: the loop of the service.
    ///   - messageBytesMax: a larger message of the client is refused with RESOURCE_EXHAUSTED.
    package init(
        to service: any ServiceHandler, on loop: EventLoop,
        messageBytesMax: UInt32 = ServerConfiguration().messageBytesMax
    ) {
        self.service = service
        self.loop = loop
        self.messageBytesMax = messageBytesMax
    }

    func onLoop(_ body: @escaping @Sendable (InProcessConnection) -> Void) {
        if loop.isCurrent { body(self) } else { loop.execute { body(self) } }
    }

    // MARK: The client

    /// Starts a call. On the loop's thread.
    ///
    /// - Parameters:
    ///   - request: the first message.
    ///   - isComplete: whether it is also the client's last.
    ///   - handler: released when the call has ended, which may be before this returns.
    package func start(
        _ rpc: RPC, _ request: [UInt8], isComplete: Bool, _ options: RequestOptions, handler: any StartedCallHandler
    ) -> InProcessCall {
        let head = RequestHead(
            rpc: rpc, deadlineMilliseconds: options.deadlineMilliseconds, requestID: options.requestID,
            isComplete: isComplete)
        let deadlineAt = options.deadlineMilliseconds.map { loop.nowMilliseconds + UInt64($0) }
        let call = InProcessCall(self, head, request: request, deadlineAt: deadlineAt, handler: handler)
        add(.begin(call))
        return call
    }

    func send(_ payload: [UInt8], isLast: Bool, on call: InProcessCall) {
        guard call.handler != nil, !call.isSent else { return }
        call.isSent = isLast
        call.outgoing.append((payload, isLast))
        add(.message(call))
    }

    func cancel(_ call: InProcessCall) {
        guard call.handler != nil else { return }
        end(call, .client, CallOutcome(.cancelled, "the caller cancelled the call"))
    }

    func release(_ call: InProcessCall) {
        call.isPaused = false
        if table.makeReady(call.number) { workLater() }
    }

    /// Ends every call with UNAVAILABLE. Further calls get the same.
    package func close() {
        isClosed = true
        for number in calls.streams {
            guard let call = call(number) else { continue }
            end(call, .connectionClosed, CallOutcome(.unavailable, "the connection is closed"))
        }
        connectionContext = nil
    }

    // MARK: Work

    private func add(_ next: Work) {
        requests.append(next)
        if isWorking { return }
        if isDelivering { workLater() } else { doWork() }
    }

    private func workLater() {
        if isWorkDue || isWorking { return }
        isWorkDue = true
        loop.needsWork(self)
    }

    package func work() {
        isWorkDue = false
        doWork()
    }

    /// Gives the service what waits for it; in a share of the loop also asks the sources that are ready.
    private func doWork() {
        isWorking = true
        while true {
            var index = 0
            while index < requests.count {
                perform(requests[index])
                index += 1
            }
            requests.removeAll(keepingCapacity: true)
            guard table.hasReady, !loop.isShareSpent else { break }
            produce()
        }
        isWorking = false
        if table.hasReady { workLater() }
    }

    private func perform(_ next: Work) {
        switch next {
        case .begin(let call): begin(call)
        case .message(let call): deliverMessages(of: call)
        }
    }

    private func begin(_ call: InProcessCall) {
        guard call.handler != nil else { return }
        if isClosed { return finish(call, CallOutcome(.unavailable, "the connection is closed", isUnprocessed: true)) }
        let request = call.request
        call.request = []
        guard request.count <= messageBytesMax else { return finish(call, Self.tooLarge(messageBytesMax)) }
        repeat { lastNumber &+= 1 } while lastNumber == 0 || calls.contains(lastNumber)
        call.number = lastNumber
        calls.insert(call.number, call)
        let begun = Call(carrier: self, stream: call.number, head: call.head, begunAt: loop.turnNanoseconds)
        service.begin(begun, payload: request.byteSpan)
        guard call.handler != nil else { return }
        armDeadline(of: call)
        if call.head.isComplete { table.receiver(of: call.number)?.halfClosed() }
    }

    /// As a connection to a server answers: no later try succeeds.
    private static func tooLarge(_ limit: UInt32) -> CallOutcome {
        CallOutcome(.invalidArgument, Refusal.messageTooLarge(max: limit).description)
    }

    /// Gives the service the messages that the client has sent, while it takes them.
    private func deliverMessages(of call: InProcessCall) {
        while call.handler != nil, !call.isServicePaused, !call.outgoing.isEmpty {
            let (payload, isLast) = call.outgoing.removeFirst()
            guard payload.count <= messageBytesMax else {
                let refusal = Refusal.messageTooLarge(max: messageBytesMax)
                return end(call, .refused(refusal), Self.tooLarge(messageBytesMax))
            }
            guard let receiver = table.receiver(of: call.number) else {
                return finish(call.number, .unimplemented, "this method accepts exactly one message")
            }
            receiver.received(payload.byteSpan)
            if isLast, call.handler != nil { receiver.halfClosed() }
        }
    }

    // MARK: Sources

    /// Asks the ready sources, one message each in turn.
    private func produce() {
        let round = table.takeReady()
        for (index, number) in round.enumerated() {
            guard !loop.isShareSpent else { return table.putBack(round[index...]) }
            loop.spend(ask(number))
        }
    }

    /// Asks one source for a message.
    ///
    /// - Returns: the bytes that it made.
    private func ask(_ number: UInt32) -> Int {
        // `release` makes the source of a client that has paused ready again.
        guard let source = table.beginProducing(number), call(number)?.isPaused == false else { return 0 }
        var output = loop.takeWriter()
        let step = source.next(into: &output)
        let size = output.count
        // The source may have ended its own call.
        guard isOpen(number) else {
            loop.recycle(output)
            return size
        }
        switch step {
        case .message:
            table.makeReady(number)
            endMessage(number, output, isLast: false)
        case .lastMessage:
            table.dropSource(of: number)
            endMessage(number, output, isLast: true)
        case .finished: endSource(number, output, .ok, "")
        case .failed(let code, let text): endSource(number, output, code, text)
        case .waiting:
            loop.recycle(output)
            _ = table.sourceWaits(number)
        }
        return size
    }

    private func endSource(_ number: UInt32, _ output: consuming ByteBuffer, _ code: StatusCode, _ text: String) {
        loop.recycle(output)
        table.dropSource(of: number)
        finish(number, code, text)
    }

    // MARK: Ending

    /// Ends a call that the service has not ended.
    private func end(_ call: InProcessCall, _ reason: CancellationReason, _ outcome: CallOutcome) {
        if forget(call) {
            detach(call)?.cancelled()
            service.abandoned(reason)
        }
        finish(call, outcome)
    }

    /// Returns whether the service knew of the call.
    private func forget(_ call: InProcessCall) -> Bool { calls.remove(call.number) != nil }

    private func detach(_ call: InProcessCall) -> (any ResponseSource)? {
        guard let ended = table.remove(call.number) else { return nil }
        if let timer = ended.timer { loop.cancel(timer) }
        return ended.source
    }

    /// Reports the end of a call, which is forgotten already.
    private func finish(_ call: InProcessCall, _ outcome: CallOutcome) {
        guard let handler = call.handler else { return }
        call.handler = nil
        call.outgoing = []
        deliver { handler.finished(outcome) }
    }

    private func deliver(_ body: () -> Void) {
        let wasDelivering = isDelivering
        isDelivering = true
        body()
        isDelivering = wasDelivering
    }

    private func call(_ number: UInt32) -> InProcessCall? { calls.position(of: number).map { calls[position: $0] } }

    // MARK: Deadlines

    private func armDeadline(of call: InProcessCall) {
        guard let deadline = call.deadlineAt, table.deadline(of: call.number) == nil else { return }
        let now = loop.nowMilliseconds
        let timer = loop.schedule(
            afterMilliseconds: deadline > now ? deadline - now : 0, self, token: UInt64(call.number))
        table.setDeadline(of: call.number, CallTable.Deadline(at: deadline, timer: timer))
    }

    package func timerFired(_ token: UInt64) {
        guard let call = call(UInt32(truncatingIfNeeded: token)) else { return }
        end(
            call, .deadlineExceeded, CallOutcome(.deadlineExceeded, "the deadline of the call has passed"))
    }
}

// MARK: - Carrier of calls

extension InProcessConnection {
    package func beginMessage(_ stream: UInt32) -> ByteBuffer? { isOpen(stream) ? loop.takeWriter() : nil }

    package func abandonMessage(_ output: consuming ByteBuffer) { loop.recycle(output) }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        if let handler = call(stream)?.handler {
            let message = output.bytes
            let wasDelivering = isDelivering
            isDelivering = true
            handler.received(message)
            isDelivering = wasDelivering
        }
        loop.recycle(output)
        if isLast { finish(stream, .ok, "") }
    }

    package func isOpen(_ stream: UInt32) -> Bool { calls.contains(stream) }

    package func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard let call = call(stream), forget(call) else { return }
        let source = detach(call)
        finish(call, CallOutcome(code, message))
        source?.cancelled()
    }

    package func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        guard isOpen(stream) else { return source.cancelled() }
        table.setSource(of: stream, source, receiver: receiver)
        workLater()
    }

    package func resume(_ stream: UInt32) { if table.resume(stream) { workLater() } }

    package func hasRoom(_ stream: UInt32) -> Bool { call(stream).map { !$0.isPaused } ?? false }

    package func setPaused(_ stream: UInt32, _ isPaused: Bool) {
        guard let call = call(stream), call.isServicePaused != isPaused else { return }
        call.isServicePaused = isPaused
        guard !isPaused, !call.outgoing.isEmpty else { return }
        requests.append(.message(call))
        workLater()
    }

    package func remainingMilliseconds(_ stream: UInt32) -> UInt64? {
        guard let deadline = call(stream)?.deadlineAt else { return nil }
        let now = loop.nowMilliseconds
        return deadline > now ? deadline - now : 0
    }
}
