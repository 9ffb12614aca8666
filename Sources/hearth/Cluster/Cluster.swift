// `hearth serve --cluster`: the directory of a server in a cluster, and its member of the store.

import Archive
import Basics
import DocumentStore
import EmbeddedEngine
import FileSystem
import FirestoreService
import Glibc
import HearthClient
import PostgreSQLLog
import Replication
import Server
import Storage

/// A store of a cluster that this process serves. Thread-safe.
///
/// When this server leads no longer, or its state is not that of the cluster, the store is closed and opened again:
/// from its last durable state, from a base, or from nothing. A thread does that (`Cluster+Reopening`).
final class Cluster: Sendable {
    /// What belongs to a store from one opening to the next.
    struct Member {
        let host: ClusterHost
        let driver: MemberDriver
        let bases: StoreBases
        /// Where the history of the store begins, in microseconds.
        let timeline: UInt64
        var stream: LeaderStream?
        var maker: BaseMaker?
    }

    /// How a server is reached by its address.
    typealias Reach = @Sendable (String) throws -> HearthClient.Configuration

    /// The address of the PostgreSQL database that has the log. It may have a password.
    let database: String
    /// Where the log lies, if not in the home database.
    let place: StorePlace?
    let tables: StoreTables
    let directory: String
    let baseSettings: BaseSettings
    /// Whether the store is one of several that share the databases.
    private let isShared: Bool
    let log: Log
    let reach: Reach
    /// What the stores of this server in the same database have in common.
    let shared: SharedDatabase
    /// What the moves of databases away from the store have come to at this server.
    let moveFigures = MoveFigures()
    /// What is to be done in the database, where that is not the home database.
    let tasks = StoreTasks()
    /// The store as the server has it.
    private let served = Monitor<ServedStore?>(nil)
    private let homeSilence = HomeSilence()
    /// What this server has done about bases.
    private let baseFigures = BaseFigures()
    private let member = Monitor<Member?>(nil)
    /// What the store is opened with, before the member's part of it.
    private let configured = Monitor<StoreConfiguration?>(nil)
    let reopening = Reopening()

    private init(
        database: String, _ place: StorePlace?, tables: StoreTables, directory: String, baseSettings: BaseSettings,
        isShared: Bool, log: Log, in databases: SharedDatabases, _ reach: @escaping Reach
    ) {
        self.database = place?.address ?? database
        shared = databases[self.database]
        self.place = place
        self.tables = tables
        self.directory = directory
        self.baseSettings = baseSettings
        self.isShared = isShared
        self.log = isShared ? log.with("store", tables.name) : log
        self.reach = reach
        tasks.bind { [shared] in shared.upkeep.look() }
    }

    /// The store that a command line asks for; nil without `--cluster`.
    ///
    /// - Parameters:
    ///   - name: of the store.
    ///   - directory: that caches it.
    ///   - isShared: whether it is one of several that share the databases.
    ///   - place: where its log lies, if not in the database that the command line names.
    ///   - databases: those that the stores of this server lie in.
    /// - Throws: a `CommandFailure` if the directory has an independent store, or caches another one.
    static func make(
        _ arguments: ParsedArguments, name: String, directory: String, isShared: Bool, at place: StorePlace? = nil,
        in databases: SharedDatabases, _ log: Log
    ) throws -> Cluster? {
        try BasePlacing.settle(directory)
        let kept = try ClusterFile.read(in: directory)
        guard let database = arguments.value(of: ServeSettings.cluster) else {
            guard let kept else { return nil }
            throw CommandFailure(
                "\(directory) caches the store \(kept) of a cluster and is not independent: serve it with --cluster")
        }
        for flag in ["follow", "fork-of"] where arguments.given.contains(flag) {
            throw UsageError(message: "--cluster and --\(flag) cannot be combined")
        }
        guard let advertised = arguments.value(of: ServeSettings.advertise) else {
            throw UsageError(message: "--cluster needs --advertise HOST:PORT, the address of this server for others")
        }
        if ["0.0.0.0", "::", "*"].contains(advertised.host) {
            throw UsageError(
                message: "--advertise needs an address at which other machines reach this server, not "
                    + "\(advertised.host), which stands for all addresses of a machine")
        }
        if let kept, kept != name {
            throw CommandFailure("\(directory) caches the store \(kept) of a cluster, not \(name)")
        }
        if kept == nil, Directory.exists("\(directory)/FORMAT") {
            throw CommandFailure(
                "\(directory) has an independent store, which a cluster would replace: name an empty directory")
        }
        try check(database)
        let (usesTLS, authorities) = (
            arguments[ServeSettings.followTLS], arguments.value(of: ServeSettings.followAuthorities)
        )
        return Cluster(
            database: database, place, tables: StoreTables(name: name, advertised: advertised.flagText),
            directory: directory, baseSettings: ClusterFlags.baseSettings(arguments), isShared: isShared, log: log,
            in: databases
        ) { try Replica.configuration(of: $0, usesTLS: usesTLS, authorities: authorities) }
    }

