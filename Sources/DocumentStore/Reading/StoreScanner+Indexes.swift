// Query execution's view of the indexes: walking entries and reading the documents they lead to.
//
// Every page opens one snapshot. A cursor walks the entries; each document is looked up at its own key, which is the
// collection's prefix and the entry's id segment.

package import Basics
package import DocumentModel
internal import KeyValueStore

extension StoreScanner {
    package mutating func indexedCollection(_ collection: RawSpan) throws(RequestError) -> IndexedCollection? {
        guard let database = point.databaseNumber else { return nil }
        let fields = reader.store.indexState.current.fields(ofCollection: collection, in: database, at: point.version)
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        DocumentKey.writeCatalogue(collection, database: database, into: &key)
        let snapshot = try reader.snapshot(at: point)
        do throws(StorageError) {
            guard let stored = try snapshot.value(forKey: key.bytes), let entry = CatalogueEntry(stored.bytes) else {
                return nil
            }
            return IndexedCollection(
                number: entry.number, documentCount: entry.count, fields: fields,
                mustReadDocuments: point.transaction?.kind == .pessimistic)
        } catch {
            throw RequestError(error)
        }
    }

    package mutating func indexedCollections(
        ofGroup id: RawSpan, atMost: Int
    ) throws(RequestError) -> [IndexedCollection]? {
        guard let database = point.databaseNumber else { return nil }
        let fields = reader.store.indexState.current.fields(ofCollection: id, in: database, at: point.version)
        let mustReadDocuments = point.transaction?.kind == .pessimistic
        let search = CollectionSearch(ofGroup: [UInt8](copying: id), database: database)
        let snapshot = try reader.snapshot(at: point)
        var collections: [IndexedCollection] = []
        do throws(StorageError) {
            try search.visitCatalogue(snapshot) { (_, entry, path) in
                collections.append(
                    IndexedCollection(
                        number: entry.number, inGroup: GroupCollection(path: [UInt8](copying: path)),
                        documentCount: entry.count, fields: fields, mustReadDocuments: mustReadDocuments))
                return collections.count > atMost ? .stop : .more
            }
        } catch {
            throw RequestError(error)
        }
        return collections.count > atMost ? nil : collections
    }

    package mutating func declaredIndexes() throws(RequestError) -> [DeclaredIndex] {
        guard let database = point.databaseNumber else { return [] }
        return reader.store.indexState.current.declared.filter {
            $0.database == database && $0.state.isComplete(at: point.version)
        }
    }

    package mutating func fieldOverrides(of collectionID: [UInt8]) throws(RequestError) -> [FieldOverride] {
        guard let database = point.databaseNumber else { return [] }
        return reader.store.indexState.current.groups.group(collectionID.byteSpan, in: database)?.overrides ?? []
    }

    package mutating func fieldNumber(of field: FieldPath) throws(RequestError) -> UInt64? {
        guard let database = point.databaseNumber else { return nil }
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        let snapshot = try reader.snapshot(at: point)
        var number: UInt64 = 0
        do throws(StorageError) {
            for segment in field.utf8Segments {
                FieldNumbers.writeKey(segment.byteSpan, under: number, database: database, into: &key)
                guard let stored = try snapshot.value(forKey: key.bytes) else { return nil }
                number = try FieldNumbers.read(stored.bytes)
            }
        } catch {
            throw RequestError(error)
        }
        return number
    }

    package mutating func countEntries(
        from lower: [UInt8], to upper: [UInt8], atMost: Int
    ) throws(RequestError) -> Int {
        let snapshot = try reader.snapshot(at: point)
        var count = 0
        do throws(StorageError) {
            var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
            while count < atMost, try cursor.next() { count += 1 }
        } catch {
            throw RequestError(error)
        }
        return count
    }

    package mutating func knownCount(of scope: QueryScope) throws(RequestError) -> Int? {
        switch scope {
        case .collection(let path): try reader.cataloguedCount(of: path.byteSpan, at: point)
        // The catalogue tells no children from other descendants.
        case .children: nil
        case .descendants(let parent, let id): try reader.cataloguedCount(below: parent, collectionID: id, at: point)
        }
    }

