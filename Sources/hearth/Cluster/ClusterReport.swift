// What the databases of a cluster know of it, for `hearth cluster status`.

import Basics
import PostgreSQLLog

/// What the databases know of a cluster.
struct ClusterReport {
    /// A store and its lease.
    struct Store {
        let name: String
        let leader: String
        let epoch: UInt64
        let renewedMilliseconds: UInt64
        /// Of its row. It takes no writes here if `hearth migrate` has moved it out of the database, or has begun to.
        let level: UInt64
        let sequence: UInt64
        let base: ClusterBase?
        let servers: [Server]
    }

    /// A server by what it said last.
    struct Server {
        let address: String
        let version: String
        let role: String
        let sequence: UInt64
        let seenMilliseconds: UInt64
    }

    /// A PostgreSQL database that has stores.
    struct Database {
        /// Nil for the one that the command line names.
        let address: String?
        /// The names of its stores.
        let names: [String]
        /// Why it cannot be asked; nil if it was.
        var problem: String?
        var stores: [Store] = []
        /// Standbys that a commit waits for.
        var synchronousStandbys: UInt64 = 0
        /// The setting of the database.
        var standbyNames = ""
    }

    /// The home database first.
    private(set) var databases: [Database]
    /// How many databases each store has; nil if the stores do not share them.
    let counts: [String: UInt64]?
    /// Databases that move from one store to another.
    let moves: [DatabaseMoveRow]

    private static let connectMilliseconds: UInt64 = 5_000

    /// - Parameter session: of the home database.
    init(_ session: PostgreSQLSession) throws {
        let places = try StorePlace.all(session)
        let names = try session.run(SQLStatement("SELECT name FROM hearth.stores ORDER BY name")).map { $0.text(0) }
        let elsewhere = Set(places.map(\.store))
        var home = Database(address: nil, names: names.filter { !elsewhere.contains($0) })
        try home.look(session)
        databases = [home]
        for (address, places) in Dictionary(grouping: places, by: \.address).sorted(by: { $0.key < $1.key }) {
            var database = Database(address: address, names: places.map(\.store))
            do throws(SQLFailure) {
                let session = try PostgreSQLSession(address: address, withinMilliseconds: Self.connectMilliseconds)
                defer { session.close() }
                try database.look(session)
            } catch {
                database.problem = error.description
            }
            databases.append(database)
        }
        guard try session.run(StoreTables.sharesDatabases).first?.number(0) == 1 else {
            (counts, moves) = (nil, [])
            return
        }
        let counted = try names.map { name in
            let tables = StoreTables(name: name, advertised: "")
            return (name, try session.run(tables.ownDatabaseCount).first?.number(0) ?? 0)
        }
        counts = Dictionary(counted) { first, _ in first }
        moves = try Self.moves(session)
    }

    private static func moves(_ session: PostgreSQLSession) throws(SQLFailure) -> [DatabaseMoveRow] {
        do throws(SQLFailure) {
            return StoreTables.moveRows(try session.run(StoreTables.moves))
        } catch {
            // The servers are of a version without moves.
            guard error.isMissingColumn else { throw error }
            return []
        }
    }

    // MARK: As text

    var text: String {
        let several = databases.count > 1
        var lines: [String] = []
        for database in databases {
            if let problem = database.problem {
                for name in database.names {
                    lines.append("store \(name): its database \(database.address ?? "") cannot be reached: \(problem)")
                }
            }
            for store in database.stores { lines += text(of: store, in: database) }
        }
        for move in moves {
            let note = move.note.isEmpty ? "" : "; it waits: \(move.note)"
            lines.append(
                "\(move.name) moves from \(move.row.store) to \(move.row.movingTo ?? ""): \(move.documents) documents "
                    + "copied\(move.row.isReleasing ? ", the rest without commits" : "")\(note)")
        }
        for database in databases {
            let name = several ? database.address.map { "database \($0)" } ?? "home database" : "database"
            lines.append("\(name): \(database.problem ?? database.durability)")
        }
        return lines.joined(separator: "\n")
    }

    private func text(of store: Store, in database: Database) -> [String] {
        let databases = counts?[store.name].map { ", \($0) databases" } ?? ""
        let base = store.base?.text ?? "no base"
        let place = database.address.map { ", in \($0)" } ?? ""
        let moved =
            switch store.level {
            case StoreTables.movedLevel: ", moved out of the database by hearth migrate"
            case StoreTables.leavingLevel: ", being moved out of the database by hearth migrate"
            default: ""
            }
        let line =
            "store \(store.name): leader \(store.leader.isEmpty ? "none" : store.leader), epoch \(store.epoch), "
            + "renewed \(store.renewedMilliseconds) ms ago, log to \(store.sequence), \(base)"
            + "\(databases)\(place)\(moved)"
        let servers = store.servers.map { server in
            let lacking = store.sequence > server.sequence ? store.sequence - server.sequence : 0
            return "  server \(server.address): \(server.role), \(lacking) groups missing, version \(server.version), "
                + "seen \(server.seenMilliseconds) ms ago"
        }
        return [line] + servers
    }

    // MARK: As JSON

