// Indexes of the cache: the server's entries, keys and plans, over what the program sees of the documents.
//
//     a query reads documents in vain ──► building ──► complete ──► removing ──► gone
//                                            └── the store is closed ──┘
//
// An index that was not complete when the store was closed is removed when it is opened again.

package import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StoreFormat

extension LocalStore {
    // MARK: Definitions

    /// Reads the indexes, the numbers of their fields and their collections.
    func readIndexes() throws(RequestError) {
        var found: [LocalIndex] = []
        try forEach(in: [LocalSpace.indexes]) { (_, value) throws(RequestError) in
            var index = try LocalIndex(stored: value)
            if index.phase != .complete { index.phase = .removing }
            found.append(index)
        }
        indexes.set(found)
        var numbers: [[UInt8]: UInt64] = [:]
        try forEach(in: [LocalSpace.fields]) { (key, value) throws(RequestError) in
            do throws(StorageError) {
                numbers[[UInt8](copying: key)] = try FieldNumbers.read(value)
            } catch {
                throw RequestError(error)
            }
        }
        derivation.fields.numbers = numbers
    }

    /// The indexes that queries use, as `collection (field)`. For tests and diagnostics.
    package var completeIndexes: [String] {
        indexes.all.filter { $0.phase == .complete }.map { "\($0.index)" }.sorted()
    }

    /// Begins to make indexes. ``stepIndexes(documentsMax:)`` adds the entries.
    func makeIndexes(_ wanted: [AdaptiveIndex]) throws(RequestError) {
        let known = Set(indexes.all.map(\.index))
        let new = wanted.filter { !known.contains($0) }.prefix(max(0, LocalIndexes.countMax - known.count))
        if new.isEmpty { return }
        begin()
        let before = derivation.fields.numbers
        for index in new {
            var parent: UInt64 = 0
            for segment in index.field.utf8Segments {
                let key = LocalFieldNumbers.key(of: segment.byteSpan, under: parent)
                if derivation.fields.numbers[key] == nil {
                    let number = derivation.fields.next
                    derivation.fields.numbers[key] = number
                    var value = ByteBuffer(capacity: 10)
                    value.appendVarint(number)
                    put(key, value.copyBytes())
                }
                parent = derivation.fields.numbers[key] ?? 0
            }
        }
        let made = new.map { LocalIndex($0, .building) }
        for index in made { put(index.key, index.encoded()) }
        do throws(RequestError) {
            try commit()
        } catch {
            derivation.fields.numbers = before
            throw error
        }
        indexes.set(indexes.all + made)
        restartBuilding()
    }

    /// Replaces the indexes: those that are not among the definitions are given up, those that do not exist yet are
    /// begun, the first 100 at most. ``stepIndexes(documentsMax:)`` adds and removes the entries.
    package func setIndexes(_ definitions: [LocalIndexDefinition]) throws(RequestError) {
        defer { finishReading() }
        var kept: Set<AdaptiveIndex> = []
        let wanted = definitions.map(\.index).filter { kept.count < LocalIndexes.countMax && kept.insert($0).inserted }
        begin()
        var all = indexes.all
        for position in all.indices where !kept.contains(all[position].index) {
            all[position].phase = .removing
            put(all[position].key, all[position].encoded())
        }
        try commit()
        indexes.set(all)
        restartBuilding()
        indexes.awaited = wanted
        try makeAwaitedIndexes()
    }

    /// Begins the indexes that wait, as many as there is room for.
    private func makeAwaitedIndexes() throws(RequestError) {
        try makeIndexes(indexes.awaited)
        let present = Set(indexes.all.filter { $0.phase != .removing }.map(\.index))
        indexes.awaited.removeAll { present.contains($0) }
    }

    /// Gives up all indexes. ``stepIndexes(documentsMax:)`` removes the entries.
    package func removeAllIndexes() throws(RequestError) {
        defer { finishReading() }
        begin()
        let removed = indexes.all.map { LocalIndex($0.index, .removing) }
        for index in removed { put(index.key, index.encoded()) }
        try commit()
        indexes.set(removed)
        indexes.awaited = []
        restartBuilding()
    }

    private func restartBuilding() {
        indexes.buildPosition = []
        indexes.visitedCounts = [:]
    }