    package mutating func visit(
        _ walk: inout IndexWalk,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        guard let database = point.databaseNumber else { return }
        var documents = DocumentLookup(walk.scope, database: database)
        if !walk.isNoted {
            walk.isNoted = true
            try note(documents.everything(matching: filter, at: point.version))
        }
        let snapshot = try reader.snapshot(at: point)
        guard let transaction = point.transaction, transaction.kind == .pessimistic else {
            return try visit(&walk, &documents, snapshot, body)
        }
        // Locks what fulfils the query as it is met, as scans do.
        var locked: [UInt64] = []
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        defer { if !locked.isEmpty { reader.store.lockScanned(transaction, locked) } }
        try visit(&walk, &documents, snapshot) { (path, document) throws(RequestError) in
            if filter?(path, document.fields) ?? true {
                DocumentKey.write(path, database: database, into: &key)
                locked.append(ByteTable.hash(key.bytes))
            }
            return try body(path, document)
        }
    }

    private func visit(
        _ walk: inout IndexWalk, _ documents: inout DocumentLookup, _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        while walk.part < walk.access.parts.count, !walk.isHandedOver {
            let control: ScanControl
            if let collection = walk.access.parts[walk.part].collection {
                var own = DocumentLookup(.collection(path: collection.path), database: documents.database)
                control = try visitPart(&walk, &own, snapshot, body)
            } else {
                control = try visitPart(&walk, &documents, snapshot, body)
            }
            if control == .stop { return }
            if !walk.isHandedOver { walk.nextPart() }
        }
    }

    private func visitPart(
        _ walk: inout IndexWalk, _ documents: inout DocumentLookup, _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        switch walk.access.parts[walk.part].source {
        case .intervals(let use, let intervals): try visit(use, intervals, &walk, &documents, snapshot, body)
        case .merge(let members): try visit(members, &walk, &documents, snapshot, body)
        }
    }

    // MARK: Intervals

    private func visit(
        _ use: IndexUse, _ intervals: [ByteInterval], _ walk: inout IndexWalk, _ documents: inout DocumentLookup,
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        let isForward = walk.access.direction == .ascending
        while walk.interval < intervals.count {
            let interval = intervals[isForward ? walk.interval : intervals.count - 1 - walk.interval]
            let lower = use.prefix + interval.lower
            let upper = use.prefix + interval.upper
            if walk.group != nil {
                let control = try visitGroup(
                    within: (lower, upper), &walk, &documents, snapshot, body)
                if control == .stop { return .stop }
            }
            let from = isForward ? walk.key ?? lower : lower
            let to = isForward ? upper : walk.key ?? upper
            let control = try visit(from: from, to: to, prefix: use.prefix.count, &walk, &documents, snapshot, body)
            if control == .stop { return .stop }
            if walk.group != nil { continue }
            walk.interval += 1
            walk.key = nil
        }
        return .more
    }

    /// Visits the entries of a range of keys, up to the first one of a group.
    private func visit(
        from: [UInt8], to: [UInt8], prefix: Int, _ walk: inout IndexWalk, _ documents: inout DocumentLookup,
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        if from.byteSpan.compareBytes(to.byteSpan) >= 0 { return .more }
        let isForward = walk.access.direction == .ascending
        do {
            var cursor = try snapshot.cursor(
                from: from.byteSpan, to: to.byteSpan, direction: isForward ? .forward : .backward)
            while try cursor.next() {
                guard let place = IndexKey.idSegment(of: cursor.key) else { throw RequestError.damagedEntry }
                let segment = cursor.key.extracting(place)
                if walk.access.isOrdered, let group = IndexGroup.lower(cursor.key, prefix: prefix, segment: place) {
                    walk.group = IndexWalk.Group(lower: group, upper: IndexGroup.upper(group))
                    return .more
                }
                walk.entriesScanned += 1
                if try documents.visit(segment, [], &walk, snapshot, body) == .stop {
                    walk.key = [UInt8](copying: cursor.key) + (isForward ? [0] : [])
                    return .stop
                }
            }
            return .more
        } catch let error as StorageError {
            throw RequestError(error)
        } catch let error as RequestError {
            throw error
        } catch {
            preconditionFailure("a walk threw neither of its two error types: \(error)")
        }
    }

    // MARK: Groups

    /// Bytes of sort keys and names that one pass over a group keeps.
    private static var groupBytesMax: Int { 4 << 20 }

    /// Visits the entries of the group in the order of their documents, in passes of bounded memory.
    private func visitGroup(
        within bounds: (lower: [UInt8], upper: [UInt8]), _ walk: inout IndexWalk, _ documents: inout DocumentLookup,
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        while let group = walk.group {
            var rows = SortedRows(rowsMax: .max, bytesMax: Self.groupBytesMax)
            try collect(group, within: bounds, &rows, &walk, &documents, snapshot)
            let isLast = rows.cut == nil
            for row in rows.takeSorted() {
                walk.group?.after = row.key
                if try documents.visit(row.payload.byteSpan, [], &walk, snapshot, body) == .stop { return .stop }
            }
            if isLast {
                walk.key = walk.access.direction == .ascending ? group.upper : group.lower
                walk.group = nil
            }
        }
        return .more
    }

