// Whether what a transaction read still stands: the test that makes transactions serializable.
//
// A transaction may commit now if, run now in one instant, it would have read the same. A document read by name must
// have the version that was seen. A range that was walked must give the same documents: for each document in it that
// changed since the snapshot, neither its state at the snapshot nor its state now may fulfil the query that walked it.
// The changes come from the ring of recent ones; when that does not reach back far enough, the range is read again, at
// both times.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// Judges read sets. Belongs to the commit thread.
struct ReadValidation {
    private let latest: LatestReader
    /// For the state at a transaction's snapshot.
    private let history: EngineReader
    private let rescanMax: Int

    /// What a transaction met. Empty: it may commit.
    struct Conflicts {
        /// Hashes of the keys at which a retry waits for its turn.
        var keys: [UInt64] = []
        /// The range is too large to be validated; the transaction is retried.
        var isUndecided = false

        /// Keys remembered; enough to give a retry its turn.
        static let keysMax = 64

        var isEmpty: Bool { keys.isEmpty && !isUndecided }
        var isFull: Bool { keys.count >= Conflicts.keysMax }

        mutating func add(_ key: UInt64) {
            if !isFull, !keys.contains(key) { keys.append(key) }
        }
    }

    init(latest: LatestReader, history: EngineReader, rescanMax: Int) {
        self.latest = latest
        self.history = history
        self.rescanMax = rescanMax
    }

    /// The changes that keep a transaction from committing.
    func conflicts(
        of transaction: StoreTransaction, changes: borrowing RecentChanges
    ) throws(RequestError) -> Conflicts {
        var conflicts = Conflicts()
        try transaction.withReads { (reads) throws(RequestError) in
            var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
            for position in 0..<reads.documents.count where !conflicts.isFull {
                key.reset()
                reads.documents.appendKey(at: position, to: &key)
                let seen = UInt64(clamping: reads.documents.value(at: position))
                if try latestVersion(of: key.bytes) != seen { conflicts.add(ByteTable.hash(key.bytes)) }
            }
            for range in reads.ranges where !conflicts.isFull {
                let since = range.version
                if changes.coverage <= since.microseconds {
                    try validate(range, since: since, changes: changes, into: &conflicts)
                } else {
                    try rescan(range, since: since, into: &conflicts)
                }
            }
        }
        return conflicts
    }

    /// The version of a document now, 0 if there is none.
    func latestVersion(of key: RawSpan) throws(RequestError) -> UInt64 {
        do throws(StorageError) {
            return try latest.value(forKey: key)?.version.microseconds ?? 0
        } catch {
            throw RequestError(error)
        }
    }

