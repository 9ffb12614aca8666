// Reading: single documents, collections, and what lies below a document.

package import DocumentModel
internal import KeyValueStore

/// A thread's way to read the store.
///
/// One per event loop (or per thread of a tool or test), made by `DocumentStore.makeReader()`; it owns buffers and a
/// storage reader, and must not be used from two threads. Reads never wait for commits, but for one at a time named by
/// the client that lies within the last sync. Closures that are lent a document may read others.
package final class StoreReader {
    let store: DocumentStore
    /// Made at the first read, so that making a `StoreReader` cannot fail.
    private var engineReader: EngineReader?
    /// The database used last, and its number.
    private var lastDatabase: (name: DatabaseName, number: UInt32?)?
    /// A buffer for keys that is not in use.
    private var spareKey: WireWriter? = WireWriter(capacity: KeyLayout.keyBytesMaximum)

    init(store: DocumentStore) {
        self.store = store
    }

    // MARK: Read points

    /// Fixes the state that the following reads see.
    ///
    /// - Parameter database: the database's full name.
    /// - Throws: `INVALID_ARGUMENT` for a time in the future or a transaction that is not open,
    ///   `FAILED_PRECONDITION` for a time before the retention.
    package func readPoint(_ selector: ReadSelector, in database: DatabaseName) throws(RequestError) -> ReadPoint {
        switch selector {
        case .latest:
            let time = store.versions.readTime()
            return point(database, version: time, readTime: time)
        case .time(let time):
            let microseconds = try store.settledReadTime(time)
            return point(database, version: microseconds, readTime: microseconds)
        case .transaction(let identifier):
            let transaction = try store.transactions.transaction(identifier)
            guard transaction.database == database else { throw .unknownTransaction }
            let time = transaction.readMicroseconds { store.versions.readTime() }
            return ReadPoint(
                database: database, version: CommitVersion(microseconds: time), readMicroseconds: time,
                databaseNumber: number(of: database), transaction: transaction)
        }
    }

    /// The same for a database given by its name's bytes, without allocating when it is the one used last.
    package func readPoint(_ selector: ReadSelector, inDatabase bytes: RawSpan) throws(RequestError) -> ReadPoint {
        if let lastDatabase, lastDatabase.name.utf8.byteSpan.equalsBytes(bytes) {
            return try readPoint(selector, in: lastDatabase.name)
        }
        return try readPoint(selector, in: try DatabaseName(bytes))
    }

    private func point(_ database: DatabaseName, version: UInt64, readTime: UInt64) -> ReadPoint {
        ReadPoint(
            database: database, version: CommitVersion(microseconds: version), readMicroseconds: readTime,
            databaseNumber: number(of: database), transaction: nil)
    }

    /// A database's number, which never changes once there is one.
    private func number(of database: DatabaseName) -> UInt32? {
        if let lastDatabase, lastDatabase.number != nil, lastDatabase.name == database { return lastDatabase.number }
        let number = store.databases.number(of: database)
        lastDatabase = (database, number)
        return number
    }

    // MARK: Single documents

    /// Lends the document of this full resource name, or nil when there is none at that point.
    ///
    /// - Throws: `INVALID_ARGUMENT` when the name is malformed or of another database; `RESOURCE_EXHAUSTED` when the
    ///   point's transaction has read too much; what `body` throws.
    package func withDocument<Answer>(
        _ name: RawSpan, at point: ReadPoint, _ body: (FoundDocument?) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        try withDocument(try ResourceNameView(resource: name), at: point, body)
    }

    /// The same for a name that is parsed already.
    package func withDocument<Answer>(
        _ name: borrowing ResourceNameView, at point: ReadPoint, _ body: (FoundDocument?) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        guard name.isDocument else { throw RequestError(.notADocument, name: name.bytes) }
        guard name.databaseBytes.equalsBytes(point.database.utf8.byteSpan) else {
            throw .invalidArgument(
                "Document \"\(String(repairingUTF8: name.bytes))\" is not in the request's database \(point.database).")
        }
        guard let database = point.databaseNumber else { return try body(nil) }
        var key = spareKey.take() ?? WireWriter(capacity: KeyLayout.keyBytesMaximum)
        DocumentKey.write(name.pathBytes, database: database, into: &key)
        let answer = try withRecord(key.bytes, at: point) { (record) throws(RequestError) in
            guard let record else { return try body(nil) }
            return try body(
                FoundDocument(
                    name: name.bytes, fields: record.fields, createMicroseconds: record.createMicroseconds,
                    updateMicroseconds: record.updateMicroseconds))
        }
        spareKey = consume key
        return answer
    }

    private func withRecord<Answer>(
        _ key: RawSpan, at point: ReadPoint, _ body: (borrowing StoredRecordView?) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        let snapshot = try snapshot(at: point)
        let stored: StoredValue?
        do throws(StorageError) { stored = try snapshot.value(forKey: key) } catch { throw RequestError(error) }
        if let transaction = point.transaction {
            try transaction.noteRead(key: key, versionMicroseconds: stored?.version.microseconds ?? 0)
        }
        guard let stored else { return try body(nil) }
        guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
            throw RequestError(.dataLoss, "A stored document is damaged.")
        }
        return try body(record)
    }

    // MARK: Shared with the scans

    /// The storage's state at a point.
    func snapshot(at point: ReadPoint) throws(RequestError) -> EngineSnapshot {
        do throws(StorageError) {
            if let engineReader { return try engineReader.snapshot(at: point.version) }
            let reader = try store.engine.makeReader()
            engineReader = reader
            return try reader.snapshot(at: point.version)
        } catch {
            throw RequestError(error)
        }
    }
}
