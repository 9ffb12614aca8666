import Basics
package import Calls

// Streaming replies are pulled: each ready source is asked in turn, a few messages at a time, while the client's
// window and the channel have room, in the shares that the loop gives the connection.

/// Messages, and bytes, of a source that are made between two looks at the clock.
private let messagesPerCheck = 16
private let bytesPerCheck = 8 << 10

extension CallConnection {
    package func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        guard !isOver, park(stream) else { return source.cancelled() }
        core.state.calls.setSource(of: stream, source, receiver: receiver)
        channel.needsWork()
    }

    package func resume(_ stream: UInt32) {
        if !isOver, core.state.calls.resume(stream) { channel.needsWork() }
    }

    package func hasRoom(_ stream: UInt32) -> Bool { isOpen(stream) && hasWindow(stream) && !isCongested }

    /// The client's window on a stream has opened; nil: that of the connection.
    package func windowOpened(_ stream: UInt32?) {
        if let stream { core.state.calls.makeReady(stream) } else { core.state.calls.makeAllReady() }
        if core.state.calls.hasReady { channel.needsWork() }
    }

    package func produce() {
        let core = core
        if core.state.calls.hasReady, !isCongested { core.channel.needsWork() }
        endIfDone()
    }

    package func work() { produceReplies() }

    /// Asks the ready sources in turn, for the present share of the loop.
    package func produceReplies() {
        let core = core
        while !core.state.isOver, core.state.calls.hasReady, !core.loop.isShareSpent, !isCongested {
            let round = core.state.calls.takeReady()
            for (index, stream) in round.enumerated() {
                guard !core.loop.isShareSpent, !isCongested, !core.state.isOver else {
                    core.state.calls.putBack(round[index...])
                    break
                }
                ask(stream)
                flushIfDue()
            }
        }
        if !core.state.isOver, core.state.calls.hasReady, !isCongested { channel.needsWork() }
        endIfDone()
    }

    /// Asks one source for messages until the share is spent.
    private func ask(_ stream: UInt32) {
        let core = core
        var unspent = 0
        var messages = 0
        defer { core.loop.spend(unspent) }
        guard let source = core.state.calls.beginProducing(stream) else { return }
        repeat {
            let isOpenWindow = hasWindow(stream)
            core.state.calls.noteWindow(of: stream, isOpen: isOpenWindow, now: core.loop.nowMilliseconds)
            // What opens the window makes it ready again.
            guard isOpenWindow, var output = beginMessage(stream) else { return }
            let start = output.count
            let step = source.next(into: &output)
            unspent += output.count - start
            messages += 1
            // The source may have ended its own call.
            guard isOpen(stream) else {
                abandonMessage(output)
                return
            }
            switch step {
            case .message: endMessage(stream, output, isLast: false)
            case .lastMessage:
                core.state.calls.dropSource(of: stream)
                endMessage(stream, output, isLast: true)
                return
            case .finished:
                endSource(stream, output, .ok, "")
                return
            case .failed(let code, let message):
                endSource(stream, output, code, message)
                return
            case .waiting:
                abandonMessage(output)
                if core.state.calls.sourceWaits(stream) { replyWaits(stream) }
                return
            }
            if messages % messagesPerCheck == 1 || unspent >= bytesPerCheck {
                core.loop.spend(unspent)
                unspent = 0
            }
        } while (!core.loop.isShareSpent || source.hasMessageReady) && !isCongested && !core.state.isOver
        core.state.calls.makeReady(stream)
    }

    private func endSource(_ stream: UInt32, _ output: consuming ByteBuffer, _ code: StatusCode, _ message: String) {
        abandonMessage(output)
        core.state.calls.dropSource(of: stream)
        finish(stream, code, message)
    }
}
