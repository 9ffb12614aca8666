internal import Synchronization

/// A switch that threads share. What was written before it was set is visible to those who have seen it.
package final class Flag: Sendable {
    private let value = Atomic(false)

    package init() {}

    package var isSet: Bool { value.load(ordering: .acquiring) }
    package func set(_ isSet: Bool = true) { value.store(isSet, ordering: .releasing) }
}
