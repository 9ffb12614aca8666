// The declared indexes of all databases, by number and by collection group.

internal import Basics
package import Storage
package import StorageEngines
internal import StoreFormat

/// The definitions of declared indexes. What a commit or a query does with those of its collection does not depend on
/// how many there are of others. A change copies those of its database alone, if a reader has the state before it.
package struct IndexDefinitions: Sendable {
    /// The key of a definition.
    private struct Place: Comparable, Sendable {
        let database: UInt32
        let number: UInt64

        static func < (one: Place, other: Place) -> Bool {
            (one.database, one.number) < (other.database, other.number)
        }
    }

    /// Those of each database that has some, by number.
    private var databases: [UInt32: [DeclaredIndex]] = [:]
    /// Those for searches.
    package private(set) var searches: [DeclaredIndex] = []
    /// Those that are being built or cleared, in their order.
    private var workingPlaces: [Place] = []
    private var groups = CollectionGroupTable<[DeclaredIndex]>()

    package var isEmpty: Bool { databases.isEmpty }

    /// By database and number. Looks at all databases.
    package var all: [DeclaredIndex] { databases.sorted { $0.key < $1.key }.flatMap(\.value) }

    /// Whether some are being built or cleared.
    package var haveWork: Bool { !workingPlaces.isEmpty }

    /// Those that are being built or cleared, by database and number.
    package var working: some Sequence<DeclaredIndex> {
        workingPlaces.lazy.compactMap { index($0.number, in: $0.database) }
    }

    /// The highest number of all databases; 0 without indexes.
    package var highestNumber: UInt64 { databases.values.lazy.compactMap(\.last?.number).max() ?? 0 }

    package init() {}

    /// Reads all definitions.
    package init(latest: LatestReader) throws(StorageError) {
        try latest.forEach(in: .definitions) { (key, value) throws(StorageError) in
            guard let index = DeclaredIndex(key: key, value: value) else {
                throw StorageError(.corrupt, "the definition of an index cannot be read")
            }
            set(index, index.state)
        }
    }

    /// The indexes over collections with an id, in any state, by number.
    ///
    /// - Parameters:
    ///   - collectionID: without a path.
    ///   - database: the number that stands for the database in keys.
    package func indexes(of collectionID: RawSpan, in database: UInt32) -> [DeclaredIndex] {
        groups.value(of: collectionID, in: database) ?? []
    }

    /// The indexes of a database, in any state, by number.
    package func indexes(in database: UInt32) -> [DeclaredIndex] { databases[database] ?? [] }

    /// The index of a database with this number.
    package func index(_ number: UInt64, in database: UInt32) -> DeclaredIndex? {
        guard let indexes = databases[database] else { return nil }
        let place = indexes.place(database, number)
        return place < indexes.count && indexes[place].number == number ? indexes[place] : nil
    }

    /// Takes a definition in its new state; nil removes it.
    package mutating func set(_ index: DeclaredIndex, _ state: IndexState?) {
        var changed: DeclaredIndex?
        if let state {
            changed = index
            changed?.state = state
        }
        let id = Array(index.shape.collectionID.utf8)
        var group = indexes(of: id.byteSpan, in: index.database)
        group.replace(index, by: changed)
        groups.set(group.isEmpty ? nil : group, of: id, in: index.database)
        databases[index.database, default: []].replace(index, by: changed)
        if databases[index.database]?.isEmpty == true { databases[index.database] = nil }
        if index.shape.search != nil { searches.replace(index, by: changed) }
        workingPlaces.note(
            Place(database: index.database, number: index.number), isMember: state?.hasWork == true)
    }
}

extension [DeclaredIndex] {
    /// Where the index of a database with this number is, or would be.
    fileprivate func place(_ database: UInt32, _ number: UInt64) -> Int {
        partitioningIndex { ($0.database, $0.number) >= (database, number) }
    }

    /// Replaces an index, if it is there, in the order of databases and numbers.
    fileprivate mutating func replace(_ index: DeclaredIndex, by changed: DeclaredIndex?) {
        let place = place(index.database, index.number)
        let isThere = place < count && self[place].database == index.database && self[place].number == index.number
        switch changed {
        case let changed? where isThere: self[place] = changed
        case let changed?: insert(changed, at: place)
        case nil where isThere: remove(at: place)
        case nil: break
        }
    }
}
