// Inputs of fuzzers in tests: what a fuzzer has saved, and valid inputs that are damaged; see Tests/Fuzz.

package import Testing

/// A violation is what an input shows to be wrong, in words; nil if it keeps every property.
package enum FuzzCorpus {
    /// Expects that every saved input of a fuzz target keeps every property.
    /// - Parameter countMin: there are more inputs than this.
    package static func expectKept(
        _ target: String, over countMin: Int, sourceLocation: SourceLocation = #_sourceLocation,
        _ violation: ([UInt8]) -> String?
    ) throws {
        let inputs = try Repository.corpus(target)
        expect(inputs.count > countMin, sourceLocation: sourceLocation)
        for (name, bytes) in inputs { expectNil(violation(bytes), "\(name)", sourceLocation: sourceLocation) }
    }

    /// Expects that inputs with bytes removed, repeated and exchanged keep every property. The share of the run selects
    /// which (``CaseShare``).
    /// - Parameters:
    ///   - valid: what is damaged.
    ///   - replacements: see `SeededGenerator.damaged`.
    package static func expectKept(
        damaged valid: [[UInt8]], rounds: Int, replacements: [UInt8]? = nil,
        sourceLocation: SourceLocation = #_sourceLocation, _ violation: ([UInt8]) -> String?
    ) {
        var random = SeededGenerator(seed: UInt64(CaseShare.number))
        for _ in 0..<rounds {
            let bytes = random.damaged(random.pick(valid), replacements: replacements)
            expectNil(violation(bytes), "seed \(random.seed): \(bytes)", sourceLocation: sourceLocation)
        }
    }
}