    /// - Throws: if libpq cannot be used, or an address is none. Nobody waits for that.
    static func check(_ address: String) throws {
        if let problem = PostgreSQLConnection.libraryProblem { throw CommandFailure(problem) }
        if let problem = PostgreSQLConnection.problem(ofAddress: address) {
            throw UsageError(message: "--cluster: \(problem)")
        }
    }

    // MARK: Before the store is opened

    /// Connects to the database, makes its tables and the row of the store if there are none, and fills a new directory
    /// from the last base. Waits for a database that cannot be reached.
    func prepare() throws { try withSession(prepare) }

    /// The same without waiting.
    /// - Returns: false if the database cannot be reached.
    func prepareIfReachable() throws -> Bool {
        do {
            let session = try PostgreSQLSession(address: database, withinMilliseconds: Self.connectMilliseconds)
            defer { session.close() }
            try prepare(session)
            return true
        } catch let error as SQLFailure where error.isConnectionLost {
            log(.error, "cluster_store_away", ["message": error.description])
            return false
        }
    }

    private func prepare(_ session: PostgreSQLSession) throws {
        let row = try self.row(session)
        if hasState {
            guard try ClusterFile.identity(in: directory) == row.lease.store else { throw cachesAnother }
            if try ClusterFile.timeline(in: directory) != row.timeline {
                try ClusterFile.write(tables.name, row.lease.store, timeline: row.timeline, in: directory)
            }
        } else {
            try fill(row)
        }
        let places = try LogPlaces(directory: directory)
        let end = try end(of: places)
        let host = ClusterHost(log: log, advertised: tables.advertised) { [reopening] in reopening.ask($0) }
        let driver = MemberDriver(
            MemberSettings(
                loop: shared.loop, tables: tables, timing: MemberSettings.timing, store: row.lease.store,
                place: end, timeline: row.timeline,
                levelMax: isShared ? StoreTables.movesLevel : StoreTables.level),
            places: places, host: host)
        let bases = bases(of: row.lease.store)
        member.update { $0 = Member(host: host, driver: driver, bases: bases, timeline: row.timeline) }
    }

    /// Whether the directory caches a state of the store.
    var hasState: Bool { Directory.exists("\(directory)/FORMAT") }

    private var cachesAnother: CommandFailure {
        CommandFailure(
            "\(directory) caches another store than the database has: name an empty directory, or the database of that "
                + "store")
    }

    /// Calls `body` with a session of the database, which is waited for; again, if the session is lost meanwhile.
    func withSession<Output>(_ body: (PostgreSQLSession) throws -> Output) throws -> Output {
        while true {
            let session = try connect()
            defer { session.close() }
            do {
                return try body(session)
            } catch let error as SQLFailure where error.isConnectionLost {
                log(.warning, "cluster_waiting", ["message": error.description])
                if Shutdown.isRequested || reopening.isStopping { throw error }
                SystemThread.sleep(microseconds: 200_000)
            }
        }
    }

    func connect() throws -> PostgreSQLSession {
        var report = RepeatedReport()
        while true {
            do throws(SQLFailure) {
                return try PostgreSQLSession(address: database, withinMilliseconds: Self.connectMilliseconds)
            } catch {
                if report.isDue(error.description, at: SystemClock.monotonicMilliseconds()) {
                    log(.warning, "cluster_waiting", ["message": error.description])
                }
                served.withLock { $0 }?.store.isCutOff = true
                if Shutdown.isRequested || reopening.isStopping {
                    throw CommandFailure("ended while waiting for the database: \(error)")
                }
                SystemThread.sleep(microseconds: 200_000)
            }
        }
    }

