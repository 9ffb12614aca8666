// Indexes of a client's cache: definitions, and what the store knows about them.

internal import Basics
package import DocumentModel
internal import Indexing
internal import Storage
internal import StoreFormat

/// An index of one field, in all collections with one id.
///
///     | phase, 1 | kind, 1 | length | collection id | field |
struct LocalIndex {
    enum Phase: UInt8 {
        /// Writes keep entries; those of older documents are being added. Queries do not use the index.
        case building = 0
        case complete = 1
        /// Nothing keeps or reads its entries, which are being removed.
        case removing = 2
    }

    let index: AdaptiveIndex
    var phase: Phase

    init(_ index: AdaptiveIndex, _ phase: Phase) {
        self.index = index
        self.phase = phase
    }

    /// - Throws: DATA_LOSS for bytes that are none.
    init(stored: RawSpan) throws(RequestError) {
        guard stored.byteCount > 2, let phase = Phase(rawValue: stored[byteAt: 0]) else { throw Self.damaged }
        let kind = EntryKinds(rawValue: stored[byteAt: 1])
        guard kind == .values || kind == .elements else { throw Self.damaged }
        var reader = WireReader(stored)
        reader.position = 2
        guard let id = try? reader.lengthDelimited() else { throw Self.damaged }
        let text = String(repairingUTF8: stored.extracting(reader.position..<stored.byteCount))
        guard let field = try? FieldPath(text) else { throw Self.damaged }
        self.phase = phase
        index = AdaptiveIndex(
            database: LocalKey.database, collectionID: String(repairingUTF8: id), field: field, kind: kind)
    }

    private static var damaged: RequestError { RequestError(.dataLoss, "An index of the cache is damaged.") }

    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        writer.append(byte: phase.rawValue)
        writer.append(byte: index.kind.rawValue)
        writer.appendVarint(UInt64(index.collectionID.utf8.count))
        writer.append(utf8: index.collectionID)
        writer.append(utf8: "\(index.field)")
        return writer.copyBytes()
    }

    var key: [UInt8] { LocalKey.index(Array(encoded().dropFirst())) }
}

/// An index that a program asks for: of one field, in all collections with one id.
package struct LocalIndexDefinition: Hashable, Sendable {
    /// A store makes no more indexes.
    package static let countMax = LocalIndexes.countMax

    /// The id of the collections.
    package let collectionID: String
    package let field: FieldPath
    /// Whether the index is of the elements of arrays, for `arrayContains`, and not of values.
    package let isOfElements: Bool

    package init(collectionID: String, field: FieldPath, isOfElements: Bool) {
        self.collectionID = collectionID
        self.field = field
        self.isOfElements = isOfElements
    }

    var index: AdaptiveIndex {
        AdaptiveIndex(
            database: LocalKey.database, collectionID: collectionID, field: field,
            kind: isOfElements ? .elements : .values)
    }
}

/// A collection as index keys name it.
struct LocalCollection {
    /// What stands for it in index keys.
    let number: UInt64
    /// About how many documents it has.
    var documentCount = 0
    /// Its path, if the key of the catalogue does not have it.
    var path: [UInt8] = []

    /// The value of the catalogue.
    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: 16)
        writer.appendVarint(number)
        writer.appendVarint(UInt64(documentCount))
        writer.append(path)
        return writer.copyBytes()
    }
}

/// The numbers of the fields of indexes, which are given when an index is made.
struct LocalFieldNumbers: FieldNumbering {
    /// By the keys of the dictionary of fields.
    var numbers: [[UInt8]: UInt64] = [:]
    var next: UInt64 { (numbers.values.max() ?? 0) + 1 }

    func number(of name: RawSpan, under parent: UInt64, database: UInt32) throws(StorageError) -> UInt64 {
        let key = Self.key(of: name, under: parent)
        // Derivation asks for the fields of indexes only.
        guard let number = numbers[key] else { throw StorageError(.corrupt, "a field of an index has no number") }
        return number
    }

