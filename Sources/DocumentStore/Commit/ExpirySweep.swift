// Finding expired documents: TTL.
//
// A field override with `ttl` keeps an index over the field in its collection group. The entries are in the order of
// values, so the expired ones are together: timestamps up to now. From time to time a round walks that part of each
// such index, one batch of documents at a time between groups of commits, and returns batches of deletes. They are
// committed like those of clients: logged, published, validated by transactions, held up by locks. Each delete
// requires the update time that the walk has seen, so a document that has changed meanwhile stays. Where the override
// is lifted during a round, what is left of the round does not count.
//
// Nothing is remembered over a crash: the next round finds what is left.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import QueryEngine
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// Rounds over the expired documents of a store. Belongs to the commit thread.
struct ExpirySweep {
    /// The index that is being gone over.
    private struct Part {
        let database: DatabaseName
        let group: String
        let index: DeclaredIndex
        let condition: FieldTest
        /// The key to continue at, and the end of what has expired.
        var from: [UInt8]
        let to: [UInt8]
        /// The first entry that was met.
        var first: [UInt8]?
    }

    /// 0 never begins a round.
    private let intervalMilliseconds: UInt64
    private var nextRoundMilliseconds: UInt64 = 0
    private var nextBatchMilliseconds: UInt64 = 0
    /// Groups whose indexes are still to be gone over in the round, the first one last.
    private var groups: [GroupFields] = []
    private var part: Part?
    /// The settled time at which the round began.
    private var begunMicroseconds: UInt64 = 0

    /// Documents in a batch, and bytes of their fields, whose index entries go with them: what it may hold up a
    /// commit that comes meanwhile.
    static let documentsPerBatch = 256
    private static let bytesPerBatch = 1 << 20
    /// Indexes that one look for a batch begins with. In most of them nothing has expired.
    static let partsPerBatch = 64
    /// The least time between two batches while others write.
    static let paceMilliseconds = 20

    init(intervalMilliseconds: UInt64) {
        self.intervalMilliseconds = intervalMilliseconds
    }

    /// A round has more to look at.
    var isInProgress: Bool { part != nil || !groups.isEmpty }

    /// Whether it is time for a batch.
    /// - Parameter isIdle: nobody else has anything to write.
    func isDue(nowMilliseconds: UInt64, isIdle: Bool) -> Bool {
        if intervalMilliseconds == 0 { return false }
        if isInProgress { return isIdle || nowMilliseconds >= nextBatchMilliseconds }
        return nowMilliseconds >= nextRoundMilliseconds
    }

    /// Begins a round unless one is under way.
    /// - Parameter nowMicroseconds: a `SettledTime`. Should the clock have been set back, less has expired.
    mutating func begin(_ states: IndexStates, nowMilliseconds: UInt64, nowMicroseconds: UInt64) {
        if isInProgress { return }
        nextRoundMilliseconds = nowMilliseconds + intervalMilliseconds
        begunMicroseconds = nowMicroseconds
        groups = states.groups.all.filter { $0.expiringField != nil }.reversed()
    }

    /// The part of the round about a group; nil if none of its documents expire by a complete index.
    private func part(
        of group: GroupFields, _ states: IndexStates, _ begins: EntryBegins, _ databases: DatabaseDirectory
    ) -> Part? {
        let now = EncodedValue(.timestamp(TimestampValue(microseconds: Int64(clamping: begunMicroseconds))))
        guard let name = databases.name(of: group.database), databases.entry(of: name)?.exists == true,
            let (field, index) = Self.index(of: group, states),
            let condition = try? FieldTest(field, .lessThanOrEqual, now),
            let interval = ValueIntervals(condition).intervals.first
        else { return nil }
        let prefix = index.entries.from
        return Part(
            database: name, group: group.collectionID, index: index, condition: condition,
            from: begins.beginLook(at: index, lowest: prefix + interval.lower), to: prefix + interval.upper)
    }

    /// The field that expires the documents of a group, and the complete index over it; nil if there is none.
    private static func index(of group: GroupFields, _ states: IndexStates) -> (FieldPath, DeclaredIndex)? {
        guard let field = group.expiringField,
            let index = states.declared.indexes(of: group.idBytes.byteSpan, in: group.database).first(where: {
                $0.state.phase == .complete
                    && $0.shape == .group(group.collectionID, field, .ascending)
            })
        else { return nil }
        return (field, index)
    }

