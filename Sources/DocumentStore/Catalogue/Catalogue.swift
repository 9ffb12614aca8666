// The collections that ever held a document: their numbers and how many documents each holds.
//
//     02 | database, 4 | collection path    ->    | number, varint | count, varint | the full path if the key is cut |
//     01 | 'n'                              ->    | the next number, varint |
//
// Each new collection also gets a key in the list of its group (`GroupKey`).
//
// A collection's number is given when its first document comes and never changes, also while it is empty:
// index keys carry it. Numbers are given in the order of commits that succeed, so that recovery gives the same.
//
// The commit thread keeps the entries it has used in memory and adjusts them there. Each commit puts those that it has
// changed among its own keys, so that a reader at its version finds the counts of that version. At recovery they
// follow from the log, which says of every document whether it was new.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// The commit thread's view of the catalogue.
struct Catalogue: ~Copyable {
    private struct Entry {
        /// 0 until the collection's first document is committed.
        var number: UInt64
        var count: Int
        /// The number or the count is of the commit being made.
        var isChanged = false
        /// Documents more or less by the commit being made.
        var delta = 0
        /// The full path if the key does not hold it.
        var path: [UInt8] = []
    }

    private var entries: [Entry] = []
    /// Bytes of their names and paths.
    private var entryBytes = 0
    /// Collection prefixes of document keys, without the space byte, to positions in `entries`.
    private var positions = ByteTable()
    /// Entries that the commit being made has changed.
    private var changed: [Int] = []
    /// Those of them that it has numbered.
    private var numbered: [Int] = []
    private var nextNumber: UInt64?
    /// Whether the store has the list of each group; set with `nextNumber`.
    private var listsGroups = false
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
    private var value = ByteBuffer(capacity: 64)

    /// Entries kept in memory between commits, and bytes of their names and paths.
    private static let cachedMax = 65_536
    private static let cachedBytesMax = 8 << 20

    init() {}

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
            note(0, at: position)
        }
        if delta != 0 { note(delta, at: position) }
        return entries[position].number
    }

    private mutating func note(_ delta: Int, at position: Int) {
        entries[position].count += delta
        entries[position].delta += delta
        if entries[position].isChanged { return }
        entries[position].isChanged = true
        changed.append(position)
    }

    /// The commit came to nothing.
    mutating func rollBackCommit() {
        for position in changed { entries[position].count -= entries[position].delta }
        for position in numbered { entries[position].number = 0 }
        if let number = nextNumber { nextNumber = number - UInt64(numbered.count) }
        endCommit()
    }

    /// The commit is staged, with what `writeChanges` put.
    mutating func keepCommit() { endCommit() }

    /// Empties the cache when it has become large.
    private mutating func endCommit() {
        if !changed.isEmpty {
            for position in changed {
                entries[position].isChanged = false
                entries[position].delta = 0
            }
            changed.removeAll(keepingCapacity: true)
            numbered.removeAll(keepingCapacity: true)
        }
        if entries.count <= Catalogue.cachedMax, entryBytes <= Catalogue.cachedBytesMax { return }
        entries.removeAll()
        entryBytes = 0
        positions.removeAll()
    }

    /// Puts every entry that the commit being made has changed.
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
        if listsGroups {
            for position in numbered { writeGroup(of: position, into: &batch) }
        }
        if let nextNumber, !numbered.isEmpty {
            Catalogue.writeCounterKey(into: &key)
            value.reset()
            value.appendVarint(nextNumber)
            batch.put(key: key.bytes, value: value.bytes)
        }
    }

    /// Puts a new collection into the list of its group.
    private mutating func writeGroup(of position: Int, into batch: inout MutationBatch) {
        writeKey(of: position)
        let path = entries[position].path
        let listed = GroupKey.key(of: key.bytes, path: path.byteSpan)
        value.reset()
        batch.put(key: listed.byteSpan, value: value.bytes)
        let marker = GroupKey.marker
        if entries[position].number == 1 { batch.put(key: marker.byteSpan, value: value.bytes) }
    }

    private mutating func position(
        of collection: RawSpan, path: RawSpan, latest: LatestReader
    ) throws(StorageError) -> Int {
        let name = collection.extracting(1..<collection.byteCount)
        let hash = ByteTable.hash(name)
        if let known = positions.value(of: name, hash: hash) { return known }
        key.reset()
        key.append(byte: KeySpace.catalogue.rawValue)
        key.append(name)
        var entry = Entry(number: 0, count: 0)
        // What cannot be read leaves nothing: it would be taken for a new collection afterwards.
        if let stored = try latest.value(forKey: key.bytes), let parsed = CatalogueEntry(stored.bytes) {
            entry = Entry(number: parsed.number, count: parsed.count, path: [UInt8](copying: parsed.path))
        } else if DocumentKey.isCutCollection(byteCount: collection.byteCount) {
            entry.path = [UInt8](copying: DocumentKey.collectionPath(ofDocument: path))
        }
        let position = entries.count
        positions.set(name, hash: hash, to: position)
        entries.append(entry)
        entryBytes += name.byteCount + entry.path.count
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
        }
        listsGroups = next == 1
        // Directories from before there were lists have none.
        let marker = GroupKey.marker
        if !listsGroups, try latest.value(forKey: marker.byteSpan) != nil { listsGroups = true }
        nextNumber = next
        return next
    }

    static func writeCounterKey(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.meta.rawValue)
        writer.append(byte: UInt8(ascii: "n"))
    }
}
