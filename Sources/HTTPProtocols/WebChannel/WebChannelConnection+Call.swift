package import Basics
package import Calls

// The session's one call: the page's messages to its service, and the messages of the service to the page.

extension WebChannelConnection {
    // MARK: Messages to the service

    /// Delivers what waits, one message after the other: a large one is read in several shares of the loop.
    func deliver() {
        for count in 0... {
            guard !isDelivering, !isOver, call?.isPaused != true, !session.isEnded else { return }
            guard count < Self.messagesPerShare else { return workLater() }
            guard let json = session.takeMessage() else { return }
            deliver(json)
        }
    }

    private func deliver(_ json: [UInt8]) {
        isDelivering = true
        var isLater = false
        var message = loop.takeWriter()
        if !hasBegun { service.appendDatabase(origin.database, to: &message) }
        service.readMessage(
            json.byteSpan, onto: message, on: loop,
            while: { [weak self] in self.map { !$0.isOver && !$0.session.isEnded } ?? false }
        ) { [weak self] (message: consuming ByteBuffer, error: RequestError?) in
            guard let self else { return }
            if let error { fail(error) } else { deliver(message.bytes) }
            loop.recycle(message)
            isDelivering = false
            if isLater { workLater() }
        }
        isLater = true
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

    /// Asks the source in a share of the loop: several messages then leave in one frame.
    func produceLater() {
        guard let call, call.source != nil, !call.isWaiting else { return }
        workLater()
    }

    /// Does what waits in a share of the loop, then sends what there is.
    func workLater() {
        guard !isWorkDue else { return }
        isWorkDue = true
        loop.needsWork(self)
    }

    package func work() {
        isWorkDue = false
        deliver()
        produce()
        settle()
    }

    private func produce() {
        while session.hasRoom, let source = call?.source, call?.isWaiting == false {
            guard !loop.isShareSpent else { return produceLater() }
            // A `resume` from within `next` sets it to false again.
            call?.isWaiting = true
            var output = loop.takeWriter()
            let step = source.next(into: &output)
            loop.spend(output.count)
            guard call != nil else { return loop.recycle(output) }
            switch step {
            case .message:
                call?.isWaiting = false
                endMessage(Self.stream, output, isLast: false)
            case .lastMessage:
                call?.source = nil
                endMessage(Self.stream, output, isLast: true)
            case .finished: endSource(output, .ok, "")
            case .failed(let code, let text): endSource(output, code, text)
            case .waiting: loop.recycle(output)
            }
        }
    }

    private func endSource(_ output: consuming ByteBuffer, _ code: StatusCode, _ text: String) {
        loop.recycle(output)
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
        loop.recycle(text)
    }
}

extension WebChannelConnection: CallCarrier {
    package var carriesCredentials: Bool { true }
    package func authorization(_ stream: UInt32) -> String? { origin.authorization }
    package var certificateNames: [String] { origin.certificateNames }
    package var isLoopback: Bool { origin.isLoopback }
    package var isProxied: Bool { origin.isProxied }
    package var address: NetworkAddress? { origin.address }
    package func forwarding(_ stream: UInt32) -> Forwarding? { origin.forwarding }

    package func isOpen(_ stream: UInt32) -> Bool { stream == Self.stream && call != nil }
    package func hasRoom(_ stream: UInt32) -> Bool { isOpen(stream) && session.hasRoom }
    package func remainingMilliseconds(_ stream: UInt32) -> UInt64? { nil }

    package func beginMessage(_ stream: UInt32) -> ByteBuffer? { isOpen(stream) ? loop.takeWriter() : nil }
    package func abandonMessage(_ output: consuming ByteBuffer) { loop.recycle(output) }

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        if isOpen(stream) { append(output.bytes) }
        loop.recycle(output)
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

    package func setPaused(_ stream: UInt32, _ isPaused: Bool) {
        guard isOpen(stream), call?.isPaused != isPaused else { return }
        call?.isPaused = isPaused
        guard !isPaused else { return }
        loop.execute { [self] in
            deliver()
            settle()
        }
    }
}
