// Scans one collection in the order of its ids.
//
// The keys of a collection's documents are one contiguous range, in the order of their ids. The exception are ids that
// are too long for a key: those with the same first `KeyLayout.plainBytesMax` bytes are adjacent, ordered by hash.
// For such a group the scan reads the full ids in passes, each selecting the next few hundred in order, so that memory
// stays bounded. Ordinary collections have no such groups.

package import Basics
package import DocumentModel
internal import StoreFormat

/// The documents of one collection, by id.
package struct CollectionScan: QueryOperator {
    /// The collection's path below `documents`.
    let collection: [UInt8]
    let direction: SortDirection
    private let ids: DocumentIDRange
    /// The ids as a range of names, for explain.
    private let names: NameRange
    /// The resume token: the ids still to be read; nil once there are none.
    private(set) var remaining: DocumentIDRange?

    /// - Parameter ids: the ids to read. The bounds come from clients: any UTF-8, reserved ids included.
    package init(_ collection: [UInt8], ids: DocumentIDRange = .all, names: NameRange = .all, direction: SortDirection)
    {
        self.collection = collection
        self.ids = ids
        self.names = names
        self.direction = direction
        remaining = ids
    }

    var isFinished: Bool { remaining == nil }

    mutating func restart() { remaining = ids }

    /// Removes the ids through `id`, in the direction of the scan, from what is still to be read.
    mutating func skip(through id: [UInt8]) { remaining?.removeThrough(id, direction) }

    var tree: PlanTree {
        var line = "CollectionScan \(String(decoding: collection, as: UTF8.self))"
        if direction == .descending { line += ", descending" }
        if names != .all { line += ", \(names)" }
        return PlanTree(line: line)
    }

    package mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        guard let remaining else { return }
        let keys = CollectionKeys(collection.byteSpan, remaining, database: source.database)
        if remaining.isEmpty || keys.isEmpty {
            self.remaining = nil
            return
        }
        if let last = try scan(keys, ids: remaining, in: source, work: &work, page) {
            skip(through: last)
        } else {
            self.remaining = nil
        }
    }

    /// The ids that the scan has passed; nil before the first.
    var passed: DocumentIDRange? {
        guard let remaining else { return ids }
        if remaining == ids { return nil }
        var passed = ids
        // What remains begins after the last document, which has passed.
        switch direction {
        case .ascending: passed.upper = remaining.lower.map { DocumentIDBound(id: $0.id, isInclusive: true) }
        case .descending: passed.lower = remaining.upper.map { DocumentIDBound(id: $0.id, isInclusive: true) }
        }
        return passed
    }

    /// - Returns: the last id given out, if the page is full or the budget spent.
    private func scan<Source: QuerySource & ~Copyable>(
        _ keys: CollectionKeys, ids: DocumentIDRange, in source: borrowing Source, work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> [UInt8]? {
        var path = ByteBuffer(capacity: 128)
        path.append(collection)
        path.append(byte: RelativePath.slash)
        let idOffset = path.count
        var cursor = try source.cursor(from: keys.lower.byteSpan, to: keys.upper.byteSpan, direction)
        while try cursor.next() {
            if DocumentKey.isCutID(in: cursor.key, collectionByteCount: keys.collectionByteCount) {
                let group = LongIDGroup(containing: cursor.key, keys, ids, direction)
                let id = try group.scan(path: &path, idOffset: idOffset, in: source, work: &work, page)
                if let id { return id }
                try cursor.seek(to: group.end.byteSpan)
                continue
            }
            guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.versionMicroseconds) else {
                throw .damagedDocument
            }
            path.truncate(to: idOffset)
            DocumentKey.appendID(of: cursor.key, collectionByteCount: keys.collectionByteCount, to: &path)
            let hasBudget = work.countDocument(byteCount: record.fields.byteCount)
            let row = QueryRow(
                path: path.bytes, createMicroseconds: record.createMicroseconds,
                updateMicroseconds: record.updateMicroseconds, fields: record.fields)
            if try page(row) == .full || !hasBudget {
                return [UInt8](copying: path.bytes.extracting(idOffset..<path.count))
            }
        }
        return nil
    }
}

/// The range of keys of a collection's documents with ids in a range.
struct CollectionKeys {
    private(set) var lower: [UInt8]
    private(set) var upper: [UInt8]
    /// Bytes of the collection's prefix, without the document marker.
    let collectionByteCount: Int

