internal import Synchronization

/// How many things of one kind each network has open. Bounded by the number of these things. Thread-safe.
package final class NetworkCounts: Sendable {
    /// What one network may have open; 0 sets no limit.
    package let max: Int
    private let counts = Mutex<[NetworkAddress: Int]>([:])
    private let refused = Atomic<UInt64>(0)

    package init(max: Int) { self.max = max }

    /// What was refused since the start.
    package var refusedCount: UInt64 { refused.load(ordering: .relaxed) }

    /// Networks that have something open.
    package var networkCount: Int { counts.withLock { $0.count } }

    /// Counts one more, if the network may have one more.
    ///
    /// - Parameter network: nil for one that is not counted; it may always.
    package func enter(_ network: NetworkAddress?) -> Bool {
        guard max > 0, let network else { return true }
        let isWithinLimit = counts.withLock { counts in
            guard counts[network, default: 0] < max else { return false }
            counts[network, default: 0] += 1
            return true
        }
        if !isWithinLimit { refused.wrappingAdd(1, ordering: .relaxed) }
        return isWithinLimit
    }

    /// Discounts one that ``enter(_:)`` has counted.
    package func leave(_ network: NetworkAddress?) {
        guard max > 0, let network else { return }
        counts.withLock { counts in
            guard let count = counts[network] else { return }
            counts[network] = count > 1 ? count - 1 : nil
        }
    }
}
