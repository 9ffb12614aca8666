// A source over a sorted array: what query execution needs of storage, in its plainest form.

import Basics
import DocumentModel
import Storage
import StoreTestSupport

@testable import Indexing
@testable import QueryEngine
@testable import StoreFormat

/// A database in a sorted array: documents, the catalogue and, if asked for, index entries, under the keys of a store.
struct MemorySource: QuerySource, ~Copyable {
    fileprivate struct Entry {
        let key: Range<Int>
        let value: Range<Int>
        let versionMicroseconds: UInt64
        /// Of a deleted document.
        let isDeleted: Bool
    }

    let database: UInt32 = 1
    let versionMicroseconds = UInt64.max
    /// Keys and values, which the entries are places in.
    private var bytes: [UInt8] = []
    /// In the order of their keys.
    private var entries: [Entry] = []
    private let isIndexed: Bool
    /// Set for a source that must be waited for.
    var waits: SourceWaits?

    /// - Parameters:
    ///   - emptyCollections: collections that held documents once: they are in the catalogue.
    ///   - count: documents that the catalogue counts in the first document's collection, if not those that are there.
    ///   - isIndexed: whether every field has index entries.
    ///   - deleted: documents that were deleted. None of `documents` has the name of one.
    ///   - listsGroups: whether there are lists of the groups' collections.
    init(
        _ documents: [TestDocument], emptyCollections: [String] = [], count: Int? = nil, isIndexed: Bool = false,
        deleted: [TestDocument] = [], listsGroups: Bool = false
    ) throws {
        self.isIndexed = isIndexed
        var writer = MemoryWriter(database: database, isIndexed: isIndexed, listsGroups: listsGroups)
        for collection in emptyCollections { _ = writer.add(collection: collection) }
        for document in documents { try writer.add(document) }
        for document in deleted { try writer.add(document, isDeleted: true) }
        if let count, let first = documents.first {
            _ = writer.add(collection: first.collection, documents: UInt64(max(count - documents.count, 0)))
        }
        for stored in writer.sorted() {
            let start = bytes.count
            bytes += stored.key
            let middle = bytes.count
            bytes += stored.value
            entries.append(
                Entry(
                    key: start..<middle, value: middle..<bytes.count, versionMicroseconds: stored.versionMicroseconds,
                    isDeleted: stored.isDeleted))
        }
    }

    /// The position of the first entry whose key is not below `key`.
    private static func position(of key: RawSpan, _ entries: [Entry], _ bytes: RawSpan) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if bytes.extracting(entries[middle].key).compareBytes(key) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
    ) throws(RequestError) -> Cursor {
        let bytes = self.bytes.span.bytes
        let first = MemorySource.position(of: lower, entries, bytes)
        let end = max(first, MemorySource.position(of: upper, entries, bytes))
        return Cursor(entries, bytes, first..<end, direction, waits)
    }

    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue? {
        try waits?.check(key)
        let bytes = self.bytes.span.bytes
        let position = MemorySource.position(of: key, entries, bytes)
        guard position < entries.count, !entries[position].isDeleted,
            bytes.extracting(entries[position].key).equalsBytes(key)
        else { return nil }
        return SourceValue(
            bytes.extracting(entries[position].value), versionMicroseconds: entries[position].versionMicroseconds)
    }

    borrowing func indexedFields(of collection: RawSpan) -> IndexedFields { isIndexed ? .all : .none }

    struct Cursor: RangeCursor, ~Copyable, ~Escapable {
        private let entries: [Entry]
        private let bytes: RawSpan
        private let range: Range<Int>
        private let direction: SortDirection
        private let waits: SourceWaits?
        private var current = 0
        private var following: Int

        @_lifetime(copy bytes)
        fileprivate init(
            _ entries: [Entry], _ bytes: RawSpan, _ range: Range<Int>, _ direction: SortDirection,
            _ waits: SourceWaits?
        ) {
            self.waits = waits
            self.entries = entries
            self.bytes = bytes
            self.range = range
            self.direction = direction
            following = direction == .ascending ? range.lowerBound : range.upperBound - 1
        }

        @_lifetime(self: copy self)
        mutating func next() throws(RequestError) -> Bool {
            var deletions = Int.max
            return try next(passing: &deletions)
        }

        @_lifetime(self: copy self)
        mutating func next(passing deletions: inout Int) throws(RequestError) -> Bool {
            while range.contains(following) {
                try waits?.check(bytes.extracting(entries[following].key))
                current = following
                following += direction == .ascending ? 1 : -1
                if !entries[current].isDeleted { return true }
                deletions -= 1
                if deletions <= 0 { return false }
            }
            return false
        }

        @_lifetime(self: copy self)
        mutating func seek(to key: RawSpan) throws(RequestError) {
            let position = MemorySource.position(of: key, entries, bytes)
            if direction == .ascending {
                following = max(position, range.lowerBound)
            } else {
                let isThere = position < entries.count && bytes.extracting(entries[position].key).equalsBytes(key)
                following = min(isThere ? position : position - 1, range.upperBound - 1)
            }
        }

        var key: RawSpan { @_lifetime(borrow self) borrowing get { bytes.extracting(entries[current].key) } }
        var value: RawSpan { @_lifetime(borrow self) borrowing get { bytes.extracting(entries[current].value) } }
        var versionMicroseconds: UInt64 { entries[current].versionMicroseconds }
    }
}

