// What a transaction has read: documents with the versions seen, and ranges with the query that walked them.
//
// This is all that serializability needs. A transaction may commit if, done at the moment of its commit, its reads
// would have come out the same: each document still has the version seen (or is still missing), and no document changed
// since its snapshot that fulfilled a walked range's query before or fulfils it now. See `docs/commits.md`.

internal import Basics
internal import DocumentModel
internal import Storage

/// A range of document keys that a transaction walked.
struct ReadRange: Sendable {
    /// First key of the range.
    private(set) var lower: [UInt8]
    /// The first key after the range.
    private(set) var upper: [UInt8]
    /// Only documents of collections of this id were asked for; nil for any.
    let collectionID: [UInt8]?
    /// The query's filter over path and fields; nil if every document of the range was asked for.
    var matches: DocumentFilter?
    /// The query that walked it.
    let query: ObjectIdentifier?
    /// The state in which it was walked.
    var version: CommitVersion

    init(
        lower: [UInt8], upper: [UInt8], collectionID: [UInt8]?, matches: DocumentFilter?,
        query: ObjectIdentifier? = nil, version: CommitVersion
    ) {
        self.lower = lower
        self.upper = upper
        self.collectionID = collectionID
        self.matches = matches
        self.query = query
        self.version = version
    }

    var isEmpty: Bool { lower.byteSpan.compareBytes(upper.byteSpan) >= 0 }

    /// Bytes of memory, about.
    var byteCount: Int { Self.fixedBytes + lower.count + upper.count }

    private static let fixedBytes = 256

    /// Removes the keys outside of other bounds.
    mutating func narrow(to keys: (lower: [UInt8], upper: [UInt8])) {
        if lower.byteSpan.compareBytes(keys.lower.byteSpan) < 0 { lower = keys.lower }
        if upper.byteSpan.compareBytes(keys.upper.byteSpan) > 0 { upper = keys.upper }
    }

    /// Whether the range begins before a key, or with it.
    func begins(by key: RawSpan) -> Bool { key.compareBytes(lower.byteSpan) >= 0 }

    func ends(after other: ReadRange) -> Bool { upper.byteSpan.compareBytes(other.upper.byteSpan) > 0 }

    /// Whether the range ends after a key.
    func reaches(_ key: RawSpan) -> Bool { key.compareBytes(upper.byteSpan) < 0 }
}

/// The reads of one transaction, bounded.
struct ReadSet: ~Copyable {
    /// Document keys with the version seen, 0 for a missing document.
    /// Small to begin with: many transactions read two documents, or none.
    private(set) var documents = ByteTable(slotCount: 8, keyBytes: 64)
    private(set) var ranges: [ReadRange] = []
    private var rangeBytes = 0
    /// The first range of each query that has noted some; those of queries at once lie among each other.
    private var firstRanges: [ObjectIdentifier: Int] = [:]

    private let maximum: Int

    /// In place of the version of a document that was seen in two states: no document has it, so the transaction cannot
    /// commit.
    private static let inconsistentVersion = Int.max

    /// Bytes of keys that one transaction may keep; with long names it is reached before the count is.
    private static let keyBytesMax = 32 << 20
    /// Memory of a document beside its key, in bytes, about.
    private static let documentBytes = 64

    init(maximum: Int) {
        self.maximum = maximum
    }

    var isEmpty: Bool { documents.count == 0 && ranges.isEmpty }

    /// Bytes of memory, about.
    var byteCount: Int { documents.keyBytes + Self.documentBytes * documents.count + rangeBytes }

    /// Takes note of a document read by its name.
    mutating func note(key: RawSpan, versionMicroseconds: UInt64) throws(RequestError) {
        let hash = ByteTable.hash(key)
        let version = Int(clamping: versionMicroseconds)
        if let seen = documents.value(of: key, hash: hash) {
            // Without the lock that should have kept it. The first version is not enough: a document that was missing,
            // then there, may be missing again.
            if seen != version { documents.set(key, hash: hash, to: Self.inconsistentVersion) }
            return
        }
        try checkRoom()
        documents.set(key, hash: hash, to: version)
    }

    /// Takes note of a walk.
    mutating func note(_ range: ReadRange) throws(RequestError) {
        try checkRoom()
        // A scan that continues page by page makes adjoining ranges: keep one.
        if let last = ranges.last, last.matches == nil, range.matches == nil, last.collectionID == range.collectionID,
            last.upper == range.lower, last.version == range.version
        {
            ranges[ranges.count - 1] = ReadRange(
                lower: last.lower, upper: range.upper, collectionID: last.collectionID, matches: nil,
                version: range.version)
            return
        }
        if let query = range.query, firstRanges[query] == nil { firstRanges[query] = ranges.count }
        ranges.append(range)
        rangeBytes += range.byteCount
    }

    /// Of the documents that a query's walks went over, only those matter that also meet this filter.
    mutating func narrow(
        _ query: ObjectIdentifier, within keys: (lower: [UInt8], upper: [UInt8])?, to filter: @escaping DocumentFilter
    ) {
        guard let first = firstRanges[query] else { return }
        for position in first..<ranges.count where ranges[position].query == query {
            rangeBytes -= ranges[position].byteCount
            ranges[position].matches = filter
            if let keys { ranges[position].narrow(to: keys) }
            rangeBytes += ranges[position].byteCount
        }
    }

    private func checkRoom() throws(RequestError) {
        if documents.count + ranges.count < maximum, documents.keyBytes < ReadSet.keyBytesMax { return }
        throw RequestError(
            .resourceExhausted, "The transaction has read more than \(maximum) documents and ranges.")
    }
}
