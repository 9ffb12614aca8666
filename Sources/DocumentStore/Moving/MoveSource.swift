// The source of a move: what of a database the target does not have yet, chunk by chunk.
//
// A chunk is read from what is visible now and not from an earlier state: a document that has changed since the walk
// began is sent again by a round. So the copy needs no history, however long it takes. Between two chunks only the
// notes of changed documents are kept, in memory; without them the walk begins again (`CopyPosition`).

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat
internal import Synchronization

/// The databases that are being copied from this store. Thread-safe.
final class MoveSources: Sendable {
    private let sources = Mutex<[DatabaseName: MoveSource]>([:])

    /// - Parameter generation: of the move; what is known from another one does not count.
    func source(of database: DatabaseName, number: UInt32, generation: UInt64) -> MoveSource {
        sources.withLock { sources in
            if let source = sources[database], source.generation == generation { return source }
            let source = MoveSource(number: number, generation: generation)
            sources[database] = source
            return source
        }
    }

    func remove(_ database: DatabaseName) -> MoveSource? { sources.withLock { $0.removeValue(forKey: database) } }
}

/// A database that is being copied. Thread-safe; chunks are made one at a time.
final class MoveSource: Sendable {
    /// The documents that a round sends.
    struct Round {
        let base: UInt64
        let start: UInt64
        /// In their order.
        let paths: [[UInt8]]
    }

    /// What is known between two chunks.
    struct State {
        /// The last round that was begun.
        var round: Round?
        /// The remembered results, once the database is released.
        var results: [RememberedResult]?
    }

    let number: UInt32
    let generation: UInt64
    private let state = Monitor(State())

    init(number: UInt32, generation: UInt64) {
        self.number = number
        self.generation = generation
    }

    /// The next chunk. Blocks: reads may wait for the disk, and a walk that begins waits for the commits in flight.
    ///
    /// - Parameters:
    ///   - store: the store of the database.
    ///   - release: the version of the release, in microseconds; nil before it is visible.
    ///   - progress: of the target.
    ///   - bytesMax: bytes of the chunk, about; one document may exceed it.
    func chunk(
        of store: DocumentStore, _ entry: DatabaseDirectory.Entry, release: UInt64?, after progress: [UInt8],
        bytesMax: Int
    ) throws(RequestError) -> MoveChunk {
        try state.withLock { (state) throws(RequestError) in
            var maker = ChunkMaker(store, entry, release: release, bytesMax: bytesMax, state)
            defer { state = maker.state }
            return try maker.make(after: progress)
        }
    }
}

/// Makes one chunk.
private struct ChunkMaker: ~Copyable {
    var state: MoveSource.State
    private let store: DocumentStore
    private let entry: DatabaseDirectory.Entry
    private let release: UInt64?
    private let bytesMax: Int
    private var writer = MoveChunkWriter()

    /// Documents that may be left when the copy counts as caught up.
    private static let caughtUpMax = 256
    /// Documents that one chunk has at most, and names of unchanged ones: the target applies a chunk in one commit, for
    /// which the commits of others wait.
    private static let documentsMax = 500
    private static let namesMax = 4_000

    init(
        _ store: DocumentStore, _ entry: DatabaseDirectory.Entry, release: UInt64?, bytesMax: Int,
        _ state: MoveSource.State
    ) {
        self.store = store
        self.entry = entry
        self.release = release
        self.bytesMax = bytesMax
        self.state = state
    }

    private var number: UInt32 { entry.number }

    mutating func make(after given: [UInt8]) throws(RequestError) -> MoveChunk {
        var progress = try beginning(after: CopyPosition(given))
        do {
            while writer.byteCount < bytesMax, mayContinue(at: progress), let next = try step(progress) {
                progress = next
            }
        } catch {
            throw RequestError(thrown: error)
        }
        progress.documents += UInt64(writer.documents)
        let left = documentsLeft(at: progress)
        let isBetween = progress.phase != .walk && progress.start == 0
        return MoveChunk(
            bytes: writer.byteCount > 0 ? writer.bytes(from: given, to: progress.bytes) : [],
            documents: writer.documents,
            isCaughtUp: progress.phase == .results || isBetween && left <= Self.caughtUpMax, isLast: writer.isLast,
            position: MovePosition(documentsSent: Int(clamping: progress.documents), documentsLeft: left))
    }

