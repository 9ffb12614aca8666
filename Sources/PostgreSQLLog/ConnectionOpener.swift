// Opens connections on a thread that exists while there is something to open.
//
// libpq looks up the name of a host in a call that waits. The thread of a loop must not: the leases of all its members
// would end. Whatever is opened meanwhile waits for the same name.

internal import Basics
internal import Glibc

/// A connection that is being opened. Thread-safe.
final class ConnectionOpening: Sendable {
    enum Outcome {
        case opened(PostgreSQLConnection)
        case failed(String)
    }

    private struct State {
        var outcome: Outcome?
        var isGivenUp = false
    }

    let address: String
    let settings: String
    private let state = Monitor(State())
    private let whenDone: @Sendable () -> Void

    /// - Parameter whenDone: called on another thread, once, unless the opening was given up.
    init(address: String, settings: String, whenDone: @escaping @Sendable () -> Void) {
        self.address = address
        self.settings = settings
        self.whenDone = whenDone
    }

    /// What has come of it; nil if it is under way. The caller has the connection from then on.
    func take() -> Outcome? { state.withLock { $0.outcome.take() } }

    /// The connection is not wanted any more.
    func giveUp() {
        let outcome = state.withLock { state in
            state.isGivenUp = true
            return state.outcome.take()
        }
        if case .opened(let connection)? = outcome { connection.close() }
    }

    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    fileprivate func finish(_ outcome: Outcome) {
        let isWanted = state.withLock { state in
            if !state.isGivenUp { state.outcome = outcome }
            return !state.isGivenUp
        }
        if isWanted { return whenDone() }
        if case .opened(let connection) = outcome { connection.close() }
    }
}

/// Opens connections, those that came first before others. Thread-safe.
final class ConnectionOpener: Sendable {
    /// A connection on its way, on the thread.
    private struct Attempt {
        let opening: ConnectionOpening
        let connection: PostgreSQLConnection
        let deadline: UInt64
    }

    private let waiting = WorkThread<[ConnectionOpening]>(name: "cluster open", [])
    private let wakeDescriptor = WakeDescriptor()

    /// So many are opened at the same time.
    private static let attemptsMax = 16
    /// How long a server may take after its name was found, in milliseconds.
    private static let waitMilliseconds: UInt64 = 5_000

    /// Begins to open a connection. Does not wait.
    func open(_ opening: ConnectionOpening) {
        do {
            try waiting.add(run: { [self] in run() }) { $0.append(opening) }
            wakeDescriptor.signal()
        } catch {
            opening.finish(.failed("\(error)"))
        }
    }

    // MARK: The thread

    private func run() {
        var attempts: [Attempt] = []
        while let news = next(beside: attempts.count) {
            for opening in news where !opening.isGivenUp {
                if let attempt = begin(opening) { attempts.append(attempt) }
            }
            if !attempts.isEmpty { wait(for: &attempts) }
        }
    }

    /// What is to be begun; nil if there is nothing to do, and the thread ends.
    private func next(beside count: Int) -> [ConnectionOpening]? {
        waiting.take { waiting in
            if count == 0, waiting.isEmpty { return nil }
            let news = Array(waiting.prefix(Self.attemptsMax - count))
            waiting.removeFirst(news.count)
            return news
        }
    }

    private func begin(_ opening: ConnectionOpening) -> Attempt? {
        let connection = PostgreSQLConnection(address: opening.address, settings: opening.settings)
        if let problem = connection.open() {
            opening.finish(.failed(problem))
            return nil
        }
        let deadline = BootClock.milliseconds() + Self.waitMilliseconds
        return Attempt(opening: opening, connection: connection, deadline: deadline)
    }

    private func wait(for attempts: inout [Attempt]) {
        var waiting = [wakeDescriptor.interest]
        for attempt in attempts {
            let interest = attempt.connection.interest
            waiting.append(pollfd(fd: interest?.descriptor ?? -1, events: interest?.events ?? 0, revents: 0))
        }
        _ = unsafe poll(&waiting, nfds_t(waiting.count), 100)
        if waiting[0].revents != 0 { wakeDescriptor.clear() }
        let now = BootClock.milliseconds()
        let ready = waiting.dropFirst().map { $0.revents != 0 }
        attempts = zip(attempts, ready).filter { !Self.step($0, isReady: $1, now: now) }.map { $0.0 }
    }

    /// - Returns: whether the attempt has ended.
    private static func step(_ attempt: Attempt, isReady: Bool, now: UInt64) -> Bool {
        if isReady, let event = attempt.connection.advance() {
            switch event {
            case .opened: attempt.opening.finish(.opened(attempt.connection))
            case .ended(let reason): attempt.opening.finish(.failed(reason))
            case .finished: attempt.opening.finish(.failed("the database sends a result unasked"))
            }
            return true
        }
        let isOver = now > attempt.deadline
        guard isOver || attempt.opening.isGivenUp else { return false }
        isOver ? attempt.connection.abandon() : attempt.connection.close()
        attempt.opening.finish(.failed("the database does not answer"))
        return true
    }
}
