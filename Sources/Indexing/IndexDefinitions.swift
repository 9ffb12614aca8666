// The declared indexes of all databases, by number and by collection group.

internal import Basics
package import Storage
package import StorageEngines
internal import StoreFormat

/// The definitions of declared indexes. What a commit or a query does with those of its collection does not depend on
/// how many there are of others.
package struct IndexDefinitions: Sendable {
    /// By database and number.
    package private(set) var all: [DeclaredIndex] = []
    /// Those for searches.
    package private(set) var searches: [DeclaredIndex] = []
    /// Those that are being built or cleared.
    package private(set) var working: [DeclaredIndex] = []
    private var groups = CollectionGroupTable<[DeclaredIndex]>()

    package var isEmpty: Bool { all.isEmpty }

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
    package func indexes(in database: UInt32) -> ArraySlice<DeclaredIndex> {
        all[all.place(database, 0)..<all.place(database, .max)]
    }

    /// The index of a database with this number.
    package func index(_ number: UInt64, in database: UInt32) -> DeclaredIndex? {
        let place = all.place(database, number)
        guard place < all.count, all[place].database == database, all[place].number == number else { return nil }
        return all[place]
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
        all.replace(index, by: changed)
        if index.shape.search != nil { searches.replace(index, by: changed) }
        working.replace(index, by: state?.hasWork == true ? changed : nil)
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
