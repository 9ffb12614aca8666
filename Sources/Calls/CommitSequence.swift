internal import Synchronization

/// The request identifiers that make a retried commit apply once.
///
/// An identifier is a session, a number within it, and the oldest number without a reply. The server may forget the
/// results of lower numbers.
///
///     numbers    ... 40  41  42  43  44        41 and 43 are acknowledged, 42 is not:
///                     ok  ok  -  ok  -         the oldest pending number is 42, and 43 is remembered
///                               ^ oldest       until 42 is acknowledged
///
/// The server keeps a bounded number of results for each session. One commit without a reply, while thousands of others
/// pass, would exceed this bound; so the sequence starts a new session in time. A plain value; its owner locks it.
package struct CommitSequence: Sendable {
    /// The id of one commit, without the oldest pending number, which is read at each sending.
    package struct Ticket: Hashable, Sendable {
        /// Which of the sequence's sessions; a session ends when all its commits are acknowledged.
        package var session: SessionID
        package var sequence: UInt64

        package init(session: SessionID, sequence: UInt64) {
            self.session = session
            self.sequence = sequence
        }
    }

    /// A random 16-byte name, unique among all clients of all time.
    package struct SessionID: Hashable, Sendable {
        package var high: UInt64
        package var low: UInt64

        package init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        package static func random() -> SessionID {
            // The system's generator: two clients must never meet in a name.
            SessionID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max))
        }
    }

    /// The numbers of one session from the oldest pending one on.
    private struct Window {
        var oldestPending: UInt64 = 1
        /// Whether each number from `oldestPending` on is acknowledged; starts at `head`.
        private var done: [Bool] = []
        private var head = 0

        init() {}

        /// A window in which only some numbers are pending.
        init(pending: [UInt64]) {
            let pending = pending.sorted()
            guard let first = pending.first, let last = pending.last else { return }
            oldestPending = first
            done = [Bool](repeating: true, count: Int(last - first) + 1)
            for number in pending { done[Int(number - first)] = false }
        }

        var length: Int { done.count - head }
        var isSettled: Bool { length == 0 }

        mutating func next() -> UInt64 {
            done.append(false)
            return oldestPending + UInt64(length - 1)
        }

        mutating func finish(_ sequence: UInt64) {
            guard sequence >= oldestPending, sequence - oldestPending < UInt64(length) else { return }
            done[head + Int(sequence - oldestPending)] = true
            while head < done.count, done[head] {
                head += 1
                oldestPending += 1
            }
            if head == done.count {
                done.removeAll(keepingCapacity: true)
                head = 0
            } else if head >= 1024 {
                done.removeFirst(head)
                head = 0
            }
        }
    }

    /// Unanswered and remembered numbers of a session past which a new session begins.
    package let windowMax: Int
    private var current: SessionID
    private var window = Window()
    /// Earlier sessions that still have unacknowledged commits.
    private var retired: [SessionID: Window] = [:]
    private let makeSession: @Sendable () -> SessionID

    package init(windowMax: Int = 1024, makeSession: @escaping @Sendable () -> SessionID = { .random() }) {
        self.windowMax = windowMax
        self.makeSession = makeSession
        current = makeSession()
    }

    /// A ticket for a new commit. It must be given back with `finish(_:)`, whatever becomes of the commit.
    package mutating func begin() -> Ticket {
        if window.length >= windowMax {
            retired[current] = window
            window = Window()
            current = makeSession()
        }
        return Ticket(session: current, sequence: window.next())
    }

    /// Takes over commits of an earlier process, which are sent under their identifiers again.
    package mutating func restore(_ tickets: [Ticket]) {
        for (session, tickets) in Dictionary(grouping: tickets, by: \.session) where session != current {
            retired[session] = Window(pending: tickets.map(\.sequence))
        }
    }

    /// The commit is acknowledged, or will never be sent again.
    package mutating func finish(_ ticket: Ticket) {
        if ticket.session == current { return window.finish(ticket.sequence) }
        retired[ticket.session]?.finish(ticket.sequence)
        if retired[ticket.session]?.isSettled ?? false { retired[ticket.session] = nil }
    }

    /// The smallest number of the ticket's session that is not answered; at most the ticket's own while that is
    /// pending.
    package func oldestPending(of ticket: Ticket) -> UInt64 {
        let window = ticket.session == current ? window : retired[ticket.session]
        return window?.oldestPending ?? ticket.sequence
    }

    /// Commits without a reply, and those after them, in all sessions; for tests and diagnostics.
    package var trackedCount: Int { window.length + retired.values.reduce(0) { $0 + $1.length } }
    package var sessionCount: Int { 1 + retired.count }
}

/// The request identifiers of the writes of a mutation queue, which outlive their calls. Thread-safe.
package final class WriteNumbers: Sendable {
    private let sequence = Mutex(CommitSequence())

    package init() {}

    package func begin() -> CommitSequence.Ticket { sequence.withLock { $0.begin() } }

    /// Takes over the writes of an earlier process.
    package func restore(_ tickets: [CommitSequence.Ticket]) { sequence.withLock { $0.restore(tickets) } }

    /// The write will never be sent again, also not after a restart.
    package func finish(_ ticket: CommitSequence.Ticket) { sequence.withLock { $0.finish(ticket) } }

    package func oldestPending(of ticket: CommitSequence.Ticket) -> UInt64 {
        sequence.withLock { $0.oldestPending(of: ticket) }
    }
}

extension RequestID {
    /// The identifier of an attempt at a commit.
    package init(_ ticket: CommitSequence.Ticket, oldestPending: UInt64, after: CommitSequence.Ticket? = nil) {
        self.init(
            sessionHigh: ticket.session.high, sessionLow: ticket.session.low, sequence: ticket.sequence,
            oldestPending: oldestPending, after: after)
    }
}
