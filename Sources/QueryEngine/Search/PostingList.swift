// The entries of one word, read into memory.
//
// An entry takes about 40 bytes. They are read in steps, by ranges of keys, and lie in the order of the documents.

internal import Basics
internal import DocumentModel
internal import Indexing

/// The entries of one leaf of a search.
struct PostingList: Sendable {
    private var documents: [UInt8] = []
    private var documentEnds: [Int] = []
    private var values: [UInt8] = []
    private var valueEnds: [Int] = []
    /// The order of the entries, if they were not read in the order of documents.
    private var order: [Int] = []
    /// While the order is being made.
    private var sorting: SteppedSort?
    /// The number of different documents, if there is an order.
    private var sortedDocuments = 0

    var count: Int { documentEnds.count }

    /// Bytes of memory that an entry takes besides its own.
    static let entryBytes = 25

    /// - Parameter onlyItself: only places count where the word is its stem.
    mutating func append(_ document: RawSpan, onlyItself: Bool, _ value: RawSpan) {
        documents.append(contentsOf: document)
        documentEnds.append(documents.count)
        values.append(onlyItself ? 1 : 0)
        values.append(contentsOf: value)
        valueEnds.append(values.count)
    }

    /// Continues to bring entries into the order of documents that were read in another one.
    ///
    /// - Parameter budget: in looks at documents; what was done is taken off.
    /// - Returns: whether they are in this order.
    mutating func sort(_ budget: inout Int) -> Bool {
        var sorting = sorting.take() ?? SteppedSort(count: count)
        guard sorting.advance(&budget, by: { compare(position: $0, position: $1) < 0 }) else {
            self.sorting = sorting
            return false
        }
        order = sorting.order
        sortedDocuments = order.indices.count {
            $0 == 0 || compare(position: order[$0 - 1], position: order[$0]) != 0
        }
        budget -= count / SteppedSort.comparisonsPerDocument
        return true
    }

    private func place(_ index: Int) -> Int { order.isEmpty ? index : order[index] }

    private func range(_ ends: [Int], _ place: Int) -> Range<Int> { (place == 0 ? 0 : ends[place - 1])..<ends[place] }

    private func compare(position left: Int, position right: Int) -> Int {
        let bytes = documents.byteSpan
        return bytes.extracting(range(documentEnds, left)).compareBytes(bytes.extracting(range(documentEnds, right)))
    }

    /// What stands for the document of an entry.
    func document(_ index: Int) -> [UInt8] { Array(documents[range(documentEnds, place(index))]) }

    /// Calls `body` with each entry of a document: its value, and whether only places count where the word is its stem.
    ///
    /// - Parameter start: an entry that is not after those of the document.
    func forEachEntry(of document: RawSpan, from start: Int, _ body: (RawSpan, _ onlyItself: Bool) -> Void) {
        var index = firstIndex(notBefore: document, from: start)
        while index < count, compare(index, document) == 0 {
            let range = range(valueEnds, place(index))
            let value = values.byteSpan.extracting(range)
            body(value.extracting(1..<value.byteCount), value[byteAt: 0] == 1)
            index += 1
        }
    }

    /// The order of an entry's document in relation to another: negative, 0, positive.
    func compare(_ index: Int, _ document: RawSpan) -> Int {
        documents.byteSpan.extracting(range(documentEnds, place(index))).compareBytes(document)
    }

    /// The first entry from `start` on whose document is not before another one.
    func firstIndex(notBefore document: RawSpan, from start: Int) -> Int {
        var step = 1
        var low = start
        var high = start
        while high < count, compare(high, document) < 0 {
            low = high + 1
            high += step
            step *= 2
        }
        high = min(high, count)
        while low < high {
            let middle = (low + high) / 2
            if compare(middle, document) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The number of different documents.
    var documentCount: Int { order.isEmpty ? count : sortedDocuments }
}

/// A range of keys whose entries belong to a leaf.
struct PostingRange: Sendable {
    let lower: [UInt8]
    let upper: [UInt8]
    /// Where the document begins in a key; nil if a word ends before it.
    let documentStart: Int?
    /// Where the word begins.
    let wordStart: Int
    /// Only places count where the word is its stem: entries of others are those of another range.
    let onlyItself: Bool

    /// The ranges of a leaf.
    static func ranges(
        of leaf: SearchTree.Leaf, in index: DeclaredIndex, collection: UInt64
    ) -> [PostingRange] {
        var key = ByteBuffer(capacity: 128)
        func begin(_ kind: SearchKey.Kind) -> [UInt8] {
            SearchKey.begin(kind, of: index, collection: collection, into: &key)
            return key.copyBytes()
        }
        switch leaf {
        case .stem(let stem):
            let start = begin(.stem)
            let lower = start + stem + [SearchKey.wordEnd]
            return [
                PostingRange(
                    lower: lower, upper: start + stem + [SearchKey.wordEnd + 1], documentStart: lower.count,
                    wordStart: start.count, onlyItself: false)
            ]
        case .prefix(let word):
            return [SearchKey.Kind.stem, .word].map { kind in
                let start = begin(kind)
                // No byte of UTF-8 is as large.
                return PostingRange(
                    lower: start + word, upper: start + word + [0xff], documentStart: nil, wordStart: start.count,
                    onlyItself: kind == .stem)
            }
        case .places(let area):
            guard let field = index.shape.search?.points.firstIndex(of: area.field) else { return [] }
            let start = begin(.place) + [UInt8(field)]
            return area.ranges.map { codes in
                let upper =
                    codes.upperBound == .max
                    ? start + [UInt8](repeating: 0xff, count: 9)
                    : start + bytes(codes.upperBound + 1)
                return PostingRange(
                    lower: start + bytes(codes.lowerBound), upper: upper,
                    documentStart: start.count + SearchKey.cellBytes, wordStart: start.count, onlyItself: false)
            }
        }
    }

    private static func bytes(_ code: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: code >> UInt64(56 - 8 * $0)) }
    }

    /// Where the document begins in a key of the range; nil if it is damaged.
    func documentStart(in key: RawSpan) -> Int? {
        if let documentStart { return documentStart < key.byteCount ? documentStart : nil }
        guard let end = key.firstOffset(of: SearchKey.wordEnd, from: wordStart), end + 1 < key.byteCount else {
            return nil
        }
        return end + 1
    }
}