    private static let connectMilliseconds: UInt64 = 5_000

    /// The row of a store that lies in another database than the home database, which must be there.
    private func placedRow(_ session: PostgreSQLSession, _ place: StorePlace) throws -> StoreRow {
        func refuse(_ what: String) -> CommandFailure {
            CommandFailure(
                "\(place.address) \(what), and the home database says that the store \(tables.name) lies there: "
                    + "restore it, or correct the address with hearth cluster place")
        }
        let owner = try DatabaseOwner(session)
        guard let owner, owner.identity == place.database else { throw refuse("is another database") }
        guard let row = StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0))) else {
            throw refuse("has no store \(tables.name)")
        }
        guard row.lease.store == place.identity else { throw refuse("has another store \(tables.name)") }
        return row
    }

    /// The row of the store; nil if the database has none.
    private static func present(_ session: PostgreSQLSession, _ tables: StoreTables) throws(SQLFailure) -> StoreRow? {
        guard try session.run(StoreTables.exists).first?.number(0) == 1 else { return nil }
        return StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0)))
    }

    /// The row of the store, which is created if there is none.
    static func storeRow(_ session: PostgreSQLSession, _ tables: StoreTables) throws -> StoreRow {
        for attempt in 1... {
            do {
                try StoreTables.make(session)
                let observed = try session.run(tables.statement(.observe, closed: 0, timeline: 0))
                if let row = StoreRow(observed) { return row }
                // The clock of this machine may be wrong. Versions are above the start of the history.
                let start = try session.run(StoreTables.clock).first?.number(0) ?? 0
                let created = try session.run(tables.adoption(.random(), timeline: start, ceiling: start))
                if let row = StoreRow(created) { return row }
            } catch let error as SQLFailure {
                if error.isForbidden { throw error }
                if attempt == attemptsMax { throw error }
            }
            // Another server makes the same in the same moment.
            if attempt == attemptsMax { break }
            SystemThread.sleep(microseconds: 100_000)
        }
        throw CommandFailure("the database has no row of the store \(tables.name)")
    }

    private static let attemptsMax = 20

    /// The row of the store, wherever it lies.
    func row(_ session: PostgreSQLSession) throws -> StoreRow {
        do {
            return try foundRow(session)
        } catch let error as SQLFailure where error.isForbidden {
            throw CommandFailure(
                "the tables of the cluster cannot be made or used: \(error); let the role create a schema, or make the "
                    + "schema hearth for it, and give all servers the same role")
        }
    }

    private func foundRow(_ session: PostgreSQLSession) throws -> StoreRow {
        if let place { return try placedRow(session, place) }
        try StoreLayout.checkIsHome(session)
        // What is not the database of this directory is left as it is.
        try StoreTables.checkSchema(session)
        guard let row = try hasState ? Self.present(session, tables) : Self.storeRow(session, tables) else {
            throw CommandFailure(
                "the database has no store \(tables.name), which \(directory) caches: it is another database, or was "
                    + "restored to a time before the store. Nothing was made there. Name the database of the store, or "
                    + "restore it to a later time; an empty directory begins a new store")
        }
        guard StoreTables.isElsewhere(level: row.level) else { return row }
        throw CommandFailure(
            "the log of the store \(tables.name) lies in another database: serve it with --cluster-stores")
    }

    /// Removes what the directory caches: the mark of a whole store first. That of a cache stays, and so does what
    /// belongs to the server, which may run: it has closed the store.
    func discard() throws {
        let kept: Set = [
            "CLUSTER", DirectoryFormat.lockName, CompanionFiles.archived, CompanionFiles.serversOwn,
            CompanionFiles.socket, CompanionFiles.rules,
        ]
        try BasePlacing.removeState(of: directory, except: kept)
    }

    /// The place of the directory in the log.
    private func end(of places: LogPlaces) throws -> LogPlace {
        guard let checkpoint = try ClusterFile.checkpoint(of: directory), checkpoint > .zero else { return .start }
        if let place = places.place(ofCheckpoint: checkpoint) { return place }
        throw CommandFailure(
            "\(directory) does not say which group of the log it ends with: remove it, and the server makes it again")
    }

    // MARK: While the store is open

    /// Sets what the store is opened with for the first time, or what it will be opened with if its database could not
    /// be reached. After ``prepare()``.
    /// - Returns: learns which server leads.
    func configureFirst(_ configuration: inout StoreConfiguration) -> KnownLeader? {
        configuration.clusterFigures = { [self] in figures(nil) }
        let common = configuration
        configured.update { $0 = common }
        return isPrepared ? configure(&configuration) : KnownLeader(.unknown, holdsLease: { false })
    }

    /// Whether there is a member of the store, which may be closed.
    var isPrepared: Bool { member.withLock { $0 } != nil }

    /// The identity of the store; nil until its database was reached.
    var identity: StoreIdentity? { member.withLock { $0 }?.driver.settings.store }

    /// Whether the store says that it has only databases of the table, as far as this server knows.
    var isSharing: Bool {
        let level = member.withLock { $0 }?.driver.state.figures.level ?? 0
        return StoreTables.isSharing(level: level)
    }

    /// Whether the database of the store has answered of late.
    var isReached: Bool {
        guard let state = member.withLock({ $0 })?.driver.state else { return false }
        return state.silenceMilliseconds < MemberDriver.awayMilliseconds
    }

    /// The address of the server that leads; nil if nobody does, or the database cannot be reached.
    var leader: String? {
        guard isReached, let leader = member.withLock({ $0 })?.driver.state.figures.leader else { return nil }
        return leader.isEmpty ? nil : leader
    }

    private func figures(_ state: MemberState?) -> ClusterFigures {
        var figures = state.map { ClusterFigures($0) } ?? ClusterFigures()
        figures.bases = baseFigures.current
        figures.moves = isShared ? moveFigures.figures : nil
        figures.database = isShared ? place?.address ?? "home" : nil
        figures.homeSilenceMilliseconds = homeSilence.milliseconds
        return figures
    }

    /// Figures of the store say how long the home database has been silent.
    func watchHome(_ silence: @escaping @Sendable () -> UInt64?) { homeSilence.set(silence) }

    /// Whether this server leads the store, and no other can.
    var holdsLease: Bool { member.withLock { $0 }?.driver.state.holdsLease ?? false }

    /// The epoch in which this server leads now; nil if it does not.
    var leadingEpoch: UInt64? {
        guard let state = member.withLock({ $0 })?.driver.state else { return nil }
        let epoch = state.figures.epoch
        return state.holdsLease ? epoch : nil
    }

    /// Sets what the store is opened with.
    /// - Returns: learns which server leads.
    private func configure(_ configuration: inout StoreConfiguration) -> KnownLeader? {
        guard let member = member.withLock({ $0 }) else { return nil }
        let state = member.driver.state
        configuration.leader = "the leader of the cluster"
        configuration.engine.sharedLog = member.driver
        configuration.clock = ClusterClock(state: state)
        configuration.holdsLease = { state.holdsLease }
        configuration.admitsTime = { [weak driver = member.driver] in driver?.admits($0) ?? false }
        configuration.clusterFigures = { [self] in figures(state) }
        // Each server may have the archive; the one that leads writes to it.
        configuration.archive?.mayWrite = { state.holdsLease }
        // The database is waited for; the commit thread must not.
        configuration.inlineSyncBytesMax = 0
        configuration.groupPausePercent = 100
        configuration.requestsAtOnce = 16
        let known = KnownLeader(.unknown, holdsLease: { state.holdsLease })
        member.host.forward(to: known) { [reach] address in (try? reach(address)).map { Replica.leader($0) } }
        let stream = LeaderStream(member.driver, log: log, shared.clients, reach)
        self.member.update { $0?.stream = stream }
        member.host.stream(with: stream)
        return known
    }

    /// Begins to follow, and to lead when nobody does.
    func start(_ store: DocumentStore) throws {
        guard let member = member.withLock({ $0 }) else { return }
        member.host.bind(store)
        try member.driver.start()
        let maker = BaseMaker(
            store, member.driver, database: database, bases: member.bases, timeline: member.timeline,
            settings: baseSettings, figures: baseFigures, place == nil ? nil : tasks, log: log)
        try shared.upkeep.add(maker)
        self.member.update { $0?.maker = maker }
    }

    /// The store is served from now on, whether it is open or not.
    func bind(_ served: ServedStore) { self.served.update { $0 = served } }

    /// Whether the server has begun to serve its stores.
    var isServed: Bool { served.withLock { $0 != nil } }

    /// The store is about to be closed.
    /// - Parameter milliseconds: how long commits may still wait for the database.
    func endMember(withinMilliseconds milliseconds: UInt64) {
        guard let member = member.withLock({ $0 }) else { return }
        member.host.beginStopping()
        member.stream?.stop()
        if let maker = member.maker { shared.upkeep.remove(maker) }
        member.driver.beginStopping(withinMilliseconds: milliseconds)
    }

    /// Ends the member. The store is closed.
    func stop() { member.withLock { $0 }?.driver.stop() }

    /// Opens the store after it was closed, with a new member.
    func open() throws -> (store: DocumentStore, leader: KnownLeader?) {
        try prepare()
        guard var configuration = configured.withLock({ $0 }) else { throw CommandFailure("the store was never open") }
        let leader = configure(&configuration)
        return (try DocumentStore.open(configuration), leader)
    }

    /// Begins a new time line if the log lacks groups that this server had: each of them was durable.
    func lookForLoss() throws {
        guard let figures = member.withLock({ $0 })?.driver.state.figures, figures.reached.sequence > 0 else { return }
        try withSession { try lookForLoss(of: figures, $0) }
    }

    private func lookForLoss(of figures: MemberState.Figures, _ session: PostgreSQLSession) throws {
        let place = figures.reached
        guard try !LogPresence.hasGroup(at: place, tables, session) else { return }
        let time = max(place.version, figures.closed, figures.ceiling)
        let row = StoreRow(try session.run(tables.timeline(after: time, unlessBegunAfter: time)))
        log(
            .error, "cluster_groups_lost",
            [
                "sequence": String(place.sequence), "version": String(place.version),
                "timeline": String(row?.timeline ?? 0),
                "message": "the database lacks commits that were acknowledged: it was restored, or a standby that "
                    + "lacked them has taken over; the store begins a new time line, and listeners begin again",
            ])
    }
}

