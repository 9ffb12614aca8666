// `hearth cluster place`: the log of a store lies in another PostgreSQL database than the home database.
//
//     home     its identity ──────────────────────────────► the row of the store: address, identities
//     other         identity, and that of the home ──► the store's own row ──┘
//
// Every step may be repeated. Nothing serves the store before the last one.

import PostgreSQLLog
import Replication
import Storage

/// Belongs to one thread.
struct ClusterPlacing {
    private let tables: StoreTables
    private let address: String
    private let home: String

    /// - Parameters:
    ///   - name: of the store.
    ///   - address: of the database that is to have its log.
    ///   - home: the address of the home database.
    init(of name: String, at address: String, home: String) throws {
        guard StoreTables.admits(name) else {
            throw UsageError(message: "a store has a name of at most 30 lower-case letters, digits and _")
        }
        if let problem = PostgreSQLConnection.problem(ofOpenAddress: address) { throw UsageError(message: problem) }
        tables = StoreTables(name: name, advertised: "")
        self.address = address
        self.home = home
    }

    func run() throws {
        let home = try connect(home, "the home database")
        defer { home.close() }
        let owner = try prepare(home)
        let session = try connect(address, address)
        defer { session.close() }
        let known = try StorePlace.all(home)
        let before = known.first { $0.store == tables.name }
        // A database that does not fit is left as it is.
        try before.map { try check(session, against: $0) } ?? checkIsFree(home)
        let database = try claim(session, for: owner)
        try checkAddress(known, database)
        try bringRevocations(session)
        if before == nil { try bringRules(session) }
        let row = try row(session)
        let place = StorePlace(store: tables.name, identity: row.lease.store, address: address, database: database)
        if let before {
            guard before.identity == place.identity else { throw CommandFailure("\(address) has another store") }
            try home.run(StoreTables.addressing(database, at: address))
        } else if try home.run(StoreTables.placing(place)).isEmpty {
            throw liesAtHome
        }
        try StandardOutput.print(
            "the log of the store \(tables.name) lies in \(address). Start servers with --cluster-stores that has it")
    }

    private func connect(_ address: String, _ name: String) throws -> PostgreSQLSession {
        do throws(SQLFailure) {
            return try PostgreSQLSession(address: address)
        } catch {
            throw CommandFailure("\(name) cannot be reached: \(error)")
        }
    }

    /// Makes the tables of a home database, and draws its identity if it has none.
    private func prepare(_ home: PostgreSQLSession) throws -> DatabaseIdentity {
        let notHome = CommandFailure(
            "the database that --cluster names has stores of a cluster and is not its home database: name that one")
        if let owner = try DatabaseOwner(home), !owner.isHome { throw notHome }
        try permitted("the home database") {
            try StoreTables.make(home)
            try home.run(StoreTables.creationOfDatabases)
            try home.run(StoreTables.columnsOfPlaces)
            try home.run(StoreTables.creationOfIdentity)
        }
        let identity = DatabaseIdentity.random()
        try home.run(StoreTables.entering(DatabaseOwner(identity: identity, home: identity)))
        guard let owner = try DatabaseOwner(home), owner.isHome else { throw notHome }
        return owner.identity
    }

    /// Makes the tables of a database that has stores of a cluster.
    /// - Returns: the identity of the database.
    /// - Throws: a `CommandFailure` if it is the home database, or has stores of another cluster.
    private func claim(_ session: PostgreSQLSession, for home: DatabaseIdentity) throws -> DatabaseIdentity {
        func refuse(_ reason: String) -> CommandFailure { CommandFailure("\(address) \(reason)") }
        if try DatabaseOwner(session) == nil {
            guard try session.run(StoreTables.sharesDatabases).first?.number(0) != 1 else {
                throw refuse("is the home database of another cluster: it has a table of databases")
            }
            try permitted(address) {
                try StoreTables.make(session)
                try session.run(StoreTables.creationOfIdentity)
            }
            try session.run(StoreTables.entering(DatabaseOwner(identity: .random(), home: home)))
        }
        guard let owner = try DatabaseOwner(session) else { throw refuse("has lost its identity") }
        if owner.identity == home {
            throw refuse("is the home database by another address: a store that is not placed lies there")
        }
        if owner.isHome { throw refuse("is the home database of another cluster") }
        guard owner.home == home else {
            throw refuse("has stores of another cluster, with another home database")
        }
        return owner.identity
    }

