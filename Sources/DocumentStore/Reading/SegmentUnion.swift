// Merging runs of index entries by their ids: intersections that leap, and a union over them.
//
//     a = 1    1 2 3 4 5 6 7 8 9             at 1; 6 wanted: leap to 6
//     b = 2              6       9           at 6; both at 6: found. Next: 7 wanted, b leaps to 9, then a to 9
//
// A run is read in stretches of a few entries, more while it is walked in order and few after a leap, so that a run is not
// read far beyond what is wanted.

internal import DocumentModel
internal import KeyValueStore

/// One run of entries with one value.
private struct SegmentRun {
    private let prefix: [UInt8]
    private let isForward: Bool
    /// Segments read and not passed yet, in the direction of the walk; those before `position` are passed.
    private var segments: [[UInt8]] = []
    private var position = 0
    private var stretch = SegmentRun.shortest
    /// Answers given from what was read last.
    private var answers = 0
    private var isExhausted = false

    private static let shortest = 4
    private static let longest = 256

    init(_ run: ValueRun, isForward: Bool) {
        prefix = run.prefix
        self.isForward = isForward
    }

    /// Goes to the first segment at or behind `target` (nil: the first at all) in the direction of the walk, or behind it if it
    /// is `passed` already, and returns it; nil when there is none.
    mutating func go(
        to target: [UInt8]?, passed: Bool, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) -> [UInt8]? {
        while true {
            while position < segments.count {
                guard let target else {
                    answers += 1
                    return segments[position]
                }
                let order = SegmentRun.compare(segments[position], target)
                if order == 0 ? !passed : (order > 0) == isForward {
                    answers += 1
                    return segments[position]
                }
                position += 1
            }
            if isExhausted { return nil }
            // Most of what was read has been of use: more is read at once. If little was, less.
            stretch = answers * 2 > segments.count ? min(stretch * 2, SegmentRun.longest) : SegmentRun.shortest
            answers = 0
            try read(from: target, passed: passed, snapshot, &scanned)
        }
    }

    static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int { left.byteSpan.compareBytes(right.byteSpan) }

    private mutating func read(
        from target: [UInt8]?, passed: Bool, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) {
        segments.removeAll(keepingCapacity: true)
        position = 0
        var lower = prefix
        var upper = prefix + [KeyLayout.afterEverything]
        // Behind a segment stands its length, below ff.
        if let target {
            if isForward {
                lower = prefix + target + (passed ? [KeyLayout.afterEverything] : [])
            } else {
                upper = prefix + target + (passed ? [] : [KeyLayout.afterEverything])
            }
        }
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 {
            isExhausted = true
            return
        }
        var cursor = try snapshot.cursor(
            from: lower.byteSpan, to: upper.byteSpan, direction: isForward ? .forward : .backward)
        while segments.count < stretch {
            guard try cursor.next() else {
                isExhausted = true
                return
            }
            scanned += 1
            guard let place = IndexKey.idSegment(of: cursor.key) else {
                throw StorageError(.corrupt, "an index entry is damaged")
            }
            segments.append([UInt8](copying: cursor.key.extracting(place)))
        }
    }
}

/// The union of intersections of runs, id by id.
struct SegmentUnion {
    private var members: [[SegmentRun]]
    /// Where each member stands; nil when it has come to its end.
    private var heads: [[UInt8]?]
    private let isForward: Bool
    private let start: [UInt8]?
    /// The id segment found; nil at the end.
    private(set) var current: [UInt8]?

    /// - Parameter after: the segment behind which the walk begins.
    init(_ members: [[ValueRun]], direction: SortDirection, after: [UInt8]?) {
        let isForward = direction == .ascending
        self.isForward = isForward
        self.members = members.map { $0.map { SegmentRun($0, isForward: isForward) } }
        heads = Array(repeating: nil, count: members.count)
        start = after
    }

    /// Goes to the first id.
    mutating func prepare(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        for member in members.indices {
            heads[member] = try SegmentUnion.meet(&members[member], from: start, isForward, snapshot, &scanned)
        }
        choose()
    }

    /// Goes to the next id.
    mutating func advance(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        guard let passed = current else { return }
        for member in members.indices where heads[member] == passed {
            heads[member] = try SegmentUnion.meet(&members[member], from: passed, isForward, snapshot, &scanned)
        }
        choose()
    }

    private mutating func choose() {
        current = nil
        for head in heads {
            guard let head else { continue }
            if let known = current, (SegmentRun.compare(head, known) < 0) != isForward { continue }
            current = head
        }
    }

    /// The first segment behind `passed` that all runs have.
    private static func meet(
        _ runs: inout [SegmentRun], from passed: [UInt8]?, _ isForward: Bool, _ snapshot: borrowing EngineSnapshot,
        _ scanned: inout Int
    ) throws(StorageError) -> [UInt8]? {
        guard var target = try runs[0].go(to: passed, passed: true, snapshot, &scanned) else { return nil }
        var agreeing = 1
        var next = runs.count > 1 ? 1 : 0
        while agreeing < runs.count {
            guard let found = try runs[next].go(to: target, passed: false, snapshot, &scanned) else { return nil }
            if found == target {
                agreeing += 1
            } else {
                target = found
                agreeing = 1
            }
            next = (next + 1) % runs.count
        }
        return target
    }
}