    // MARK: Steps

    /// Whether entries have to be added or removed.
    package var hasIndexWork: Bool { indexes.all.contains { $0.phase != .complete } }

    /// Adds or removes a part of the entries. To be called between other calls until there is no such work.
    ///
    /// - Parameter documentsMax: the most documents to visit.
    package func stepIndexes(documentsMax: Int = 500) throws(RequestError) {
        defer { finishReading() }
        begin()
        if let position = indexes.all.firstIndex(where: { $0.phase == .removing }) {
            try removeEntries(of: position)
        } else if indexes.all.contains(where: { $0.phase == .building }) {
            try addEntries(documentsMax)
        }
    }

    private static let removedEntriesMax = 2_000

    private func removeEntries(of position: Int) throws(RequestError) {
        let index = indexes.all[position]
        var entries: [[UInt8]] = []
        if let field = derivation.fields.number(of: index.index.field) {
            let space: KeySpace = index.index.kind == .values ? .values : .elements
            var prefix = ByteBuffer(capacity: 16)
            for collection in try collections().values where entries.count < Self.removedEntriesMax {
                IndexKey.begin(space, collection: collection.number, field: field, into: &prefix)
                try forEach(in: prefix.copyBytes(), atMost: Self.removedEntriesMax) { (key, _) throws(RequestError) in
                    entries.append([UInt8](copying: key))
                }
            }
        }
        for entry in entries {
            delete(entry)
            entryByteCount -= entry.count
        }
        let isLast = entries.count < Self.removedEntriesMax
        if isLast { delete(index.key) }
        try commit()
        if !isLast { return }
        var left = indexes.all
        left.remove(at: position)
        indexes.set(left)
        try makeAwaitedIndexes()
    }

    /// Adds the entries of all indexes that are being built.
    private func addEntries(_ documentsMax: Int) throws(RequestError) {
        let building = indexes.all.filter { $0.phase == .building }
        var rules: [[UInt8]: FieldRules] = [:]
        for id in Set(building.map(\.index.collectionID)) {
            rules[Array(id.utf8)] = LocalIndexes.rules(building.filter { $0.index.collectionID == id })
        }
        var visited = 0
        let start = indexes.buildPosition.isEmpty ? [LocalSpace.documents] : indexes.buildPosition
        var changed: [(key: [UInt8], value: [UInt8])] = []
        var last: [UInt8] = []
        var path = ByteBuffer(capacity: 128)
        try forEach(in: [LocalSpace.documents], from: start, atMost: documentsMax) {
            (key, value) throws(RequestError) in
            visited += 1
            last = [UInt8](copying: key)
            try Self.writePath(key: key, value: value, into: &path)
            let id = [UInt8](copying: KeyedDocument.collectionID(ofDocument: path.bytes))
            if rules[id] != nil { changed.append((last, [UInt8](copying: value))) }
        }
        var counts = indexes.visitedCounts
        for (key, value) in changed {
            try Self.writePath(key: key.byteSpan, value: value.byteSpan, into: &path)
            let id = [UInt8](copying: KeyedDocument.collectionID(ofDocument: path.bytes))
            guard let rules = rules[id] else { continue }
            try derive(key, path.copyBytes(), rules, from: [], to: try LocalRecord.fields(in: value.byteSpan))
            let collection = try collection(ofDocument: path.bytes)
            counts[collection, default: 0] += 1
        }
        let isLast = visited < documentsMax
        if isLast {
            for (key, count) in counts { set(documentCount: count, of: key) }
            for index in building { put(index.key, LocalIndex(index.index, .complete).encoded()) }
        }
        try commit()
        indexes.visitedCounts = counts
        indexes.buildPosition = last + [0]
        if !isLast { return }
        indexes.set(indexes.all.map { $0.phase == .building ? LocalIndex($0.index, .complete) : $0 })
        restartBuilding()
    }
}

extension LocalFieldNumbers {
    /// The number of an index's field.
    fileprivate func number(of field: FieldPath) -> UInt64? {
        var number: UInt64 = 0
        for segment in field.utf8Segments {
            guard let found = numbers[Self.key(of: segment.byteSpan, under: number)] else { return nil }
            number = found
        }
        return number
    }
}
