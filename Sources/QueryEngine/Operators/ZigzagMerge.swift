// A zigzag merge join: intersects ranges of index entries by their suffixes.
//
//     a = 1    1 2 3 4 5 6 7 8 9             at 1; 6 wanted: seeks 6
//     b = 2              6       9           at 6; both at 6: found. Next: 7 wanted, b seeks 9, then a seeks 9
//
// Entries with equal values are in the order of their suffixes, so each range is only ever read forwards (or only
// backwards), and what the others do not contain is skipped by a seek.

import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

/// The entries that all ranges contain. A merge of one range is that range.
struct ZigzagMerge: Sendable {
    var ranges: [IndexRange]
    /// Where entries of several collections are united: the one that the ranges are of.
    var collection: GroupCollection?

    func estimate<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, atMost: Int
    ) throws(RequestError) -> Int {
        // An intersection has no more entries than its smallest range.
        var least = atMost
        for range in ranges { least = min(least, try range.count(in: source, atMost: least)) }
        return least
    }

    /// - Parameter figures: nil unless the merge was measured.
    func tree(_ direction: SortDirection, _ figures: MergeFigures?) -> PlanTree {
        let inputs = ranges.indices.map { range in
            var tree = ranges[range].tree(direction)
            tree.figures = figures?.ranges[range]
            return tree
        }
        if inputs.count == 1 { return inputs[0] }
        return PlanTree(line: "ZigzagMerge", inputs: inputs, figures: figures?.merge)
    }
}

/// What a merge and each of its ranges did.
struct MergeFigures: Sendable {
    var merge = OperatorFigures()
    var ranges: [OperatorFigures]

    static func + (left: MergeFigures, right: MergeFigures) -> MergeFigures {
        MergeFigures(merge: left.merge + right.merge, ranges: zip(left.ranges, right.ranges).map { $0 + $1 })
    }
}

/// Where a merge stands: its resume token.
struct MergePosition: Sendable, Equatable {
    /// The next entry is at or after this suffix; nil is the beginning.
    var suffix: [UInt8]?
    /// Whether an entry with the suffix itself is still wanted.
    var isInclusive = true
    var isExhausted = false
}

/// A zigzag merge being read, for one page.
struct ZigzagReader {
    private var readers: [RangeReader]
    private let collection: CollectionSuffixes?
    private let shared: SharedSuffixes?
    private(set) var position: MergePosition
    /// The entry found by the last `seek`, in the form common to all collections; nil at the end.
    private(set) var head: MergeEntry?
    /// Of the merge; nil unless it is measured.
    private var figures: OperatorFigures?

    init(
        _ merge: ZigzagMerge, at position: MergePosition, database: UInt32, _ direction: SortDirection,
        measures: Bool = false
    ) {
        let shared = SharedSuffixes(merge)
        self.shared = shared
        // Where a document may have different suffixes, that of a deleted entry does not say where the others are.
        readers = merge.ranges.map {
            RangeReader($0, direction, countsDeletions: shared == nil, measures: measures)
        }
        if measures { figures = OperatorFigures() }
        collection = merge.collection.map {
            CollectionSuffixes($0, database: database, valueBytes: merge.ranges[0].valueBytes, direction)
        }
        self.position = position
    }

    /// Moves past the head.
    mutating func pass() {
        position.isInclusive = false
        head = nil
    }

    /// What this page took; nil unless the merge is measured.
    var measured: MergeFigures? {
        figures.map { MergeFigures(merge: $0, ranges: readers.map { $0.figures ?? OperatorFigures() }) }
    }

    /// Finds the next entry that all ranges contain.
    ///
    /// - Returns: false if the step's budget was spent before; the position has moved on.
    mutating func seek<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> Bool {
        if figures == nil { return try find(source, &work) }
        let start = SystemClock.monotonicNanoseconds()
        let isFound = try find(source, &work)
        figures?.add(rows: head == nil ? 0 : 1, entries: 0, since: start)
        return isFound
    }

