// Reading records of the log and applying them: at recovery, and on a follower.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// Reads records and gives their items to the applier, each with the fields that its document had before.
struct RecordReplay: ~Copyable {
    private let latest: LatestReader
    private let nowMilliseconds: UInt64
    private var location = DocumentLocation()
    private var prior = PriorDocument()
    private var earlier = EarlierItems()

    /// - Parameters:
    ///   - latest: the state before the record.
    ///   - nowMilliseconds: when sessions count as used that have no other time.
    init(latest: LatestReader, nowMilliseconds: UInt64) {
        self.latest = latest
        self.nowMilliseconds = nowMilliseconds
    }

    /// Derives everything from a record. The applier has to keep the commit, or to roll it back, after this.
    ///
    /// - Parameter collector: gets the changes of documents, if they are wanted.
    /// - Throws: `corrupt` and others if the record cannot be read; then the commit can only be rolled back.
    mutating func apply(
        _ record: RawSpan, version: CommitVersion, with applier: inout CommitApplier,
        collecting collector: inout ChangeCollector, into mutations: inout MutationBatch
    ) throws {
        if LogRecord.kind(of: record) == LogRecord.commitKind {
            try applyCommit(record, version: version, with: &applier, collecting: &collector, into: &mutations)
        } else {
            applier.begin(version: version, database: 0, newDatabase: nil, into: &mutations)
            try applier.apply(systemRecord: record, into: &mutations)
        }
        applier.finish(into: &mutations)
    }

    private mutating func applyCommit(
        _ record: RawSpan, version: CommitVersion, with applier: inout CommitApplier,
        collecting collector: inout ChangeCollector, into mutations: inout MutationBatch
    ) throws {
        var reader = try LogRecordReader(record)
        let isNew = reader.newDatabaseName.byteCount > 0
        applier.begin(
            version: version, database: reader.database,
            newDatabase: isNew ? try DatabaseName(reader.newDatabaseName) : nil, into: &mutations)
        collector.setDatabase(reader.database)
        earlier.removeAll()
        while let item = try reader.next() {
            if let identifier = item.identifier {
                _ = applier.apply(
                    answer: item.payload, to: identifier, slot: item.slot, nowMilliseconds: nowMilliseconds,
                    into: &mutations)
                continue
            }
            location.locate(item.path, database: reader.database)
            if applier.needsPriorFields || collector.isWanted {
                try RecordReplay.read(item, of: record, at: location, &prior, &earlier, latest)
            }
            collector.append(item, replacing: prior)
            try RecordReplay.apply(item, at: location, replacing: prior, with: &applier, into: &mutations)
        }
    }

    private static func apply(
        _ item: borrowing LogItem, at location: borrowing DocumentLocation, replacing prior: borrowing PriorDocument,
        with applier: inout CommitApplier, into mutations: inout MutationBatch
    ) throws(StorageError) {
        try applier.apply(item, at: location, replacing: prior.fields, into: &mutations)
    }

    /// Finds the fields that the item's document had before: an earlier item of the record left them, or they are
    /// stored.
    private static func read(
        _ item: borrowing LogItem, of record: RawSpan, at location: borrowing DocumentLocation,
        _ prior: inout PriorDocument, _ earlier: inout EarlierItems, _ latest: LatestReader
    ) throws(StorageError) {
        let fields = item.kind == .deleted ? nil : record.byteOffsets(of: item.payload)
        switch earlier.replace(location.key, by: fields) {
        case .some(let range?): prior.take(fields: record.extracting(range))
        case .some(nil): prior.clear()
        case nil where item.kind.addsDocument: prior.clear()
        case nil: try prior.read(location, latest: latest)
        }
    }
}

/// The documents that the items of a record have written so far. Records of earlier versions of this program have an
/// item for every write; those of this version have one for every document.
private struct EarlierItems: ~Copyable {
    private var positions = ByteTable()
    /// Where the fields are in the record; nil for a document that was deleted.
    private var fields: [Range<Int>?] = []

    mutating func removeAll() {
        positions.removeAll()
        fields.removeAll(keepingCapacity: true)
    }

    /// Notes what an item does to a document.
    /// - Returns: what the item before it has left; nil if there is none.
    mutating func replace(_ key: RawSpan, by range: Range<Int>?) -> Range<Int>?? {
        let hash = ByteTable.hash(key)
        let before = positions.value(of: key, hash: hash).map { fields[$0] }
        positions.set(key, hash: hash, to: fields.count)
        fields.append(range)
        return before
    }
}
