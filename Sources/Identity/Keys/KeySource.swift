// Where an issuer's keys come from while a server runs.

internal import Synchronization

/// The current keys of an issuer. Thread-safe.
package protocol KeySource: Sendable {
    /// The keys to verify with now. Does not wait.
    var keys: KeySet { get }

    /// To be called when a token has a `kid` that is not among the keys.
    ///
    /// - Parameter then: called when the keys may have changed, on any thread.
    /// - Returns: whether `then` will be called. If not, the keys are as new as they may be, and the token is refused.
    func refresh(_ then: @escaping @Sendable () -> Void) -> Bool
}

/// Keys of files, replaced by a reload. Thread-safe.
package final class FixedKeys: KeySource {
    private let current: Mutex<KeySet>

    package init(_ keys: KeySet) { current = Mutex(keys) }

    package var keys: KeySet { current.withLock { $0 } }

    /// Replaces all keys; tokens of keys that are gone are refused from now on.
    package func replace(_ keys: KeySet) { current.withLock { $0 = keys } }

    package func refresh(_ then: @escaping @Sendable () -> Void) -> Bool { false }
}
