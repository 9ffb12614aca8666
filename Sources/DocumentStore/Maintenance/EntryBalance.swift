internal import Basics
internal import CXXHash

/// Compares the index entries that documents require with those that are stored, in any order and in little memory.
///
/// Entries are hashed into buckets. A bucket has the sum of the hashes of its required entries, less that of its stored
/// ones, modulo 2^128 in two halves. If both sets are equal all sums are zero. If they are not, a sum is zero with a
/// probability of 2^-128. The seed is random, so no one can choose documents for which it is another.
///
/// Each entry comes once on each side. Memory: 64 KiB.
struct EntryBalance {
    private var buckets = [SIMD2<UInt64>](repeating: .zero, count: Self.bucketCount)
    private let seed = UInt64.random(in: .min ... .max)

    private static let bucketCount = 4096

    /// A document requires an entry.
    mutating func require(_ key: RawSpan) {
        let sum = hash(key)
        buckets[Self.bucket(sum)] &+= sum
    }

    /// An entry is stored.
    mutating func find(_ key: RawSpan) {
        let sum = hash(key)
        buckets[Self.bucket(sum)] &-= sum
    }

    /// Whether the same entries are required and stored.
    var isBalanced: Bool { buckets.allSatisfy { $0 == .zero } }

    /// Whether this is so for the entries with which a key shares its bucket.
    func isBalanced(around key: RawSpan) -> Bool { buckets[Self.bucket(hash(key))] == .zero }

    private func hash(_ key: RawSpan) -> SIMD2<UInt64> {
        let hash = unsafe key.withUnsafeBytes { unsafe XXH3_128bits_withSeed($0.baseAddress, $0.count, seed) }
        return SIMD2(hash.low64, hash.high64)
    }

    private static func bucket(_ hash: SIMD2<UInt64>) -> Int { Int(hash.y >> 52) }
}
