// The indexes of a database as a person reads them, with estimates of their sizes.

internal import Basics
package import DocumentModel
internal import Indexing
package import Storage
internal import StoreFormat

/// An index or an override.
package struct ListedIndex: Sendable {
    /// The entry of `firestore.indexes.json`.
    package let json: String
    /// Whether queries can use it.
    package let state: DocumentStore.IndexProgress
    /// About what the entries of declared indexes take on disk; nil for others.
    package var size: KeyRangeEstimate?
    /// Why its build cannot continue, in state `failed`.
    package var failure: String?
    /// It stands for the entries of all fields, which every database of the store has.
    package var isOfAllFields = false
}

extension DocumentStore {
    /// All indexes and overrides of a database, as entries of `firestore.indexes.json` with their states: indexes over
    /// several fields first. An override is ready when the index entries that it excludes are removed and those that
    /// it asks for are there; one that was lifted is listed until then. Indexes that were made on
    /// demand are listed as overrides with the time of their last use; `*` of group `*` stands for the entries that all
    /// fields have until they are unused, or that are being made.
    package func indexListing(in database: DatabaseName) -> [ListedIndex] {
        guard let number = databases.number(of: database) else { return [] }
        let states = indexState.current
        let definitions = states.declared.indexes(in: number)
        let published = engine.publishedVersion
        var implied: Set<IndexShape> = []
        var overrides: [ListedIndex] = []
        if let all = listedIndexOfAllFields { overrides.append(all) }
        for group in states.groups.groups(in: number) {
            let isReady = group.state.isComplete(at: published)
            let own = Dictionary(
                grouping: states.declared.indexes(of: group.idBytes.byteSpan, in: number), by: \.shape)
            for override in group.overrides where !override.isAdaptive || override.field != nil {
                let isSettled = isReady || group.hasSettled(override)
                let entries = override.shapes.flatMap { own[$0] ?? [] }
                let parts = entries.filter { $0.state.phase != .clearing }
                implied.formUnion(parts.map(\.shape))
                let isBuilt = isSettled && parts.allSatisfy { present($0).state == .ready }
                let failure =
                    (isSettled ? nil : failedBuilds.message(of: IndexBuild(group)))
                    ?? parts.lazy.compactMap { self.failure(of: $0) }.first
                overrides.append(
                    ListedIndex(
                        json: override.json, state: isBuilt ? .ready : failure == nil ? .building : .failed,
                        size: parts.isEmpty ? nil : size(of: entries), failure: failure))
            }
            if isReady { continue }
            let fields = Set(group.overrides.map(\.field))
            for lifted in Set(group.previous.joined().map(\.ignoringUse)) where !fields.contains(lifted.field) {
                overrides.append(ListedIndex(json: lifted.json, state: .dropping))
            }
        }
        let indexes = definitions.filter { $0.state.phase == .clearing || !implied.contains($0.shape) }
        return indexes.map {
            ListedIndex(
                json: $0.shape.json, state: present($0).state, size: size(of: [$0]), failure: failure(of: $0))
        } + overrides
    }

    /// Why the build of an index cannot continue now; nil if it can, or is done.
    private func failure(of index: DeclaredIndex) -> String? {
        index.state.phase == .building ? failedBuilds.message(of: IndexBuild(index)) : nil
    }

    /// What stands for the entries of all fields; nil if nothing is to be said of them.
    private var listedIndexOfAllFields: ListedIndex? {
        let states = indexState.current
        let common = states.groups.common
        let failure =
            (states.automatic.hasWork ? failedBuilds.message(of: .automatic) : nil)
            ?? (common.state.hasWork ? failedBuilds.message(of: IndexBuild(common)) : nil)
        guard states.automatic.hasWork || failure != nil || common.allKeptSince != nil else { return nil }
        let all = FieldOverride(collectionID: "*", field: nil, indexes: .automatic, lastUse: common.allKeptSince)
        return ListedIndex(
            json: all.json, state: failure != nil ? .failed : states.automatic.hasWork ? .building : .ready,
            failure: failure, isOfAllFields: true)
    }

    /// About how many documents and entries the builds and drops of a database have still to visit; 0 when they are
    /// done.
    package func indexWorkLeft(in database: DatabaseName) -> Int {
        guard let number = databases.number(of: database) else { return 0 }
        let documents = IndexMaintenance.documents(of: number)
        let states = indexState.current
        let indexes = states.declared.indexes(in: number).filter(\.state.hasWork).map { index in
            (from: index.state.position, to: index.state.phase == .clearing ? index.entries.to : documents.to)
        }
        let groups = states.groups.groups(in: number).filter(\.state.hasWork).map { group in
            (from: group.state.position, to: documents.to)
        }
        return (indexes + groups).reduce(0) { $0 + estimate($1).entries }
    }

    /// About what the entries of declared indexes take on disk. A damaged part counts as nothing.
    private func size(of indexes: [DeclaredIndex]) -> KeyRangeEstimate {
        var size = KeyRangeEstimate()
        for index in indexes { size.add(estimate(index.entries)) }
        return size
    }

    /// About what all entries take on disk.
    package struct IndexSizes: Sendable {
        /// Of single fields: their values, and the elements of arrays.
        package let values: KeyRangeEstimate
        package let elements: KeyRangeEstimate
        /// Of declared indexes, without those for searches.
        package let declared: KeyRangeEstimate
        package let searches: KeyRangeEstimate
    }

    /// About what all entries take on disk.
    package var indexSizes: IndexSizes {
        func size(_ space: KeySpace) -> KeyRangeEstimate { estimate(([space.rawValue], [space.rawValue + 1])) }
        return IndexSizes(
            values: size(.values), elements: size(.elements), declared: size(.declared), searches: size(.searches))
    }

    private func estimate(_ range: (from: [UInt8], to: [UInt8])) -> KeyRangeEstimate {
        (try? engine.estimate(from: range.from.byteSpan, to: range.to.byteSpan)) ?? KeyRangeEstimate()
    }
}

extension KeyRangeEstimate {
    fileprivate mutating func add(_ other: KeyRangeEstimate) {
        entries += other.entries
        bytes += other.bytes
    }
}
