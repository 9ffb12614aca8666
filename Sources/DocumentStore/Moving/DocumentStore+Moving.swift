// Moving a database to another store (docs/decisions/0063): what its source and its target do.
//
//     target                          source
//     receive
//                                     moveChunk ──► walk over all documents
//     applyMove  ◄──────────────────────┘           rounds over those that have changed since
//                                     release       commits and reads end; transactions get ABORTED
//     applyMove  ◄──────────────────  moveChunk     the last round, the remembered results
//     owned, by the last chunk
//                                     deleteReleased
//
// Every step is a commit and may be repeated. A chunk is applied only after the one before it, by the progress that the
// target has in its log, so late and doubled chunks change nothing.

package import Basics
package import DocumentModel
internal import Storage

/// A step of a move, done by the commit thread.
enum MoveStep: Sendable {
    case receive(DatabaseName, generation: UInt64)
    case apply([UInt8], DatabaseName, generation: UInt64)
    case discard(DatabaseName, generation: UInt64)
    case release(DatabaseName, generation: UInt64, target: String)
    case deleteReleased(DatabaseName, generation: UInt64)

    var byteCount: Int { if case .apply(let chunk, _, _) = self { chunk.count } else { 256 } }
}

extension DocumentStore {
    package typealias MoveCompletion = @Sendable (Result<DatabaseTenure, RequestError>) -> Void

    // MARK: The right to a database

    /// The right of the store to a database, as of what this server has applied.
    package func tenure(of database: DatabaseName) -> DatabaseTenure {
        databases.entry(of: database).map { DatabaseTenure($0) } ?? DatabaseTenure(.absent)
    }

    /// The databases that another store has, or will have, and of which this one knows.
    package var tenures: [(name: DatabaseName, tenure: DatabaseTenure)] {
        databases.entries(where: \.isElsewhere).map { ($0.name, DatabaseTenure($0.entry)) }
    }

    /// Why calls about a database are refused here: another store has it, or will have. Nil if they are not.
    package func moveRefusal(of database: DatabaseName) -> RequestError? { databases.refusal(of: database) }

    /// The same for a reader of a version, in microseconds, that was chosen as the newest.
    package func moveRefusal(of database: DatabaseName, at version: UInt64) -> RequestError? {
        do throws(RequestError) {
            _ = try databases.number(of: database, at: version)
            return nil
        } catch {
            return error == .snapshotTooOld ? .databaseIsElsewhere(database) : error
        }
    }

    /// The databases whose release became visible with a version of this range, in microseconds, and the error with
    /// which their listeners end.
    package func releasedDatabases(
        after position: UInt64, through readTime: UInt64
    ) -> [(name: DatabaseName, error: RequestError)] {
        databases.released(after: position, through: readTime).map { ($0, .databaseIsElsewhere($0)) }
    }

    // MARK: The target

    /// Makes the store the target of a move. Every call about the database is refused until it owns it.
    ///
    /// Repeated, it changes nothing. It fails with `FAILED_PRECONDITION` if the store owns the database or knows of a
    /// later move, and with `UNAVAILABLE` while what an earlier move has left is removed.
    package func receive(
        _ database: DatabaseName, generation: UInt64, completion: @escaping MoveCompletion
    ) {
        submit(.move(.receive(database, generation: generation), completion))
    }

    /// Applies a chunk of the source, if the target's progress is the one after which it was made. Otherwise it changes
    /// nothing. The right that the completion gets has the progress after it: that from before means that the chunk is
    /// to be applied again. After the last chunk the store owns the database.
    package func applyMove(
        chunk: [UInt8], to database: DatabaseName, generation: UInt64, completion: @escaping MoveCompletion
    ) {
        submit(.move(.apply(chunk, database, generation: generation), completion))
    }

    /// Gives up what was received by a move up to this generation. It is removed in the background.
    package func discardReceived(
        _ database: DatabaseName, generation: UInt64, completion: @escaping MoveCompletion
    ) {
        submit(.move(.discard(database, generation: generation), completion))
    }

    // MARK: The source