/// Which keys of a source are not there yet: about one of `oneIn`, chosen by a seed. Not thread-safe.
final class SourceWaits {
    private let seed: UInt64
    private let oneIn: UInt64
    private var ready: Set<[UInt8]> = []
    private var pending: Set<[UInt8]> = []
    /// Reads that were pending.
    private(set) var count = 0
    /// All reads.
    private(set) var readCount = 0

    init(seed: UInt64, oneIn: UInt64) {
        self.seed = seed
        self.oneIn = oneIn
    }

    /// - Throws: `pending`.
    func check(_ key: RawSpan) throws(RequestError) {
        readCount += 1
        let bytes = [UInt8](copying: key)
        let hash = bytes.reduce(seed ^ 14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        guard (hash >> 32) % oneIn == 0, !ready.contains(bytes) else { return }
        pending.insert(bytes)
        count += 1
        throw .pending
    }

    /// What was pending is there, and something that was there is not any more.
    func proceed() {
        if count % 5 == 0, let one = ready.first { ready.remove(one) }
        ready.formUnion(pending)
        pending = []
    }
}

/// Makes the entries of a database.
private struct MemoryWriter: ~Copyable {
    private let database: UInt32
    private let isIndexed: Bool
    private let listsGroups: Bool
    private var entries: [[UInt8]: (value: [UInt8], versionMicroseconds: UInt64)] = [:]
    private var deleted: Set<[UInt8]> = []
    /// Numbers and document counts of collections.
    private var collections: [String: (number: UInt64, count: UInt64)] = [:]
    private var derivation = IndexDerivation(MemoryFieldNumbers())

    init(database: UInt32, isIndexed: Bool, listsGroups: Bool) {
        self.database = database
        self.isIndexed = isIndexed
        self.listsGroups = listsGroups
    }

    mutating func add(collection: String, documents: UInt64 = 0) -> UInt64 {
        var known = collections[collection] ?? (UInt64(collections.count) + 1, 0)
        known.count += documents
        collections[collection] = known
        return known.number
    }

    mutating func add(_ document: TestDocument, isDeleted: Bool = false) throws {
        let number = add(collection: document.collection, documents: isDeleted ? 0 : 1)
        let path = Array(document.path.utf8)
        let fields = document.fields.documentBytes
        var key = ByteBuffer()
        let parts = DocumentKey.write(path.byteSpan, database: database, into: &key)
        var value = ByteBuffer()
        StoredRecord.writeHeader(
            createMicroseconds: document.createMicroseconds, path: path.byteSpan, isCut: parts.isCut, into: &value)
        value.append(fields)
        entries[key.copyBytes()] = (value.copyBytes(), document.updateMicroseconds)
        if isDeleted { deleted.insert(key.copyBytes()) }
        guard isIndexed else { return }
        var sink = EntrySink()
        let indexed = IndexedDocument(
            database: database, collection: number, key: key.bytes, parts, path: path.byteSpan)
        try derivation.derive(indexed, from: [UInt8]().byteSpan, to: fields.byteSpan, into: &sink)
        for entry in sink.entries { entries[entry] = ([], document.updateMicroseconds) }
        if isDeleted { deleted.formUnion(sink.entries) }
    }