    private mutating func find<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> Bool {
        if position.isExhausted { return true }
        var target: MergeEntry
        switch try readers[0].seek(to: position.suffix, isInclusive: position.isInclusive, source, &work) {
        case .entry(let entry): target = entry
        case .deletions(let suffix): return pause(after: suffix)
        case .end: return end()
        }
        if try shared?.isCut(target) == true { return stop(at: target) }
        var agreeing = 1
        var next = readers.count > 1 ? 1 : 0
        while agreeing < readers.count {
            let found: MergeEntry
            switch try readers[next].seek(to: target.suffix, isInclusive: true, source, &work) {
            case .entry(let entry): found = entry
            case .deletions(let suffix): return pause(after: suffix)
            case .end: return end()
            }
            next = next + 1 == readers.count ? 0 : next + 1
            if try shared?.isCut(found) == true { return stop(at: found) }
            if found.suffix == target.suffix {
                agreeing += 1
                continue
            }
            target = found
            agreeing = 1
            if work.scanned >= work.limit {
                // Later than before: repeated steps come to an end.
                stand(at: target)
                return false
            }
        }
        stand(at: target)
        guard let collection else {
            head = target
            return true
        }
        head = collection.united(target)
        if head == nil { throw .damagedEntry }
        return true
    }

    private mutating func stand(at entry: MergeEntry) {
        position.suffix = entry.suffix
        position.isInclusive = true
    }

    /// One of the ranges has no entry up to a suffix.
    private mutating func pause(after suffix: [UInt8]) -> Bool {
        position.suffix = suffix
        position.isInclusive = false
        return false
    }

    /// Ends at an entry that may be of another document, or in another place, in the other ranges.
    private mutating func stop(at entry: MergeEntry) -> Bool {
        stand(at: entry)
        head = MergeEntry(suffix: entry.suffix, documentKey: entry.documentKey, isCut: true)
        return true
    }

    private mutating func end() -> Bool {
        position.isExhausted = true
        return true
    }
}

/// Suffixes with values in ranges whose prefixes have different lengths. A key has room for so many bytes of values: a
/// long value in the suffix is cut earlier where more bytes stand before it, and then one document has different
/// suffixes.
private struct SharedSuffixes {
    private let index: IndexUse
    /// Values of so many bytes are cut in one of the ranges at least.
    private let valueBytesMax: Int

    /// Nil if a document has the same suffix in all ranges.
    init?(_ merge: ZigzagMerge) {
        let first = merge.ranges[0]
        guard first.index.isDeclared, merge.ranges.contains(where: { $0.valueBytes != first.valueBytes }) else {
            return nil
        }
        index = first.index
        valueBytesMax = merge.ranges.reduce(.max) { min($0, $1.suffixValueBytesMax) }
    }

    func isCut(_ entry: MergeEntry) throws(RequestError) -> Bool {
        if entry.suffix.count < valueBytesMax { return false }
        guard let (_, place) = index.document(in: entry.suffix) else { throw .damagedEntry }
        return place.lowerBound >= valueBytesMax
    }
}

/// The suffixes of one collection's entries among those of others: the value, the document's path, a terminator, the
/// path's length. Entries of all collections are compared in this form.
///
///     collection c       value | id | 1 byte               value | c, id | 00 | 2 bytes
///     collection c/x/c   value | id | 1 byte               value | c, x, c, id | 00 | 2 bytes
///
/// Paths are never cut here, and the terminator sorts below every segment's first byte: a document comes before those
/// below it.
private struct CollectionSuffixes {
    /// The collection's path.
    private let segments: [UInt8]
    /// What the keys of its documents begin with, with the marker.
    private let documentPrefix: [UInt8]
    /// Bytes of values in the prefix of the ranges.
    private let valueBytes: Int
    private let isForward: Bool

    private static let tailBytes = 3

    init(_ collection: GroupCollection, database: UInt32, valueBytes: Int, _ direction: SortDirection) {
        segments = collection.segments
        self.valueBytes = valueBytes
        isForward = direction == .ascending
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        DocumentKey.writeCollection(collection.path.byteSpan, database: database, into: &key)
        key.append(byte: KeyLayout.documentMarker)
        documentPrefix = key.copyBytes()
    }

    /// An entry in the common form.
    func united(_ entry: MergeEntry) -> MergeEntry? {
        guard let place = IndexKey.idSegment(of: entry.suffix.byteSpan, from: 0) else { return nil }
        let segment = entry.suffix[place]
        let isCutID = IndexKey.isCut(idSegment: Array(segment).byteSpan)
        // One that is cut comes before everything whose place it could take.
        var path = segments + (isCutID && isForward ? segment.prefix(KeyLayout.plainBytesMax) : segment)
        let count = path.count
        path += [KeyLayout.terminator, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
        let isCutValue = place.lowerBound > 0 && valueBytes + place.lowerBound >= IndexKey.valueBytesMax
        return MergeEntry(
            suffix: entry.suffix[..<place.lowerBound] + path, documentKey: documentPrefix + segment,
            isCut: isCutID || isCutValue)
    }
}
