// A model of an engine, which tests compare it with.

package import Storage

/// What the engine should answer: each key's values by version.
package struct Model {
    package private(set) var versions: [UInt64] = []
    private var history: [Bytes: [(version: UInt64, value: Bytes?)]] = [:]

    package init() {}

    package var last: UInt64 { versions.last ?? 0 }

    /// Every key that was ever changed, in order.
    package var keys: [Bytes] { history.keys.sorted { $0.lexicographicallyPrecedes($1) } }

    package mutating func commit(_ version: UInt64, _ changes: [Change]) {
        versions.append(version)
        for change in changes {
            if history[change.key]?.last?.version == version { history[change.key]?.removeLast() }
            history[change.key, default: []].append((version, change.value))
        }
    }

    package func value(_ key: Bytes, at version: UInt64) -> Bytes? {
        history[key]?.last { $0.version <= version }?.value
    }

    package func entries(_ lower: Bytes, _ upper: Bytes, at version: UInt64, _ direction: ScanDirection) -> [Entry] {
        let found = history.compactMap { key, values -> Entry? in
            guard !key.lexicographicallyPrecedes(lower), key.lexicographicallyPrecedes(upper),
                let newest = values.last(where: { $0.version <= version }), let value = newest.value
            else { return nil }
            return Entry(key: key, value: value, version: newest.version)
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return direction == .forward ? found : found.reversed()
    }
}
