// Reads a range of index entries for a merge: in batches, with seeks.
//
// Each batch opens a cursor, so a reader keeps nothing of the storage. Batches grow from 4 to 256 entries
// while most of what is read is used, and are short after a seek, so that little is read in vain.

import Basics
import DocumentModel

/// An index entry of a merge.
struct MergeEntry: Equatable {
    let suffix: [UInt8]
    /// The document's key, if the suffix does not determine it.
    let documentKey: [UInt8]
    /// Of several collections: the entry's place among the others is not its document's.
    var isCut = false
}

/// Reads one range in the direction of the merge.
struct RangeReader {
    private let prefix: [UInt8]
    private let suffixes: ByteInterval
    private let direction: SortDirection
    /// The suffixes of the last batch one after the other, and where each of them ends: one buffer instead of an array
    /// for each entry, most of which are passed over.
    private var bytes: [UInt8] = []
    private var ends: [Int] = []
    /// The values of the entries that have one, which are document keys, by position in the batch.
    private var documentKeys: [Int: [UInt8]] = [:]
    /// Entries of the batch before this one are passed.
    private var position = 0
    private var batchCount = RangeReader.shortest
    /// Entries of the last batch that were returned.
    private var used = 0
    private var isExhausted = false
    /// Nil unless the range is measured.
    private(set) var figures: OperatorFigures?

    private static let shortest = 4
    private static let longest = 256

    init(_ range: IndexRange, _ direction: SortDirection, measures: Bool = false) {
        if measures { figures = OperatorFigures() }
        prefix = range.prefix
        suffixes = range.suffixes
        self.direction = direction
    }

    /// The first entry at or after a suffix in the direction of the merge (nil: the first at all); nil when there is
    /// none.
    ///
    /// - Parameter isInclusive: whether an entry with the suffix itself is wanted.
    mutating func seek<Source: QuerySource & ~Copyable>(
        to suffix: [UInt8]?, isInclusive: Bool, _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> MergeEntry? {
        if figures == nil { return try find(suffix, isInclusive: isInclusive, source, &work) }
        let (start, before) = (SystemClock.monotonicNanoseconds(), work.scanned)
        let entry = try find(suffix, isInclusive: isInclusive, source, &work)
        figures?.add(rows: entry == nil ? 0 : 1, entries: work.scanned - before, since: start)
        return entry
    }

    private mutating func find<Source: QuerySource & ~Copyable>(
        _ suffix: [UInt8]?, isInclusive: Bool, _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> MergeEntry? {
        while true {
            while position < ends.count {
                guard let suffix else { return use() }
                let order = compare(with: suffix)
                if order == 0 ? isInclusive : (order > 0) == (direction == .ascending) { return use() }
                position += 1
            }
            if isExhausted { return nil }
            batchCount = used * 2 > ends.count ? min(batchCount * 2, Self.longest) : Self.shortest
            used = 0
            try readBatch(from: suffix, isInclusive: isInclusive, source, &work)
        }
    }

    /// The place of the current entry's suffix in the buffer.
    private var place: Range<Int> { (position == 0 ? 0 : ends[position - 1])..<ends[position] }

    private func compare(with suffix: [UInt8]) -> Int {
        bytes.byteSpan.extracting(place).compareBytes(suffix.byteSpan)
    }

    private mutating func use() -> MergeEntry {
        used += 1
        return MergeEntry(suffix: Array(bytes[place]), documentKey: documentKeys[position] ?? [])
    }

    private mutating func readBatch<Source: QuerySource & ~Copyable>(
        from suffix: [UInt8]?, isInclusive: Bool, _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        if !documentKeys.isEmpty { documentKeys = [:] }
        position = 0
        let range = suffix.map { rest(from: $0, isInclusive: isInclusive) } ?? suffixes
        if range.isEmpty {
            isExhausted = true
            return
        }
        let (lower, upper) = (prefix + range.lower, prefix + range.upper)
        var cursor = try source.cursor(from: lower.byteSpan, to: upper.byteSpan, direction)
        while ends.count < batchCount {
            guard try cursor.next() else {
                isExhausted = true
                return
            }
            work.scanned += 1
            if cursor.value.byteCount > 0 { documentKeys[ends.count] = [UInt8](copying: cursor.value) }
            bytes.append(contentsOf: cursor.key.extracting(prefix.count..<cursor.key.byteCount))
            ends.append(bytes.count)
        }
    }

    /// What is left of the range. A suffix is whole: the next one is the suffix and a zero.
    private func rest(from suffix: [UInt8], isInclusive: Bool) -> ByteInterval {
        var rest = suffixes
        if direction == .ascending {
            let lower = suffix + (isInclusive ? [] : [0])
            if lower.byteSpan.compareBytes(rest.lower.byteSpan) > 0 { rest.lower = lower }
        } else {
            let upper = suffix + (isInclusive ? [0] : [])
            if upper.byteSpan.compareBytes(rest.upper.byteSpan) < 0 { rest.upper = upper }
        }
        return rest
    }
}