    /// Ends all use of a database here, for the move of this generation. Commits and reads get `UNAVAILABLE` from then
    /// on, transactions `ABORTED`, and listeners end. Only the target can continue.
    ///
    /// Repeated, it changes nothing. It fails with `FAILED_PRECONDITION` if the store does not own the database.
    package func release(
        _ database: DatabaseName, generation: UInt64, to target: String, completion: @escaping MoveCompletion
    ) {
        submit(
            .move(.release(database, generation: generation, target: target)) { [self] result in
                if case .success = result { abortUses(of: database) }
                completion(result)
            })
    }

    /// Deletes the documents of a database that was released by the move of this generation, in the background.
    package func deleteReleased(
        _ database: DatabaseName, generation: UInt64, completion: @escaping MoveCompletion
    ) {
        submit(.move(.deleteReleased(database, generation: generation), completion))
    }

    /// What the target of a move lacks; after the release the last of it too. Blocks: for a thread that may wait.
    ///
    /// - Parameters:
    ///   - progress: of the target's right to the database.
    ///   - bytesMax: bytes of the chunk, about; one document may exceed it.
    /// - Throws: `NOT_FOUND` if there is no such database; `FAILED_PRECONDITION` if it is being deleted, or was moved
    ///   by another move; `UNAVAILABLE` at a server that does not lead, or does not know whether it does; what storage
    ///   throws.
    package func moveChunk(
        of database: DatabaseName, generation: UInt64, after progress: [UInt8], bytesMax: Int = 1 << 20
    ) throws(RequestError) -> MoveChunk {
        if let refusal { throw refusal }
        guard let entry = databases.entry(of: database), entry.isStored else { throw .noDatabase(database) }
        var release: UInt64?
        if let tenure = entry.tenure, tenure.generation >= generation {
            guard tenure.state == .released, tenure.generation == generation else { throw .outdatedMove(of: database) }
            // A release that is not visible has not happened yet.
            if tenure.version <= publishedVersion.microseconds { release = tenure.version }
        } else if !entry.exists {
            throw entry.isBeingDeleted ? .databaseIsBeingDeleted(database) : .noDatabase(database)
        }
        if entry.settings?.state == .deleting || entry.settings?.state == .deleted {
            throw .outdatedMove(of: database)
        }
        let chunk = try moveSources.source(of: database, number: entry.number, generation: generation).chunk(
            of: self, entry, release: release, after: progress, bytesMax: bytesMax)
        // After the reads: a leader that was replaced meanwhile may lack what was acknowledged.
        if let refusal = strictReadRefusal { throw refusal }
        return chunk
    }

    /// Forgets which documents have changed since the copy of a database began. Call it when a move has ended or was
    /// given up; a copy that continues all the same begins again.
    package func endMoveSource(of database: DatabaseName) {
        if let source = moveSources.remove(database) { changedPaths.end(source.number) }
    }

    private func abortUses(of database: DatabaseName) {
        for transaction in transactions.endAll(in: database) {
            transactions.noteAborted(transaction, conflicts: [], winners: [], request: nil, hasMoved: true)
            if transaction.mayBlockOthers { release(transaction) }
        }
    }

    // MARK: Waiting

    /// How long the source of a move waits for the commit thread, in nanoseconds.
    private static let waitNanosecondsMax: UInt64 = 30_000_000_000

    /// Waits until everything up to a version is visible.
    func waitUntilVisible(_ version: UInt64) throws(RequestError) {
        try wait { versions.whenReadable(version, completion: $0) }
    }

    /// The remembered results of a database. Waits for the commit thread.
    func results(ofDatabase number: UInt32) throws(RequestError) -> [RememberedResult] {
        try wait { submit(.collectResults(number, $0)) }
    }

    private func wait<Success: Sendable>(
        for work: (@escaping @Sendable (Result<Success, RequestError>) -> Void) -> Void
    ) throws(RequestError) -> Success {
        let outcome = Monitor<Result<Success, RequestError>?>(nil)
        work { result in outcome.update { $0 = result } }
        let deadline = SystemClock.monotonicNanoseconds() + Self.waitNanosecondsMax
        guard let result = outcome.wait(untilNanoseconds: deadline, { $0 }) else {
            throw RequestError(.unavailable, "The commits before have not become durable in time.")
        }
        return try result.get()
    }
}

extension RequestError {
    /// The move is over, or another one has begun since.
    static func outdatedMove(of database: DatabaseName) -> RequestError {
        RequestError(.failedPrecondition, "The database \(database) is not the one of this move any more.")
    }
}
