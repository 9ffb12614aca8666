/// Which back channel of a browser ends early, so that the browser's other requests get a connection.
///
/// A browser opens at most six HTTP/1.1 connections to a server, for all its pages together, and an open back channel
/// holds one. A request that finds none free waits inside the browser, where the server does not see it. So while six
/// back channels are open, the oldest ends at each interval. Its page requests it again, after the requests that wait.
/// With fewer nothing ends. The interval is shorter while pages send messages, and the more sessions wait for their
/// turn; a message waits for about ``quietMilliseconds`` at most, and a session is asked to reopen about once in six
/// intervals.
///
/// A value without I/O. Sessions are numbers; times are monotonic milliseconds.
struct BackChannelRotation {
    /// Connections that a browser opens to one server.
    static let connectionsOfBrowser = 6
    /// The interval of a browser whose pages send nothing.
    static let quietMilliseconds: UInt64 = 500
    /// The interval of a browser that has sent a message within ``activeMilliseconds``.
    static let busyMilliseconds: UInt64 = 100
    static let activeMilliseconds: UInt64 = 10_000
    /// No interval is shorter: all browsers that look like one cost at most 50 requests a second.
    static let intervalMin: UInt64 = 20

    /// A session without a back channel.
    private struct Waiting {
        let session: UInt64
        /// The count of openings at which it does not wait any more: requests are served in order, so its page is gone.
        let endsAt: UInt64
    }

    /// Sessions with a back channel that holds a connection, in the order of its opening.
    private var open: [UInt64] = []
    private var waiting: [Waiting] = []
    private var openings: UInt64 = 0
    private var endedAt: UInt64 = 0
    private var heardAt: UInt64?

    /// Sessions whose next back channel is taken to be waiting in the browser.
    var waitingCount: Int { waiting.count }

    /// A session has been opened; its page is about to ask for the back channel.
    mutating func add(_ session: UInt64) { wait(session) }

    mutating func remove(_ session: UInt64) {
        open.removeAll { $0 == session }
        waiting.removeAll { $0.session == session }
    }

    /// The page has opened a back channel. One that was open is replaced.
    mutating func opened(_ session: UInt64) {
        remove(session)
        open.append(session)
        openings += 1
        waiting.removeAll { $0.endsAt <= openings }
    }

    /// The back channel has ended, for any reason.
    mutating func closed(_ session: UInt64) {
        guard open.contains(session) else { return }
        remove(session)
        wait(session)
    }

    /// A page of the browser has sent a message.
    mutating func heard(now: UInt64) { heardAt = now }

    private mutating func wait(_ session: UInt64) {
        // Each session has one request at a time. Some may be sent and served on the way of this one.
        let ahead = UInt64(2 * (open.count + waiting.count) + 8)
        waiting.append(Waiting(session: session, endsAt: openings + ahead))
    }

    /// When ``takeDue(now:)`` has a session; nil if that depends on something else than time.
    var dueAt: UInt64? { open.count < Self.connectionsOfBrowser ? nil : endedAt + interval }

    private var interval: UInt64 {
        let isBusy = heardAt.map { endedAt < $0 + Self.activeMilliseconds } ?? false
        // Several browsers may look like one.
        let sharers = open.count / Self.connectionsOfBrowser + waiting.count
        return max((isBusy ? Self.busyMilliseconds : Self.quietMilliseconds) / UInt64(sharers), Self.intervalMin)
    }

    /// The session whose back channel is to end now. It counts as waiting from then on.
    mutating func takeDue(now: UInt64) -> UInt64? {
        guard let dueAt, dueAt <= now else { return nil }
        let oldest = open.removeFirst()
        endedAt = now
        wait(oldest)
        return oldest
    }
}