    /// Whether documents still expire by the index that a part goes over: the policy may have been removed since the
    /// round began.
    private static func isValid(_ part: Part, _ states: IndexStates) -> Bool {
        let id = Array(part.group.utf8)
        guard let group = states.groups.group(id.byteSpan, in: part.index.database) else { return false }
        guard let index = index(of: group, states)?.1 else { return false }
        return index.number == part.index.number && index.shape == part.index.shape
    }

    /// The next batch of deletes; nil if nothing has expired in the indexes that this look began with. Then the round
    /// may still be in progress.
    ///
    /// - Parameters:
    ///   - states: of this moment.
    ///   - begins: where the entries of indexes begin. What earlier rounds have deleted is not gone over again.
    ///   - nowMicroseconds: a `SettledTime`. Should the clock have been set back since the round began, the round ends.
    mutating func nextBatch(
        _ latest: LatestReader, _ states: IndexStates, _ begins: EntryBegins, _ databases: DatabaseDirectory,
        nowMilliseconds: UInt64, nowMicroseconds: UInt64
    ) throws(RequestError) -> WriteList? {
        nextBatchMilliseconds = nowMilliseconds + UInt64(ExpirySweep.paceMilliseconds)
        if nowMicroseconds < begunMicroseconds { endRound() }
        var partsLeft = Self.partsPerBatch
        while partsLeft > 0, isInProgress {
            guard var next = part else {
                partsLeft -= 1
                part = groups.popLast().flatMap { part(of: $0, states, begins, databases) }
                continue
            }
            part = nil
            guard Self.isValid(next, states) else { continue }
            var writes = WriteList(database: next.database, rules: .stored)
            let isFinished = try ExpirySweep.collect(&next, latest, into: &writes)
            if isFinished {
                // What was met may still be there after the round.
                begins.endLook(at: next.index, begin: next.first ?? next.to)
            } else {
                part = next
            }
            if writes.count > 0 { return writes }
        }
        return nil
    }

    /// Gives the round up.
    mutating func endRound() { (groups, part) = ([], nil) }

    /// Adds deletes of the next expired documents.
    /// - Returns: whether there are no more in this part.
    private static func collect(
        _ part: inout Part, _ latest: LatestReader, into writes: inout WriteList
    ) throws(RequestError) -> Bool {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
        var name = ByteBuffer(capacity: 256)
        var path = ByteBuffer(capacity: 256)
        var bytes = 0
        do {
            // Should the clock have been set back, what is left may begin after the end.
            guard part.from.byteSpan.compareBytes(part.to.byteSpan) < 0 else { return true }
            var cursor = try latest.cursor(from: part.from.byteSpan, to: part.to.byteSpan)
            while try cursor.next() {
                if part.first == nil { part.first = [UInt8](copying: cursor.key) }
                if writes.count == documentsPerBatch || bytes > bytesPerBatch {
                    part.from = [UInt8](copying: cursor.key)
                    return false
                }
                guard IndexKey.writeDocumentKey(ofGroupEntry: cursor.key, cursor.value, part.index.database, into: &key)
                else { throw RequestError(.dataLoss, "An index entry is damaged.") }
                bytes += try add(
                    documentAt: key, part, latest, path: &path, name: &name, to: &writes)
            }
            return true
        } catch {
            throw RequestError(thrown: error)
        }
    }

    /// Adds the delete of one document.
    /// - Returns: the bytes of its fields.
    private static func add(
        documentAt key: borrowing ByteBuffer, _ part: Part, _ latest: LatestReader, path: inout ByteBuffer,
        name: inout ByteBuffer, to writes: inout WriteList
    ) throws -> Int {
        guard let stored = try latest.value(forKey: key.bytes), let parts = DocumentKey.parts(of: key.bytes),
            let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds),
            KeyedDocument.writePath(key: key.bytes, parts: parts, record: record, into: &path)
        else { throw RequestError(.dataLoss, "An index entry refers to a missing document.") }
        // The index has found it already; what deletes checks twice.
        if !part.condition.matches(fields: record.fields) { return 0 }
        name.reset()
        name.append(utf8: part.database.documentsRoot)
        name.append(byte: RelativePath.slash)
        name.append(path.bytes)
        let seen = TimestampValue(microseconds: Int64(clamping: record.updateMicroseconds))
        try writes.delete(name.bytes, precondition: .updateTime(seen))
        return record.fields.byteCount
    }
}