    private var isFull: Bool { writer.byteCount >= bytesMax || writer.documents >= Self.documentsMax }

    /// A document is in a chunk once: the target reads what it has before the chunk.
    private func mayContinue(at progress: CopyPosition) -> Bool {
        !writer.isLast && (writer.documents == 0 || progress.phase == .results || isComplete(progress))
    }

    /// Whether the target has everything up to the release.
    private func isComplete(_ progress: CopyPosition) -> Bool {
        guard let release, progress.phase != .walk else { return false }
        return progress.base >= release
    }

    /// - Returns: nil if there is nothing more to send now.
    private mutating func step(_ progress: CopyPosition) throws -> CopyPosition? {
        switch progress.phase {
        case .walk: return try walk(progress)
        case .round: return try round(progress)
        case .results: return try results(progress)
        }
    }

    private func documentsLeft(at progress: CopyPosition) -> Int {
        let changed = store.changedPaths.count(in: number)
        switch progress.phase {
        case .walk:
            let from = MoveKeys.key(progress.position, in: number)
            let estimate = try? store.engine.estimate(from: from.byteSpan, to: MoveKeys.end(of: number).byteSpan)
            return changed + (estimate?.entries ?? 0)
        case .round:
            guard progress.start > 0, let round = state.round else { return changed }
            return changed + round.paths.count - round.index(after: progress.position)
        case .results: return 0
        }
    }

    // MARK: Walk

    /// Where to continue: at the progress, or with a new walk if it is not known what has changed since.
    private mutating func beginning(after given: CopyPosition?) throws(RequestError) -> CopyPosition {
        guard let given else { return try walkBeginning(above: 0, documents: 0) }
        // Another leader has made the target's progress, of commits that this server does not have.
        if max(given.base, given.start) > store.publishedVersion.microseconds { throw .movedByAnotherLeader }
        let changes = store.changedPaths
        switch given.phase {
        case .results: return given
        case .walk where changes.cover(number, since: given.start): return given
        case .round where isComplete(given): return given
        case .round:
            if let round = state.round, round.base == given.base, given.start == 0 || given.start == round.start,
                changes.cover(number, since: round.start)
            {
                return given
            }
            if given.start == 0, changes.cover(number, since: given.base) { return given }
        default: break
        }
        return try walkBeginning(above: given.base, documents: given.documents)
    }

    private mutating func walkBeginning(above base: UInt64, documents: UInt64) throws(RequestError) -> CopyPosition {
        state.round = nil
        try store.waitUntilVisible(store.changedPaths.begin(number) { store.versions.newestAssigned })
        let start = store.publishedVersion.microseconds
        store.changedPaths.settle(number, at: start)
        writer.append(store.indexState.current.declaration(of: number))
        return .walk(above: base, from: start, documents: documents)
    }

    /// The next documents in the order of their keys.
    private mutating func walk(_ progress: CopyPosition) throws -> CopyPosition {
        let snapshot = try store.engine.makeReader().snapshot()
        let (from, to) = (MoveKeys.key(progress.position, in: number), MoveKeys.end(of: number))
        var cursor = try snapshot.cursor(from: from.byteSpan, to: to.byteSpan)
        var (next, names) = (progress, 0)
        var path = ByteBuffer(capacity: 256)
        while try cursor.next() {
            if isFull || names >= Self.namesMax {
                next.position = [UInt8](copying: cursor.key.extracting(KeyLayout.pathOffset..<cursor.key.byteCount))
                writer.append(rangeFrom: progress.position, to: next.position)
                return next
            }
            names += 1
            guard let parts = DocumentKey.parts(of: cursor.key),
                let record = StoredRecordView(cursor.value, versionMicroseconds: cursor.version.microseconds),
                KeyedDocument.writePath(key: cursor.key, parts: parts, record: record, into: &path)
            else { throw StorageError(.corrupt, "a document's record is damaged") }
            if cursor.version.microseconds <= progress.base {
                writer.append(unchanged: path.bytes)
            } else {
                writer.append(
                    document: path.bytes, createMicroseconds: record.createMicroseconds,
                    updateMicroseconds: record.updateMicroseconds, fields: record.fields)
            }
        }
        writer.append(rangeFrom: progress.position, to: [])
        return progress.complete(through: progress.start)
    }

