// A whole store from a data directory into a cluster, or from a cluster into a data directory.
//
//     directory ──► cluster     no more writes ──► fork ──► base in a table ──► compared ──► one statement
//     cluster ──► directory     base and log ──► no more groups ──► rest of the log ──► checked ──► moved
//                                                                                                ──► RestorePlacing
//
// The last step alone makes the target a store. An interrupted attempt leaves something that nobody takes for one; the
// next attempt removes it. A cluster that is locked out takes writes again unless it says that its store was moved
// (StoreLockOut).

import Authorization
import Basics
import DocumentStore
import EmbeddedEngine
import FileSystem
import FirestoreMessages
import Identity
import PostgreSQLLog
import Replication
import Server
import Storage

/// Moves stores between directories and clusters.
enum StoreMigration {
    /// - Parameters:
    ///   - source: a data directory, or the address of a database.
    ///   - target: one of the other kind.
    ///   - name: of the store in the database.
    ///   - bases: the directory in which the servers of the cluster have bases; nil if they have them in tables.
    ///   - progress: shows how far it is.
    static func run(
        from source: String, to target: String, store name: String, bases: String?, _ progress: ProgressLine
    ) throws {
        if let problem = PostgreSQLConnection.libraryProblem { throw CommandFailure(problem) }
        // In the list of servers while a base is read.
        let tables = StoreTables(name: name, advertised: "hearth migrate")
        var line = progress
        defer { line.clear() }
        switch (isDatabase(source), isDatabase(target)) {
        case (false, true):
            try PathWords.checkDataDirectory(source)
            try DirectoryToCluster(
                directory: source, database: target, session: PostgreSQLSession(address: target), tables: tables,
                basesDirectory: bases
            ).run(&line)
        case (true, false):
            try ClusterToDirectory(
                directory: target, database: source, session: PostgreSQLSession(address: source), tables: tables,
                basesDirectory: bases
            ).run(&line)
        default:
            throw UsageError(message: "one of --from and --to must be a data directory, and the other postgresql://...")
        }
    }

    private static func isDatabase(_ text: String) -> Bool {
        text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
    }
}

/// A data directory becomes a store of a cluster.
private struct DirectoryToCluster {
    let directory: String
    let database: String
    let session: PostgreSQLSession
    let tables: StoreTables
    let basesDirectory: String?

    func run(_ line: inout ProgressLine) throws {
        defer { session.close() }
        try check()
        try prepareDatabase()
        try MigratingFile.write(in: directory)
        var isEntering = false
        do {
            try move(&line) { isEntering = true }
        } catch {
            line.clear()
            throw explained(error, mayBeEntered: isEntering && (error as? SQLFailure)?.isConnectionLost == true)
        }
    }

    /// What is to be said of a failure: the directory takes no more writes.
    private func explained(_ error: any Error, mayBeEntered: Bool) -> CommandFailure {
        let text = ErrorText.describe(error)
        guard !mayBeEntered else {
            return CommandFailure(
                "\(text). \(directory) takes no more writes, and whether the cluster has its store is not known: "
                    + "give the command again")
        }
        return CommandFailure(
            "\(text). \(directory) was not moved, and takes no more writes: give the command again. Or, to give it up, "
                + "stop its server, and remove the files SUPERSEDED and \(MigratingFile.name) there")
    }

    /// - Throws: a `CommandFailure` if the directory is not one that can be moved, or is being moved.
    private func check() throws {
        if try ClusterFile.read(in: directory) != nil {
            throw CommandFailure("\(directory) caches a store of a cluster: it has nothing that its database lacks")
        }
        if let source = try ReplicaFile.source(in: directory) {
            throw CommandFailure(
                "\(directory) is a replica of \(source): migrate that one, or use hearth promote first")
        }
        if SupersededFile.exists(in: directory), !MigratingFile.exists(in: directory) {
            throw CommandFailure("\(directory) was replaced by a replica that was promoted: migrate that one")
        }
        guard try session.run(tables.claimingAdoption).first?.number(0) == 1 else {
            throw CommandFailure("another hearth migrate makes the store \(tables.name) in the database at this moment")
        }
    }

