internal import Synchronization

/// A Boolean that one thread sets and another clears. What was written before `clear` is visible after `isSet`
/// returned false.
final class SharedFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
    func clear() { value.store(false, ordering: .releasing) }
}
