// `hearth databases`: the databases of a server.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreMessages
import Glibc
import HearthClient
import Server

/// Lists, creates, changes and deletes databases.
enum DatabasesCommand: AsyncSubcommand {
    static let name = "databases"
    static let summary = "Lists the databases of a server, creates, protects and deletes them."
    static let words = ["ACTION", "[ID...]"]
    static let actions = ["list", "create", "protect", "unprotect", "delete"]
    static let flagGroups = [
        FlagGroup(heading: "Databases", flags: [json, protected, location, yes]),
        FlagGroup(heading: "Server", flags: ReadingFlags.all),
    ]
    static let discussion = """
        ACTION is list, create, protect, unprotect or delete. list prints the databases of the
        project, with the times of their creation. A database also exists without create, from
        its first document on. create takes ids as the cloud does: (default), or 4 to 63
        lowercase letters, digits and hyphens.

        delete asks, unless --yes is given, and waits until all documents are removed. At once
        the database is empty for readers, its listeners end with NOT_FOUND, and its open
        transactions end; until the documents are removed it takes no writes. A server that is
        stopped meanwhile continues when it starts. Earlier states stay readable for the
        retention of the server. protect makes delete fail until unprotect.

        The server asks for the right to administer it. With --data DIR the command uses the
        socket in the directory, or opens the directory if no server uses it.

        Examples:

          hearth databases list --json
          hearth databases create staging --data /var/lib/hearth
          hearth databases delete staging --yes
        """

    static let json = Flag(switch: "json", help: "list prints objects, as the admin API has them.")
    static let protected = Flag(switch: "protected", help: "create makes a database that is protected from deletion.")
    static let location = Flag(
        "location", "ID", default: "", help: "The location that create notes. It has no effect.")
    static let yes = Flag(switch: "yes", help: "Do not ask before delete.")

    static func run(_ arguments: ParsedArguments) async throws {
        let action = try action(arguments)
        let ids = Array(arguments.words.dropFirst())
        guard action == "list" ? ids.isEmpty : ids.count == 1 else {
            throw UsageError(
                message: action == "list"
                    ? "hearth databases list takes no database; --project selects the project"
                    : "hearth databases \(action) takes the id of one database")
        }
        try await withAdministration(arguments) { server in
            let project = arguments[ServerFlags.project]
            if action == "list" { return try await list(server, project, isJSON: arguments[json]) }
            let name = try DatabaseName(project: project, database: ids[0])
            switch action {
            case "create": try await create(server, project, ids[0], arguments)
            case "delete": try await delete(server, name, ids[0], arguments)
            default: try await protect(server, name, action == "protect")
            }
        }
    }

    // MARK: Actions

    private static func list(_ server: Administration, _ project: String, isJSON: Bool) async throws {
        let request = ListDatabasesRequest(parent: "projects/\(project)", showsDeleted: true)
        let listing = try await server.call(.listDatabases, request, as: ListDatabasesResponse.self)
        for database in listing.databases {
            if isJSON {
                try StandardOutput.print(object(of: database).json)
                continue
            }
            let isProtected = database.deleteProtection == .on
            let state = database.deleteTime != nil ? "\tbeing deleted" : isProtected ? "\tprotected" : ""
            try StandardOutput.print("\(id(of: database))\t\(database.createTime?.rfc3339 ?? "")\(state)")
        }
    }

    private static func id(of database: AdminDatabase) -> String {
        String(database.name.split(separator: "/").last ?? "")
    }

    private static func object(of database: AdminDatabase) -> JSONValue {
        func time(_ time: TimestampValue?) -> JSONValue { time.map { .string($0.rfc3339) } ?? .null }
        return .object([
            "name": .string(database.name), "id": .string(id(of: database)), "createTime": time(database.createTime),
            "updateTime": time(database.updateTime), "deleteTime": time(database.deleteTime),
            "locationId": .string(database.location), "protected": .boolean(database.deleteProtection == .on),
            "etag": .string(database.etag),
        ])
    }

    private static func create(
        _ server: Administration, _ project: String, _ id: String, _ arguments: ParsedArguments
    ) async throws {
        var database = AdminDatabase(name: "")
        database.location = arguments[location]
        database.deleteProtection = arguments[protected] ? .on : .unspecified
        let request = CreateDatabaseRequest(parent: "projects/\(project)", database: database, databaseID: id)
        _ = try await server.call(.createDatabase, request, as: LongRunningOperation.self)
    }

    private static func protect(_ server: Administration, _ name: DatabaseName, _ isProtected: Bool) async throws {
        var database = AdminDatabase(name: "\(name)")
        database.deleteProtection = isProtected ? .on : .off
        let request = UpdateDatabaseRequest(database: database, mask: ["delete_protection_state"])
        _ = try await server.call(.updateDatabase, request, as: LongRunningOperation.self)
    }

    private static func delete(
        _ server: Administration, _ name: DatabaseName, _ id: String, _ arguments: ParsedArguments
    ) async throws {
        let known = try await server.call(.getDatabase, NamedRequest(name: "\(name)"), as: AdminDatabase.self)
        try confirm(id, arguments)
        // Of the state that was asked about.
        let request = DeleteDatabaseRequest(name: "\(name)", etag: known.etag)
        var operation = try await server.call(.deleteDatabase, request, as: LongRunningOperation.self)
        var waits = 0
        while operation.result == nil {
            let wait = WaitOperationRequest(name: operation.name, timeoutMilliseconds: 1_000)
            operation = try await server.call(.waitOperation, wait, as: LongRunningOperation.self)
            waits += 1
            if operation.result == nil, waits % 5 == 1 {
                StandardError.write("\(id): its documents are being removed, since \(waits) s\n")
            }
        }
    }

    private static func confirm(_ id: String, _ arguments: ParsedArguments) throws {
        if arguments[yes] { return }
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure("\(id): the database with all documents would be deleted; confirm with --yes")
        }
        StandardError.write("Delete the database \(id) with all documents? Type its id to confirm: ")
        guard readLine(strippingNewline: true) == id else { throw CommandFailure("\(id): nothing was deleted") }
    }

    // MARK: The server

    /// Who is asked: the server of a directory over its socket, or one by its address.
    private enum Administration {
        case socket(String)
        case client(HearthClient)

        func call<Reply: FirestoreMessage>(
            _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, as type: Reply.Type
        ) async throws -> Reply {
            switch self {
            case .socket(let directory): try AdminClient.call(method, request, directory, as: type)
            case .client(let client):
                try await client.administer(method, request, isRepeatable: false, as: type)
            }
        }
    }

    private static func withAdministration(
        _ arguments: ParsedArguments, _ body: (Administration) async throws -> Void
    ) async throws {
        let directory = try ReadingFlags.directory(arguments)
        if let directory, (try? AdminClient.address(directory: directory)) != nil {
            return try await body(.socket(directory))
        }
        try await ReadingFlags.withClient(arguments) { try await body(.client($0)) }
    }
}