    /// Keeps the first rows of a group behind the one given out last: sort key and id segment.
    private func collect(
        _ group: IndexWalk.Group, within bounds: (lower: [UInt8], upper: [UInt8]), _ rows: inout SortedRows,
        _ walk: inout IndexWalk, _ documents: inout DocumentLookup, _ snapshot: borrowing EngineSnapshot
    ) throws(RequestError) {
        let range = ByteInterval(lower: bounds.lower, upper: bounds.upper)
        guard let range = range.intersection(ByteInterval(lower: group.lower, upper: group.upper)) else { return }
        let orders = walk.orders
        var key = WireWriter(capacity: 256)
        do {
            var cursor = try snapshot.cursor(from: range.lower.byteSpan, to: range.upper.byteSpan)
            while try cursor.next() {
                guard let place = IndexKey.idSegment(of: cursor.key) else { throw RequestError.damagedEntry }
                let segment = cursor.key.extracting(place)
                walk.entriesScanned += 1
                _ = try documents.visit(segment, [], &walk, snapshot) { (path, document) throws(RequestError) in
                    key.reset(keeping: 1 << 16)
                    guard SortKey.append(path: path, fields: document.fields, order: orders, into: &key) else {
                        return .more
                    }
                    if let after = group.after, key.bytes.compareBytes(after.byteSpan) <= 0 { return .more }
                    guard rows.wants(key: key.bytes) else { return .more }
                    rows.insert(
                        SortedRow(
                            key: key.copyBytes(), payload: [UInt8](copying: segment), pathCount: 0,
                            createMicroseconds: 0, updateMicroseconds: 0))
                    return .more
                }
            }
        } catch let error as StorageError {
            throw RequestError(error)
        } catch let error as RequestError {
            throw error
        } catch {
            preconditionFailure("a walk threw neither of its two error types: \(error)")
        }
    }

    // MARK: Merges

    private func visit(
        _ members: [MergeMember], _ walk: inout IndexWalk, _ documents: inout DocumentLookup,
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        var union = RestUnion(
            members, database: documents.database, direction: walk.access.direction, after: walk.rest)
        do throws(StorageError) { try union.prepare(snapshot, &walk.entriesScanned) } catch { throw RequestError(error) }
        guard let first = members.first, let run = first.runs.first else { return .more }
        while let entry = union.current {
            var segment: [UInt8] = []
            var isCut = entry.isCut
            if first.collection == nil {
                guard let found = run.index.document(in: entry.rest) else { throw .damagedEntry }
                segment = found.segment
                isCut =
                    IndexKey.isCut(idSegment: segment.byteSpan)
                    || found.place.lowerBound > 0 && run.valueBytes + found.place.lowerBound >= IndexKey.valueBytesMaximum
            }
            if walk.access.isOrdered, !walk.access.countsOnly, isCut {
                walk.handedOverAfter = try documents.sortKey(of: walk.lastDocument, walk.orders, snapshot) ?? []
                return .more
            }
            walk.rest = entry.rest
            let control = try documents.visit(segment.byteSpan, entry.documentKey, &walk, snapshot, body)
            if walk.access.isOrdered { walk.lastDocument = documents.currentKey }
            if control == .stop { return .stop }
            do throws(StorageError) { try union.advance(snapshot, &walk.entriesScanned) } catch { throw RequestError(error) }
        }
        return .more
    }
}

extension RequestError {
    fileprivate static let damagedEntry = RequestError(.dataLoss, "An index entry is damaged.")
    fileprivate static let strayEntry = RequestError(.dataLoss, "An index entry refers to a missing document.")
}

/// Entries whose place among their neighbours says nothing about the order of their documents.
enum IndexGroup {
    /// What the keys of the entry's group begin with; nil if it stands for itself.
    static func lower(_ key: RawSpan, prefix: Int, segment: Range<Int>) -> [UInt8]? {
        if segment.lowerBound - prefix >= IndexKey.valueBytesMaximum {
            return [UInt8](copying: key.extracting(0..<segment.lowerBound))
        }
        if IndexKey.isCut(idSegment: key.extracting(segment)) {
            return [UInt8](copying: key.extracting(0..<(segment.lowerBound + KeyLayout.plainBytesMaximum)))
        }
        return nil
    }