    static func key(of name: RawSpan, under parent: UInt64) -> [UInt8] {
        var key = ByteBuffer(capacity: 64)
        FieldNumbers.writeKey(name, under: parent, database: LocalKey.database, into: &key)
        return key.copyBytes()
    }
}

/// The indexes of a store, with what follows from them. Belongs to the thread of its store.
struct LocalIndexes {
    /// The indexes of the collections with one id.
    struct Group {
        /// What writes keep.
        let kept: FieldRules
        /// What queries may read.
        let ready: IndexedFields
    }

    /// More are not made.
    static let countMax = 100

    private(set) var all: [LocalIndex] = []
    /// By the ids of collections. Groups without entries are not among them.
    private(set) var groups: [[UInt8]: Group] = [:]
    /// By keys of the catalogue; nil if it has to be read again.
    var collections: [[UInt8]: LocalCollection]?
    /// Keys of the collections that have changed since the last commit.
    var changedCollections: Set<[UInt8]> = []
    /// Records since the last commit by their keys; nil for those that are gone.
    var records: [[UInt8]: [UInt8]?] = [:]
    /// Entries that were put or removed since the last commit, and whether they are there.
    var entries: [[UInt8]: Bool] = [:]
    /// Above the numbers of all collections.
    var nextCollection: UInt64 = 1
    /// Indexes that a program has asked for and that wait for the removal of others.
    var awaited: [AdaptiveIndex] = []
    /// How far the index that is being built is: the first document that was not visited.
    var buildPosition: [UInt8] = []
    /// Documents of the collections that the walk has visited.
    var visitedCounts: [[UInt8]: Int] = [:]

    mutating func set(_ indexes: [LocalIndex]) {
        all = indexes
        groups = [:]
        for id in Set(indexes.filter { $0.phase != .removing }.map(\.index.collectionID)) {
            let own = indexes.filter { $0.index.collectionID == id }
            let ready = Self.rules(own.filter { $0.phase == .complete })
            groups[Array(id.utf8)] = Group(
                kept: Self.rules(own.filter { $0.phase != .removing }),
                ready: own.contains { $0.phase == .complete } ? .some(ready, isSettled: true) : .none)
        }
    }

    /// Rules that keep the entries of some indexes and no others.
    static func rules(_ indexes: [LocalIndex]) -> FieldRules {
        let own = indexes.map { $0.index.override(lastUse: 0) }
        let overrides = [FieldOverride.others(keepingAll: false, since: 0)] + own
        return GroupFields(
            database: LocalKey.database, collectionID: indexes.first?.index.collectionID ?? "", overrides: overrides,
            previous: [], begun: 0, state: IndexState(phase: .complete)
        ).rules
    }

    /// What was collected since the last commit is committed.
    mutating func keep() {
        changedCollections.removeAll()
        records.removeAll()
        entries.removeAll()
    }

    /// What was collected since the last commit is discarded.
    mutating func rollBack() {
        records.removeAll()
        entries.removeAll()
        if changedCollections.isEmpty { return }
        changedCollections = []
        collections = nil
    }
}

/// What one query of the cache lacks. The query engine notes it.
final class LocalIndexUsage: IndexUsage {
    private struct Note {
        var indexes: [AdaptiveIndex] = []
        var documents = 0
    }

    private let note = Monitor(Note())

    /// The smallest number of documents that an index must leave out to be made.
    let scanMin = 100

    func noteUse(of indexes: [AdaptiveIndex]) {}

    func noteScan(lacking indexes: [AdaptiveIndex], documents: Int, of total: Int) {
        note.withLock { note in
            note.indexes = indexes
            note.documents += documents
        }
    }

    func progress(of index: AdaptiveIndex) -> String { "made after the query" }

    /// The indexes that would have left out most of what the query has read.
    func wanted(results: Int) -> [AdaptiveIndex] {
        note.withLock { $0.documents >= max(scanMin, 2 * results) ? $0.indexes : [] }
    }
}
