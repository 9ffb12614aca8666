// `hearth cluster`: what the servers of a store do, as the database knows it, and what to do after a restore of it.

import Basics
import DocumentJSON
import PostgreSQLLog

/// Reports on a cluster. Asks the database alone, so it works while servers do not.
enum ClusterCommand: MainThreadSubcommand {
    static let name = "cluster"
    static let summary = "Reports who leads a cluster, how far its servers are, and what a loss would cost."
    static let words = ["ACTION"]
    static let actions = ["status", "restored"]
    static let cluster = Flag<String>(
        "cluster", "URL", required: false, help: "The database, as for hearth serve --cluster.")
    static let json = Flag(switch: "json", help: "Prints one JSON object.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [cluster, json])]

    static let discussion = """
        status: for each store it prints who leads it and since when the lease was
        renewed, the epoch, the last group of the log, the last base, and the servers with
        how many groups they lack. It prints whether the database has a synchronous
        standby, and what is lost without one.

        restored: the database was restored to an earlier state, and no server has what it
        lacks. Each store begins a new time line: clients that listened before begin again,
        as what they have may be lost. Servers find that out themselves if one of them had
        the commits that are lost. Servers that run start again.

        Examples:

          hearth cluster status --cluster postgresql://hearth@10.0.0.9/hearth
          HEARTH_CLUSTER=postgresql://hearth@10.0.0.9/hearth hearth cluster status --json
          hearth cluster restored --cluster postgresql://hearth@10.0.0.9/hearth
        """

    static func run(_ arguments: ParsedArguments) throws {
        let action = try action(arguments)
        guard let address = arguments.value(of: cluster) else {
            throw UsageError(message: "cluster \(action) needs --cluster URL, the database")
        }
        let session = try PostgreSQLSession(address: address)
        defer { session.close() }
        guard try session.run(StoreTables.exists).first?.number(0) == 1 else {
            throw CommandFailure("the database has no tables of a cluster: no server has used it yet")
        }
        if action == "restored" { return try beginTimelines(session) }
        let report = try ClusterReport(session)
        try StandardOutput.print(arguments[json] ? report.json : report.text)
    }
}

extension ClusterCommand {
    private static func beginTimelines(_ session: PostgreSQLSession) throws {
        for row in try session.run(SQLStatement("SELECT name FROM hearth.stores ORDER BY name")) {
            let tables = StoreTables(name: row.text(0), advertised: "")
            try session.run(tables.timeline(after: 0, unlessBegunAfter: UInt64(Int64.max)))
            try StandardOutput.print("store \(tables.name): a new time line begins, and listeners begin again")
        }
    }
}

/// What the database knows of a cluster.
struct ClusterReport {
    /// A store and its lease.
    struct Store {
        let name: String
        let leader: String
        let epoch: UInt64
        let renewedMilliseconds: UInt64
        let sequence: UInt64
        let base: ClusterBase?
        /// Databases of a store that shares them with others; nil if it does not.
        let databases: UInt64?
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

    let stores: [Store]
    /// Databases that move from one store to another.
    let moves: [DatabaseMoveRow]
    /// Standbys that a commit waits for.
    let synchronousStandbys: UInt64
    /// The setting of the database.
    let standbyNames: String