    var json: String {
        let stores = databases.flatMap { database in database.stores.map { json(of: $0, in: database) } }
        let moves = moves.map { move in
            "{\"database\":\(JSONText.quoted(move.name)),\"from\":\(JSONText.quoted(move.row.store)),"
                + "\"to\":\(JSONText.quoted(move.row.movingTo ?? "")),\"releasing\":\(move.row.isReleasing),"
                + "\"documents\":\(move.documents),\"note\":\(JSONText.quoted(move.note))}"
        }
        return "{\"stores\":[\(stores.joined(separator: ","))],\"moves\":[\(moves.joined(separator: ","))],"
            + "\(databases[0].jsonOfStandbys),\"databases\":[\(databases.map(\.json).joined(separator: ","))]}"
    }

    private func json(of store: Store, in database: Database) -> String {
        let servers = store.servers.map { server in
            "{\"address\":\(JSONText.quoted(server.address)),\"version\":\(JSONText.quoted(server.version)),"
                + "\"role\":\(JSONText.quoted(server.role)),\"sequence\":\(server.sequence),"
                + "\"seenMilliseconds\":\(server.seenMilliseconds)}"
        }
        let databases = counts?[store.name].map { "\"databases\":\($0)," } ?? ""
        return "{\"name\":\(JSONText.quoted(store.name)),\"leader\":\(JSONText.quoted(store.leader)),"
            + "\"epoch\":\(store.epoch),\"renewedMilliseconds\":\(store.renewedMilliseconds),"
            + "\"sequence\":\(store.sequence),"
            + "\"baseSequence\":\(store.base.map { String($0.row.place.sequence) } ?? "null"),"
            + "\"base\":\(store.base?.json ?? "null"),"
            + "\"movedOut\":\(store.level == StoreTables.movedLevel),"
            + "\(databases)\"database\":\(database.jsonOfAddress),\"servers\":[\(servers.joined(separator: ","))]}"
    }
}

extension ClusterReport.Database {
    /// Reads what the database knows of its stores.
    fileprivate mutating func look(_ session: PostgreSQLSession) throws(SQLFailure) {
        var found: [ClusterReport.Store] = []
        for name in names {
            if let store = try ClusterReport.Store(name, session) { found.append(store) }
        }
        let standbys = try session.run(
            SQLStatement(
                """
                SELECT (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
                    current_setting('synchronous_standby_names')
                """))
        stores = found
        synchronousStandbys = standbys.first?.number(0) ?? 0
        standbyNames = standbys.first?.text(1) ?? ""
    }

    /// What the loss of the database's machine would cost.
    var durability: String {
        if standbyNames.isEmpty {
            return "no synchronous standby is configured: what only the database's disk has is lost with it"
        }
        return synchronousStandbys > 0
            ? "\(synchronousStandbys) synchronous standbys: acknowledged commits survive the loss of the primary"
            : "synchronous standbys are configured and none is connected: commits wait"
    }

    fileprivate var jsonOfAddress: String { address.map(JSONText.quoted) ?? "null" }

    fileprivate var jsonOfStandbys: String {
        "\"synchronousStandbys\":\(synchronousStandbys),\"synchronousStandbyNames\":\(JSONText.quoted(standbyNames)),"
            + "\"durability\":\(JSONText.quoted(durability))"
    }

    fileprivate var json: String {
        let stores = names.map(JSONText.quoted).joined(separator: ",")
        let state = problem.map { "\"problem\":\(JSONText.quoted($0))" } ?? jsonOfStandbys
        return "{\"address\":\(jsonOfAddress),\"stores\":[\(stores)],\(state)}"
    }
}

extension ClusterReport.Store {
    /// - Returns: nil if the database has no such store.
    fileprivate init?(_ name: String, _ session: PostgreSQLSession) throws(SQLFailure) {
        func age(_ column: String) -> String { "(extract(epoch FROM clock_timestamp() - \(column)) * 1000)::bigint" }
        let rows = try session.run(
            SQLStatement(
                "SELECT address, epoch, \(age("renewed")), level FROM hearth.stores WHERE name = $1::text",
                [.text(name)]))
        guard let row = rows.first else { return nil }
        let servers = try session.run(
            SQLStatement(
                """
                SELECT address, version, role, sequence, \(age("seen")) FROM hearth.servers
                WHERE store = $1::text ORDER BY address
                """, [.text(name)]))
        let tables = StoreTables(name: name, advertised: "")
        self.init(
            name: name, leader: row.text(0), epoch: row.number(1) ?? 0, renewedMilliseconds: row.number(2) ?? 0,
            level: row.number(3) ?? 0,
            sequence: try tables.lastSequence(session),
            base: try ClusterBase(of: tables, session),
            servers: servers.map { server in
                ClusterReport.Server(
                    address: server.text(0), version: server.text(1), role: server.text(2),
                    sequence: server.number(3) ?? 0, seenMilliseconds: server.number(4) ?? 0)
            })
    }
}

extension StoreTables {
    /// The last group of the log; 0 without one.
    func lastSequence(_ session: PostgreSQLSession) throws(SQLFailure) -> UInt64 {
        let names = try session.run(tablesOfLog).map { $0.text(0) }
        for name in names {
            let row = try session.run(SQLStatement("SELECT max(sequence) FROM hearth.\(name)")).first
            if let sequence = row?.number(0) { return sequence }
        }
        return 0
    }
}
