internal import Basics
package import DocumentModel
package import DocumentStore
package import ManagedExport

/// Loads a managed export into a store in this process.
///
/// Blocks the calling thread, which must not be one of the store's. Memory is bounded by the batches under way. The
/// first entity that cannot become a document ends it; what is before it is stored.
package struct StoreImport {
    /// Why an export was not imported as a whole.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private let store: DocumentStore
    private let database: DatabaseName
    private let mapsReferences: Bool
    private let pending = Monitor(Pending())
    private var writes: WriteList
    /// Documents so far.
    package private(set) var documents = 0

    /// Commits that were submitted.
    private struct Pending {
        var commits = 0
        var failure: RequestError?
    }

    private static let batchDocuments = 500
    private static let batchBytes = 1 << 20
    private static let batchesMax = 8

    /// - Parameters:
    ///   - database: where the documents go.
    ///   - mapsReferences: whether references to documents of the exported database name those of the target.
    package init(into database: DatabaseName, of store: DocumentStore, mapsReferences: Bool) {
        self.store = store
        self.database = database
        self.mapsReferences = mapsReferences
        writes = WriteList(database: database)
    }

    /// The database that an export is of; nil if it has no documents.
    package static func source(of folder: ExportFolder) throws -> DatabaseName? {
        for file in folder.files where file.byteCount > 0 {
            var log = try LevelDBLogReader(file: file.path)
            var entity = ByteBuffer()
            guard try log.next(into: &entity) else { continue }
            var reader = EntityReader(database: try DatabaseName(project: "none"), mapsReferences: false)
            var fields = ByteBuffer()
            _ = try reader.read(entity.bytes, into: &fields)
            return try DatabaseName(reader.key.databaseName)
        }
        return nil
    }

    /// Stores all documents durably. Fails at the end if the export is not complete.
    ///
    /// - Parameter isCancelled: asked after each batch.
    package mutating func run(_ folder: ExportFolder, isCancelled: () -> Bool = { false }) throws {
        for file in folder.files { try load(file, isCancelled) }
        commit()
        try wait(until: 0)
        try folder.checkComplete(documents)
    }

    private mutating func load(_ file: ExportFolder.DataFile, _ isCancelled: () -> Bool) throws {
        var reader = EntityReader(database: database, mapsReferences: mapsReferences)
        var entity = ByteBuffer(capacity: 64 << 10)
        var name = ByteBuffer()
        var fields = ByteBuffer(capacity: 64 << 10)
        var record = 0
        do {
            var log = try LevelDBLogReader(file: file.path)
            while true {
                entity.reset(keeping: 1 << 20)
                record += 1
                guard try log.next(into: &entity) else { return }
                fields.reset(keeping: 1 << 20)
                let path = try reader.read(entity.bytes, into: &fields)
                name.reset()
                name.append(utf8: "\(database.documentsRoot)/")
                name.append(path)
                try writes.update(name.bytes, fields: fields.bytes)
                documents += 1
                guard writes.count >= Self.batchDocuments || writes.bytes.count >= Self.batchBytes else { continue }
                commit()
                try wait(until: Self.batchesMax - 1)
                if isCancelled() { throw RequestError.shuttingDown }
            }
        } catch {
            commit()
            try wait(until: 0)
            let reason = (error as? RequestError)?.message ?? "\(error)"
            throw Failure(description: "\(file.name): record \(record): \(reason); the documents before it are stored")
        }
    }

    /// Submits the documents that were read.
    private mutating func commit() {
        if writes.isEmpty { return }
        pending.withLock { $0.commits += 1 }
        store.commit(CommitRequest(writes: writes)) { [pending] result in
            pending.update { pending in
                pending.commits -= 1
                if case .failure(let error) = result, pending.failure == nil { pending.failure = error }
            }
        }
        writes = WriteList(database: database)
    }

    /// Waits until at most so many commits are under way.
    private func wait(until count: Int) throws {
        let failure = pending.wait { pending -> RequestError?? in
            // After a failure nothing is submitted any more.
            pending.commits <= (pending.failure == nil ? count : 0) ? .some(pending.failure) : nil
        }
        if let failure { throw failure }
    }
}
