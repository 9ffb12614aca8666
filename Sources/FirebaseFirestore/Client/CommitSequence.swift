// The request ids that make a retried commit apply once: a session, a number within it, and the oldest number whose
// answer this client still waits for, below which the server may forget what it answered.
//
//   numbers    ... 40  41  42  43  44        41 and 43 are answered, 42 is not:
//                   done done  -  done  -    the oldest pending number is 42, and 43 is remembered as done until
//                             ^ oldest       42 is, too
//
// The server keeps the results of a bounded number of commits for each session. A commit that stays unanswered while
// thousands of others pass would stretch that window, so the sequence moves on to a new session before it gets too long.

/// Hands out request ids and keeps track of which are answered. A plain value; its owner locks it.
struct CommitSequence {
    /// The id of one commit, without the oldest pending number, which is read at each sending.
    struct Ticket: Hashable, Sendable {
        /// Which of the sequence's sessions; sessions end when all their commits are answered.
        var session: SessionID
        var sequence: UInt64
    }

    /// A random 16-byte name, unique among all clients of all time.
    struct SessionID: Hashable, Sendable {
        var high: UInt64
        var low: UInt64

        static func random() -> SessionID {
            // The system's generator: two clients must never meet in a name.
            SessionID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max))
        }
    }

    /// The numbers of one session from the oldest pending one on.
    private struct Window {
        var oldestPending: UInt64 = 1
        /// Whether each number from `oldestPending` on is answered; starts at `head`.
        private var done: [Bool] = []
        private var head = 0

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
    let windowMaximum: Int
    private var current: SessionID
    private var window = Window()
    /// Sessions left behind that still have unanswered commits.
    private var retired: [SessionID: Window] = [:]
    private let makeSession: @Sendable () -> SessionID

    init(windowMaximum: Int = 1024, makeSession: @escaping @Sendable () -> SessionID = { .random() }) {
        self.windowMaximum = windowMaximum
        self.makeSession = makeSession
        current = makeSession()
    }

    /// A ticket for a new commit. It must be given back with `finish(_:)`, whatever becomes of the commit.
    mutating func begin() -> Ticket {
        if window.length >= windowMaximum {
            retired[current] = window
            window = Window()
            current = makeSession()
        }
        return Ticket(session: current, sequence: window.next())
    }

    /// The commit was answered, or will never be sent again.
    mutating func finish(_ ticket: Ticket) {
        if ticket.session == current { return window.finish(ticket.sequence) }
        retired[ticket.session]?.finish(ticket.sequence)
        if retired[ticket.session]?.isSettled ?? false { retired[ticket.session] = nil }
    }

    /// The smallest number of the ticket's session that is not answered; at most the ticket's own while that is pending.
    func oldestPending(of ticket: Ticket) -> UInt64 {
        let window = ticket.session == current ? window : retired[ticket.session]
        return window?.oldestPending ?? ticket.sequence
    }

    /// Commits without an answer or behind one, in all sessions; for tests and diagnostics.
    var trackedCount: Int { window.length + retired.values.reduce(0) { $0 + $1.length } }
    var sessionCount: Int { 1 + retired.count }
}
