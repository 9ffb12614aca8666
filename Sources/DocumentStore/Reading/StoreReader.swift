// Reading: single documents, collections, and what lies below a document.

package import Basics
package import DocumentModel
package import Storage
internal import StorageEngines
internal import StoreFormat

/// A thread's way to read the store.
///
/// One per event loop (or per thread of a tool or test), made by `DocumentStore.makeReader()`; it owns buffers and a
/// storage reader, and must not be used from two threads. Reads never wait for commits. Closures that are lent a
/// document may read others.
package final class StoreReader {
    let store: DocumentStore
    private let hot = Confined(Hot())

    /// Fields that every read uses.
    private struct Hot: ~Copyable {
        /// Made at the first read, so that making a `StoreReader` cannot fail.
        var engineReader: EngineReader?
        /// The database used last, with its number where that is the same for every version from one on.
        var lastDatabase: (name: DatabaseName, number: UInt32?, since: UInt64)?
        /// The directory's generation when the number was looked up.
        var generation: UInt64 = 0
        /// The key that is being looked up.
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        var keepsViews = false
        var isStrict = false
    }

    init(store: DocumentStore) {
        self.store = store
    }

    // MARK: Consecutive reads

    /// Has reads share the storage's state until ``releaseSnapshots()``, which spares each of them a separate
    /// transaction. They still see everything committed before them. For owners who call `releaseSnapshots` before
    /// they wait.
    package func keepViews() { hot.state.keepsViews = true }

    /// Lets go of what reads shared, so that the storage can reuse pages and memory.
    package func releaseSnapshots() { hot.state.engineReader?.releaseSnapshots() }

    /// Whether something in storage is perhaps not in memory.
    package var mayBePending: Bool { hot.state.engineReader?.mayBePending ?? true }

    /// Brings into memory what the reads lacked that were pending (``RequestError/isPending``) since the last call.
    /// Then they can be repeated.
    ///
    /// - Parameter completion: called once, on any thread: with `DATA_LOSS` if something cannot be read,
    ///   `RESOURCE_EXHAUSTED` if too many reads wait, `UNAVAILABLE` if the store was closed.
    package func whenReady(_ completion: @escaping @Sendable (Result<Void, RequestError>) -> Void) {
        guard let engineReader = hot.state.engineReader else { return completion(.success(())) }
        engineReader.whenReady { ready in completion(ready.mapError { RequestError($0) }) }
    }

    /// The version of the newest commit that is visible, in microseconds.
    package var publishedMicroseconds: UInt64 { store.engine.publishedVersion.microseconds }

    // MARK: Strict reads

    /// Makes reads of the newest state that other servers of a cluster must not contradict: they fail if they may see a
    /// commit that the leader has not acknowledged.
    package func strictly<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        hot.state.isStrict = true
        defer { hot.state.isStrict = false }
        try body()
    }

    /// Why a read of the newest state is not answered; nil if it is. To be asked after the state was chosen.
    package var newestReadRefusal: RequestError? { store.newestReadRefusal(isStrict: isStrict) }

    /// Whether what is read now is read ``strictly(_:)``.
    package var isStrict: Bool { hot.state.isStrict }

    // MARK: Read points

    /// Fixes the state that the following reads see. Never blocks: see ``DocumentStore/mustWait(for:)``.
    ///
    /// - Parameter database: the database's full name.
    /// - Throws: `INVALID_ARGUMENT` for a time in the future or a transaction that is not open,
    ///   `FAILED_PRECONDITION` for a time before the retention, `UNAVAILABLE` for one with commits that are not
    ///   visible yet.
    package func readPoint(_ selector: ReadSelector, in database: DatabaseName) throws(RequestError) -> ReadPoint {
        switch selector {
        case .latest:
            let time = store.versions.readTime()
            // After the time is chosen: a leader that was replaced meanwhile may lack what was acknowledged.
            if let refusal = newestReadRefusal { throw refusal }
            do throws(RequestError) {
                return try point(database, version: time, readTime: time)
            } catch {
                // The move of the database to this store is not visible here yet.
                throw error == .snapshotTooOld ? .databaseIsElsewhere(database) : error
            }
        case .time(let time):
            let microseconds = try store.readableTime(time)
            guard store.versions.reserve(microseconds) else {
                throw RequestError(.unavailable, "Commits up to the read time are not on disk yet.")
            }
            return try point(database, version: microseconds, readTime: microseconds)
        case .transaction(let identifier):
            let transaction = try store.transactions.transaction(identifier)
            guard transaction.database == database else { throw .unknownTransaction }
            let time = transaction.readMicroseconds { store.versions.readTime() }
            if let refusal = newestReadRefusal { throw refusal }
            let databaseNumber: UInt32?
            do throws(RequestError) {
                databaseNumber = try number(of: database, at: time)
            } catch {
                // It began before the move of the database to this store was visible.
                throw error == .snapshotTooOld ? .lostTransaction : error
            }
            return ReadPoint(
                database: database, version: CommitVersion(microseconds: time), readMicroseconds: time,
                databaseNumber: databaseNumber, transaction: transaction)
        }
    }

    /// The same for a database given by its name's bytes, without allocating when it is the one used last.
    package func readPoint(_ selector: ReadSelector, inDatabase bytes: RawSpan) throws(RequestError) -> ReadPoint {
        try readPoint(selector, in: try databaseName(bytes))
    }

    private func databaseName(_ bytes: RawSpan) throws(RequestError) -> DatabaseName {
        if let last = hot.state.lastDatabase?.name, last.utf8.byteSpan.equalsBytes(bytes) { return last }
        return try DatabaseName(bytes)
    }

    func point(_ database: DatabaseName, version: UInt64, readTime: UInt64) throws(RequestError) -> ReadPoint {
        ReadPoint(
            database: database, version: CommitVersion(microseconds: version), readMicroseconds: readTime,
            databaseNumber: try number(of: database, at: version), transaction: nil)
    }

    /// A database's number, which never changes once there is one; nil at versions at which a deleted database is
    /// empty.
    private func number(of database: DatabaseName, at version: UInt64) throws(RequestError) -> UInt32? {
        let generation = store.databases.generation
        if let last = hot.state.lastDatabase, last.number != nil, last.since <= version, last.name == database,
            hot.state.generation == generation
        {
            return last.number
        }
        let (number, since) = try store.databases.number(of: database, at: version)
        hot.state.lastDatabase = (database, since == nil ? nil : number, since ?? 0)
        hot.state.generation = generation
        return number
    }

    /// The number of the database of a document, quickly when it is the one used last.
    private func number(ofDatabaseOf name: borrowing ResourceNameView) throws(RequestError) -> UInt32? {
        if let last = hot.state.lastDatabase, let number = last.number,
            last.name.utf8.byteSpan.equalsBytes(name.databaseBytes),
            hot.state.generation == store.databases.generation,
            last.since == 0 || last.since <= store.engine.publishedVersion.microseconds
        {
            return number
        }
        return try number(of: try DatabaseName(name.databaseBytes), at: store.engine.publishedVersion.microseconds)
    }

    // MARK: Single documents

    /// Lends the document of this full resource name, or nil when there is none at that point.
    ///
    /// - Parameter cold: what the read does if the document is not in memory.
    /// - Throws: `INVALID_ARGUMENT` when the name is malformed or of another database; `RESOURCE_EXHAUSTED` when the
    ///   point's transaction has read too much; `pending`; what `body` throws.
    package func withDocument(
        _ name: RawSpan, at point: ReadPoint, _ cold: ColdRead = .waits,
        _ body: (FoundDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        try withDocument(try ResourceNameView(resource: name), at: point, cold, body)
    }

    /// The same for a name that is parsed already.
    package func withDocument(
        _ name: borrowing ResourceNameView, at point: ReadPoint, _ cold: ColdRead = .waits,
        _ body: (FoundDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        guard name.databaseBytes.equalsBytes(point.database.utf8.byteSpan) else {
            throw .invalidArgument(
                "Document \"\(String(repairingUTF8: name.bytes))\" is not in the request's database \(point.database).")
        }
        try withDocument(
            name, database: point.databaseNumber, version: point.version, transaction: point.transaction, cold, body)
    }

    /// Lends the document of this name as of the last commit, for replies without a read time.
    package func withLatestDocument(
        _ name: borrowing ResourceNameView, _ cold: ColdRead = .waits,
        _ body: (FoundDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        try withDocument(name, database: number(ofDatabaseOf: name), version: nil, transaction: nil, cold, body)
    }

    private func withDocument(
        _ name: borrowing ResourceNameView, database: UInt32?, version: CommitVersion?, transaction: StoreTransaction?,
        _ cold: ColdRead, _ body: (FoundDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        guard name.isDocument else { throw RequestError(.notADocument, name: name.bytes) }
        guard let database else { return try body(nil) }
        DocumentKey.write(name, database: database, into: &hot.state.key)
        try lend(name, from: snapshot(at: version, cold), notedBy: transaction, body)
    }

    /// Lends what the snapshot has for `hot.state.key`.
    private func lend(
        _ name: borrowing ResourceNameView, from snapshot: borrowing EngineSnapshot,
        notedBy transaction: StoreTransaction?,
        _ body: (FoundDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        let stored: StoredValue?
        do throws(RequestError) {
            stored = try Self.value(forKey: hot.state.key, in: snapshot, notedBy: transaction)
        } catch {
            throw error.at(document: name.bytes)
        }
        // The key is free again: `body` may read other documents.
        guard let stored else { return try body(nil) }
        guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
            throw RequestError(.dataLoss, "A stored document is damaged.").at(document: name.bytes)
        }
        try body(
            FoundDocument(
                name: name.bytes, fields: record.fields, createMicroseconds: record.createMicroseconds,
                updateMicroseconds: record.updateMicroseconds))
    }

    @_lifetime(borrow snapshot)
    private static func value(
        forKey key: borrowing ByteBuffer, in snapshot: borrowing EngineSnapshot, notedBy transaction: StoreTransaction?
    ) throws(RequestError) -> StoredValue? {
        let stored: StoredValue?
        do throws(StorageError) { stored = try snapshot.value(forKey: key.bytes) } catch { throw RequestError(error) }
        if let transaction {
            try transaction.noteRead(key: key.bytes, versionMicroseconds: stored?.version.microseconds ?? 0)
        }
        return stored
    }

    // MARK: Shared with the scans

    /// The storage's state at a point.
    func snapshot(at point: ReadPoint, _ cold: ColdRead) throws(RequestError) -> EngineSnapshot {
        try snapshot(at: point.version, cold)
    }

    /// The storage's state as of a version, or of the last commit.
    private func snapshot(at version: CommitVersion?, _ cold: ColdRead) throws(RequestError) -> EngineSnapshot {
        do throws(StorageError) {
            if let reader = hot.state.engineReader { return try reader.snapshot(at: version, cold) }
            let reader = try store.engine.makeReader()
            if hot.state.keepsViews { reader.reuseSnapshots() }
            hot.state.engineReader = reader
            return try reader.snapshot(at: version, cold)
        } catch {
            throw RequestError(error)
        }
    }
}
