// Making groups durable, one at a time, on the log thread or on the caller's.

package import Basics
package import Storage

/// Writes and syncs sealed groups.
package final class LogSynchronizer: Sendable {
    private struct State {
        var group: LogGroup?
        var completion: (@Sendable (Result<CommitVersion, StorageError>) -> Void)?
        var isBusy = false
        var isStopping = false
    }

    private let state: Monitor<State>
    private let fault: FaultInjection
    /// The times of writing and syncing a group, recorded by the thread that does it, one at a time.
    package let syncNanoseconds = Histogram()
    /// Gets the outcome of each group before its completion does: publishes it, or ends the engine.
    private let finished: @Sendable (CommitVersion, StorageError?) -> Void

    package init(fault: FaultInjection, finished: @escaping @Sendable (CommitVersion, StorageError?) -> Void) {
        state = Monitor(State())
        self.fault = fault
        self.finished = finished
    }

    /// Whether a group is on its way.
    package var isBusy: Bool { state.withLock { $0.isBusy } }

    /// Waits until no group is on its way and all completions have been called.
    package func waitUntilIdle() {
        state.wait { $0.isBusy ? nil : () }
    }

    /// Hands a group to the log thread. None may be on its way.
    package func submit(
        _ group: LogGroup, completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) {
        state.update { state in
            precondition(!state.isBusy, "a group is submitted while another is on its way")
            state.group = group
            state.completion = completion
            state.isBusy = true
        }
    }

    /// Writes and syncs a group on the calling thread. None may be on its way.
    package func perform(_ group: LogGroup) throws(StorageError) -> CommitVersion {
        let started = SystemClock.monotonicNanoseconds()
        do throws(StorageError) {
            try fault.check(.writeLog, file: group.segment.file.path)
            unsafe try group.segment.file.write(group.bytes, at: group.offset)
            try fault.check(.syncLog, file: group.segment.file.path)
            try group.segment.file.syncData()
        } catch {
            // What is on the disk is unknown now, and the kernel may have dropped the pages: nothing more is promised.
            let failure = StorageError(.failed, "the log cannot be written: \(error.message)", file: error.file)
            finished(group.lastVersion, failure)
            throw failure
        }
        syncNanoseconds.record(SystemClock.monotonicNanoseconds() - started)
        finished(group.lastVersion, nil)
        return group.lastVersion
    }

    package func stop() {
        state.update { $0.isStopping = true }
    }

    /// Performs what is submitted until `stop`: the body of the log thread.
    package func run() {
        while true {
            let task = state.wait { state in
                if let group = state.group, let completion = state.completion {
                    state.group = nil
                    state.completion = nil
                    return unsafe LogTask.perform(group, completion)
                }
                return state.isStopping ? LogTask.stop : nil
            }
            guard case .perform(let group, let completion) = task else { return }
            do throws(StorageError) {
                completion(.success(try perform(group)))
            } catch {
                completion(.failure(error))
            }
            state.update { $0.isBusy = false }
        }
    }
}

private enum LogTask {
    case perform(LogGroup, @Sendable (Result<CommitVersion, StorageError>) -> Void)
    case stop
}
