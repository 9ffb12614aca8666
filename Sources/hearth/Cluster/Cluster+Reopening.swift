// A store of a cluster that is closed and opened again while the process serves others.
//
//     driver ── must restart ──► Reopening ──► thread: member ends ──► store closed ──► state settled ──► store opened
//
// The thread exists only while there is something to do.
//
// What cannot be done in this way is done by a start of the process: a store that something reads for too long, or
// a directory that cannot be opened.

import Basics
import DocumentStore
import Glibc
import PostgreSQLLog
import Server

/// What is asked of the thread that opens a store again. Thread-safe.
final class Reopening: Sendable {
    /// A store that could not be opened again.
    fileprivate struct Failure {
        let error: any Error
        /// Why it had to be, if the directory is not what it is to be opened from.
        let unsettled: RestartReason?
    }

    /// What the thread has to do.
    fileprivate enum Work {
        /// The store was not open before, as its database could not be reached.
        case open
        case openAgain(RestartReason)

        var reason: RestartReason? {
            guard case .openAgain(let reason) = self else { return nil }
            return reason
        }
    }

    private struct State {
        var work: Work?
        var isStopping = false
        /// Why the store could not be opened again.
        var failure: Failure?
        /// Does the work; false if the store is not open after it.
        var body: @Sendable (Work) -> Bool = { _ in false }
    }

    private let thread = WorkThread(name: "reopening", State())

    /// The store must be closed and opened again. Does not wait.
    func ask(_ reason: RestartReason) { ask(.openAgain(reason)) }

    /// Whether the server is ending.
    var isStopping: Bool { thread.update { $0.isStopping } }

    /// Why the process must end or start again; nil if it need not.
    fileprivate var failure: Failure? { thread.update { $0.failure } }

    /// The process must end, and start again if it may.
    fileprivate func fail(_ failure: Failure) {
        thread.update { $0.failure = failure }
        kill(getpid(), SIGTERM)
    }

    /// Sets what is done on the thread.
    fileprivate func bind(_ body: @escaping @Sendable (Work) -> Bool) { thread.update { $0.body = body } }

    fileprivate func ask(_ work: Work) {
        do {
            try thread.add(run: { [self] in run() }) { $0.work = work }
        } catch {
            fail(Failure(error: error, unsettled: work.reason))
        }
    }

    private func run() {
        while let (work, body) = next() {
            guard body(work) else { return thread.end() }
        }
    }

    /// Nil if there is nothing to do: the thread ends.
    private func next() -> (Work, @Sendable (Work) -> Bool)? {
        thread.take { state in
            guard !state.isStopping, let work = state.work.take() else { return nil }
            return (work, state.body)
        }
    }

    /// Nothing is opened again any more. Waits for what is under way.
    fileprivate func stop() {
        thread.update { $0.isStopping = true }
        thread.waitForEnd()
    }
}

extension Cluster {
    /// Begins to follow, and to lead when nobody does, and to open the store again when it must be.
    /// - Parameter isOnly: the process ends if this server must not serve the store.
    func start(_ served: ServedStore, isOnly: Bool) throws {
        bind(served)
        reopening.bind { [self] work in reopen(served, work.reason, isOnly: isOnly) }
        served.isOpen ? try start(served.store) : reopening.ask(.open)
    }

    /// - Parameter reason: nil for a store that was not open before, as its database could not be reached.
    /// - Returns: whether the store is open again.
    private func reopen(_ served: ServedStore, _ reason: RestartReason?, isOnly: Bool) -> Bool {
        var unsettled = reason
        do {
            if let reason {
                endMember(withinMilliseconds: 0)
                try served.close()
                stop()
                try settle(reason)
                unsettled = nil
            }
            let (store, leader) = try open()
            served.open(store, leader: leader)
            try start(store)
            log(.info, "cluster_store_reopened", ["store": tables.name])
            return true
        } catch {
            if reopening.isStopping { return false }
            log(.error, "cluster_store_not_reopened", ["store": tables.name, "message": ErrorText.describe(error)])
            // The other stores are served without this one.
            if error is CommandFailure, !isOnly { return false }
            reopening.fail(Reopening.Failure(error: error, unsettled: unsettled))
            return false
        }
    }

    /// Makes the directory what the store is to be opened from.
    /// - Throws: a `CommandFailure` if this server must not serve the store.
    private func settle(_ reason: RestartReason) throws {
        switch reason {
        case .newTimeline: break
        case .deposed: try lookForLoss()
        case .diverged:
            try lookForLoss()
            try checkReplaceable()
            try discard()
        case .outdated, .differs:
            try checkReplaceable()
            try discard()
        case .refused(let message): throw CommandFailure(message)
        }
    }

    // MARK: The end of the process

    /// The server is ending: what waits for the database gets some seconds more.
    func beginStopping() {
        reopening.stop()
        endMember(withinMilliseconds: mustEnd ? 0 : 5_000)
    }

    /// Whether the process ends because the store could not be opened again.
    var mustEnd: Bool { reopening.failure != nil }

    /// Starts the process again if the store could not be opened again, unless this server must not serve it. The store
    /// is closed.
    func restartIfNeeded() throws {
        guard let failure = reopening.failure else { return }
        if let error = failure.error as? CommandFailure { throw error }
        if let reason = failure.unsettled { try settle(reason) }
        execv("/proc/self/exe", CommandLine.unsafeArgv)
        throw CommandFailure("the process cannot be started again: errno \(errno)")
    }
}