    /// - Parameter willEnter: called before the statement that makes the store of the cluster.
    private func move(_ line: inout ProgressLine, willEnter: () -> Void) throws {
        let last = try stopWrites()
        try beginHistory()
        let base = try StoreBase(of: directory) { _ = try ForkCommand.make(of: directory, at: $0) }
        let place = LogPlace(sequence: 0, hash: 0, version: base.version.microseconds)
        let identity = try ClusterFile.identity(in: directory) ?? .random()
        let timeline = try ClusterFile.timeline(in: directory)
        let bases = StoreBases(tables, directory: basesDirectory, of: identity)
        let order = StoreBases.Order(number: 1, place: place, epoch: 0, timeline: timeline ?? last, kept: [])
        let written = try bases.write(base, order, database: database) { bytes in
            if let bytes {
                line.update(WorkProgress("copying to the database", done: bytes, total: base.byteCount, .bytes))
            }
            return true
        }
        guard let row = written else { return }
        if case .table(let table) = row.location {
            try BaseTransfer.compare(base, with: table, session) { bytes in
                line.update(WorkProgress("comparing the copy", done: bytes, total: base.byteCount, .bytes))
            }
        }
        line.clear()
        guard try stopWrites() == last else {
            throw CommandFailure("\(directory) has taken writes meanwhile: give the command again")
        }
        try addRevocations()
        let ceiling = max(last, base.version.microseconds, SystemClock.microseconds())
        let rules = try self.rules()
        willEnter()
        let entered = try session.run(
            tables.adoption(
                identity, timeline: timeline ?? ceiling, ceiling: ceiling, base: row, rules: rules ?? (0, "")))
        guard !entered.isEmpty else {
            switch row.location {
            case .table(let table): try session.run(StoreTables.dropping(table))
            case .folder(let folder): try bases.shared?.remove(folder)
            }
            throw CommandFailure(
                "another server has made the store \(tables.name) in the database meanwhile: "
                    + "name another one with --cluster-store")
        }
        if rules != nil, entered.first?.number(0) != 1 {
            try StandardOutput.print(
                "the cluster has rules, which apply to this store too; those of \(directory) do not")
        }
        try StandardOutput.print(
            "\(directory) is the store \(tables.name) of the cluster now: \(base.parts.count) files of "
                + "\(base.byteCount) bytes, compared. Start servers on empty directories with hearth serve --cluster")
    }

    /// The rules of the directory, which become those of the cluster with the store, unless that has some.
    private func rules() throws -> (number: UInt64, text: String)? {
        let history = RulesHistory(dataDirectory: directory)
        return try history.newest().map { (UInt64($0), try history.text($0)) }
    }

    /// Has the servers of the cluster refuse the tokens that the directory refuses.
    private func addRevocations() throws {
        let own = try IdentityDirectory(dataDirectory: directory).revocations().moments
        if !own.isEmpty { try ClusterRevocations(HomeDatabase(address: database)).add(own) }
    }

    /// Makes the tables, and removes what an interrupted attempt has left.
    private func prepareDatabase() throws {
        try StoreTables.make(session)
        if try session.run(RulesTable.exists).first?.number(0) != 1 { try session.run(RulesTable.creation) }
        if let identity = try ClusterFile.identity(in: directory),
            let name = try session.run(StoreTables.names(of: identity)).first?.text(0)
        {
            throw CommandFailure("\(directory) is the store \(name) of the cluster already")
        }
        let row = StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0)))
        guard row == nil else {
            throw CommandFailure(
                "the database has a store \(tables.name) already: name another one with --cluster-store")
        }
        for table in try session.run(tables.tablesOfBases) { try session.run(StoreTables.dropping(table.text(0))) }
    }

    /// Begins the history of a directory that was restored, and that no server has opened since.
    private func beginHistory() throws {
        guard try ClusterFile.timeline(in: directory) == nil else { return }
        let checkpoint = try ClusterFile.checkpoint(of: directory)?.microseconds ?? 0
        try ClusterFile.writeHistory(
            ClusterFile.identity(in: directory) ?? .random(), timeline: max(SystemClock.microseconds(), checkpoint + 1),
            in: directory)
    }

    /// Has the server of the directory take no more writes. Without one, none starts on it from now on.
    /// - Returns: the version of the last commit, in microseconds; 0 if it is not known.
    private func stopWrites() throws -> UInt64 {
        do throws(AdminClient.Failure) {
            return try AdminClient.call(.adminStepDown, StepDownRequest(), directory, as: StepDownResponse.self).version
        } catch {
            guard case .noServer = error else { throw error }
        }
        try SupersededFile.write(in: directory)
        return 0
    }
}