    init(_ collection: RawSpan, _ ids: DocumentIDRange, database: UInt32) {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
        DocumentKey.writeCollection(collection, database: database, into: &key)
        collectionByteCount = key.count
        let plainByteCount = key.count + 1 + KeyLayout.plainBytesMax
        if let bound = ids.lower {
            if DocumentKey.appendID(bound.id.byteSpan, into: &key) {
                // Inside a group of long ids: from the start of the group, and its ids are compared.
                key.truncate(to: plainByteCount)
            } else if !bound.isInclusive {
                key.append(byte: 0)
            }
        } else {
            key.append(byte: KeyLayout.documentMarker)
        }
        lower = key.copyBytes()
        key.truncate(to: collectionByteCount)
        if let bound = ids.upper {
            if DocumentKey.appendID(bound.id.byteSpan, into: &key) {
                key.truncate(to: plainByteCount)
                key.appendAfterGroup()
            } else if bound.isInclusive {
                key.append(byte: 0)
            }
        } else {
            // The marker after the document marker begins what lies deeper.
            key.append(byte: KeyLayout.documentMarker + 1)
        }
        upper = key.copyBytes()
    }

    var isEmpty: Bool { lower.byteSpan.compareBytes(upper.byteSpan) >= 0 }
}

/// The documents whose ids share the part that fits in a key, in the order of their full ids.
private struct LongIDGroup {
    /// What the keys of the group begin with.
    private let prefix: [UInt8]
    private let collectionByteCount: Int
    private let ids: DocumentIDRange
    private let direction: SortDirection

    /// Ids selected in one pass; with 1500 bytes each they take 400 KB.
    private static let idsPerPass = 256

    init(containing key: RawSpan, _ keys: CollectionKeys, _ ids: DocumentIDRange, _ direction: SortDirection) {
        collectionByteCount = keys.collectionByteCount
        prefix = [UInt8](
            copying: key.extracting(0..<(keys.collectionByteCount + 1 + KeyLayout.plainBytesMax)))
        self.ids = ids
        self.direction = direction
    }

    /// Where the group ends in the direction of the scan.
    var end: [UInt8] { direction == .descending ? prefix : DocumentKey.endOfGroup(prefix) }

    /// Gives out the documents of the group.
    /// - Returns: the last id given out, if the page is full or the budget spent.
    func scan<Source: QuerySource & ~Copyable>(
        path: inout ByteBuffer, idOffset: Int, in source: borrowing Source, work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> [UInt8]? {
        var last: [UInt8]?
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        while true {
            let selected = try selectIDs(after: last, source)
            for id in selected {
                key.reset()
                key.append(prefix.byteSpan.extracting(0..<collectionByteCount))
                DocumentKey.appendID(id.byteSpan, into: &key)
                guard let stored = try source.value(forKey: key.bytes),
                    let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.versionMicroseconds)
                else { throw .damagedDocument }
                path.truncate(to: idOffset)
                path.append(id)
                let hasBudget = work.countDocument(byteCount: record.fields.byteCount)
                let row = QueryRow(
                    path: path.bytes, createMicroseconds: record.createMicroseconds,
                    updateMicroseconds: record.updateMicroseconds, fields: record.fields)
                if try page(row) == .full || !hasBudget { return id }
            }
            if selected.count < Self.idsPerPass { return nil }
            last = selected.last
        }
    }

    /// The first ids of the group in the direction of the scan, after `last` and within the range.
    private func selectIDs<Source: QuerySource & ~Copyable>(
        after last: [UInt8]?, _ source: borrowing Source
    ) throws(RequestError) -> [[UInt8]] {
        var selected: [[UInt8]] = []
        let end = DocumentKey.endOfGroup(prefix)
        var cursor = try source.cursor(from: prefix.byteSpan, to: end.byteSpan, .ascending)
        while try cursor.next() {
            guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.versionMicroseconds),
                record.path.byteCount > 0
            else { throw .damagedDocument }
            let id = record.path.extracting(DocumentKey.idOffset(ofDocument: record.path)..<record.path.byteCount)
            if !ids.contains(id) { continue }
            let candidate = [UInt8](copying: id)
            if let last, !comesBefore(last, candidate) { continue }
            if selected.count == Self.idsPerPass, !comesBefore(candidate, selected[selected.count - 1]) { continue }
            var low = 0
            var high = selected.count
            while low < high {
                let middle = (low + high) / 2
                if comesBefore(selected[middle], candidate) { low = middle + 1 } else { high = middle }
            }
            selected.insert(candidate, at: low)
            if selected.count > Self.idsPerPass { selected.removeLast() }
        }
        return selected
    }

    /// Whether `left` comes before `right` in the direction of the scan. Long ids are never numeric: bytes decide.
    private func comesBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let order = left.byteSpan.compareBytes(right.byteSpan)
        return direction == .descending ? order > 0 : order < 0
    }
}
