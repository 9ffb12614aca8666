import Basics
package import EventLoops

/// Token of the timer that looks after the connection; other tokens are stream numbers.
private let housekeeping: UInt64 = 0

extension CallConnection {
    package func timerFired(_ token: UInt64) {
        guard !isOver else { return }
        token == housekeeping ? enforceTimeouts() : deadlinePassed(UInt32(truncatingIfNeeded: token))
    }

    // MARK: Limits

    /// Adds the change of our incomplete messages to the server's sum; ends the connection when that is too much.
    package func countAssembly() {
        // Comes for each piece of a body: every look over the witness table counts.
        let core = core
        let now = core.state.isOver ? 0 : assemblyBytes
        let change = now - core.state.assemblyBytesCounted
        guard change != 0 else { return }
        core.state.assemblyBytesCounted = now
        let limit = core.configuration.assemblyBytesTotalMax
        if core.owner.countAssembled(change) > limit, change > 0 {
            end(
                .tooManyIncompleteMessages, .resourceExhausted, "the server's incomplete messages exceed \(limit) bytes"
            )
        }
    }

    /// Ends the connection if it is too slow or idle; else schedules the next check.
    package func enforceTimeouts() {
        let now = loop.nowMilliseconds
        let limit = configuration.headerMilliseconds
        // What is not read cannot arrive: a client whose connection is paused, because it does not read either, gets
        // the time again.
        if channel.isCongested { core.state.readsAgainAt = now + limit }
        if now >= core.state.readsAgainAt, let text = timeoutReason(now: now, limit: limit) {
            return end(.handshakeTimeout, .deadlineExceeded, text)
        }
        let idle = configuration.idleMilliseconds
        if idle > 0, openCalls == 0, now - lastReceivedAt >= idle { return end(.idle, .ok, "idle for \(idle) ms") }
        let stalled = configuration.stalledReplyMilliseconds
        if stalled > 0 { endStalledReplies(now: now, limit: stalled) }
        let pause = [limit, idle, stalled].filter { $0 > 0 }.min() ?? limit
        core.state.livenessTimer = loop.schedule(afterMilliseconds: pause, self, token: housekeeping)
    }

    /// Ends the replies of which clients have taken nothing for too long: windows of HTTP/2 and of the native
    /// protocol can stay shut while the connection is alive, and what the replies hold would be held as long.
    private func endStalledReplies(now: UInt64, limit: UInt64) {
        for stream in core.state.calls.stalled(now: now, limit: limit) {
            owner.statistics.repliesStalled &+= 1
            cancel(stream, .stalled)
            sendStatus(stream, .deadlineExceeded, "the client has not read this response for \(limit) ms")
        }
        dropStalledOutput(now: now, limit: limit)
    }

    // MARK: Ending

    /// Gives up the calls that are left, informs their clients, and closes.
    package func abandon() {
        guard !isOver else { return }
        for stream in openStreams {
            cancel(stream, .connectionClosed)
            sendStatus(stream, .unavailable, "the server is shutting down")
        }
        endIfDone()
    }

    package func close(_ reason: CloseReason) {
        markClosed()
        channel.closeAfterFlush(reason)
    }

    package func channelClosed(_ reason: CloseReason) {
        markClosed()
        owner.connectionEnded(self, reason)
    }

    /// No call survives its connection.
    private func markClosed() {
        guard !isOver else { return }
        core.state.isOver = true
        if let timer = core.state.livenessTimer { loop.cancel(timer) }
        for stream in openStreams { cancel(stream, .connectionClosed) }
        countAssembly()
        connectionOver()
    }
}
