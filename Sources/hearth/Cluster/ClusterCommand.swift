// `hearth cluster`: what the servers of a cluster do, as its databases know it, where the logs of its stores lie, and
// what to do after a restore of a database.

import Basics
import PostgreSQLLog

/// Reports on a cluster. Asks the databases alone, so it works while servers do not.
enum ClusterCommand: BlockingSubcommand {
    static let name = "cluster"
    static let summary = "Reports who leads a cluster, how far its servers are, and what a loss would cost."
    static let words = ["ACTION", "[STORE ADDRESS...]"]
    static let actions = ["status", "place", "restored"]
    static let cluster = Flag<String>(
        "cluster", "URL", required: false, help: "The home database, as for hearth serve --cluster.")
    static let json = Flag(switch: "json", help: "Prints one JSON object.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [cluster, json])]

    static let discussion = """
        status: for each store it prints who leads it and since when the lease was
        renewed, the epoch, the last group of the log, the last base, and the servers with
        how many groups they lack. It prints whether the database has a synchronous
        standby, and what is lost without one. A database that cannot be reached is named.

        place: the log of STORE is to lie in the PostgreSQL database of ADDRESS, and not in
        the home database, which --cluster names. It is entered there once, before a server
        serves the store with --cluster-stores; each server finds it there. ADDRESS must not
        have a password, since people read it: put that into a password file (PGPASSFILE) or
        a service file of each server. Given again with another address of the same database,
        it is entered in place of the first, and counts when a server starts.

        restored: the database was restored to an earlier state, and no server has what it
        lacks. Each store begins a new time line: clients that listened before begin again,
        as what they have may be lost. Servers find that out themselves if one of them had
        the commits that are lost. Servers that run start again. Only stores whose log lies
        in the database that --cluster names are touched: name the one that was restored.

        Examples:

          hearth cluster place orders postgresql://hearth@10.0.0.10/hearth
          hearth cluster status --cluster postgresql://hearth@10.0.0.9/hearth
          HEARTH_CLUSTER=postgresql://hearth@10.0.0.9/hearth hearth cluster status --json
          hearth cluster restored --cluster postgresql://hearth@10.0.0.9/hearth
        """

    static func run(_ arguments: ParsedArguments) throws {
        let action = try action(arguments)
        let words = Array(arguments.words.dropFirst())
        guard words.count == (action == "place" ? 2 : 0) else {
            throw UsageError(
                message: action == "place"
                    ? "cluster place takes the name of a store and the address of a database"
                    : "cluster \(action) takes no further words")
        }
        guard let address = arguments.value(of: cluster) else {
            throw UsageError(message: "cluster \(action) needs --cluster URL, the database")
        }
        try Cluster.check(address)
        if action == "place" { return try ClusterPlacing(of: words[0], at: words[1], home: address).run() }
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
        let elsewhere = try StorePlace.all(session)
        for row in try session.run(SQLStatement("SELECT name FROM hearth.stores ORDER BY name")) {
            let tables = StoreTables(name: row.text(0), advertised: "")
            if let place = elsewhere.first(where: { $0.store == tables.name }) {
                try StandardOutput.print("store \(tables.name): lies in \(place.address), and is not touched")
                continue
            }
            try session.run(tables.timeline(after: 0, unlessBegunAfter: UInt64(Int64.max)))
            try StandardOutput.print("store \(tables.name): a new time line begins, and listeners begin again")
        }
    }
}
