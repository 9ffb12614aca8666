import Synchronization

/// Counts the unacknowledged writes of one instance, those that an earlier process has left included. Thread-safe.
final class PendingWrites: Sendable {
    private struct State {
        var count = 0
        var bytes = 0
    }

    private let state = Mutex(State())
    /// Bytes of unacknowledged writes past which new ones are refused.
    let bytesMax: Int

    init(bytesMax: Int = 256 << 20) { self.bytesMax = bytesMax }

    /// Registers a write.
    ///
    /// - Parameter byteCount: the size of the request.
    /// - Returns: false, and nothing is registered, if too much is waiting already.
    func begin(byteCount: Int) -> Bool {
        state.withLock { state in
            guard state.bytes == 0 || state.bytes + byteCount <= bytesMax else { return false }
            state.count += 1
            state.bytes += byteCount
            return true
        }
    }

    /// A write was acknowledged or rejected. The argument is that of `begin`.
    func finish(byteCount: Int) {
        state.withLock { state in
            state.count -= 1
            state.bytes -= byteCount
        }
    }

    /// Writes that are neither acknowledged nor rejected.
    var count: Int { state.withLock { $0.count } }
}
