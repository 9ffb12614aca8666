internal import Synchronization

/// How many things of one kind each network has open.
package typealias NetworkCounts = OpenCounts<NetworkAddress>

/// How many things of one kind each owner has open. Bounded by the number of these things. Thread-safe.
package final class OpenCounts<Owner: Hashable & Sendable>: Sendable {
    /// What one owner may have open; 0 sets no limit.
    package let max: Int
    private let counts = Mutex<[Owner: Int]>([:])
    private let refused = Atomic<UInt64>(0)

    package init(max: Int) { self.max = max }

    /// What was refused since the start.
    package var refusedCount: UInt64 { refused.load(ordering: .relaxed) }

    /// Owners that have something open.
    package var ownerCount: Int { counts.withLock { $0.count } }

    /// Counts one more, if the owner may have one more.
    ///
    /// - Parameter owner: nil for one that is not counted; it may always.
    package func enter(_ owner: Owner?) -> Bool {
        guard max > 0, let owner else { return true }
        let isWithinLimit = counts.withLock { counts in
            guard counts[owner, default: 0] < max else { return false }
            counts[owner, default: 0] += 1
            return true
        }
        if !isWithinLimit { refused.wrappingAdd(1, ordering: .relaxed) }
        return isWithinLimit
    }

    /// Discounts one that ``enter(_:)`` has counted.
    package func leave(_ owner: Owner?) {
        guard max > 0, let owner else { return }
        counts.withLock { counts in
            guard let count = counts[owner] else { return }
            counts[owner] = count > 1 ? count - 1 : nil
        }
    }
}
