// Creating, changing and deleting databases.
//
//     deleteDatabase   the state is `deleting`, durably  ──►  empty for readers, no writes, no transactions
//     Housekeeper      deletes documents, some at a time ──►  removes declared indexes ──►  the state is `deleted`
//
// A deletion continues after a restart: the settings are stored. The name can be used again when it is done.

package import Basics
package import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// A database as it is listed.
package struct DatabaseDescription: Sendable {
    package let name: DatabaseName
    /// The version with which it came into being, in microseconds.
    package let createMicroseconds: UInt64
    /// Nil if it came into being with its first document.
    package let settings: DatabaseSettings?
    /// Whether it is there for clients.
    package let exists: Bool
    /// Whether its documents are being removed, because it was deleted.
    package let isBeingDeleted: Bool

    init(_ name: DatabaseName, _ entry: DatabaseDirectory.Entry) {
        self.name = name
        createMicroseconds = entry.createMicroseconds
        settings = entry.settings
        exists = entry.exists
        isBeingDeleted = entry.isBeingDeleted && !entry.isElsewhere
    }
}

/// A change of a database, decided by the commit thread: nothing comes between reading and writing.
struct DatabaseChange: Sendable {
    /// Gets what is known of the name, nil if nothing is; returns the settings to put.
    let apply: @Sendable (DatabaseDescription?) throws(RequestError) -> DatabaseSettings
}

extension DocumentStore {
    /// What is known of a name; nil if there never was such a database, or its deletion is forgotten.
    package func describeDatabase(_ name: DatabaseName) -> DatabaseDescription? {
        guard let entry = databases.entry(of: name), entry.isStored else { return nil }
        return DatabaseDescription(name, entry)
    }

    /// The databases that exist, and those that are being deleted.
    package var databaseDescriptions: [DatabaseDescription] {
        databases.entries(where: \.isStored).map { DatabaseDescription($0.name, $0.entry) }
            .filter { $0.exists || $0.isBeingDeleted }
    }

    /// Changes a database, or creates one. `change` gets what is known of the name, runs on the commit thread, and must
    /// be short; what it throws is the outcome, and nothing changes then. The completion is called when the change is
    /// durable.
    package func changeDatabase(
        _ name: DatabaseName,
        _ change: @escaping @Sendable (DatabaseDescription?) throws(RequestError) -> DatabaseSettings,
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        submit(.changeDatabase(DatabaseChange(apply: change), name, completion))
    }

    /// Begins the deletion of a database. When the completion is called with success, the database is empty for
    /// readers, its transactions have ended, and its listeners are woken to end. Its documents are removed in the
    /// background, some at a time; until then writes to it are refused.
    ///
    /// - Parameter check: gets what is known of the database, on the commit thread; what it throws is the outcome.
    package func deleteDatabase(
        _ name: DatabaseName, check: @escaping @Sendable (DatabaseDescription) throws(RequestError) -> Void,
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        changeDatabase(name) { (known) throws(RequestError) in
            guard let known, known.exists else { throw .noDatabase(name) }
            try check(known)
            var settings = known.settings ?? DatabaseSettings(state: .created)
            settings.state = .deleting
            return settings
        } completion: { [self] result in
            if case .success = result { endUses(of: name) }
            completion(result)
        }
    }

    private func endUses(of name: DatabaseName) {
        for transaction in transactions.endAll(in: name) where transaction.mayBlockOthers {
            release(transaction)
        }
    }
}

extension CommitStage {
    /// Documents that one commit removes, and bytes of their fields: what it may hold up a commit that comes meanwhile.
    private static let removedDocumentsMax = 256
    private static let removedBytesMax = 1 << 20

    /// Stages a commit that deletes the next documents of a database.
    ///
    /// - Parameter place: the key to continue at, before which there is no document; nil for the first one. Deletions
    ///   stay in the storage for as long as the history, and each step would walk over all of them.
    /// - Returns: false if there are none.
    func removeDocuments(ofDatabase database: UInt32, from place: inout [UInt8]?) throws(RequestError) -> Bool {
        var from = ByteBuffer(capacity: 8)
        var to = ByteBuffer(capacity: 8)
        let root: [UInt8] = []
        DocumentKey.writeSubtree(root.byteSpan, database: database, into: &from)
        DocumentKey.writeSubtree(root.byteSpan, database: database + 1, into: &to)
        if let place {
            from.reset()
            from.append(place)
        }
        let commit = begin(database: database, newDatabase: nil)
        do {
            var removal = DocumentRemoval()
            var (count, bytes) = (0, 0)
            var next = to.copyBytes()
            var cursor = try writer.latest.cursor(from: from.bytes, to: to.bytes)
            while try cursor.next() {
                if count == Self.removedDocumentsMax || bytes >= Self.removedBytesMax || draft.isFull {
                    next = [UInt8](copying: cursor.key)
                    break
                }
                bytes += try removal.add(cursor.key, cursor.value, to: &draft, latest: writer.latest)
                count += 1
            }
            if count == 0 { return false }
            try commit.keep()
            place = next
            return true
        } catch {
            throw RequestError(thrown: error)
        }
    }
}

/// Adds deletes of stored documents to a commit, in buffers that are kept.
struct DocumentRemoval: ~Copyable {
    private var path = ByteBuffer(capacity: 256)
    private var location = DocumentLocation()
    private var prior = PriorDocument()

    init() {}

    /// - Parameters:
    ///   - key: of the document.
    ///   - value: its record.
    /// - Returns: the bytes of its fields.
    mutating func add(
        _ key: RawSpan, _ value: RawSpan, to draft: inout CommitDraft, latest: LatestReader
    ) throws -> Int {
        try Self.add(key, value, to: &draft, latest, &path, &location, &prior)
    }

    private static func add(
        _ key: RawSpan, _ value: RawSpan, to draft: inout CommitDraft, _ latest: LatestReader,
        _ path: inout ByteBuffer, _ location: inout DocumentLocation, _ prior: inout PriorDocument
    ) throws -> Int {
        guard let parts = DocumentKey.parts(of: key), let record = StoredRecordView(value, versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's record is damaged") }
        location.locate(path.bytes, database: DocumentKey.database(of: key))
        try prior.read(location, latest: latest)
        try draft.add(LogItem(deleted: path.bytes), at: location, replacing: prior)
        return prior.fields.byteCount
    }
}

extension RequestError {
    package static func noDatabase(_ name: DatabaseName) -> RequestError {
        RequestError(.notFound, "The database \(name) does not exist.")
    }
}
