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
    private let stepsMax: Int

    /// What a transaction met. Empty: it may commit.
    struct Conflicts {
        /// Hashes of the keys at which a retry waits for its turn.
        var keys: [UInt64] = []
        /// The ranges are too large, or too many for the changes, to be validated; the transaction is retried.
        var isUndecided = false

        /// Keys remembered; enough to give a retry its turn.
        static let keysMax = 64

        var isEmpty: Bool { keys.isEmpty && !isUndecided }
        var isFull: Bool { keys.count >= Conflicts.keysMax }

        mutating func add(_ key: UInt64) {
            if !isFull, !keys.contains(key) { keys.append(key) }
        }
    }

    /// - Parameters:
    ///   - rescanMax: entries that are read again for one range.
    ///   - stepsMax: changes and ranges that contain them, in pairs, that are looked at for one transaction. An entry
    ///     that is read again counts as ``stepsOfEntry``.
    init(latest: LatestReader, history: EngineReader, rescanMax: Int, stepsMax: Int) {
        self.latest = latest
        self.history = history
        self.rescanMax = rescanMax
        self.stepsMax = stepsMax
    }

    private static let stepsOfEntry = 4

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
            var steps = stepsMax
            let coverage = changes.coverage
            let remembered = reads.ranges.filter { coverage <= $0.version.microseconds && !$0.isEmpty }
            try validate(remembered, changes: changes, steps: &steps, into: &conflicts)
            for range in reads.ranges where coverage > range.version.microseconds && !range.isEmpty {
                if conflicts.isFull || conflicts.isUndecided { break }
                try rescan(range, since: range.version, steps: &steps, into: &conflicts)
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
        _ ranges: [ReadRange], changes: borrowing RecentChanges, steps: inout Int, into conflicts: inout Conflicts
    ) throws(RequestError) {
        guard let since = ranges.lazy.map(\.version.microseconds).min(), !conflicts.isFull else { return }
        let tree = RangeTree(ranges)
        var judged = ByteTable()
        var found: [ReadRange] = []
        try changes.forEachKey(since: since) { (key, version) throws(RequestError) in
            found.removeAll(keepingCapacity: true)
            let left = steps
            tree.append(containing: key, before: version, steps: &steps, to: &found)
            let collection = ReadValidation.collectionHash(ofDocument: key)
            // Whether or not this change matters, those after it are not looked at.
            if left >= 0, steps < 0 {
                conflicts.isUndecided = true
                conflicts.add(collection)
                return false
            }
            // The newest change of a document comes first, and the retry waits at a collection once.
            if found.isEmpty || judged.insert(key, hash: ByteTable.hash(key), value: 0) != nil { return true }
            if conflicts.keys.contains(collection) { return true }
            if try matters(key, to: found) { conflicts.add(collection) }
            return !conflicts.isFull
        }
    }

    /// Whether a changed document fulfils the query of one of the ranges now, or did when it was walked.
    ///
    /// - Parameter ranges: contain the document, and were walked before its change.
    private func matters(_ key: RawSpan, to ranges: [ReadRange]) throws(RequestError) -> Bool {
        do throws(StorageError) {
            var ranges = ranges
            if let now = try latest.value(forKey: key) {
                // Changed and changed back is still a change only if it is a later version.
                ranges.removeAll { now.version <= $0.version }
                if try fulfils(key, now.bytes, now.version, ranges[...]) { return true }
            }
            ranges.sort { $0.version < $1.version }
            var rest = ranges[...]
            while let since = rest.first?.version {
                let end = rest.partitioningIndex { $0.version > since }
                let snapshot = try history.snapshot(at: since)
                if let before = try snapshot.value(forKey: key),
                    try fulfils(key, before.bytes, before.version, rest[..<end])
                {
                    return true
                }
                rest = rest[end...]
            }
            return false
        } catch {
            throw RequestError(error)
        }
    }

    /// Whether a state of a document fulfils the query of one of the ranges.
    private func fulfils(
        _ key: RawSpan, _ value: RawSpan, _ version: CommitVersion, _ ranges: ArraySlice<ReadRange>
    ) throws(StorageError) -> Bool {
        if ranges.isEmpty { return false }
        if ranges.contains(where: { $0.matches == nil && $0.collectionID == nil }) { return true }
        var path = ByteBuffer(capacity: 256)
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: version.microseconds),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        for range in ranges {
            if let wanted = range.collectionID,
                !KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan)
            {
                continue
            }
            if range.matches?(path.bytes, record.fields) ?? true { return true }
        }
        return false
    }

    /// The key of turns at a document's collection.
    static func collectionHash(ofDocument key: RawSpan) -> UInt64 {
        guard let parts = DocumentKey.parts(of: key) else { return ByteTable.hash(key) }
        return ByteTable.hash(key.extracting(0..<parts.collectionByteCount))
    }

    // MARK: Validation by rescanning

    private func rescan(
        _ range: ReadRange, since: CommitVersion, steps: inout Int, into conflicts: inout Conflicts
    ) throws(RequestError) {
        do throws(StorageError) {
            let most = min(rescanMax, steps / Self.stepsOfEntry)
            var left = most
            defer { steps -= (most - left) * Self.stepsOfEntry }
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
            if try fulfils(cursor.key, cursor.value, cursor.version, [range]) {
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
            if try fulfils(cursor.key, cursor.value, cursor.version, [range]) {
                conflicts.add(ReadValidation.collectionHash(ofDocument: cursor.key))
                return
            }
        }
    }
}
