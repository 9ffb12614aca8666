import Basics

// Streaming replies are pulled: each ready source is asked in turn, a few messages at a time, while the client's
// window and the channel have room.

/// Output that the sources of one connection may produce before other connections have their turn.
private let bytesPerTurn = 256 << 10

/// Output that one source may produce before the other sources of its connection have their turn.
private let bytesPerSource = 8 << 10

extension CallConnection {
    func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        guard !isOver, park(stream) else { return source.cancelled() }
        core.state.calls.setSource(of: stream, source, receiver: receiver)
        channel.needsSettling()
    }

    func resume(_ stream: UInt32) {
        if !isOver, core.state.calls.resume(stream) { channel.needsSettling() }
    }

    func hasRoom(_ stream: UInt32) -> Bool { isOpen(stream) && hasWindow(stream) && !isCongested }

    /// The client's window on a stream has opened; nil: that of the connection.
    func windowOpened(_ stream: UInt32?) {
        if let stream { core.state.calls.makeReady(stream) } else { core.state.calls.makeAllReady() }
        if core.state.calls.hasReady { channel.needsSettling() }
    }

    func produce() { produceReplies() }

    /// Asks the ready sources in turn.
    func produceReplies() {
        var budget = bytesPerTurn
        while !isOver, core.state.calls.hasReady, budget > 0, !isCongested {
            let round = core.state.calls.takeReady()
            for (index, stream) in round.enumerated() {
                guard budget > 0, !isCongested, !isOver else {
                    core.state.calls.putBack(round[index...])
                    break
                }
                budget -= ask(stream)
                flushIfDue()
            }
        }
        if core.state.calls.hasReady, budget <= 0, !isCongested { channel.settleLater() }
        endIfDone()
    }

    /// Asks one source for messages, up to its share of a turn.
    ///
    /// - Returns: the bytes that it made, at least 1 so that every question counts.
    private func ask(_ stream: UInt32) -> Int {
        guard let source = core.state.calls.beginAsking(stream) else { return 1 }
        var made = 1
        repeat {
            let isOpenWindow = hasWindow(stream)
            core.state.calls.noteWindow(of: stream, isOpen: isOpenWindow, now: loop.nowMilliseconds)
            // What opens the window makes it ready again.
            guard isOpenWindow, var output = beginMessage(stream) else { return made }
            let start = output.count
            let step = source.next(into: &output)
            made += output.count - start
            // The source may have ended its own call.
            guard isOpen(stream) else {
                abandonMessage(output)
                return made
            }
            switch step {
            case .message: endMessage(stream, output, isLast: false)
            case .lastMessage:
                core.state.calls.dropSource(of: stream)
                endMessage(stream, output, isLast: true)
                return made
            case .finished:
                endSource(stream, output, .ok, "")
                return made
            case .failed(let code, let message):
                endSource(stream, output, code, message)
                return made
            case .waiting:
                abandonMessage(output)
                if core.state.calls.sourceWaits(stream) { replyWaits(stream) }
                return made
            }
        } while made < bytesPerSource && !isCongested && !isOver
        core.state.calls.makeReady(stream)
        return made
    }

    private func endSource(_ stream: UInt32, _ output: consuming ByteBuffer, _ code: StatusCode, _ message: String) {
        abandonMessage(output)
        core.state.calls.dropSource(of: stream)
        finish(stream, code, message)
    }
}