    // MARK: Rounds

    /// The next documents of a round, which begins unless it has begun.
    private mutating func round(_ progress: CopyPosition) throws -> CopyPosition? {
        if progress.start == 0, isComplete(progress) { return Self.results(after: progress, position: []) }
        var next = progress
        if progress.start == 0 {
            let begun = beginRound(above: progress.base)
            if begun.paths.isEmpty {
                let done = progress.complete(through: begun.start)
                return isComplete(done) ? done : nil
            }
            next.start = begun.start
        }
        guard let round = state.round else { return nil }
        let snapshot = try store.engine.makeReader().snapshot()
        var location = DocumentLocation()
        for changed in round.paths[round.index(after: progress.position)...] {
            if isFull { return next }
            location.locate(changed.byteSpan, database: number)
            next.position = changed
            guard let stored = try snapshot.value(forKey: location.key) else {
                writer.append(deleted: changed.byteSpan)
                continue
            }
            guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
                throw StorageError(.corrupt, "a document's record is damaged")
            }
            writer.append(
                document: changed.byteSpan, createMicroseconds: record.createMicroseconds,
                updateMicroseconds: record.updateMicroseconds, fields: record.fields)
        }
        return next.complete(through: round.start)
    }

    /// Takes what has changed. A round that was begun and not sent is begun again with what has changed meanwhile.
    private mutating func beginRound(above base: UInt64) -> MoveSource.Round {
        let start = store.publishedVersion.microseconds
        var paths = Set(store.changedPaths.take(in: number, through: start))
        if let round = state.round, round.base == base { paths.formUnion(round.paths) }
        let round = MoveSource.Round(
            base: base, start: start, paths: paths.sorted { $0.lexicographicallyPrecedes($1) })
        state.round = round
        return round
    }

    // MARK: Results

    private static func results(after progress: CopyPosition, position: [UInt8]) -> CopyPosition {
        CopyPosition(
            phase: .results, base: progress.base, start: 0, documents: progress.documents, position: position)
    }

    /// The next remembered results; after the last of them the target is to own the database.
    private mutating func results(_ progress: CopyPosition) throws(RequestError) -> CopyPosition? {
        guard let release else { return nil }
        if state.results == nil { state.results = try store.results(ofDatabase: number) }
        for result in state.results ?? [] {
            let position = result.identifier.orderedBytes
            guard progress.position.lexicographicallyPrecedes(position) else { continue }
            writer.append(result)
            if writer.byteCount >= bytesMax { return Self.results(after: progress, position: position) }
        }
        writer.append(store.indexState.current.declaration(of: number))
        if let settings = entry.settings, settings.state == .created { writer.append(settings) }
        writer.appendOwn(releaseMicroseconds: release, createMicroseconds: entry.createMicroseconds)
        return nil
    }
}

extension MoveSource.Round {
    /// The index of the first path after another one.
    fileprivate func index(after path: [UInt8]) -> Int {
        paths.partitioningIndex { path.lexicographicallyPrecedes($0) }
    }
}

extension RequestError {
    fileprivate static let movedByAnotherLeader = RequestError(
        .unavailable, "Another server leads the store, and has copied the database further.")
}

extension RequestIdentifier {
    /// The session and the number, so that bytes have the order of both.
    fileprivate var orderedBytes: [UInt8] {
        var bytes = ByteBuffer(capacity: 24)
        bytes.append(bigEndian: sessionHigh)
        bytes.append(bigEndian: sessionLow)
        bytes.append(bigEndian: sequence)
        return bytes.copyBytes()
    }
}
