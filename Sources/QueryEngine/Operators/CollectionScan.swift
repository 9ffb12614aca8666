// Scans one collection in the order of its ids.
//
// The keys of a collection's documents are one contiguous range, in the order of their ids. The exception are ids that
// are too long for a key: those with the same first `KeyLayout.plainBytesMax` bytes are adjacent, ordered by hash.
// For such a group the scan reads the full ids in passes, each selecting the next ones in order, so that memory stays
// bounded. What a pass has selected is kept from page to page. Ordinary collections have no such groups.

package import Basics
package import DocumentModel
internal import StoreFormat

/// The documents of one collection, by id.
package struct CollectionScan: QueryOperator {
    /// The collection's path below `documents`.
    let collection: [UInt8]
    let direction: SortDirection
    let ids: DocumentIDRange
    /// The ids as a range of names, for explain.
    private let names: NameRange
    /// The resume token: the ids still to be read; nil once there are none.
    private(set) var remaining: DocumentIDRange?
    /// The rest of the resume token: the last group of long ids that was begun, and where the last one ends that was
    /// given out. A group is not read again for those after it.
    private var group: LongIDGroup?
    private var groupsEnd: [UInt8]?

    /// - Parameter ids: the ids to read. The bounds come from clients: any UTF-8, reserved ids included.
    package init(_ collection: [UInt8], ids: DocumentIDRange = .all, names: NameRange = .all, direction: SortDirection)
    {
        self.collection = collection
        self.ids = ids
        self.names = names
        self.direction = direction
        remaining = ids
    }

    package var isFinished: Bool { remaining == nil }

    mutating func restart() {
        remaining = ids
        (group, groupsEnd) = (nil, nil)
    }

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
        var path = ScanPath(collection)
        if try scan(keys, ids: remaining, in: source, work: &work, &path, page) {
            self.remaining = nil
        } else if let last = path.id {
            skip(through: last)
        }
    }

    /// Gives out rows as ``next(from:_:into:)`` does, of ids through `end` in ascending order.
    /// - Returns: whether all of them were given out.
    mutating func next<Source: QuerySource & ~Copyable>(
        through end: [UInt8], from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        guard let whole = remaining else { return true }
        remaining?.lowerUpperBound(to: DocumentIDBound(id: end, isInclusive: true))
        try next(from: source, &work, into: page)
        let isComplete = isFinished
        remaining = DocumentIDRange(lower: isComplete ? whole.lower : remaining?.lower, upper: whole.upper)
        return isComplete
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

    /// Where the keys to be read begin and end.
    private func bounds(_ keys: CollectionKeys) -> (lower: [UInt8], upper: [UInt8]) {
        guard let groupsEnd else { return (keys.lower, keys.upper) }
        switch direction {
        case .ascending:
            return (keys.lower.byteSpan.compareBytes(groupsEnd.byteSpan) < 0 ? groupsEnd : keys.lower, keys.upper)
        case .descending:
            return (keys.lower, groupsEnd.byteSpan.compareBytes(keys.upper.byteSpan) < 0 ? groupsEnd : keys.upper)
        }
    }

    /// - Parameter path: gets the path of the last row that was given out.
    /// - Returns: whether all rows were given out; if not the page is full, or the budget spent.
    private mutating func scan<Source: QuerySource & ~Copyable>(
        _ keys: CollectionKeys, ids: DocumentIDRange, in source: borrowing Source, work: inout StepWork,
        _ path: inout ScanPath, _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        let (lower, upper) = bounds(keys)
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 { return true }
        var cursor = try source.cursor(from: lower.byteSpan, to: upper.byteSpan, direction)
        var deletions = work.deletionsMax
        while true {
            guard try cursor.next(passing: &deletions) else {
                if deletions > 0 { return true }
                // The key of a cut id does not say where the scan is: the next one may.
                deletions = 1
                if DocumentKey.isCutID(in: cursor.key, collectionByteCount: keys.collectionByteCount) { continue }
                path.setID(of: cursor.key, keys)
                work.budget = 0
                return false
            }
            if DocumentKey.isCutID(in: cursor.key, collectionByteCount: keys.collectionByteCount) {
                var group = LongIDGroup(containing: cursor.key, keys, direction)
                if let begun = self.group, begun.prefix == group.prefix { group = begun }
                // Taken out, so that what is selected has one owner while it changes.
                self.group = nil
                defer { self.group = group }
                guard try group.next(of: ids, from: source, &work, &path, into: page) else { return false }
                if group.isFinished { groupsEnd = group.end }
                try cursor.seek(to: group.end.byteSpan)
                continue
            }
            guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.versionMicroseconds) else {
                throw .damagedDocument
            }
            path.setID(of: cursor.key, keys)
            let hasBudget = work.countDocument(byteCount: record.fields.byteCount)
            if try page(path.row(record)) == .full || !hasBudget { return false }
        }
    }
}

/// The path of the document that a scan has reached.
private struct ScanPath: ~Copyable {
    private var bytes = ByteBuffer(capacity: 128)
    private let idOffset: Int

    init(_ collection: [UInt8]) {
        bytes.append(collection)
        bytes.append(byte: RelativePath.slash)
        idOffset = bytes.count
    }

    /// The id of the document; nil before the first.
    var id: [UInt8]? {
        bytes.count == idOffset ? nil : [UInt8](copying: bytes.bytes.extracting(idOffset..<bytes.count))
    }