/// Whether the log of a store has what a server had.
enum LogPresence {
    /// - Returns: true also if a base has replaced the group, so that it cannot be compared any more.
    static func hasGroup(at place: LogPlace, _ tables: StoreTables, _ session: PostgreSQLSession) throws -> Bool {
        do throws(SQLFailure) {
            let row = try session.run(tables.hash(of: place.sequence)).first
            if let hash = row?.number(0) { return hash == place.hash }
        } catch {
            guard error.isMissingTable else { throw error }
        }
        guard let base = BaseRow(try session.run(tables.lastBase)) else { return false }
        return base.place.sequence > place.sequence || base.place == place
    }

    /// Whether the log has what comes next after a group, or will have it.
    static func continues(
        after place: LogPlace, _ tables: StoreTables, _ session: PostgreSQLSession
    ) throws -> Bool {
        guard let first = try session.run(tables.tablesOfLog).last?.text(0) else { return true }
        let number = first.split(separator: "_").last.flatMap { UInt64($0) } ?? 0
        return number <= StoreTables.tableNumber(of: place.sequence + 1)
    }
}

/// Wall time that does not run ahead of what a leader may give out.
struct ClusterClock: StoreClock {
    let state: MemberState

    var nowMicroseconds: UInt64 {
        let wall = SystemClock.microseconds()
        return state.hasLed ? min(wall, state.clockMax) : wall
    }

    var elapsedMilliseconds: UInt64 { SystemClock.monotonicMilliseconds() }
}

extension ClusterFigures {
    init(_ state: MemberState) {
        self.init()
        let figures = state.figures
        leads = state.holdsLease
        epoch = figures.epoch
        sequence = figures.place.sequence
        silenceMilliseconds = state.silenceMilliseconds
        groupsAppended = figures.groupsAppended
        bytesAppended = figures.bytesAppended
        groupsApplied = figures.groupsApplied
        groupsStreamed = figures.groupsStreamed
        outcomesUnknown = figures.outcomesUnknown
    }
}
