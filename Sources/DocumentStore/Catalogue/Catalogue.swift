// The collections that ever held a document: their numbers and how many documents each holds.
//
//     02 | database, 4 | collection path    ->    | number, varint | count, varint | the full path if the key is cut |
//     01 | 'n'                              ->    | the next number, varint |
//
// A collection's number is given when its first document comes and never changes, also while it is empty:
// index keys carry it. Numbers are given in the order of commits that succeed, so that recovery gives the same.
//
// The commit thread keeps the entries it has used in memory, adjusts them there and writes each changed one once for
// a whole group of commits. At recovery the counts follow from the log, which says of every document whether it was
// new.

internal import Basics
internal import DocumentModel
internal import KeyValueStore
internal import StoreFormat

/// The commit thread's view of the catalogue.
struct Catalogue: ~Copyable {
    private struct Entry {
        /// 0 until the collection's first document is committed.
        var number: UInt64
        var count: Int
        var isChanged = false
        /// The full path if the key does not hold it.
        var path: [UInt8] = []
    }

    private struct Adjustment {
        var entry: Int
        var delta: Int
    }

    private var entries: [Entry] = []
    /// Collection prefixes of document keys, without the space byte, to positions in `entries`.
    private var positions = ByteTable()
    private var changed: [Int] = []
    /// What the commit being made has done.
    private var adjustments: [Adjustment] = []
    /// Entries that the commit being made has numbered.
    private var numbered: [Int] = []
    private var nextNumber: UInt64?
    /// The counter as it was stored last.
    private var storedNumber: UInt64?
    private var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
    private var value = WireWriter(capacity: 64)

    /// Entries kept in memory between groups.
    private static let cachedMaximum = 65_536

    init() {}

    /// Starts a commit.
    mutating func beginCommit() {
        if !numbered.isEmpty { numbered.removeAll(keepingCapacity: true) }
    }

    /// Takes note that the commit adds, changes or removes a document.
    ///
    /// - Parameters:
    ///   - collection: the document key up to and including the collection path.
    ///   - path: the document's relative path.
    ///   - delta: documents more: 1, 0 or -1.
    /// - Returns: the collection's number.
    mutating func adjust(
        _ collection: RawSpan, path: RawSpan, by delta: Int, latest: LatestReader
    ) throws(StorageError) -> UInt64 {
        let position = try position(of: collection, path: path, latest: latest)
        if entries[position].number == 0 {
            let number = try nextCollectionNumber(latest)
            entries[position].number = number
            nextNumber = number + 1
            numbered.append(position)
        }
        if delta != 0 { note(delta, at: position) }
        return entries[position].number
    }

    private mutating func note(_ delta: Int, at position: Int) {
        entries[position].count += delta
        // Runs of writes to one collection make one adjustment.
        if let last = adjustments.last, last.entry == position {
            adjustments[adjustments.count - 1].delta += delta
        } else {
            adjustments.append(Adjustment(entry: position, delta: delta))
        }
    }

    /// The commit came to nothing.
    mutating func rollBackCommit() {
        for adjustment in adjustments { entries[adjustment.entry].count -= adjustment.delta }
        adjustments.removeAll(keepingCapacity: true)
        for position in numbered { entries[position].number = 0 }
        if let number = nextNumber { nextNumber = number - UInt64(numbered.count) }
        numbered.removeAll(keepingCapacity: true)
    }

    /// The commit is staged.
    mutating func keepCommit() {
        if adjustments.isEmpty { return }
        for adjustment in adjustments where !entries[adjustment.entry].isChanged {
            entries[adjustment.entry].isChanged = true
            changed.append(adjustment.entry)
        }
        adjustments.removeAll(keepingCapacity: true)
    }

    var hasChanges: Bool { !changed.isEmpty }

    /// Puts every entry that has changed since `changesAreStored`.
    mutating func writeChanges(into batch: inout MutationBatch) {
        if changed.isEmpty { return }
        for position in changed {
            writeKey(of: position)
            value.reset()
            value.appendVarint(entries[position].number)
            value.appendVarint(UInt64(clamping: entries[position].count))
            value.append(entries[position].path)
            batch.put(key: key.bytes, value: value.bytes)
        }
        if let nextNumber, nextNumber != storedNumber {
            Catalogue.writeCounterKey(into: &key)
            value.reset()
            value.appendVarint(nextNumber)
            batch.put(key: key.bytes, value: value.bytes)
        }
    }

    /// What `writeChanges` put is staged. Empties the cache when it has become large.
    mutating func changesAreStored() {
        for position in changed { entries[position].isChanged = false }
        changed.removeAll(keepingCapacity: true)
        storedNumber = nextNumber
        if entries.count <= Catalogue.cachedMaximum { return }
        entries.removeAll()
        positions.removeAll()
    }

    private mutating func position(
        of collection: RawSpan, path: RawSpan, latest: LatestReader
    ) throws(StorageError) -> Int {
        let name = collection.extracting(1..<collection.byteCount)
        let hash = ByteTable.hash(name)
        if let known = positions.value(of: name, hash: hash) { return known }
        let position = entries.count
        positions.set(name, hash: hash, to: position)
        entries.append(Entry(number: 0, count: 0))
        writeKey(of: position)
        if let stored = try latest.value(forKey: key.bytes), let parsed = CatalogueEntry(stored.bytes) {
            entries[position] = Entry(number: parsed.number, count: parsed.count, path: [UInt8](copying: parsed.path))
        } else if DocumentKey.isCutCollection(byteCount: collection.byteCount) {
            entries[position].path = [UInt8](copying: DocumentKey.collectionPath(ofDocument: path))
        }
        return position
    }

    private mutating func writeKey(of position: Int) {
        key.reset()
        key.append(byte: KeySpace.catalogue.rawValue)
        positions.appendKey(at: position, to: &key)
    }

    private mutating func nextCollectionNumber(_ latest: LatestReader) throws(StorageError) -> UInt64 {
        if let nextNumber { return nextNumber }
        Catalogue.writeCounterKey(into: &key)
        var next: UInt64 = 1
        if let stored = try latest.value(forKey: key.bytes) {
            var reader = WireReader(stored.bytes)
            if let number = try? reader.varint() { next = number }
            storedNumber = next
        }
        nextNumber = next
        return next
    }

    static func writeCounterKey(into writer: inout WireWriter) {
        writer.reset()
        writer.append(byte: KeySpace.meta.rawValue)
        writer.append(byte: UInt8(ascii: "n"))
    }
}