    mutating func setID(of key: RawSpan, _ keys: CollectionKeys) {
        bytes.truncate(to: idOffset)
        DocumentKey.appendID(of: key, collectionByteCount: keys.collectionByteCount, to: &bytes)
    }

    mutating func setID(_ id: [UInt8]) {
        bytes.truncate(to: idOffset)
        bytes.append(id)
    }

    /// The document with this path.
    @_lifetime(borrow self, copy record)
    borrowing func row(_ record: StoredRecordView) -> QueryRow {
        QueryRow(
            path: bytes.bytes, createMicroseconds: record.createMicroseconds,
            updateMicroseconds: record.updateMicroseconds, fields: record.fields)
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
///
/// A pass goes over the whole group and selects the first ids after those of the pass before, as many as fit. It pauses
/// when the budget of a step is spent.
private struct LongIDGroup: Sendable {
    /// What the keys of the group begin with.
    let prefix: [UInt8]
    private let collectionByteCount: Int
    private let direction: SortDirection
    /// The ids of this pass: in order once it is complete.
    private var selected: [[UInt8]] = []
    private var selectedBytes = 0
    /// Ids of this pass that were given out.
    private var givenCount = 0
    /// The key at which the pass continues; nil once it is complete.
    private var position: [UInt8]?
    /// The last id of the pass before.
    private var last: [UInt8]?
    /// The last id that had room, if there was not enough for all; those after it are for the next pass.
    private var bound: [UInt8]?

    /// Bytes of ids from which on a pass leaves out the last ones; it has selected at most twice as many.
    private static let bytesPerPass = 512 << 10

    init(containing key: RawSpan, _ keys: CollectionKeys, _ direction: SortDirection) {
        collectionByteCount = keys.collectionByteCount
        prefix = [UInt8](
            copying: key.extracting(0..<(keys.collectionByteCount + 1 + KeyLayout.plainBytesMax)))
        self.direction = direction
        position = prefix
    }

    /// Whether all ids were given out.
    var isFinished: Bool { position == nil && bound == nil && givenCount == selected.count }

    /// Where the group ends in the direction of the scan.
    var end: [UInt8] { direction == .descending ? prefix : DocumentKey.endOfGroup(prefix) }

    /// Gives out the next documents of the group.
    ///
    /// - Parameter ids: at each call what remains of the same range.
    /// - Returns: whether all in the range were given out; if not the page is full, or the budget spent.
    mutating func next<Source: QuerySource & ~Copyable>(
        of ids: DocumentIDRange, from source: borrowing Source, _ work: inout StepWork, _ path: inout ScanPath,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        let start = direction == .ascending ? DocumentIDRange(lower: ids.lower) : DocumentIDRange(upper: ids.upper)
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        while true {
            if try !select(from: start, source, &work) { return false }
            while givenCount < selected.count {
                let id = selected[givenCount]
                if !ids.contains(id.byteSpan) {
                    // It was passed meanwhile, or comes after the range.
                    if start.contains(id.byteSpan) { return true }
                    givenCount += 1
                    continue
                }
                key.reset()
                key.append(prefix.byteSpan.extracting(0..<collectionByteCount))
                DocumentKey.appendID(id.byteSpan, into: &key)
                guard let stored = try source.value(forKey: key.bytes),
                    let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.versionMicroseconds)
                else { throw .damagedDocument }
                path.setID(id)
                givenCount += 1
                let hasBudget = work.countDocument(byteCount: record.fields.byteCount)
                if try page(path.row(record)) == .full || !hasBudget { return false }
            }
            if bound == nil { return true }
            beginPass()
        }
    }

    private mutating func beginPass() {
        last = selected.last
        (selected, selectedBytes, givenCount) = ([], 0, 0)
        (position, bound) = (prefix, nil)
    }

    /// Continues the pass, if it is not complete.
    /// - Returns: whether it is complete.
    private mutating func select<Source: QuerySource & ~Copyable>(
        from start: DocumentIDRange, _ source: borrowing Source, _ work: inout StepWork
    ) throws(RequestError) -> Bool {
        guard let position else { return true }
        let end = DocumentKey.endOfGroup(prefix)
        var cursor = try source.cursor(from: position.byteSpan, to: end.byteSpan, .ascending)
        while try cursor.next() {
            guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.versionMicroseconds),
                record.path.byteCount > 0
            else { throw .damagedDocument }
            let id = record.path.extracting(DocumentKey.idOffset(ofDocument: record.path)..<record.path.byteCount)
            if start.contains(id) { select([UInt8](copying: id)) }
            if !work.spend(byteCount: 0) {
                self.position = [UInt8](copying: cursor.key) + [0]
                return false
            }
        }
        self.position = nil
        selected.sort(by: comesBefore)
        return true
    }

    private mutating func select(_ id: [UInt8]) {
        if let last, !comesBefore(last, id) { return }
        if let bound, !comesBefore(id, bound) { return }
        selected.append(id)
        selectedBytes += id.count
        if selectedBytes <= 2 * Self.bytesPerPass { return }
        selected.sort(by: comesBefore)
        while selectedBytes > Self.bytesPerPass, selected.count > 1 { selectedBytes -= selected.removeLast().count }
        bound = selected.last
    }

    /// Whether `left` comes before `right` in the direction of the scan. Long ids are never numeric: bytes decide.
    private func comesBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let order = left.byteSpan.compareBytes(right.byteSpan)
        return direction == .descending ? order > 0 : order < 0
    }
}
