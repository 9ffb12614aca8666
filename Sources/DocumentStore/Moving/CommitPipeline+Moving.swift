// The steps of moves, on the commit thread. Each is one commit, or some that are in one group: all of it is durable, or
// nothing.

internal import Basics
internal import DocumentModel
internal import Storage

extension CommitPipeline {
    /// Stages a step.
    /// - Returns: the right to the database after it.
    func move(_ step: MoveStep) throws(RequestError) -> DatabaseTenure {
        if let refusal = standing.refusal { throw refusal }
        let name: DatabaseName
        switch step {
        case .receive(let database, let generation):
            name = database
            try receive(database, generation)
        case .apply(let chunk, let database, let generation):
            name = database
            try apply(chunk, database, generation)
        case .discard(let database, let generation):
            name = database
            try discard(database, generation)
        case .release(let database, let generation, let target):
            name = database
            try release(database, generation, target)
        case .deleteReleased(let database, let generation):
            name = database
            try deleteReleased(database, generation)
        }
        return databases.entry(of: name).map { DatabaseTenure($0) } ?? DatabaseTenure(.absent)
    }

    private func perform(_ systemCommit: SystemCommit) throws(RequestError) {
        do throws(StorageError) { _ = try stage.perform(systemCommit) } catch { throw RequestError(error) }
    }

    // MARK: Target

    private func receive(_ name: DatabaseName, _ generation: UInt64) throws(RequestError) {
        let known = databases.entry(of: name)
        if let tenure = known?.tenure, tenure.generation >= generation {
            let isRepeated = tenure.state == .receiving || tenure.state == .owned
            guard isRepeated, tenure.generation == generation else { throw .outdatedMove(of: name) }
            return
        }
        if known?.exists == true {
            throw RequestError(.failedPrecondition, "The store has the database \(name) already.")
        }
        if let known, known.hasCopy {
            if !known.isBeingDeleted { try beginRemoval(of: known, name) }
            throw RequestError(
                .unavailable, "What the store has of the database \(name) from an earlier move is being removed.")
        }
        let reserved = try databases.reserve(name, for: .move)
        defer { withExtendedLifetime(reserved.claim) {} }
        do throws(StorageError) {
            try stage.begin(database: reserved.number, newDatabase: name).keep()
        } catch {
            throw RequestError(error)
        }
        try perform(.tenure(DatabaseTenure(.receiving, generation: generation), number: reserved.number))
    }

    /// Applies a chunk, if it is the next one.
    private func apply(_ chunk: [UInt8], _ name: DatabaseName, _ generation: UInt64) throws(RequestError) {
        guard let entry = databases.entry(of: name), let known = entry.tenure, known.generation == generation,
            known.state == .receiving || known.state == .owned
        else { throw .outdatedMove(of: name) }
        let reader = try MoveChunkReader(chunk.byteSpan)
        guard known.state == .receiving, reader.from.equalsBytes(known.progress.byteSpan) else { return }
        // From here on readers would get the time of the release, and commits versions above it.
        if let released = try releaseMicroseconds(of: chunk), configuration.admitsTime?(released) == false {
            throw RequestError(
                .unavailable, "The time of the new store has not reached that of the old one; try again.")
        }
        let received = try stage.apply(
            chunk, toDatabase: entry.number, nowMilliseconds: configuration.clock.elapsedMilliseconds)
        counters.documentsWritten.add(received.documents, ordering: .relaxed)
        guard received.isComplete else { return }
        if let declaration = received.declaration {
            // An index that this machine lacks the libraries for waits for them.
            let analysis = declaration.hasSearches ? try stage.draft.applier.analysisVersion(isRequired: false) : ""
            try perform(.declaration(declaration, database: entry.number, analysis: analysis))
        }
        if let settings = received.settings, settings != entry.settings {
            try perform(.database(settings, number: entry.number, keepsTimes: true))
        }
        var tenure = DatabaseTenure(.receiving, generation: generation)
        tenure.progress = [UInt8](copying: reader.to)
        if let own = received.own {
            // No version and no time that the source gave out is above that of the release.
            stage.versions.raise(above: own.releaseMicroseconds)
            tenure = DatabaseTenure(.owned, generation: generation)
            tenure.createMicroseconds = own.createMicroseconds
        }
        try perform(.tenure(tenure, number: entry.number))
    }

    /// The version of the release, which the last chunk has; nil for another one.
    private func releaseMicroseconds(of chunk: [UInt8]) throws(RequestError) -> UInt64? {
        var reader = try MoveChunkReader(chunk.byteSpan)
        while let item = try reader.next() {
            if item.kind == .own { return item.updateMicroseconds }
        }
        return nil
    }

    private func discard(_ name: DatabaseName, _ generation: UInt64) throws(RequestError) {
        guard let entry = databases.entry(of: name), let tenure = entry.tenure, tenure.generation <= generation,
            tenure.state == .receiving
        else { return }
        try perform(.tenure(DatabaseTenure(.discarded, generation: generation), number: entry.number))
        try beginRemoval(of: entry, name)
    }

    // MARK: Source

    private func release(_ name: DatabaseName, _ generation: UInt64, _ target: String) throws(RequestError) {
        let known = databases.entry(of: name)
        if let tenure = known?.tenure, tenure.generation >= generation {
            guard tenure.state == .released, tenure.generation == generation else { throw .outdatedMove(of: name) }
            return
        }
        guard let known, known.exists else {
            if known?.isBeingDeleted == true { throw .databaseIsBeingDeleted(name) }
            throw RequestError(.failedPrecondition, "The store does not have the database \(name).")
        }
        var tenure = DatabaseTenure(.released, generation: generation)
        tenure.target = target
        try perform(.tenure(tenure, number: known.number))
    }

    private func deleteReleased(_ name: DatabaseName, _ generation: UInt64) throws(RequestError) {
        guard let entry = databases.entry(of: name), let tenure = entry.tenure, tenure.generation == generation,
            tenure.state == .released
        else { throw .outdatedMove(of: name) }
        if entry.hasCopy, !entry.isBeingDeleted { try beginRemoval(of: entry, name) }
    }

    // MARK: Copies that nobody needs

    /// Has the documents removed in the background, as those of a database that was deleted.
    private func beginRemoval(of entry: DatabaseDirectory.Entry, _ name: DatabaseName) throws(RequestError) {
        var settings = entry.settings ?? DatabaseSettings(state: .created)
        settings.state = .deleting
        try perform(.database(settings, number: entry.number))
    }
}
