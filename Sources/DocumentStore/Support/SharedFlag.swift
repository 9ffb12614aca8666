internal import Basics
internal import Synchronization

/// A Boolean that one thread sets and another clears. What was written before `clear` is visible after `isSet`
/// returned false.
final class SharedFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool {
        yieldPoint()
        return value.load(ordering: .acquiring)
    }

    func set() {
        yieldPoint()
        value.store(true, ordering: .releasing)
    }

    func clear() {
        yieldPoint()
        value.store(false, ordering: .releasing)
    }
}
