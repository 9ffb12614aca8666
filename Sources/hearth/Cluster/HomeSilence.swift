// How long the home database has been silent.

import Synchronization

/// Milliseconds since the home database answered last, as the store that is in it knows. Thread-safe.
final class HomeSilence: Sendable {
    /// A closure in a structure: a lock whose state is a closure wraps it in another one at each access.
    private struct Watch: Sendable {
        var milliseconds: @Sendable () -> UInt64? = { nil }
    }

    private let watch = Mutex(Watch())

    /// nil if the store is the only one.
    var milliseconds: UInt64? { watch.withLock { $0 }.milliseconds() }

    /// Sets where the time comes from.
    func set(_ milliseconds: @escaping @Sendable () -> UInt64?) {
        watch.withLock { $0.milliseconds = milliseconds }
    }
}
