// Walking one collection in the order of its ids.
//
// A collection is one run of keys, in order as it lies, but for ids too long for a key: those that share their first
// `KeyLayout.plainBytesMaximum` bytes lie together in a group, ordered by hash. When the walk meets a group it reads the
// group's full ids in passes, each picking the next few hundred in order, so that memory stays bounded however many there
// are; ordinary collections never see this.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

/// One walk.
struct CollectionScan: ~Copyable {
    private let ids: DocumentIDRange
    private let isDescending: Bool
    /// Bytes of the collection's prefix, with the document marker.
    private let prefixByteCount: Int
    private var lower = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
    private var upper = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)

    init(_ collection: RawSpan, database: UInt32, ids: DocumentIDRange, isDescending: Bool) {
        self.ids = ids
        self.isDescending = isDescending
        DocumentKey.writeCollection(collection, database: database, into: &lower)
        DocumentKey.writeCollection(collection, database: database, into: &upper)
        prefixByteCount = lower.count + 1
        if let bound = ids.lower {
            if DocumentKey.appendID(bound.id.byteSpan, into: &lower) {
                // Somewhere in a group: from its start on, and ids are compared.
                lower.truncate(to: prefixByteCount + KeyLayout.plainBytesMaximum)
            } else if !bound.isInclusive {
                lower.append(byte: 0)
            }
        } else {
            lower.append(byte: KeyLayout.documentMarker)
        }
        if let bound = ids.upper {
            if DocumentKey.appendID(bound.id.byteSpan, into: &upper) {
                upper.truncate(to: prefixByteCount + KeyLayout.plainBytesMaximum)
                upper.appendAfterGroup()
            } else if bound.isInclusive {
                upper.append(byte: 0)
            }
        } else {
            // The marker after the document marker begins what lies deeper.
            upper.append(byte: KeyLayout.documentMarker + 1)
        }
    }

    /// Visits the documents until `body` says stop.
    /// - Returns: the end of the part that was walked, if the walk was stopped: its upper end going up, its lower end going
    ///   down. Nil when it came to its end.
    func run(
        _ snapshot: borrowing EngineSnapshot,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> [UInt8]? {
        if lower.bytes.compareBytes(upper.bytes) >= 0 { return nil }
        var id = WireWriter(capacity: 64)
        do {
            var cursor = try snapshot.cursor(
                from: lower.bytes, to: upper.bytes, direction: isDescending ? .backward : .forward)
            while try cursor.next() {
                if DocumentKey.isCutID(in: cursor.key, collectionByteCount: prefixByteCount - 1) {
                    let group = [UInt8](
                        copying: cursor.key.extracting(0..<(prefixByteCount + KeyLayout.plainBytesMaximum)))
                    let end = isDescending ? group : DocumentKey.endOfGroup(group)
                    if try visitGroup(group, snapshot, body) == .stop { return end }
                    try cursor.seek(to: end.byteSpan)
                    continue
                }
                guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.version.microseconds)
                else { throw RequestError(.dataLoss, "A stored document is damaged.") }
                id.reset()
                DocumentKey.appendID(of: cursor.key, collectionByteCount: prefixByteCount - 1, to: &id)
                let document = CandidateDocument(
                    documentID: id.bytes, createMicroseconds: record.createMicroseconds,
                    updateMicroseconds: record.updateMicroseconds, fields: record.fields)
                if try body(document) == .stop {
                    return [UInt8](copying: cursor.key) + (isDescending ? [] : [0])
                }
            }
            return nil
        } catch let error as StorageError {
            throw RequestError(error)
        } catch let error as RequestError {
            throw error
        } catch {
            preconditionFailure("a scan threw neither of its two error types: \(error)")
        }
    }

    /// The part that was walked; nil if the range was empty from the start.
    /// - Parameter stoppedAt: what `run` returned.
    func walked(stoppedAt: [UInt8]?, matches: DocumentFilter?, at version: CommitVersion) -> ReadRange? {
        var from = lower.copyBytes()
        var to = upper.copyBytes()
        if let stoppedAt {
            if isDescending { from = stoppedAt } else { to = stoppedAt }
        }
        if from.byteSpan.compareBytes(to.byteSpan) >= 0 { return nil }
        return ReadRange(lower: from, upper: to, collectionID: nil, matches: matches, version: version)
    }

    // MARK: Groups of long ids

    /// Ids picked in one pass over a group; at 1500 bytes each they take 400 KB.
    private static let idsPerPass = 256

    /// Visits the documents of a group in order.
    private func visitGroup(
        _ group: [UInt8], _ snapshot: borrowing EngineSnapshot,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws -> ScanControl {
        var last: [UInt8]?
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        while true {
            let picked = try pickIDs(after: last, of: group, snapshot)
            for id in picked {
                key.reset()
                key.append(group.byteSpan.extracting(0..<(prefixByteCount - 1)))
                DocumentKey.appendID(id.byteSpan, into: &key)
                guard let stored = try snapshot.value(forKey: key.bytes),
                    let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds)
                else { throw RequestError(.dataLoss, "A stored document is damaged.") }
                let document = CandidateDocument(
                    documentID: id.byteSpan, createMicroseconds: record.createMicroseconds,
                    updateMicroseconds: record.updateMicroseconds, fields: record.fields)
                if try body(document) == .stop { return .stop }
            }
            if picked.count < CollectionScan.idsPerPass { return .more }
            last = picked.last
        }
    }

    /// The first ids of a group in the walk's direction, after `last` and within the range.
    private func pickIDs(
        after last: [UInt8]?, of group: [UInt8], _ snapshot: borrowing EngineSnapshot
    ) throws -> [[UInt8]] {
        var picked: [[UInt8]] = []
        let end = DocumentKey.endOfGroup(group)
        var cursor = try snapshot.cursor(from: group.byteSpan, to: end.byteSpan)
        while try cursor.next() {
            guard let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.version.microseconds),
                record.path.byteCount > 0
            else { throw RequestError(.dataLoss, "A stored document is damaged.") }
            let id = record.path.extracting(DocumentKey.idOffset(ofDocument: record.path)..<record.path.byteCount)
            if !isInRange(id) { continue }
            let candidate = [UInt8](copying: id)
            if let last, !comesBefore(last, candidate) { continue }
            if picked.count == CollectionScan.idsPerPass, !comesBefore(candidate, picked[picked.count - 1]) { continue }
            var low = 0
            var high = picked.count
            while low < high {
                let middle = (low + high) / 2
                if comesBefore(picked[middle], candidate) { low = middle + 1 } else { high = middle }
            }
            picked.insert(candidate, at: low)
            if picked.count > CollectionScan.idsPerPass { picked.removeLast() }
        }
        return picked
    }

    /// Whether the walk meets `left` before `right`. Ids of a group are ordinary strings.
    private func comesBefore(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let order = left.byteSpan.compareBytes(right.byteSpan)
        return isDescending ? order > 0 : order < 0
    }

    private func isInRange(_ id: RawSpan) -> Bool {
        if let bound = ids.lower {
            let order = ResourceID.compare(id, bound.id.byteSpan)
            if order < 0 || (order == 0 && !bound.isInclusive) { return false }
        }
        if let bound = ids.upper {
            let order = ResourceID.compare(id, bound.id.byteSpan)
            if order > 0 || (order == 0 && !bound.isInclusive) { return false }
        }
        return true
    }
}