/// A store of a cluster becomes a data directory.
private struct ClusterToDirectory {
    let directory: String
    let database: String
    let session: PostgreSQLSession
    let tables: StoreTables
    let basesDirectory: String?

    func run(_ line: inout ProgressLine) throws {
        defer { session.close() }
        guard (try? RestorePlacing.isFree(directory)) == true else {
            throw CommandFailure("\(directory) is not empty: name a directory that does not exist")
        }
        guard try session.run(StoreTables.exists).first?.number(0) == 1,
            let row = StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0)))
        else { throw CommandFailure("the database has no store \(tables.name): name one with --cluster-store") }
        try checkLevel(row.level)
        var lockOut = StoreLockOut(tables, of: database)
        var last: UInt64 = 0
        do {
            // An earlier attempt has locked the servers out, and may have been killed: this one takes its place.
            if row.level >= StoreTables.leavingLevel { try lockOut.begin(session) { try checkLevel($0) } }
            try RestorePlacing.run(directory) { copy in
                // The log after the base is kept as long as that is announced.
                var (reader, announcement) = try fetchBase(row, to: copy, &line)
                defer { announcement?.end() }
                let store = try open(copy)
                defer { store.close() }
                try copyLog(reader, to: store, endsBelow: Self.groupsLeftMax, &announcement, &line)
                if !lockOut.hasBegun { try lockOut.begin(session) { try checkLevel($0) } }
                // Nothing is appended any more.
                try copyLog(reader, to: store, endsBelow: 1, &announcement, &line)
                // Clients have times up to the ceiling, and the clock of this machine may be late.
                try store.endFollowing(above: lockOut.ceiling)
                store.close()
                try check(copy, reader, line)
                try complete(copy)
                last = reader.place.sequence
                try lockOut.complete()
            }
        } catch {
            throw explained(error, lockOut)
        }
        try StandardOutput.print(
            "\(directory) has the store \(tables.name) now, up to group \(last) of its log, checked. "
                + "Start hearth serve on it")
    }

    /// What is to be said of a failure. Unless a directory may have the store, the cluster takes writes again.
    private func explained(_ error: any Error, _ lockOut: StoreLockOut) -> any Error {
        if lockOut.hasBegun, RestorePlacing.isPlaced(in: directory) {
            return CommandFailure(
                "\(directory) has the store \(tables.name) now, and the cluster takes no more writes. But the "
                    + "directory may not outlive a power cut: \(ErrorText.describe(error)). If it is gone one day, "
                    + "give the command again")
        }
        guard let problem = lockOut.takeBack() else { return error }
        let way =
            "Give the command again; or, only if no directory has the store, have the cluster take writes again: "
            + "UPDATE hearth.stores SET level = \(StoreTables.level) WHERE name = '\(tables.name)'"
        return CommandFailure("\(ErrorText.describe(error)). \(problem). \(way)")
    }

    /// - Throws: a `CommandFailure` unless the store lies here, and has its databases for itself.
    private func checkLevel(_ level: UInt64) throws {
        if level <= StoreTables.level || level >= StoreTables.leavingLevel { return }
        if StoreTables.isElsewhere(level: level) {
            let place = try StorePlace.all(session).first { $0.store == tables.name }
            throw CommandFailure(
                "the log of the store \(tables.name) lies in another database: \(place?.address ?? "")")
        }
        guard StoreTables.isSharing(level: level) else {
            throw CommandFailure("the store has records of a later version of Hearth: upgrade this program")
        }
        throw CommandFailure(
            "the store \(tables.name) shares the databases of its cluster with other stores, and cannot leave it: "
                + "hearth backup of a server writes a directory of each store")
    }

    /// Groups that may be left to copy when the servers end.
    private static let groupsLeftMax = 16

    private func open(_ copy: String) throws -> DocumentStore {
        var configuration = StoreConfiguration.forTool(copy)
        configuration.leader = "the cluster"
        let store = try DocumentStore.open(configuration)
        store.replication.derivedSpaces.want()
        return store
    }

    /// Makes the copy from the newest base that is sound and that the log continues, or from nothing if the log has
    /// everything.
    /// - Returns: the log after it, and the announcement of the base; nil without a base.
    private func fetchBase(
        _ row: StoreRow, to copy: String, _ line: inout ProgressLine
    ) throws -> (LogReader, BaseAnnouncement?) {
        let mark: (String) throws -> Void = {
            try ClusterFile.writeHistory(row.lease.store, timeline: row.timeline, in: $0)
        }
        let bases = StoreBases(tables, directory: basesDirectory, of: row.lease.store)
        var problem: StorageError?
        for base in try bases.continued(session) {
            let total = Int(clamping: base.byteCount)
            var announcement = BaseAnnouncement(base, tables, session)
            do {
                try bases.fetch(base, session, to: copy, marking: mark) { bytes in
                    _ = announcement.note(bytes)
                    line.update(WorkProgress("fetching the base", done: bytes, total: total, .bytes))
                }
                return (LogReader(session, tables, of: row.lease.store, after: base.place), announcement)
            } catch {
                announcement.end()
                guard let failure = error as? StorageError, [.corrupt, .refused].contains(failure.code) else {
                    throw error
                }
                problem = problem ?? failure
                try Directory.removeAll(copy)
            }
        }
        guard try bases.logHasEverything(session) else {
            if let problem { throw problem }
            throw CommandFailure("\(bases.nothingContinues): a server that leads it makes another one")
        }
        try mark(copy)
        return (LogReader(session, tables, of: row.lease.store, after: .start), nil)
    }

    /// Applies the groups that the log has, until fewer than a number come at once.
    private func copyLog(
        _ reader: LogReader, to store: DocumentStore, endsBelow limit: Int, _ announcement: inout BaseAnnouncement?,
        _ line: inout ProgressLine
    ) throws {
        let start = reader.place.sequence
        let last = max(start, try tables.lastSequence(session))
        while true {
            announcement?.noteComplete()
            line.update(
                WorkProgress(
                    "applying the log", done: Int(reader.place.sequence - start), total: Int(last - start), .entries))
            let groups = try reader.next()
            if groups.isEmpty { return }
            var records = FollowedRecords()
            for group in groups where !records.append(logged: group.records) {
                throw CommandFailure("the group \(group.header.sequence) of the log has a wrong record")
            }
            let outcome = Monitor<Result<Void, RequestError>?>(nil)
            store.follow(records) { result in outcome.update { $0 = result } }
            try outcome.wait { $0 }.get()
            for group in groups {
                guard let keySpace = ClusterHost.difference(of: group, in: store) else { continue }
                throw CommandFailure(
                    "the copy has derived something else than the cluster from the group "
                        + "\(group.header.sequence), in the key space \(keySpace)")
            }
            if groups.count < limit { return }
        }
    }

    /// Verifies all data of the copy, and that it ends where the log ends.
    private func check(_ copy: String, _ reader: LogReader, _ progress: ProgressLine) throws {
        var line = progress
        defer { line.clear() }
        let report = try StoreCheck.run(StoreConfiguration(directory: copy)) { line.update($0) }
        if let problem = report.problems.first { throw CommandFailure("the copy has a problem: \(problem)") }
        let last = try tables.lastSequence(session)
        guard last == 0 || last == reader.place.sequence else {
            throw CommandFailure("the log was trimmed under the copy: give the command again")
        }
    }

    /// Gives the copy what the servers of the cluster have in common.
    private func complete(_ copy: String) throws {
        let home = HomeDatabase(address: database)
        _ = try RulesKeeper(RulesHistory(dataDirectory: copy), shared: ClusterRules(home: home)).takeShared()
        let revocations = try IdentityDirectory(dataDirectory: copy).revocations()
        _ = try RevocationKeeper(revocations, shared: ClusterRevocations(home)).takeShared()
        // The place in the log has no meaning any more.
        let places = "\(copy)/\(LogPlaces.fileName)"
        try Directory.removeFile(places)
        try Directory.sync(copy)
    }
}

/// The file MIGRATING of a data directory: its server takes no more writes because the store moves to a cluster.
private enum MigratingFile {
    static let name = "MIGRATING"

    static func exists(in directory: String) -> Bool { Directory.exists("\(directory)/\(name)") }

    static func write(in directory: String) throws {
        if exists(in: directory) { return }
        try Directory.replaceFile("\(directory)/\(name)", with: "hearth migrate moves this directory to a cluster\n")
    }
}
