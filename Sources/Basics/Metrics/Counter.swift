// Counts that one thread raises and any thread reads: what metrics are made of, in every layer above.

public import Synchronization

/// A count that one thread raises and any thread reads; a raise is a plain load and store, no locked instruction.
@usableFromInline package struct Counter: ~Copyable, Sendable {
    @usableFromInline let cell = Atomic<UInt64>(0)

    @inlinable
    package init() {}

    /// The count now.
    @inlinable
    package var value: UInt64 { cell.load(ordering: .relaxed) }

    /// Raises the count; only ever called on the owning thread.
    @inlinable @inline(__always)
    package func add(_ amount: UInt64 = 1) {
        cell.store(cell.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// Lowers a count that is a gauge; only ever called on the owning thread.
    @inlinable @inline(__always)
    package func subtract(_ amount: UInt64 = 1) {
        cell.store(cell.load(ordering: .relaxed) &- amount, ordering: .relaxed)
    }
}