    init(_ session: PostgreSQLSession) throws(SQLFailure) {
        let milliseconds = "(extract(epoch FROM clock_timestamp() - %) * 1000)::bigint"
        func age(_ column: String) -> String {
            milliseconds.split(separator: "%").joined(separator: column)
        }
        var stores: [Store] = []
        let isShared = try session.run(StoreTables.sharesDatabases).first?.number(0) == 1
        for row in try session.run(
            SQLStatement("SELECT name, address, epoch, \(age("renewed")) FROM hearth.stores ORDER BY name"))
        {
            let tables = StoreTables(name: row.text(0), advertised: "")
            let servers = try session.run(
                SQLStatement(
                    """
                    SELECT address, version, role, sequence, \(age("seen")) FROM hearth.servers
                    WHERE store = $1::text ORDER BY address
                    """, [.text(tables.name)])
            ).map { server in
                Server(
                    address: server.text(0), version: server.text(1), role: server.text(2),
                    sequence: server.number(3) ?? 0, seenMilliseconds: server.number(4) ?? 0)
            }
            stores.append(
                Store(
                    name: tables.name, leader: row.text(1), epoch: row.number(2) ?? 0,
                    renewedMilliseconds: row.number(3) ?? 0, sequence: try tables.lastSequence(session),
                    base: try ClusterBase(of: tables, session),
                    databases: isShared ? try session.run(tables.ownDatabaseCount).first?.number(0) : nil,
                    servers: servers))
        }
        self.stores = stores
        moves = isShared ? try Self.moves(session) : []
        let standbys = try session.run(
            SQLStatement(
                """
                SELECT (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
                    current_setting('synchronous_standby_names')
                """))
        synchronousStandbys = standbys.first?.number(0) ?? 0
        standbyNames = standbys.first?.text(1) ?? ""
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

    /// What the loss of the database's machine would cost.
    var durability: String {
        if standbyNames.isEmpty {
            return "no synchronous standby is configured: what only the database's disk has is lost with it"
        }
        return synchronousStandbys > 0
            ? "\(synchronousStandbys) synchronous standbys: acknowledged commits survive the loss of the primary"
            : "synchronous standbys are configured and none is connected: commits wait"
    }

    var text: String {
        var lines: [String] = []
        for store in stores {
            let databases = store.databases.map { ", \($0) databases" } ?? ""
            let base = store.base?.text ?? "no base"
            lines.append(
                "store \(store.name): leader \(store.leader.isEmpty ? "none" : store.leader), epoch \(store.epoch), "
                    + "renewed \(store.renewedMilliseconds) ms ago, log to \(store.sequence), \(base)\(databases)")
            for server in store.servers {
                let lacking = store.sequence > server.sequence ? store.sequence - server.sequence : 0
                lines.append(
                    "  server \(server.address): \(server.role), \(lacking) groups missing, version \(server.version), "
                        + "seen \(server.seenMilliseconds) ms ago")
            }
        }
        for move in moves {
            let note = move.note.isEmpty ? "" : "; it waits: \(move.note)"
            lines.append(
                "\(move.name) moves from \(move.row.store) to \(move.row.movingTo ?? ""): \(move.documents) documents "
                    + "copied\(move.row.isReleasing ? ", the rest without commits" : "")\(note)")
        }
        return (lines + ["database: \(durability)"]).joined(separator: "\n")
    }

    var json: String {
        let stores = stores.map { store in
            let servers = store.servers.map { server in
                "{\"address\":\(JSONText.quoted(server.address)),\"version\":\(JSONText.quoted(server.version)),"
                    + "\"role\":\(JSONText.quoted(server.role)),\"sequence\":\(server.sequence),"
                    + "\"seenMilliseconds\":\(server.seenMilliseconds)}"
            }
            let databases = store.databases.map { "\"databases\":\($0)," } ?? ""
            return "{\"name\":\(JSONText.quoted(store.name)),\"leader\":\(JSONText.quoted(store.leader)),"
                + "\"epoch\":\(store.epoch),\"renewedMilliseconds\":\(store.renewedMilliseconds),"
                + "\"sequence\":\(store.sequence),"
                + "\"baseSequence\":\(store.base.map { String($0.row.place.sequence) } ?? "null"),"
                + "\"base\":\(store.base?.json ?? "null"),"
                + "\(databases)\"servers\":[\(servers.joined(separator: ","))]}"
        }
        let moves = moves.map { move in
            "{\"database\":\(JSONText.quoted(move.name)),\"from\":\(JSONText.quoted(move.row.store)),"
                + "\"to\":\(JSONText.quoted(move.row.movingTo ?? "")),\"releasing\":\(move.row.isReleasing),"
                + "\"documents\":\(move.documents),\"note\":\(JSONText.quoted(move.note))}"
        }
        return "{\"stores\":[\(stores.joined(separator: ","))],\"moves\":[\(moves.joined(separator: ","))],"
            + "\"synchronousStandbys\":\(synchronousStandbys),"
            + "\"synchronousStandbyNames\":\(JSONText.quoted(standbyNames)),"
            + "\"durability\":\(JSONText.quoted(durability))}"
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
