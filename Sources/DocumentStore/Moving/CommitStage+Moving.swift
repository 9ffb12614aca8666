// Applying a chunk of a move: its documents become what they are in the source.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// What a chunk said beside its documents.
struct ReceivedChunk {
    /// False if so much is to be deleted or written that the chunk must be applied again.
    var isComplete = true
    /// Documents written and deleted.
    var documents: UInt64 = 0
    var declaration: IndexDeclaration?
    var settings: DatabaseSettings?
    /// Set by the last chunk.
    var own: (releaseMicroseconds: UInt64, createMicroseconds: UInt64)?
}

extension CommitStage {
    /// Documents that the source does not have and that one commit removes.
    private static let removedDocumentsMax = 256

    /// Stages a commit that makes the documents of a chunk what they are in the source. Those that are so already are
    /// left as they are.
    func apply(
        _ chunk: [UInt8], toDatabase database: UInt32, nowMilliseconds: UInt64
    ) throws(RequestError) -> ReceivedChunk {
        var received = ReceivedChunk()
        let commit = begin(database: database, newDatabase: nil)
        do {
            received.isComplete = try removeUnnamed(in: chunk, database)
            if received.isComplete { try add(chunk, database, nowMilliseconds, &received) }
            received.documents = draft.documentsWritten
            if !draft.isEmpty { try commit.keep() }
        } catch {
            throw RequestError(thrown: error)
        }
        return received
    }

    private func add(
        _ chunk: [UInt8], _ database: UInt32, _ nowMilliseconds: UInt64, _ received: inout ReceivedChunk
    ) throws {
        var location = DocumentLocation()
        var prior = PriorDocument()
        var reader = try MoveChunkReader(chunk.byteSpan)
        while let item = try reader.next() {
            switch item.kind {
            case .range, .unchanged: break
            case .document:
                location.locate(item.path, database: database)
                try prior.read(location, latest: writer.latest)
                // A version of the source names one state of a document.
                if prior.exists, prior.updateMicroseconds == item.updateMicroseconds { continue }
                received.isComplete = !draft.isFull
                if !received.isComplete { return }
                let copy = LogItem(
                    copy: item.path, fields: item.payload, createMicroseconds: item.createMicroseconds,
                    updateMicroseconds: item.updateMicroseconds, isNew: !prior.exists)
                try draft.add(copy, at: location, replacing: prior)
            case .deleted:
                location.locate(item.path, database: database)
                try prior.read(location, latest: writer.latest)
                if prior.exists { try draft.add(LogItem(deleted: item.path), at: location, replacing: prior) }
            case .result:
                guard let identifier = item.identifier,
                    case .new = draft.applier.sessions.find(identifier)
                else { continue }
                draft.add(answer: item.payload, to: identifier, nowMilliseconds: nowMilliseconds)
            case .declaration:
                received.declaration = IndexDeclaration(moved: item.payload)
                if received.declaration == nil { throw RequestError.malformedChunk }
            case .settings:
                received.settings = DatabaseSettings(item.payload)
                if received.settings?.state != .created { throw RequestError.malformedChunk }
            case .own: received.own = (item.updateMicroseconds, item.createMicroseconds)
            }
        }
    }

    // MARK: Documents that the source does not have

    /// Deletes the documents in the ranges of a chunk that it does not name.
    /// - Returns: false if there may be more of them.
    private func removeUnnamed(in chunk: [UInt8], _ database: UInt32) throws -> Bool {
        var location = DocumentLocation()
        var named: Set<[UInt8]> = []
        var ranges: [(from: [UInt8], to: [UInt8])] = []
        var reader = try MoveChunkReader(chunk.byteSpan)
        while let item = try reader.next() {
            switch item.kind {
            case .range: ranges.append(([UInt8](copying: item.path), [UInt8](copying: item.payload)))
            case .document, .unchanged:
                location.locate(item.path, database: database)
                named.insert([UInt8](copying: location.key))
            default: break
            }
        }
        for range in ranges {
            if try !remove(from: range.from, to: range.to, except: named, database) { return false }
        }
        return true
    }

    private func remove(
        from: [UInt8], to: [UInt8], except named: Set<[UInt8]>, _ database: UInt32
    ) throws -> Bool {
        let lower = MoveKeys.key(from, in: database)
        let upper = to.isEmpty ? MoveKeys.end(of: database) : MoveKeys.key(to, in: database)
        var removal = DocumentRemoval()
        var count = 0
        var cursor = try writer.latest.cursor(from: lower.byteSpan, to: upper.byteSpan)
        while try cursor.next() {
            if named.contains([UInt8](copying: cursor.key)) { continue }
            if count == Self.removedDocumentsMax || draft.isFull { return false }
            _ = try removal.add(cursor.key, cursor.value, to: &draft, latest: writer.latest)
            count += 1
        }
        return true
    }
}
