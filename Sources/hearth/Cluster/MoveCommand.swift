// `hearth move`: a database goes to another store of its cluster.

import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient

/// Begins a move, and waits for its end.
enum MoveCommand: AsyncSubcommand {
    static let name = "move"
    static let summary = "Moves a database to another store of its cluster, while it is used."
    static let words = ["DATABASE", "STORE"]
    static let flagGroups = [
        FlagGroup(heading: "Move", flags: [json, noWait]),
        FlagGroup(heading: "Server", flags: [ServerFlags.address, ServerFlags.project] + connection),
    ]
    static let discussion = """
        DATABASE is the id of a database of the project, such as (default); STORE is one of
        --cluster-stores. Any server of the cluster takes the command. The database is
        copied while clients read and write it. Then it takes no calls for a moment: the rest
        is copied, and the new store has it. Calls wait or get UNAVAILABLE and are repeated by
        clients, transactions get ABORTED, and listeners begin again.

        The servers do the work: a move continues if the command or a server ends. The command
        prints how far it is, and ends when the database is in the store. Given again, it
        waits for the same move. To give a move up, name the store that has the database; that
        is possible until the moment in which it takes no calls.

        The server asks for the right to administer it.

        Examples:

          hearth move \"(default)\" b --address 10.0.0.5:8080
          hearth move orders main --project shop --json
        """

    static let json = Flag(switch: "json", help: "Prints one JSON object at the end.")
    static let noWait = Flag(switch: "no-wait", help: "Ends when the move has begun.")
    private static let connection: [any FlagDeclaration] = [
        ServerFlags.timeout, ServerFlags.tls, ServerFlags.authorities,
    ]

    private static let lookInterval = Duration.milliseconds(200)
    private static let reportInterval = Duration.seconds(2)

    static func run(_ arguments: ParsedArguments) async throws {
        guard arguments.words.count == 2 else {
            throw UsageError(message: "hearth move takes the id of a database and the name of a store")
        }
        let (id, store) = (arguments.words[0], arguments.words[1])
        let name = try DatabaseName(project: arguments[ServerFlags.project], database: id)
        let client = try HearthClient(
            ServerFlags.configuration(arguments, of: arguments[ServerFlags.address]))
        let outcome: Result<MovedDatabase, any Error>
        do {
            outcome = .success(try await move(name, to: store, client, waits: !arguments[noWait]))
        } catch {
            outcome = .failure(error)
        }
        await client.close()
        let place = try outcome.get()
        try StandardOutput.print(arguments[json] ? object(place, of: name).json : text(place, of: id))
    }

    private static func move(
        _ name: DatabaseName, to store: String, _ client: HearthClient, waits: Bool
    ) async throws -> MovedDatabase {
        func ask(_ store: String) async throws -> MovedDatabase {
            try await client.administer(
                .adminMoveDatabase, MoveDatabaseRequest(database: "\(name)", store: store), isRepeatable: true,
                as: MovedDatabase.self)
        }
        let begun = try await ask(store)
        var place = begun
        let clock = ContinuousClock()
        var reportAt = clock.now + reportInterval
        while waits, place.movingTo == store, place.generation == begun.generation {
            try await Task.sleep(for: lookInterval)
            place = try await ask("")
            guard clock.now >= reportAt, !place.movingTo.isEmpty else { continue }
            reportAt = clock.now + reportInterval
            StandardError.write("\(text(place, of: name.database))\n")
        }
        guard place.store == store || place.movingTo == store else {
            let reason = place.note.isEmpty ? "another move was begun" : place.note
            throw CommandFailure("the database \(name) is in the store \(place.store): \(reason)")
        }
        return place
    }

    private static func text(_ place: MovedDatabase, of id: String) -> String {
        if place.movingTo.isEmpty { return "\(id) is in the store \(place.store)" }
        let note = place.note.isEmpty ? "" : "; it waits: \(place.note)"
        return "\(id) moves from \(place.store) to \(place.movingTo): \(place.documents) documents copied\(note)"
    }

    private static func object(_ place: MovedDatabase, of name: DatabaseName) -> JSONValue {
        .object([
            "database": .string("\(name)"), "store": .string(place.store),
            "movingTo": place.movingTo.isEmpty ? .null : .string(place.movingTo),
            "generation": .integer(Int64(clamping: place.generation)),
            "documents": .integer(Int64(clamping: place.documents)), "note": .string(place.note),
        ])
    }
}
