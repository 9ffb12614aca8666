// Making groups durable, one at a time.
//
//     segments      on the log thread, or on the caller's
//     shared log    on threads of that log; here only the outcome is noted

internal import Basics
internal import Storage
internal import Synchronization

/// Writes and syncs sealed groups.
final class LogSynchronizer: Sendable {
    private struct State {
        var task: LogTask?
        var isBusy = false
        var isStopping = false
    }

    private let state: Monitor<State>
    private let fault: FaultInjection
    /// Where groups become durable if not in segments.
    let shared: (any SharedLog)?
    /// The times of writing and syncing a group, recorded by the thread that does it, one at a time.
    let syncNanoseconds = Histogram()
    /// The last version that is durable, in microseconds.
    let durable = Atomic<UInt64>(0)

    init(fault: FaultInjection, shared: (any SharedLog)? = nil) {
        state = Monitor(State())
        self.shared = shared
        self.fault = fault
    }

    /// Whether a group is on its way.
    var isBusy: Bool { state.withLock { $0.isBusy } }

    /// Waits until no group is on its way and all completions have been called.
    func waitUntilIdle() {
        state.wait { $0.isBusy ? nil : () }
    }

    /// Hands a group to the log thread, or to the shared log. None may be on its way.
    func submit(
        _ group: LogGroup, finished: @escaping LogAppender.Outcome,
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) {
        let isShared = group.segment == nil
        state.update { state in
            precondition(!state.isBusy, "a group is submitted while another is on its way")
            state.isBusy = true
            if !isShared { state.task = LogTask(group: group, finished: finished, completion: completion) }
        }
        guard isShared else { return }
        appendShared(group, finished: finished) { [state] result in
            completion(result)
            state.update { $0.isBusy = false }
        }
    }

    /// Makes a group durable, and returns then. None may be on its way.
    /// - Parameter finished: gets the outcome.
    func perform(_ group: LogGroup, finished: @escaping LogAppender.Outcome) throws(StorageError) -> CommitVersion {
        guard let segment = group.segment else {
            let outcome = Monitor<Result<CommitVersion, StorageError>?>(nil)
            appendShared(group, finished: finished) { result in outcome.update { $0 = result } }
            return try outcome.wait { $0 }.get()
        }
        let started = SystemClock.monotonicNanoseconds()
        let result = Result { () throws(StorageError) in try write(group, to: segment) }
        return try end(group.lastVersion, from: started, result, finished).get()
    }

    /// Hands a group to the shared log.
    /// - Parameter completion: called once, on this thread or on one of that log.
    private func appendShared(
        _ group: LogGroup, finished: @escaping LogAppender.Outcome,
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) {
        guard let shared else { preconditionFailure("a group has neither a segment nor a shared log") }
        let (version, started) = (group.lastVersion, SystemClock.monotonicNanoseconds())
        shared.append(unsafe RawSpan(_unsafeBytes: group.bytes), version: version) { [self] result in
            completion(end(version, from: started, result, finished))
        }
    }

    /// Notes what has become of a group.
    private func end(
        _ version: CommitVersion, from started: UInt64, _ result: Result<Void, StorageError>,
        _ finished: LogAppender.Outcome
    ) -> Result<CommitVersion, StorageError> {
        if case .failure(let error) = result {
            // What is on the disk is unknown now, and the kernel may have dropped the pages: nothing more is promised.
            let failure = StorageError(.failed, "the log cannot be written: \(error.message)", file: error.file)
            finished(version, failure)
            return .failure(failure)
        }
        syncNanoseconds.record(SystemClock.monotonicNanoseconds() - started)
        durable.store(version.microseconds, ordering: .releasing)
        finished(version, nil)
        return .success(version)
    }

    private func write(_ group: LogGroup, to segment: LogSegment) throws(StorageError) {
        try fault.check(.writeLog, file: segment.file.path)
        unsafe try segment.file.write(group.bytes, at: group.offset)
        try fault.check(.syncLog, file: segment.file.path)
        try segment.file.syncData()
    }

    func stop() {
        state.update { $0.isStopping = true }
    }

    /// Performs what is submitted until `stop`: the body of the log thread.
    func run() {
        while true {
            let next = state.wait { state -> LogTask?? in
                if let task = state.task.take() { return .some(task) }
                return state.isStopping ? .some(nil) : nil
            }
            guard let task = next else { return }
            do throws(StorageError) {
                task.completion(.success(try perform(task.group, finished: task.finished)))
            } catch {
                task.completion(.failure(error))
            }
            state.update { $0.isBusy = false }
        }
    }
}

/// A group for the log thread.
private struct LogTask {
    let group: LogGroup
    let finished: LogAppender.Outcome
    let completion: @Sendable (Result<CommitVersion, StorageError>) -> Void
}
