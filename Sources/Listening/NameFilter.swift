internal import COpenSSL
internal import DocumentModel
internal import FirestoreMessages

/// Builds the bloom filter of the documents that match a target. See ``BloomFilter``.
struct NameFilter {
    /// Bits for each name and bits set for each name: one of 15,000 other names is taken for a member.
    private static let bitsPerName = 20
    private static let hashCount = 14

    /// Names up to which a filter is built; a client without one lists the target again.
    static let namesMax = 50_000

    private var hashes: [(first: UInt64, second: UInt64)] = []
    private var hasTooMany = false

    /// Inserts a full resource name.
    mutating func insert(_ name: RawSpan) {
        if hashes.count < Self.namesMax { return hashes.append(Self.hash(name)) }
        hasTooMany = true
    }

    /// Nil if there are more than `namesMax` names.
    var message: BloomFilter? {
        if hasTooMany { return nil }
        var bitmap = [UInt8](repeating: 0, count: (max(hashes.count, 1) * Self.bitsPerName + 7) / 8)
        let bits = UInt64(bitmap.count * 8)
        for (first, second) in hashes {
            for index in 0..<UInt64(Self.hashCount) {
                let bit = (first &+ index &* second) % bits
                bitmap[Int(bit / 8)] |= 1 << UInt8(bit % 8)
            }
        }
        return BloomFilter(bitmap: bitmap, padding: 0, hashCount: Int32(Self.hashCount))
    }

    /// The halves of the name's MD5 hash.
    private static func hash(_ name: RawSpan) -> (first: UInt64, second: UInt64) {
        var digest: (UInt64, UInt64) = (0, 0)
        // In bounds: an MD5 digest has 16 bytes.
        let isDone = unsafe name.withUnsafeBytes { name in
            unsafe withUnsafeMutableBytes(of: &digest) { digest in
                unsafe EVP_Digest(name.baseAddress, name.count, digest.baseAddress, nil, EVP_md5(), nil)
            }
        }
        precondition(isDone == 1, "OpenSSL has no MD5")
        return (UInt64(littleEndian: digest.0), UInt64(littleEndian: digest.1))
    }
}
