// Reads the entries of one index, in the order of the index.

import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

/// The entries of one index in one or more intervals.
struct IndexScan: Sendable {
    let index: IndexUse
    /// Disjoint, ascending.
    let intervals: [ByteInterval]
    let direction: SortDirection
    /// What the keys begin with: the index's prefix, and values that all entries have.
    private let prefix: [UInt8]
    /// The condition as explain shows it.
    private let condition: String
    /// The consumer needs the entries in the order of their documents.
    var isOrdered = false

    // The resume token: the interval, counted in the direction of the scan, and in it the first key that is wanted or,
    // going down, the last one that was read.
    private var interval = 0
    private var key: [UInt8]?

    init(_ index: IndexUse, intervals: [ByteInterval], direction: SortDirection, condition: String) {
        self.index = index
        self.intervals = intervals
        self.direction = direction
        self.condition = condition
        prefix = index.prefix
    }

    /// Scans one range of an automatic index.
    init(_ range: IndexRange, direction: SortDirection) {
        index = range.index
        intervals = [range.suffixes]
        self.direction = direction
        condition = range.condition
        prefix = range.prefix
    }

    mutating func restart() {
        interval = 0
        key = nil
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout EntryWork,
        into consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        while interval < intervals.count {
            let wanted = intervals[direction == .ascending ? interval : intervals.count - 1 - interval]
            var keys = ByteInterval(lower: prefix + wanted.lower, upper: prefix + wanted.upper)
            if let key {
                if direction == .ascending { keys.lower = key } else { keys.upper = key }
            }
            if !keys.isEmpty {
                let step = try next(in: keys, source, &work, consume)
                guard case .finished = step else { return step }
            }
            interval += 1
            key = nil
        }
        return .finished
    }

    private mutating func next<Source: QuerySource & ~Copyable>(
        in keys: ByteInterval, _ source: borrowing Source, _ work: inout EntryWork,
        _ consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        var cursor = try source.cursor(from: keys.lower.byteSpan, to: keys.upper.byteSpan, direction)
        while true {
            guard try cursor.next(passing: &work.deletions) else {
                if work.deletions > 0 { return .finished }
                key = [UInt8](copying: cursor.key) + (direction == .ascending ? [0] : [])
                return .paused
            }
            guard let place = IndexKey.idSegment(of: cursor.key) else { throw .damagedEntry }
            if isOrdered, let group = unorderedGroup(cursor.key, place) {
                return .unordered(group.intersection(keys))
            }
            work.scanned += 1
            let segment = cursor.key.extracting(place)
            let entry = IndexEntry(segment: segment, documentKey: segment.extracting(0..<0))
            if try consume(entry) == .full {
                key = [UInt8](copying: cursor.key) + (direction == .ascending ? [0] : [])
                return .paused
            }
        }
    }

    /// The entries whose keys do not tell them apart from this one's, because the value or the id was cut; nil if
    /// there are none.
    private func unorderedGroup(_ key: RawSpan, _ segment: Range<Int>) -> ByteInterval? {
        let lower: [UInt8]
        if segment.lowerBound - prefix.count >= IndexKey.valueBytesMax {
            lower = [UInt8](copying: key.extracting(0..<segment.lowerBound))
        } else if IndexKey.isCut(idSegment: key.extracting(segment)) {
            lower = [UInt8](copying: key.extracting(0..<(segment.lowerBound + KeyLayout.plainBytesMax)))
        } else {
            return nil
        }
        return ByteInterval(lower: lower, upper: DocumentKey.endOfGroup(lower))
    }

    /// Goes to the end of an interval of keys that `next` returned as unordered.
    mutating func skip(past group: ByteInterval) { key = direction == .ascending ? group.upper : group.lower }

    /// The intervals as ranges for a merge.
    var ranges: [IndexRange] {
        intervals.map { IndexRange(index, values: [], suffixes: $0, condition: condition) }
    }

    func estimate<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, atMost: Int
    ) throws(RequestError) -> Int {
        var total = 0
        for interval in intervals where total < atMost {
            let (lower, upper) = (prefix + interval.lower, prefix + interval.upper)
            total += try source.countKeys(from: lower.byteSpan, to: upper.byteSpan, atMost: atMost - total)
        }
        return total
    }

    var tree: PlanTree {
        let text = condition.isEmpty ? "" : ": " + condition
        let number = intervals.count == 1 ? "" : ", \(intervals.count) intervals"
        return PlanTree(line: "IndexScan \(index.properties(direction))\(text)\(number)")
    }
}
