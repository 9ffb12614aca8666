internal import Synchronization

/// How far a copy of an engine has come, and the wish that it stops. Thread-safe.
package final class CopyControl: Sendable {
    private let state = Mutex((done: 0, total: 0, isCancelled: false))

    package init() {}

    /// Bytes of runs that have been written, and those of the runs that are read. The first number ends below the
    /// second, since a copy leaves out what is superseded; both are 0 before the copy begins to write.
    package var progress: (done: Int, total: Int) { state.withLock { ($0.done, $0.total) } }

    /// Has the copy fail soon, which removes what it wrote. A copy that is complete stays.
    package func cancel() { state.withLock { $0.isCancelled = true } }

    /// To be called by the copy every few thousand entries.
    /// - Throws: `cancelled`.
    package func note(done: Int, of total: Int) throws(StorageError) {
        let isCancelled = state.withLock { state in
            (state.done, state.total) = (done, total)
            return state.isCancelled
        }
        if isCancelled { throw StorageError(.cancelled, "the copy was cancelled") }
    }
}
