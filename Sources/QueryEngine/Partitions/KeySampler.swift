// A sample of the keys that begin alike, each with the number of keys it stands for, from a few thousand look-ups.
//
// The ordered store can tell which byte comes next after a prefix (one seek for each), so the keys are a tree of
// prefixes:
//
//     u ─┬─ 0 ─┬─ 00…09      children of "u": found by seeking u, then u1, then u2, ...
//        │     └─ ...
//        └─ 1 ─── ...        a subtree of few keys is a leaf: its keys are counted
//
// The sample goes down from the root, shared out evenly among the children of each node. Where there are more children
// than shares, some are left out and the others stand for them. The size of a subtree is estimated from the leaves
// that were reached below it, so that an uneven tree is not taken for an even one (D. E. Knuth, "Estimating the
// efficiency of backtrack programs", 1975). Ids that count up and random ids both make even trees, in which the
// estimates are close.

internal import Basics
internal import DocumentModel

/// Takes one sample.
struct KeySampler {
    private struct Sample {
        let key: [UInt8]
        /// How many keys it stands for.
        var weight: Double
    }

    /// In the order of their keys.
    private var samples: [Sample] = []
    /// Always the same, so that the same keys give the same sample.
    private var random = SplitMix64(seed: SplitMix64.increment)

    /// A subtree with no more keys is counted instead of divided.
    private static let leafKeys = 256
    /// Keys taken from one leaf at most.
    private static let samplesPerLeaf = 4

    /// The first key that does not begin with the prefix, which is not all `ff`.
    static func end(of prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        while end.last == 0xff { end.removeLast() }
        precondition(!end.isEmpty, "a key space ends somewhere")
        end[end.count - 1] += 1
        return end
    }

    /// Samples the keys that begin with a prefix.
    ///
    /// - Parameter leaves: how many places to look at.
    /// - Returns: about how many keys there are.
    @discardableResult
    mutating func sample<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, below prefix: [UInt8], leaves: Int
    ) throws(RequestError) -> Double {
        let end = Self.end(of: prefix)
        guard let node = try branch(source, prefix, end) else { return try sampleLeaf(source, prefix, end, leaves) }
        let children = try node.children(source)
        let shares = share(leaves, among: children.count)
        let first = samples.count
        var sum = 0.0
        var visited = 0
        for (child, share) in zip(children, shares) where share > 0 {
            sum += try sample(source, below: node.prefix + [child], leaves: share)
            visited += 1
        }
        // Those visited stand for those that were not.
        let factor = Double(children.count) / Double(max(visited, 1))
        for index in first..<samples.count { samples[index].weight *= factor }
        return sum * factor
    }

    /// The sampled keys at these fractions of the whole, 0 ... 1 and increasing; each key once.
    func keys(atFractions fractions: [Double]) -> [[UInt8]] {
        let total = samples.reduce(0) { $0 + $1.weight }
        var keys: [[UInt8]] = []
        var position = 0
        var before = 0.0
        for fraction in fractions {
            // The sample whose share of the keys has its middle nearest above the fraction.
            while position < samples.count - 1, before + samples[position].weight / 2 < fraction * total {
                before += samples[position].weight
                position += 1
            }
            if position < samples.count, keys.last != samples[position].key { keys.append(samples[position].key) }
        }
        return keys
    }

    // MARK: Nodes

    private struct Branch {
        /// What all keys of the node begin with.
        let prefix: [UInt8]
        let end: [UInt8]

        /// The bytes that follow the prefix.
        func children<Source: QuerySource & ~Copyable>(_ source: borrowing Source) throws(RequestError) -> [UInt8] {
            var children: [UInt8] = []
            var cursor = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .ascending)
            while try cursor.next() {
                let byte = cursor.key[byteAt: prefix.count]
                children.append(byte)
                if byte == 0xff { break }
                try cursor.seek(to: (prefix + [byte + 1]).byteSpan)
            }
            return children
        }
    }

    /// The node below a prefix; nil if it has so few keys that it is a leaf.
    private func branch<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ prefix: [UInt8], _ end: [UInt8]
    ) throws(RequestError) -> Branch? {
        var first: [UInt8] = []
        var count = 0
        do {
            var cursor = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .ascending)
            while count <= Self.leafKeys, try cursor.next() {
                if count == 0 { first = [UInt8](copying: cursor.key) }
                count += 1
            }
        }
        if count <= Self.leafKeys { return nil }
        var last = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .descending)
        guard try last.next() else { return nil }
        var shared = prefix.count
        while shared < first.count, shared < last.key.byteCount, first[shared] == last.key[byteAt: shared] {
            shared += 1
        }
        // No key is a prefix of another: both continue after what they share.
        return Branch(prefix: Array(first.prefix(shared)), end: end)
    }

    private mutating func sampleLeaf<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ prefix: [UInt8], _ end: [UInt8], _ shares: Int
    ) throws(RequestError) -> Double {
        var keys: [[UInt8]] = []
        var cursor = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .ascending)
        while try cursor.next() { keys.append([UInt8](copying: cursor.key)) }
        let taken = min(keys.count, shares, Self.samplesPerLeaf)
        for index in 0..<taken {
            let weight = Double(keys.count) / Double(taken)
            samples.append(Sample(key: keys[(2 * index + 1) * keys.count / (2 * taken)], weight: weight))
        }
        return Double(keys.count)
    }

    /// Shares out evenly; what is left over goes to children drawn by lot.
    private mutating func share(_ leaves: Int, among children: Int) -> [Int] {
        var shares = [Int](repeating: leaves / max(children, 1), count: children)
        var left = leaves % max(children, 1)
        for index in 0..<children where left > 0 {
            // Each of the remaining children is as likely as any other (selection sampling).
            if Int(truncatingIfNeeded: random.next() % UInt64(children - index)) < left {
                shares[index] += 1
                left -= 1
            }
        }
        return shares
    }
}