    /// Everything in the order of keys, with the catalogue and the numbers of fields.
    consuming func sorted() -> [(key: [UInt8], value: [UInt8], versionMicroseconds: UInt64, isDeleted: Bool)] {
        var key = ByteBuffer()
        var value = ByteBuffer()
        for (path, collection) in collections {
            DocumentKey.writeCatalogue(Array(path.utf8).byteSpan, database: database, into: &key)
            value.reset()
            value.appendVarint(collection.number)
            value.appendVarint(collection.count)
            if DocumentKey.isCutCollection(byteCount: key.count) { value.append(Array(path.utf8)) }
            entries[key.copyBytes()] = (value.copyBytes(), 1)
            guard listsGroups else { continue }
            let isCut = DocumentKey.isCutCollection(byteCount: key.count)
            entries[GroupKey.key(of: key.bytes, path: Array((isCut ? path : "").utf8).byteSpan)] = ([], 1)
            entries[GroupKey.marker] = ([], 1)
        }
        for (field, number) in derivation.fields.numbers {
            value.reset()
            value.appendVarint(number)
            entries[field] = (value.copyBytes(), 1)
        }
        let deleted = deleted
        return entries.map { ($0.key, $0.value.value, $0.value.versionMicroseconds, deleted.contains($0.key)) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
}

/// Numbers of fields by the keys of their dictionary.
private struct MemoryFieldNumbers: FieldNumbering {
    private(set) var numbers: [[UInt8]: UInt64] = [:]

    mutating func number(of name: RawSpan, under parent: UInt64, database: UInt32) throws(StorageError) -> UInt64 {
        var key = ByteBuffer()
        FieldNumbers.writeKey(name, under: parent, database: database, into: &key)
        let field = key.copyBytes()
        let number = numbers[field] ?? UInt64(numbers.count) + 1
        numbers[field] = number
        return number
    }
}

private struct EntrySink: IndexEntrySink {
    var entries: Set<[UInt8]> = []
    mutating func put(entry key: RawSpan) { entries.insert([UInt8](copying: key)) }
    mutating func remove(entry key: RawSpan) { entries.remove([UInt8](copying: key)) }
    mutating func put(entry key: RawSpan, value: RawSpan) { put(entry: key) }
}

/// Runs a planned query to its end.
///
/// - Parameter pageSize: results a page takes before it is full.
func results(
    of plan: QueryPlan, over source: borrowing MemorySource, pageSize: Int = .max
) throws -> (documents: [TestDocument], run: FinishedRun) {
    var run = QueryExecution(plan)
    var documents: [TestDocument] = []
    var calls = 0
    while true {
        var room = pageSize
        calls += 1
        var progress = QueryExecution.Progress.paused
        do throws(RequestError) {
            progress = try run.next(from: source) { (result) throws(RequestError) in
                documents.append(try TestDocument(result))
                room -= 1
                return room > 0 ? .more : .full
            }
        } catch {
            guard error.isPending, let waits = source.waits else { throw error }
            waits.proceed()
        }
        if progress == .finished {
            let finished = FinishedRun(
                tree: run.tree, skipped: run.skippedResults, scanned: run.scannedDocuments, entries: run.scannedEntries,
                calls: calls, lines: run.operatorLines)
            return (documents, finished)
        }
    }
}

extension TestDocument {
    /// The document of a row, with its times.
    init(_ row: borrowing QueryRow) throws(RequestError) {
        do throws(InvalidDocument) {
            self.init(
                path: String(repairingUTF8: row.path), fields: try MapValue(documentBytes: row.fields),
                createMicroseconds: row.createMicroseconds, updateMicroseconds: row.updateMicroseconds)
        } catch {
            throw RequestError(error)
        }
    }
}

/// What a query says of itself at its end.
struct FinishedRun {
    let tree: String
    let skipped: Int
    let scanned: Int
    let entries: Int
    let calls: Int
    let lines: [OperatorLine]
}
