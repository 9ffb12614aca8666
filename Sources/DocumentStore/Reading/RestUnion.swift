// Merging runs of index entries by their rests: intersections that leap, and a union over them.
//
//     a = 1    1 2 3 4 5 6 7 8 9             at 1; 6 wanted: leap to 6
//     b = 2              6       9           at 6; both at 6: found. Next: 7 wanted, b leaps to 9, then a to 9
//
// A rest is what follows a run's prefix in its keys: the id and its length, and before them the further values of an index over
// several fields. Runs that are merged have rests of the same shape; those of different collections are brought into one
// (`CollectionRests`).
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
    /// Of several collections: the place among the others says nothing about the document's.
    var isCut = false
}

/// The rests of one collection's entries among those of others: the value, the document's path, a terminator, the path's length.
///
///     collection c       value | id | 1 byte               value | c, id | 00 | 2 bytes
///     collection c/x/c   value | id | 1 byte               value | c, x, c, id | 00 | 2 bytes
///
/// Paths are never cut here, and the terminator lies below every segment's first byte: a document comes before those below it.
private struct CollectionRests {
    /// The collection's path.
    private let segments: [UInt8]
    /// What the keys of its documents begin with, with the marker.
    private let documentPrefix: [UInt8]
    /// Bytes of values in the prefix of the runs.
    private let valueBytes: Int
    private let isForward: Bool

    private static let tailBytes = 3

    init(_ collection: GroupCollection, database: UInt32, valueBytes: Int, isForward: Bool) {
        segments = collection.segments
        self.valueBytes = valueBytes
        self.isForward = isForward
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        DocumentKey.writeCollection(collection.path.byteSpan, database: database, into: &key)
        key.append(byte: KeyLayout.documentMarker)
        documentPrefix = key.copyBytes()
    }

    /// An entry as one of several collections.
    func united(_ entry: MergedEntry) -> MergedEntry? {
        guard let place = IndexKey.idSegment(of: entry.rest.byteSpan, from: 0) else { return nil }
        let segment = entry.rest[place]
        let isCutID = IndexKey.isCut(idSegment: Array(segment).byteSpan)
        // One that is cut is met before everything whose place it could take.
        var path = segments + (isCutID && isForward ? segment.prefix(KeyLayout.plainBytesMaximum) : segment)
        let count = path.count
        path += [KeyLayout.terminator, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        let isCutValue = place.lowerBound > 0 && valueBytes + place.lowerBound >= IndexKey.valueBytesMaximum
        return MergedEntry(
            rest: entry.rest[..<place.lowerBound] + path, documentKey: documentPrefix + segment,
            isCut: isCutID || isCutValue)
    }

    /// The rest behind which the collection's entries come that are behind an entry of any collection.
    func local(_ united: [UInt8]) -> [UInt8] {
        let end = united.count - Self.tailBytes
        let start = end - (Int(united[end + 1]) << 8 | Int(united[end + 2]))
        let (value, path) = (united[..<start], united[start..<end])
        guard path.starts(with: segments) else {
            // All entries of the value are before or behind it.
            let isBehind = segments.lexicographicallyPrecedes(path)
            return value + (isBehind ? [KeyLayout.afterEverything] : [])
        }
        let rest = Array(path.dropFirst(segments.count))
        let first = KeySegment.skip(in: rest.byteSpan, at: 0, end: rest.count) ?? rest.count
        // Going down, a document is behind those below it.
        let isItself = !isForward && first == rest.count
        return value + rest[..<first] + (isItself ? [] : [KeyLayout.afterEverything])
    }
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
    private struct Member {
        var runs: [RestRun]
        let collection: CollectionRests?
        /// Where it stands; nil when it has come to its end.
        var head: MergedEntry?
    }

    private var members: [Member]
    private let isForward: Bool
    private let start: [UInt8]?
    /// The entry found; nil at the end.
    private(set) var current: MergedEntry?

    /// - Parameter after: the rest behind which the walk begins.
    init(_ members: [MergeMember], database: UInt32, direction: SortDirection, after: [UInt8]?) {
        let isForward = direction == .ascending
        self.isForward = isForward
        self.members = members.map { member in
            Member(
                runs: member.runs.map { RestRun($0, isForward: isForward) },
                collection: member.collection.map {
                    CollectionRests(
                        $0, database: database, valueBytes: member.runs[0].valueBytes, isForward: isForward)
                })
        }
        start = after
    }

    /// Goes to the first entry.
    mutating func prepare(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        for member in members.indices { try go(member, behind: start, snapshot, &scanned) }
        choose()
    }

    /// Goes to the next entry.
    mutating func advance(_ snapshot: borrowing EngineSnapshot, _ scanned: inout Int) throws(StorageError) {
        guard let passed = current?.rest else { return }
        for member in members.indices where members[member].head?.rest == passed {
            try go(member, behind: passed, snapshot, &scanned)
        }
        choose()
    }

    private mutating func choose() {
        current = nil
        for member in members {
            guard let head = member.head else { continue }
            if let known = current, (RestRun.compare(head.rest, known.rest) < 0) != isForward { continue }
            current = head
        }
    }

    /// Goes to a member's first entry behind a rest.
    private mutating func go(
        _ member: Int, behind rest: [UInt8]?, _ snapshot: borrowing EngineSnapshot, _ scanned: inout Int
    ) throws(StorageError) {
        guard let collection = members[member].collection else {
            members[member].head = try RestUnion.meet(&members[member].runs, from: rest, snapshot, &scanned)
            return
        }
        let found = try RestUnion.meet(&members[member].runs, from: rest.map(collection.local), snapshot, &scanned)
        guard let found else {
            members[member].head = nil
            return
        }
        guard let head = collection.united(found) else { throw StorageError(.corrupt, "an index entry is damaged") }
        members[member].head = head
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