    /// The first key after the group.
    static func upper(_ lower: [UInt8]) -> [UInt8] { DocumentKey.endOfGroup(lower) }
}

/// Reads the documents of a scope by what index entries say of them: id segments in a collection, paths in a group.
private struct DocumentLookup: ~Copyable {
    private var key = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
    private var path = WireWriter(capacity: 128)
    private let scope: QueryScope
    let database: UInt32
    /// Bytes of the collection's prefix in the key, with the document marker; in a group those before a path.
    private let prefixByteCount: Int

    init(_ scope: QueryScope, database: UInt32) {
        self.scope = scope
        self.database = database
        if case .collection(let collection) = scope {
            DocumentKey.writeCollection(collection.byteSpan, database: database, into: &key)
            key.append(byte: KeyLayout.documentMarker)
        } else {
            DocumentKey.writeSubtree([UInt8]().byteSpan, database: database, into: &key)
        }
        prefixByteCount = key.count
    }

    /// The key of the document looked up last.
    var currentKey: [UInt8] { key.copyBytes() }

    /// The range of all documents of the scope, as a transaction remembers it.
    mutating func everything(matching filter: DocumentFilter?, at version: CommitVersion) -> ReadRange {
        key.truncate(to: prefixByteCount)
        let lower = key.copyBytes()
        guard case .descendants(_, let collectionID) = scope else {
            var upper = lower
            upper[prefixByteCount - 1] += 1
            return ReadRange(lower: lower, upper: upper, collectionID: nil, matches: filter, version: version)
        }
        return ReadRange(
            lower: lower, upper: lower + [KeyLayout.afterEverything], collectionID: collectionID, matches: filter,
            version: version)
    }

    /// Reads one document and lends it, if it can be a result of this part of the walk.
    ///
    /// - Parameters:
    ///   - segment: the id segment, or in a group the segments of the path.
    ///   - documentKey: the document's key, where the path was cut.
    mutating func visit(
        _ segment: RawSpan, _ documentKey: [UInt8], _ walk: inout IndexWalk, _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        if walk.access.countsOnly {
            let nothing = segment.extracting(0..<0)
            return try body(
                nothing,
                CandidateDocument(documentID: nothing, createMicroseconds: 0, updateMicroseconds: 0, fields: nothing))
        }
        key.truncate(to: prefixByteCount)
        if !documentKey.isEmpty {
            key.reset()
            key.append(documentKey)
        } else if case .collection = scope {
            key.append(segment)
        } else {
            guard IndexKey.appendDocument(atPath: segment, into: &key) else { throw .damagedEntry }
        }
        walk.documentsRead += 1
        return try DocumentLookup.visit(key, &path, walk, snapshot, body)
    }

    private static func visit(
        _ key: borrowing WireWriter, _ path: inout WireWriter, _ walk: borrowing IndexWalk,
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        let stored: StoredValue?
        do throws(StorageError) { stored = try snapshot.value(forKey: key.bytes) } catch { throw RequestError(error) }
        guard let stored, let parts = DocumentKey.parts(of: key.bytes),
            let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds),
            KeyedDocument.writePath(key: key.bytes, parts: parts, record: record, into: &path)
        else { throw .strayEntry }
        if walk.names != .all, !walk.names.contains(path: path.bytes) { return .more }
        if !walk.isDue(path: path.bytes, fields: record.fields) { return .more }
        let document = CandidateDocument(
            documentID: RelativePath.lastSegment(path.bytes), createMicroseconds: record.createMicroseconds,
            updateMicroseconds: record.updateMicroseconds, fields: record.fields)
        return try body(path.bytes, document)
    }

    /// The sort key of a document given by its key; nil if there is none.
    mutating func sortKey(
        of document: [UInt8], _ orders: [Order], _ snapshot: borrowing EngineSnapshot
    ) throws(RequestError) -> [UInt8]? {
        if document.isEmpty { return nil }
        let stored: StoredValue?
        do throws(StorageError) {
            stored = try snapshot.value(forKey: document.byteSpan)
        } catch {
            throw RequestError(error)
        }
        guard let stored, let parts = DocumentKey.parts(of: document.byteSpan),
            let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds),
            KeyedDocument.writePath(key: document.byteSpan, parts: parts, record: record, into: &path)
        else { throw .strayEntry }
        var sortKey = WireWriter(capacity: 128)
        guard SortKey.append(path: path.bytes, fields: record.fields, order: orders, into: &sortKey) else { return nil }
        return sortKey.copyBytes()
    }
}
