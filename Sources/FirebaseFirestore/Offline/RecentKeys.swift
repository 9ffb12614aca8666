import HearthClient

/// The keys that were inserted last, a bounded number of them.
struct RecentKeys {
    /// The most keys.
    let countMax: Int
    private var keys: Set<[UInt8]> = []
    /// The keys from the one that was inserted first.
    private var order = FIFOQueue<[UInt8]>()

    init(countMax: Int) { self.countMax = countMax }

    func contains(_ key: [UInt8]) -> Bool { keys.contains(key) }

    mutating func insert(_ key: [UInt8]) {
        guard keys.insert(key).inserted else { return }
        order.append(key)
        if order.count > countMax, let oldest = order.popFirst() { keys.remove(oldest) }
    }
}
