// Patterns that are kept between evaluations.

internal import Synchronization

/// Compiled patterns by their texts, a bounded number of them. Thread-safe.
///
/// For patterns that are computed, which may come from hostile documents: a pattern that is used again is not compiled
/// again, and the memory of all of them is bounded by `capacity` times ``Pattern/memoryMax``. Texts that are not valid
/// are kept too.
package final class PatternCache: Sendable {
    private struct Entry {
        let pattern: Pattern?
        var lastUse: UInt64
    }

    private struct State {
        /// By the UTF-8 bytes of the text: strings that are equal in Unicode's sense are not the same pattern.
        var entries: [[UInt8]: Entry] = [:]
        var uses: UInt64 = 0
    }

    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: the most patterns that are kept, at least 1.
    package init(capacity: Int = 64) {
        precondition(capacity > 0, "a cache of patterns keeps at least one")
        self.capacity = capacity
    }

    /// The number of patterns that are kept.
    package var count: Int { state.withLock { $0.entries.count } }

    /// The pattern of a text, or nil if the text is not valid.
    package func pattern(_ source: String) -> Pattern? {
        let key = Array(source.utf8)
        let kept: Entry? = state.withLock { state in
            state.uses += 1
            state.entries[key]?.lastUse = state.uses
            return state.entries[key]
        }
        if let kept { return kept.pattern }
        // Compiled without the lock: two threads may compile the same text, and one of the results is dropped.
        let pattern = Pattern(source)
        state.withLock { state in
            let oldest = state.entries.min { $0.value.lastUse < $1.value.lastUse }
            if state.entries.count >= capacity, let oldest { state.entries[oldest.key] = nil }
            state.entries[key] = Entry(pattern: pattern, lastUse: state.uses)
        }
        return pattern
    }
}
