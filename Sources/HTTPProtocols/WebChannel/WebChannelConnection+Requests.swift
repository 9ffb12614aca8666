internal import Basics

// The page's requests. They arrive on any loop and are served on the home loop.

extension WebChannelConnection {
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
        membership?.browser.heard()
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
        let next = WebChannelBackChannel(call, of: self, holdsConnection: exchange.holdsConnection)
        call.stream(next)
        onHomeLoop { [self] in
            if open(next, holdMilliseconds: holdMilliseconds, acknowledged: acknowledged) { return }
            next.refuse(.unknownSession)
        }
    }

    private func open(_ next: WebChannelBackChannel, holdMilliseconds: UInt64?, acknowledged: UInt64) -> Bool {
        guard accept(acknowledged) else { return false }
        if next.isGone { return true }
        backChannel?.giveUp()
        backChannel = next
        if let membership, next.holdsConnection { membership.browser.opened(membership.number) }
        session.openBackChannel(after: acknowledged, holdMilliseconds: holdMilliseconds, now: loop.nowMilliseconds)
        // A long poll takes what its first frame has, and there is more room now.
        workLater()
        return true
    }

    /// The connection of a back channel is gone; on the thread of its loop.
    func backChannelClosed(_ gone: WebChannelBackChannel) {
        onHomeLoop { [self] in
            gone.isGone = true
            guard backChannel === gone else { return }
            forgetBackChannel()
            session.closeBackChannel(now: loop.nowMilliseconds)
            settle()
        }
    }

    /// The back channel has ended.
    func forgetBackChannel() {
        backChannel = nil
        if let membership { membership.browser.closed(membership.number) }
    }

    /// Ends the response of the back channel, if there is one: the browser needs its connection. From any thread.
    func yieldBackChannel() {
        onHomeLoop { [self] in
            guard !isOver else { return }
            session.yieldBackChannel()
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
}