    /// The update time of a document now, in microseconds; 0 if there is none. Its version, unless it was copied from
    /// another store.
    func latestUpdate(of key: RawSpan) throws(RequestError) -> UInt64 {
        do throws(StorageError) {
            guard let stored = try latest.value(forKey: key) else { return 0 }
            guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
                throw StorageError(.corrupt, "a document's record is damaged")
            }
            return record.updateMicroseconds
        } catch {
            throw RequestError(error)
        }
    }

    /// Whether a transaction can only be aborted, as far as a few steps show.
    ///
    /// - Parameter steps: documents and changes that may still be looked at; less afterwards.
    func isDoomed(
        _ transaction: StoreTransaction, changes: borrowing RecentChanges, steps: inout Int
    ) -> Bool {
        do throws(RequestError) {
            let cost = try transaction.withReads { (reads) throws(RequestError) in
                var cost = reads.documents.count
                for range in reads.ranges where cost <= steps {
                    cost += changes.count(since: range.version.microseconds) ?? steps + 1
                }
                return cost
            }
            if cost > steps { return false }
            steps -= cost
            return try !conflicts(of: transaction, changes: changes).isEmpty
        } catch {
            // What cannot be read now is found out at the commit.
            return false
        }
    }

    // MARK: Validation by recent changes

    private func validate(
        _ range: ReadRange, since: CommitVersion, changes: borrowing RecentChanges, into conflicts: inout Conflicts
    ) throws(RequestError) {
        try changes.forEachKey(since: since.microseconds) { (key) throws(RequestError) in
            if range.contains(key), try matters(key, to: range, since: since) {
                conflicts.add(ReadValidation.collectionHash(ofDocument: key))
            }
            return !conflicts.isFull
        }
    }

    /// Whether a changed document fulfils the range's query now, or did at the snapshot.
    private func matters(
        _ key: RawSpan, to range: ReadRange, since: CommitVersion
    ) throws(RequestError) -> Bool {
        do throws(StorageError) {
            if let now = try latest.value(forKey: key) {
                // Changed and changed back is still a change only if it is a later version.
                if now.version <= since { return false }
                if try fulfils(key, now.bytes, now.version, range) { return true }
            }
            let snapshot = try history.snapshot(at: since)
            guard let before = try snapshot.value(forKey: key) else { return false }
            return try fulfils(key, before.bytes, before.version, range)
        } catch {
            throw RequestError(error)
        }
    }

    private func fulfils(
        _ key: RawSpan, _ value: RawSpan, _ version: CommitVersion, _ range: ReadRange
    ) throws(StorageError) -> Bool {
        if range.matches == nil, range.collectionID == nil { return true }
        var path = ByteBuffer(capacity: 256)
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: version.microseconds),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        if let wanted = range.collectionID,
            !KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan)
        {
            return false
        }
        return range.matches?(path.bytes, record.fields) ?? true
    }

    /// The key of turns at a document's collection.
    static func collectionHash(ofDocument key: RawSpan) -> UInt64 {
        guard let parts = DocumentKey.parts(of: key) else { return ByteTable.hash(key) }
        return ByteTable.hash(key.extracting(0..<parts.collectionByteCount))
    }

    // MARK: Validation by rescanning

    private func rescan(
        _ range: ReadRange, since: CommitVersion, into conflicts: inout Conflicts
    ) throws(RequestError) {
        do throws(StorageError) {
            var left = rescanMax
            try addNewMatches(range, since: since, left: &left, into: &conflicts)
            if conflicts.isEmpty { try addChangedMatches(range, since: since, left: &left, into: &conflicts) }
            if left < 0 { conflicts.isUndecided = true }
        } catch {
            if error.code != .versionTooOld { throw RequestError(error) }
            conflicts.isUndecided = true
        }
    }

    /// Documents of the range that changed after the snapshot and fulfil the query now.
    private func addNewMatches(
        _ range: ReadRange, since: CommitVersion, left: inout Int, into conflicts: inout Conflicts
    ) throws(StorageError) {
        var cursor = try latest.cursor(from: range.lower.byteSpan, to: range.upper.byteSpan)
        while left >= 0, try cursor.next() {
            left -= 1
            if cursor.version <= since { continue }
            if try fulfils(cursor.key, cursor.value, cursor.version, range) {
                conflicts.add(ReadValidation.collectionHash(ofDocument: cursor.key))
                return
            }
        }
    }

    /// Documents of the range that fulfilled the query at the snapshot and have changed or gone since.
    private func addChangedMatches(
        _ range: ReadRange, since: CommitVersion, left: inout Int, into conflicts: inout Conflicts
    ) throws(StorageError) {
        let snapshot = try history.snapshot(at: since)
        var cursor = try snapshot.cursor(from: range.lower.byteSpan, to: range.upper.byteSpan)
        while left >= 0, try cursor.next() {
            left -= 1
            let now = try latest.value(forKey: cursor.key)
            if now?.version == cursor.version { continue }
            if try fulfils(cursor.key, cursor.value, cursor.version, range) {
                conflicts.add(ReadValidation.collectionHash(ofDocument: cursor.key))
                return
            }
        }
    }
}
