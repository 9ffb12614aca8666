// `hearth serve --cluster`: the stores of a cluster that this process serves, one or several.
//
//     DIR                  one store (--cluster-store)
//     DIR/STORES/NAME      each of several stores (--cluster-stores); NAME in the directory of --archive
//
// The log of a store lies in the home database, or in another one (StoreLayout). A store whose database cannot be
// reached at the start is opened later: the others are served meanwhile.

import Authorization
import Basics
import DocumentStore
import EmbeddedEngine
import FileSystem
import FirestoreService
import Identity
import PostgreSQLLog
import Server

/// Thread-safe.
final class ClusterStores: Sendable {
    let members: [Cluster]
    /// Which of several stores has a database; nil if there is one store.
    private let places: ClusterPlaces?
    /// Move databases away from them: one for the stores of each PostgreSQL database, since a database that is away
    /// holds up what waits for commits there.
    private let moves: [DatabaseMoves]
    /// Where the logs of several stores lie; nil if there is one store.
    private let layout: StoreLayout?
    /// The rules and revocations that all servers have in common.
    let security: ClusterSecurity

    private static let folder = CompanionFiles.storesFolder
    /// Each store has some threads.
    private static let storesMax = 50

    private init(
        _ members: [Cluster], _ places: ClusterPlaces?, _ moves: [DatabaseMoves], _ layout: StoreLayout?,
        _ security: ClusterSecurity
    ) {
        self.members = members
        self.layout = layout
        self.places = places
        self.moves = moves
        self.security = security
    }

    /// Whether a directory caches stores of a cluster.
    static func isCache(_ data: String) throws -> Bool {
        try Directory.exists("\(data)/\(folder)") || ClusterFile.read(in: data) != nil
    }

    /// The stores that a command line asks for; nil without `--cluster`.
    ///
    /// - Parameters:
    ///   - data: the data directory of the server.
    ///   - limits: of the databases of all stores together.
    /// - Throws: a `CommandFailure` if a directory has an independent store, or caches another one.
    static func make(
        _ arguments: ParsedArguments, data: String, _ limits: DatabaseLimits, _ log: Log
    ) throws -> ClusterStores? {
        let databases = SharedDatabases()
        guard let names = arguments.value(of: ServeSettings.clusterStores) else {
            if Directory.exists("\(data)/\(folder)") {
                throw CommandFailure("\(data) caches several stores of a cluster: serve it with --cluster-stores")
            }
            let member = try Cluster.make(
                arguments, name: arguments[ServeSettings.clusterStore], directory: data, isShared: false,
                in: databases, log)
            guard let member, let address = arguments.value(of: ServeSettings.cluster) else { return nil }
            return ClusterStores([member], nil, [], nil, ClusterSecurity(address: address, log: log))
        }
        guard let address = arguments.value(of: ServeSettings.cluster) else {
            throw UsageError(message: "--cluster-stores needs --cluster URL, the database of the stores")
        }
        for flag in ["cluster-store", "indexes", "import", "export-on-exit"] where arguments.given.contains(flag) {
            throw UsageError(message: "--cluster-stores and --\(flag) cannot be combined")
        }
        let stores = names.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        if let kept = try ClusterFile.read(in: data) {
            throw CommandFailure(
                "\(data) caches the store \(kept) alone: name an empty directory, which is filled from the cluster")
        }
        if Directory.exists("\(data)/FORMAT") {
            throw CommandFailure("\(data) has an independent store: name an empty directory")
        }
        try Cluster.check(address)
        let layout = try StoreLayout.find(stores, home: address, in: "\(data)/\(folder)", log)
        let members = try stores.compactMap { name in
            try Cluster.make(
                arguments, name: name, directory: "\(data)/\(folder)/\(name)", isShared: true,
                at: layout.places[name], in: databases, log)
        }
        try Directory.create("\(data)/\(folder)")
        let places = ClusterPlaces(address: address, members, limits, log: log)
        for member in members { member.watchHome { [weak places] in places?.silenceMilliseconds } }
        let groups = Dictionary(grouping: members.indices) { members[$0].database }
        let moves = groups.values.map { own in
            DatabaseMoves(address: address, members, from: own, places, log: log, members[own[0]].reach)
        }
        let security = ClusterSecurity(address: address, isAway: layout.isRemembered, log: log)
        return ClusterStores(members, places, moves, layout, security)
    }

