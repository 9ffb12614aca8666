// The ranges of a transaction, to find those that contain a key: a transaction may have walked many, and many keys may
// have changed meanwhile.
//
// The ranges lie in the order of their first keys and form a balanced tree: the root of a part of them is its middle.
// Each knows the one of its subtree that reaches furthest, so a search passes over subtrees that end before the key.

internal import Basics
internal import Storage

/// Finds ranges by a key. A search takes as many steps as the logarithm of their number, for each range that it finds.
struct RangeTree {
    private let ranges: [ReadRange]
    /// The range with the last upper key, for the subtree of each.
    private var furthest: [Int]

    init(_ ranges: some Sequence<ReadRange>) {
        self.ranges = ranges.sorted { $0.lower.byteSpan.compareBytes($1.lower.byteSpan) < 0 }
        furthest = Array(self.ranges.indices)
        connect(self.ranges.indices)
    }

    private mutating func connect(_ part: Range<Int>) {
        if part.isEmpty { return }
        let root = (part.lowerBound + part.upperBound) / 2
        for side in [part.lowerBound..<root, root + 1..<part.upperBound] where !side.isEmpty {
            connect(side)
            let other = furthest[(side.lowerBound + side.upperBound) / 2]
            if ranges[other].ends(after: ranges[furthest[root]]) {
                furthest[root] = other
            }
        }
    }

    /// Appends the ranges that contain a key and were walked before a version.
    ///
    /// - Parameter steps: less by the ranges that contain the key.
    func append(
        containing key: RawSpan, before version: UInt64, steps: inout Int, to found: inout [ReadRange]
    ) {
        append(ranges.indices, key, version, &steps, &found)
    }

    private func append(
        _ part: Range<Int>, _ key: RawSpan, _ version: UInt64, _ steps: inout Int, _ found: inout [ReadRange]
    ) {
        if part.isEmpty || steps < 0 { return }
        let root = (part.lowerBound + part.upperBound) / 2
        if !ranges[furthest[root]].reaches(key) { return }
        append(part.lowerBound..<root, key, version, &steps, &found)
        if !ranges[root].begins(by: key) { return }
        if ranges[root].reaches(key) {
            steps -= 1
            if ranges[root].version.microseconds < version { found.append(ranges[root]) }
        }
        append(root + 1..<part.upperBound, key, version, &steps, &found)
    }
}
