// Patterns that are kept between evaluations.

internal import Synchronization

/// What compiling a text comes to.
package struct CompiledPattern: Sendable {
    /// Nil if the text is not valid, or its program is too large.
    package let pattern: Pattern?
    /// What compiling the program costs, in bytes that could be copied meanwhile. A program that is too large is made
    /// as far as it fits.
    package let cost: Int

    /// Some 400 ns are as many copied bytes.
    private static let instructionCost = 256
    /// About what fits into ``Pattern/memoryMax``.
    private static let instructionsMax = 1 << 15

    init(_ source: String) {
        var isTooLarge = false
        let compiled = Pattern(source, &isTooLarge)
        pattern = compiled
        cost = Self.instructionCost * (compiled?.instructionCount ?? (isTooLarge ? Self.instructionsMax : 0))
    }
}

/// Compiled patterns by their texts, a bounded number of them. Thread-safe.
///
/// For patterns that are computed, which may come from hostile documents: a pattern that is used again is not compiled
/// again, and the memory of all of them is bounded by `capacity` times ``Pattern/memoryMax``. Texts that are not valid
/// are kept too.
package final class PatternCache: Sendable {
    private struct Entry {
        let compiled: CompiledPattern
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

    /// What a text is compiled to. The cost is the same whether it is kept or not.
    package func compiled(_ source: String) -> CompiledPattern {
        let key = Array(source.utf8)
        let kept: Entry? = state.withLock { state in
            state.uses += 1
            state.entries[key]?.lastUse = state.uses
            return state.entries[key]
        }
        if let kept { return kept.compiled }
        // Compiled without the lock: two threads may compile the same text, and one of the results is dropped.
        let compiled = CompiledPattern(source)
        state.withLock { state in
            let oldest = state.entries.min { $0.value.lastUse < $1.value.lastUse }
            if state.entries.count >= capacity, let oldest { state.entries[oldest.key] = nil }
            state.entries[key] = Entry(compiled: compiled, lastUse: state.uses)
        }
        return compiled
    }
}
