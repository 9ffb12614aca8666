import Synchronization

/// The strategies of an encoder or decoder at one time.
protocol CodingStrategies: AnyObject, Sendable {
    /// What a program can set.
    associatedtype Values
    /// Those of a coder of which nothing was set.
    static var standard: Self { get }
    var values: Values { get }
    init(_ values: Values)
}

/// The strategies of an encoder or decoder that a program may change between its calls. Thread-safe.
struct StrategyHolder<Strategies: CodingStrategies>: ~Copyable, Sendable {
    /// Nil for the standard strategies, which most coders have.
    private let changed = Mutex<Strategies?>(nil)
    private let isChanged = Atomic(false)

    /// The strategies of a call that begins now.
    var current: Strategies {
        guard isChanged.load(ordering: .acquiring) else { return .standard }
        return changed.withLock { $0 } ?? .standard
    }

    func change(_ body: (inout Strategies.Values) -> Void) {
        changed.withLock { changed in
            var values = (changed ?? .standard).values
            body(&values)
            changed = Strategies(values)
        }
        isChanged.store(true, ordering: .releasing)
    }
}

/// Takes the values of `userInfo` through a lock; the program answers for them.
struct UncheckedUserInfo: @unchecked Sendable {
    // Unchecked: a dictionary of the SDK's type, whose values may be anything.
    let userInfo: [CodingUserInfoKey: Any]
}
