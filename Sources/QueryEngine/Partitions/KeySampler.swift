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
//
// A node that is not in memory is left out, and asked for. The sample is taken again when it is there; what is known of
// the other nodes is kept, so that none is read twice.

internal import Basics
internal import DocumentModel

/// Takes one sample.
struct KeySampler {
    private struct Sample {
        let key: [UInt8]
        /// How many keys it stands for.
        var weight: Double
    }

    /// What the store has below a prefix.
    private enum Node {
        /// All keys begin with a longer prefix, after which these bytes follow.
        case branch(prefix: [UInt8], children: [UInt8])
        /// So many keys, of which some were taken.
        case leaf(count: Int, taken: [[UInt8]])
    }

    /// In the order of their keys.
    private var samples: [Sample] = []
    /// The nodes that were read, by their prefixes.
    private var nodes: [[UInt8]: Node] = [:]
    /// Why a node of this sample could not be read: `pending`.
    private var lacking: RequestError?

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
    /// - Throws: `pending`, after which it is called again.
    @discardableResult
    mutating func sample<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, below prefix: [UInt8], leaves: Int
    ) throws(RequestError) -> Double {
        samples.removeAll()
        lacking = nil
        let count = try visit(prefix, source, leaves)
        if let lacking { throw lacking }
        return count
    }

    /// Adds the samples below a prefix.
    /// - Returns: about how many keys there are.
    private mutating func visit<Source: QuerySource & ~Copyable>(
        _ prefix: [UInt8], _ source: borrowing Source, _ leaves: Int
    ) throws(RequestError) -> Double {
        guard let node = try node(prefix, source, leaves) else { return 0 }
        switch node {
        case .leaf(let count, let taken):
            for key in taken { samples.append(Sample(key: key, weight: Double(count) / Double(taken.count))) }
            return Double(count)
        case .branch(let prefix, let children):
            let shares = Self.share(leaves, among: children.count, below: prefix)
            let first = samples.count
            var sum = 0.0
            var visited = 0
            for (child, share) in zip(children, shares) where share > 0 {
                sum += try visit(prefix + [child], source, share)
                visited += 1
            }
            // Those visited stand for those that were not.
            let factor = Double(children.count) / Double(max(visited, 1))
            for index in first..<samples.count { samples[index].weight *= factor }
            return sum * factor
        }
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

    /// The node below a prefix; nil if it is not in memory.
    private mutating func node<Source: QuerySource & ~Copyable>(
        _ prefix: [UInt8], _ source: borrowing Source, _ leaves: Int
    ) throws(RequestError) -> Node? {
        if let known = nodes[prefix] { return known }
        do throws(RequestError) {
            let node = try Self.read(source, prefix, leaves)
            nodes[prefix] = node
            return node
        } catch {
            guard error.isPending else { throw error }
            lacking = error
            return nil
        }
    }

    private static func read<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ prefix: [UInt8], _ leaves: Int
    ) throws(RequestError) -> Node {
        let end = end(of: prefix)
        var keys: [[UInt8]] = []
        do {
            var cursor = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .ascending)
            while keys.count <= leafKeys, try cursor.next() { keys.append([UInt8](copying: cursor.key)) }
        }
        if keys.count <= leafKeys {
            let taken = min(keys.count, leaves, samplesPerLeaf)
            return .leaf(
                count: keys.count, taken: (0..<taken).map { keys[(2 * $0 + 1) * keys.count / (2 * taken)] })
        }
        var last = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .descending)
        guard try last.next() else { return .leaf(count: 0, taken: []) }
        let first = keys[0]
        var shared = prefix.count
        while shared < first.count, shared < last.key.byteCount, first[shared] == last.key[byteAt: shared] {
            shared += 1
        }
        // No key is a prefix of another: both continue after what they share.
        let sharedPrefix = Array(first.prefix(shared))
        return .branch(prefix: sharedPrefix, children: try children(source, of: sharedPrefix, end))
    }

    /// The bytes that follow a prefix.
    private static func children<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, of prefix: [UInt8], _ end: [UInt8]
    ) throws(RequestError) -> [UInt8] {
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

    /// Shares out evenly; what is left over goes to children drawn by lot. The lot is always the same for a node, so
    /// that the same keys give the same sample.
    private static func share(_ leaves: Int, among children: Int, below prefix: [UInt8]) -> [Int] {
        var random = SplitMix64(seed: prefix.reduce(SplitMix64.increment) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 })
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
