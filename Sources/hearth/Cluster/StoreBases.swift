// The bases of a store, in tables of the database and in a directory that the servers share.
//
//     StoreBase ──► BaseTransfer ──► table      ──► BaseTransfer ──► data directory
//     (a fork)  ──► SharedBases  ──► folder     ──► SharedBases  ──►
//
// The row of a base says where it lies, so servers with different settings read each other's bases.

import Archive
import DocumentStore
import EmbeddedEngine
import FileSystem
import PostgreSQLLog
import Replication
import Storage

/// A plain value.
struct StoreBases: Sendable {
    let tables: StoreTables
    /// Nil: new bases are written to tables.
    let shared: SharedBases?

    /// - Parameter directory: of all stores, as `--cluster-bases` names it.
    init(_ tables: StoreTables, directory: String?, of store: StoreIdentity) {
        self.tables = tables
        shared = directory.map { SharedBases("\($0)/\(tables.name)", of: store) }
    }

    // MARK: Making a base

    /// What the maker of a base knows before it begins.
    struct Order: Sendable {
        let number: UInt64
        let place: LogPlace
        /// In which the maker leads.
        let epoch: UInt64
        /// Where the history of the store begins.
        let timeline: UInt64
        /// Folders of other bases that stay.
        let kept: Set<String>

        /// Whether the store has no base in such a directory yet.
        var isFirst: Bool { kept.isEmpty }
    }

    /// The folders that stay whatever is removed.
    ///
    /// - Parameters:
    ///   - milliseconds: how long a base is kept after a newer one has replaced it.
    ///   - damaged: whether those of damaged bases stay too, since there may be no other.
    func keptFolders(
        forMilliseconds milliseconds: UInt64, damaged: Bool, _ session: PostgreSQLSession
    ) throws -> Set<String> {
        let kept = BaseRow.all(try session.run(tables.keptBases(forMilliseconds: milliseconds)))
        var folders = Set(kept.compactMap(\.location.folder))
        if damaged { folders.formUnion(try session.run(tables.damagedFolders).map { $0.text(0) }) }
        return folders
    }

    /// Writes a base, which nobody knows yet. Blocks for as long as the disk or the database takes.
    ///
    /// - Parameter mayContinue: asked between two pieces; gets the bytes in a table so far, and nil for a directory.
    /// - Returns: the row to enter; nil if it was given up.
    /// - Throws: `SQLFailure`, `StorageError`.
    func write(
        _ base: StoreBase, _ order: Order, database: String, mayContinue: (Int?) -> Bool
    ) throws -> BaseRow? {
        guard let shared else {
            let session = try PostgreSQLSession(address: database)
            defer { session.close() }
            return try BaseTransfer.write(
                base, at: order.place, number: order.number, tables, session, mayContinue: mayContinue)
        }
        // An empty mount point has no mark. A disk that interrupted attempts have filled would stay full.
        try order.isFirst ? shared.claim() : shared.checkMark()
        let folder = SharedBases.folder(epoch: order.epoch)
        let description = SharedBases.Description(
            number: order.number, timeline: CommitVersion(microseconds: order.timeline), version: base.version,
            horizon: base.horizon)
        let sources = base.parts.map { SharedBases.Source(path: $0.path, place: $0.place, byteCount: $0.byteCount) }
        do throws(StorageError) {
            _ = try shared.remove(except: order.kept, throughEpoch: order.epoch) { !mayContinue(nil) }
            let made = try shared.write(sources, description, to: folder) { !mayContinue(nil) }
            return BaseRow(
                number: order.number, place: order.place, byteCount: UInt64(made.byteCount),
                location: .folder(folder), parts: UInt64(made.parts.count))
        } catch {
            guard error.code == .closed else { throw error }
            return nil
        }
    }

    // MARK: Using a base

    /// Sound bases that the log continues, the newest first.
    func continued(_ session: PostgreSQLSession) throws -> [BaseRow] {
        try BaseRow.all(session.run(tables.keptBases(forMilliseconds: 0))).filter { base in
            try LogPresence.continues(after: base.place, tables, session)
        }
    }

    /// What is said if there is none, and the log does not have everything either.
    var nothingContinues: String { "the log does not continue any base of the store \(tables.name)" }

    /// Whether the log begins with the first group of the store, so that no base is needed.
    func logHasEverything(_ session: PostgreSQLSession) throws -> Bool {
        guard try session.run(tables.migratedBase).isEmpty else { return false }
        if try session.run(tables.baseCount).first?.number(0) == 0 { return true }
        return try session.run(tables.tablesOfLog).contains { $0.text(0) == tables.firstTable }
    }

    /// Makes a directory of a base. What was in the directory before goes.
    ///
    /// - Parameters:
    ///   - mark: gets the directory before it takes its place.
    ///   - progress: gets the bytes received.
    /// - Throws: a `StorageError`: `corrupt` if the base is damaged or missing, `refused` if this server does not have
    ///   the directory with it. `SQLFailure`.
    func fetch(
        _ base: BaseRow, _ session: PostgreSQLSession, to directory: String, marking mark: (String) throws -> Void,
        progress: (Int) -> Void
    ) throws {
        try check(base)
        let receiver = try BaseReceiver(directory: directory)
        switch base.location {
        case .table(let table):
            do {
                try BaseTransfer.receive(base, from: table, session, receiver, progress: progress)
            } catch let error as SQLFailure where error.isMissingTable {
                throw StorageError(.corrupt, "the table \(table) of the base \(base.number) is missing")
            }
        case .folder(let folder):
            let assembly = try DirectoryAssembly(receiver.partial)
            var byteCount = 0
            let version = CommitVersion(microseconds: base.place.version)
            try shared?.copy(folder, version: version, to: receiver.partial) { count in
                byteCount += count
                progress(byteCount)
            }
            try assembly.complete()
        }
        try receiver.complete(keeping: [CompanionFiles.rules]) { made in
            try mark(made)
            // The last group may have records that derive nothing: then the runs end with an earlier version.
            let last = CommitVersion(microseconds: base.place.version)
            try LogPlaces.create(in: made, checkpoint: ClusterFile.checkpoint(of: made) ?? last, at: base.place)
        }
    }

    /// Looks whether this server could use a base, without reading it.
    /// - Throws: as ``fetch(_:_:to:marking:progress:)``.
    func check(_ base: BaseRow) throws(StorageError) {
        guard case .folder(let folder) = base.location else { return }
        guard let shared else {
            throw StorageError(
                .refused,
                "the base \(base.number) of the store \(tables.name) lies in a directory that is not "
                    + "named here", remedy: "name it with --cluster-bases")
        }
        try shared.check(folder)
    }
}
