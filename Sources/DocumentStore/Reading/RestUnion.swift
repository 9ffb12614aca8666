// Merging runs of index entries by their rests: intersections that leap, and a union over them.
//
//     a = 1    1 2 3 4 5 6 7 8 9             at 1; 6 wanted: leap to 6
//     b = 2              6       9           at 6; both at 6: found. Next: 7 wanted, b leaps to 9, then a to 9
//
// A rest is what follows a run's prefix in its keys: the id and its length, and before them the further values of an index over
// several fields. Runs that are merged have rests of the same shape.
//
// A run is read in stretches of a few entries, more while most of them are of use and few after a leap, so that it is not read far
// beyond what is wanted.

internal import DocumentModel
internal import KeyValueStore

/// An entry of a merge.
struct MergedEntry: Equatable {
    let rest: [UInt8]
    /// The document's key, if the rest cannot say it.
    let documentKey: [UInt8]
}

/// One run of entries.
private struct RestRun {
    private let prefix: [UInt8]
    private let rests: ByteInterval
    private let isForward: Bool
    /// Entries read and not passed yet, in the direction of the walk; those before `position` are passed.
    private var entries: [MergedEntry] = []
    private var position = 0
    private var stretch = RestRun.shortest
    /// Answers given from what was read last.
    private var answers = 0
    private var isExhausted = false

    private static let shortest = 4
    private static let longest = 256

    init(_ run: ValueRun, isForward: Bool) {
        prefix = run.prefix
        rests = run.rests
        self.isForward = isForward
    }

    /// Goes to the first entry at or behind `target` (nil: the first at all) in the direction of the walk, or behind it if it is
    /// `passed` already, and returns it; nil when there is none.
    mutating func go(
        to target: [UInt8]?, passed: Bool, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) -> MergedEntry? {
        while true {
            while position < entries.count {
                guard let target else {
                    answers += 1
                    return entries[position]
                }
                let order = RestRun.compare(entries[position].rest, target)
                if order == 0 ? !passed : (order > 0) == isForward {
                    answers += 1
                    return entries[position]
                }
                position += 1
            }
            if isExhausted { return nil }
            // Most of what was read has been of use: more is read at once. If little was, less.
            stretch = answers * 2 > entries.count ? min(stretch * 2, RestRun.longest) : RestRun.shortest
            answers = 0
            try read(from: target, passed: passed, snapshot, &scanned)
        }
    }

    static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int { left.byteSpan.compareBytes(right.byteSpan) }

    private mutating func read(
        from target: [UInt8]?, passed: Bool, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) {
        entries.removeAll(keepingCapacity: true)
        position = 0
        var range = rests
        if let target {
            // A rest is whole: the next key is the rest and a zero.
            if isForward {
                let lower = target + (passed ? [0] : [])
                if RestRun.compare(lower, range.lower) > 0 { range.lower = lower }
            } else {
                let upper = target + (passed ? [] : [0])
                if RestRun.compare(upper, range.upper) < 0 { range.upper = upper }
            }
        }
        if range.isEmpty {
            isExhausted = true
            return
        }
        let (lower, upper) = (prefix + range.lower, prefix + range.upper)
        var cursor = try snapshot.cursor(
            from: lower.byteSpan, to: upper.byteSpan, direction: isForward ? .forward : .backward)
        while entries.count < stretch {
            guard try cursor.next() else {
                isExhausted = true
                return
            }
            scanned += 1
            entries.append(
                MergedEntry(
                    rest: [UInt8](copying: cursor.key.extracting(prefix.count..<cursor.key.byteCount)),
                    documentKey: [UInt8](copying: cursor.value)))
        }
    }
}

/// The union of intersections of runs, entry by entry.
struct RestUnion {
    private var members: [[RestRun]]
    /// Where each member stands; nil when it has come to its end.
    private var heads: [MergedEntry?]
    private let isForward: Bool
    private let start: [UInt8]?
    /// The entry found; nil at the end.
    private(set) var current: MergedEntry?

    /// - Parameter after: the rest behind which the walk begins.
    init(_ members: [[ValueRun]], direction: SortDirection, after: [UInt8]?) {
        let isForward = direction == .ascending
        self.isForward = isForward
        self.members = members.map { $0.map { RestRun($0, isForward: isForward) } }
        heads = Array(repeating: nil, count: members.count)
        start = after
    }

    /// Goes to the first entry.
    mutating func prepare(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        for member in members.indices {
            heads[member] = try RestUnion.meet(&members[member], from: start, snapshot, &scanned)
        }
        choose()
    }

    /// Goes to the next entry.
    mutating func advance(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        guard let passed = current?.rest else { return }
        for member in members.indices where heads[member]?.rest == passed {
            heads[member] = try RestUnion.meet(&members[member], from: passed, snapshot, &scanned)
        }
        choose()
    }

    private mutating func choose() {
        current = nil
        for head in heads {
            guard let head else { continue }
            if let known = current, (RestRun.compare(head.rest, known.rest) < 0) != isForward { continue }
            current = head
        }
    }

    /// The first entry behind `passed` that all runs have.
    private static func meet(
        _ runs: inout [RestRun], from passed: [UInt8]?, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) -> MergedEntry? {
        guard var target = try runs[0].go(to: passed, passed: true, snapshot, &scanned) else { return nil }
        var agreeing = 1
        var next = runs.count > 1 ? 1 : 0
        while agreeing < runs.count {
            guard let found = try runs[next].go(to: target.rest, passed: false, snapshot, &scanned) else { return nil }
            if found.rest == target.rest {
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
