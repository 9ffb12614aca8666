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

/// What a search in a range has found.
enum RangeStep {
    case entry(MergeEntry)
    /// No entry up to this suffix, that of a deleted entry: the step has passed as many as it may.
    case deletions([UInt8])
    case end
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
    /// Whether a step may end at a deleted entry.
    private let countsDeletions: Bool
    /// The suffix of the deleted entry at which the last batch ended, if it did.
    private var deleted: [UInt8]?
    /// Nil unless the range is measured.
    private(set) var figures: OperatorFigures?

    private static let shortest = 4
    private static let longest = 256

    init(_ range: IndexRange, _ direction: SortDirection, countsDeletions: Bool = false, measures: Bool = false) {
        self.countsDeletions = countsDeletions
        if measures { figures = OperatorFigures() }
        prefix = range.prefix
        suffixes = range.suffixes
        self.direction = direction
    }

    /// The first entry at or after a suffix in the direction of the merge (nil: the first at all).
    ///
    /// - Parameter isInclusive: whether an entry with the suffix itself is wanted.
    mutating func seek<Source: QuerySource & ~Copyable>(
        to suffix: [UInt8]?, isInclusive: Bool, _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> RangeStep {
        if figures == nil { return try find(suffix, isInclusive: isInclusive, source, &work) }
        let (start, before) = (SystemClock.monotonicNanoseconds(), work.scanned)
        let step = try find(suffix, isInclusive: isInclusive, source, &work)
        var rows = 0
        if case .entry = step { rows = 1 }
        figures?.add(rows: rows, entries: work.scanned - before, since: start)
        return step
    }

    private mutating func find<Source: QuerySource & ~Copyable>(
        _ suffix: [UInt8]?, isInclusive: Bool, _ source: borrowing Source, _ work: inout EntryWork
    ) throws(RequestError) -> RangeStep {
        while true {
            while position < ends.count {
                guard let suffix else { return .entry(use()) }
                let order = compare(with: suffix)
                if order == 0 ? isInclusive : (order > 0) == (direction == .ascending) { return .entry(use()) }
                position += 1
            }
            if isExhausted { return .end }
            if ends.isEmpty, let deleted = deleted.take() { return .deletions(deleted) }
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
        deleted = nil
        let range = suffix.map { rest(from: $0, isInclusive: isInclusive) } ?? suffixes
        if range.isEmpty {
            isExhausted = true
            return
        }
        let (lower, upper) = (prefix + range.lower, prefix + range.upper)
        var cursor = try source.cursor(from: lower.byteSpan, to: upper.byteSpan, direction)
        // When the step has none left, one more shows how far the range has nothing.
        var deletions = countsDeletions ? max(work.deletions, 1) : .max
        defer { work.deletions = min(work.deletions, deletions) }
        while ends.count < batchCount {
            guard try cursor.next(passing: &deletions) else {
                if deletions <= 0 {
                    deleted = [UInt8](copying: cursor.key.extracting(prefix.count..<cursor.key.byteCount))
                } else {
                    isExhausted = true
                }
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
