import EventLoops
internal import Synchronization

/// The sessions of one browser, as far as requests tell it: ends back channels that hold its connections.
///
/// Lives on the loop of its first session. The functions may be called from any thread; those for one session are to be
/// called from one.
final class WebChannelBrowser: TimerTarget, @unchecked Sendable {
    // Sendable: state is used on the thread of `loop` only.

    private struct Member {
        weak var session: WebChannelConnection?
    }

    private let loop: EventLoop
    private var rotation = BackChannelRotation()
    private var members: [UInt64: Member] = [:]
    private var timer: (due: UInt64, timer: EventLoop.Timer)?

    init(loop: EventLoop) { self.loop = loop }

    func add(_ session: WebChannelConnection, _ number: UInt64) {
        change { browser in
            browser.members[number] = Member(session: session)
            browser.rotation.add(number)
        }
    }

    func remove(_ number: UInt64) {
        change { browser in
            browser.members[number] = nil
            browser.rotation.remove(number)
        }
    }

    /// The session has a back channel that holds a connection.
    func opened(_ number: UInt64) { change { $0.rotation.opened(number) } }

    func closed(_ number: UInt64) { change { $0.rotation.closed(number) } }

    /// A page has sent a message.
    func heard() { change { $0.rotation.heard(now: $0.loop.nowMilliseconds) } }

    private func change(_ work: @escaping @Sendable (WebChannelBrowser) -> Void) {
        guard !loop.isCurrent else { return apply(work) }
        loop.execute { [self] in apply(work) }
    }

    private func apply(_ work: (WebChannelBrowser) -> Void) {
        work(self)
        setTimer()
    }

    private func setTimer() {
        // A timer that is too early finds nothing to do and is set again, if it has to be.
        guard let due = rotation.dueAt, timer.map({ $0.due > due }) ?? true else { return }
        if let timer { loop.cancel(timer.timer) }
        let now = loop.nowMilliseconds
        timer = (due, loop.schedule(afterMilliseconds: due > now ? due - now : 0, self))
    }

    func timerFired(_ token: UInt64) {
        timer = nil
        if let number = rotation.takeDue(now: loop.nowMilliseconds) { members[number]?.session?.yieldBackChannel() }
        setTimer()
    }
}

/// The browsers that have sessions. Thread-safe.
final class WebChannelBrowsers: Sendable {
    private struct Entry {
        let browser: WebChannelBrowser
        var sessions = 0
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Browsers that have sessions.
    var count: Int { state.withLock { $0.entries.count } }

    /// Adds a session to the browser that `origin` names.
    ///
    /// - Returns: the browser, and the number of the session, which no other has.
    func join(_ session: WebChannelConnection) -> (browser: WebChannelBrowser, number: UInt64) {
        let (browser, number) = state.withLock { state in
            var entry = state.entries[session.origin.browser] ?? Entry(browser: WebChannelBrowser(loop: session.loop))
            entry.sessions += 1
            state.entries[session.origin.browser] = entry
            state.lastNumber += 1
            return (entry.browser, state.lastNumber)
        }
        browser.add(session, number)
        return (browser, number)
    }

    /// The session has ended; to be called once.
    func leave(_ session: WebChannelConnection, _ membership: (browser: WebChannelBrowser, number: UInt64)) {
        state.withLock { state in
            guard var entry = state.entries.removeValue(forKey: session.origin.browser) else { return }
            entry.sessions -= 1
            if entry.sessions > 0 { state.entries[session.origin.browser] = entry }
        }
        membership.browser.remove(membership.number)
    }
}
