// Random numbers that can be had again: every property test prints its seed, and the seed gives the same run.

internal import Basics

/// Random numbers of a known seed.
package struct SeededGenerator: RandomNumberGenerator {
    package let seed: UInt64
    private var random: SplitMix64

    package init(seed: UInt64) {
        self.seed = seed
        random = SplitMix64(seed: seed)
    }

    package mutating func next() -> UInt64 { random.next() }

    /// A number in a half-open range.
    package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    /// True once in `times`.
    package mutating func oneIn(_ times: Int) -> Bool { below(times) == 0 }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