    private func permitted(_ name: String, _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as SQLFailure where error.isForbidden {
            throw CommandFailure(
                "the tables of the cluster cannot be made in \(name): \(error); use the role that made them, and let "
                    + "it create a schema or make the schema hearth for it")
        }
    }

    /// Has the cluster refuse the tokens that were refused in a directory whose store was moved to its database.
    private func bringRevocations(_ session: PostgreSQLSession) throws {
        guard try session.run(RevocationsTable.exists).first?.number(0) == 1 else { return }
        let moments = ClusterRevocations.moments(of: try session.run(RevocationsTable.added(after: 0)))
        if !moments.isEmpty { try ClusterRevocations(HomeDatabase(address: home)).add(moments) }
    }

    /// Makes the rules of a directory whose store was moved to its database those of the cluster, unless that has some.
    private func bringRules(_ session: PostgreSQLSession) throws {
        guard try session.run(RulesTable.exists).first?.number(0) == 1,
            let row = try session.run(RulesTable.texts(after: 0, withLast: true)).last
        else { return }
        let (number, rules) = (Int(clamping: row.number(0) ?? 0), ClusterRules(home: HomeDatabase(address: home)))
        if try rules.add(row.text(1), as: number, after: 0) { return }
        try StandardOutput.print("the cluster has rules, which apply to this store too; those in \(address) do not")
    }

    /// - Throws: a `CommandFailure` if another store lies in the same database by another address.
    private func checkAddress(_ known: [StorePlace], _ database: DatabaseIdentity) throws {
        guard !known.contains(where: { $0.store == tables.name }),
            let other = known.first(where: { $0.database == database && $0.address != address })
        else { return }
        throw CommandFailure(
            "\(address) is the database in which the store \(other.store) lies by the address \(other.address): name "
                + "it by that address")
    }

    /// The row of the store in its own database, which is made if there is none.
    private func row(_ session: PostgreSQLSession) throws -> StoreRow {
        let observed = try session.run(tables.statement(.observe, closed: 0, timeline: 0))
        let start = try session.run(StoreTables.clock).first?.number(0) ?? 0
        let row =
            try StoreRow(observed)
            ?? StoreRow(session.run(tables.adoption(.random(), timeline: start, ceiling: start)))
        guard let row else { throw CommandFailure("\(address) has no row of the store \(tables.name): try again") }
        guard row.level <= StoreTables.movesLevel else {
            throw CommandFailure(
                "the store \(tables.name) in \(address) was moved away, or is of a later version of Hearth")
        }
        return row
    }

    private var liesAtHome: CommandFailure {
        CommandFailure(
            "the store \(tables.name) has its log in the home database already: give the new store another name, "
                + "and move databases to it with hearth move")
    }

    /// - Throws: a `CommandFailure` if the home database has the log of the store.
    private func checkIsFree(_ home: PostgreSQLSession) throws {
        let row = StoreRow(try home.run(tables.statement(.observe, closed: 0, timeline: 0)))
        if row != nil { throw liesAtHome }
    }

    /// - Throws: a `CommandFailure` if a database is not the one in which the store lies already.
    private func check(_ session: PostgreSQLSession, against before: StorePlace) throws {
        if try DatabaseOwner(session)?.identity == before.database { return }
        throw CommandFailure(
            "the log of the store \(tables.name) lies in \(before.address), and \(address) is another database: "
                + "give a new store another name, and move databases to it with hearth move")
    }
}