    /// Why a text is not a list of stores; nil if it is one.
    static func problem(ofList list: String) -> String? {
        let names = list.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard names.count <= storesMax, Set(names).count == names.count, names.allSatisfy(StoreTables.admits) else {
            return "at most \(storesMax) names with commas between them, each of at most 30 lower-case letters, digits "
                + "and _"
        }
        return nil
    }

    /// Sets what a server of the cluster is started with, and fills new directories.
    func prepare(_ configuration: inout DatabaseServerConfiguration, _ arguments: ParsedArguments) throws {
        try prepareMembers()
        // The home database is that of the stores that this server has.
        try layout?.remember(members.map(\.tables.name), in: "\(configuration.store.directory)/\(Self.folder)")
        configuration.readsAreStrict = true
        configuration.staleReadsMax = UInt64(arguments[ServeSettings.staleReads].milliseconds) * 1_000
        configuration.places = places
        let common = configuration.store
        configuration.socketDirectory = common.directory
        var stores: [StoreSettings] = []
        for (index, member) in members.enumerated() {
            var store = common
            store.directory = member.directory
            if let places {
                ServeSettings.divide(among: members.count, &store, arguments)
                store.archive?.directory += "/\(member.tables.name)"
                store.admitsDatabase = { places.known($0) == index }
            }
            let leader = member.configureFirst(&store)
            stores.append(
                StoreSettings(name: member.tables.name, store: store, leader: leader, isAway: !member.isPrepared))
        }
        configuration.storeName = stores[0].name
        configuration.storeIsAway = stores[0].isAway
        configuration.store = stores[0].store
        configuration.leader = stores[0].leader
        configuration.furtherStores = Array(stores.dropFirst())
    }

    /// Waits until the database of at least one store can be reached, and prepares those stores.
    private func prepareMembers() throws {
        if members.count == 1 { return try members[0].prepare() }
        // Those that find out whether it is their database come first: the others make tables there.
        let members = members.filter(\.hasState) + members.filter { !$0.hasState }
        while true {
            var unreachable: Set<String> = []
            for member in members where !unreachable.contains(member.database) {
                if try !member.prepareIfReachable() { unreachable.insert(member.database) }
            }
            if members.contains(where: \.isPrepared) { return }
            if Shutdown.isRequested { throw CommandFailure("ended while waiting for the databases of the stores") }
            SystemThread.sleep(microseconds: 200_000)
        }
    }

    /// Begins to follow, and to lead the stores that nobody leads.
    ///
    /// - Parameters:
    ///   - rules: those of this server.
    ///   - revocations: the same.
    func start(_ stores: [ServedStore], rules: RulesKeeper?, revocations: RevocationKeeper?) throws {
        for (member, served) in zip(members, stores) { try member.start(served, isOnly: members.count == 1) }
        try places?.start(stores)
        for moves in moves { try moves.start(stores) }
        try security.start(rules, revocations)
    }

    // MARK: The end of the process

    /// The server is ending: what waits for the database gets some seconds more.
    func beginStopping() {
        security.stop()
        for moves in moves { moves.beginStopping() }
        places?.stop()
        for member in members { member.beginStopping() }
        for moves in moves { moves.waitForEnd() }
    }

    /// Ends the members. The stores are closed.
    func stop() { for member in members { member.stop() } }

    /// Whether the process ends because a store could not be opened again.
    var mustEnd: Bool { members.contains(where: \.mustEnd) }

    /// Starts the process again if a store could not be opened again, unless this server must not serve it. The stores
    /// are closed.
    func restartIfNeeded() throws { for member in members { try member.restartIfNeeded() } }
}
