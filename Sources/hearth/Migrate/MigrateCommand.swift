// `hearth migrate`: a copy of a running Firestore, which follows its changes; and a store into a cluster or out of it.

import Basics
import DocumentModel
import Glibc
import HTTPProtocols
import HearthClient
import TLS

/// Copies a database from another Firestore while it is in use, or moves a store into a cluster or out of it.
enum MigrateCommand: AsyncSubcommand {
    static let name = "migrate"
    static let summary = "Copies a database from another Firestore, or moves a store into a cluster or out of it."
    static let words: [String] = []
    static let discussion = """
        Copies all documents of a database of PROJECT to a running server: from Firestore
        in the cloud, from the official emulator or from another Hearth. It counts the
        documents first, says what the reads cost, and asks.

        1. It copies the documents as of one time, in parts.
        2. It listens to the changes since then until the target has caught up; with
           --follow until SIGINT or SIGTERM.
        3. It compares all documents of both sides as of one time, and changes at the
           target what differs. Documents that the source does not have are deleted.
        4. It reports the number of documents and a sum of their contents by collection.

        The target has new create and update times. Indexes, rules and TTL policies are not
        copied. Nothing else should write to the target.

        A migration that was interrupted continues with --resume. It waits while the source
        or the target cannot be reached, or has used up a quota. The file of the token is
        read again when the source refuses the token.

        With --from DIR --to postgresql://... a data directory becomes a store of a
        cluster, and with --from postgresql://... --to DIR a store of a cluster becomes a
        data directory. Everything is taken along: databases, history, indexes, rules,
        results of commits, resume tokens. The source serves reads meanwhile. Its server
        takes no more writes from the beginning; a cluster takes writes until all but the
        last of its log is copied, and then its servers end. Servers that have bases in
        a directory need it here too: --cluster-bases. The copy is compared at the end. Only
        then the target is one: after an interruption give the command again. The
        source stays as it is, and does not start again.

        Examples:

          gcloud auth print-access-token > token
          hearth migrate --from-firestore my-project --token-file token
          hearth migrate --from-firestore my-project --token-file token --follow --yes
          hearth migrate --from-firestore demo --endpoint 127.0.0.1:8080 --plain --to 127.0.0.1:8081
          hearth migrate --from /var/lib/hearth --to postgresql://hearth@10.0.0.9/hearth
          hearth migrate --from postgresql://hearth@10.0.0.9/hearth --to /var/lib/hearth
        """

    static let project = Flag<String>(
        "from-firestore", "PROJECT", required: false, help: "The project of the database that is copied.")
    static let from = Flag<String>(
        "from", "STORE", required: false,
        help: "A data directory or postgresql://...: the store that is moved to the other kind.")
    /// Without the alias `--from` that other commands have.
    static let to = Flag(
        "address", ServerFlags.address.placeholder, default: "127.0.0.1:8080",
        help: "Address of the target's server; with --from a data directory or postgresql://..."
    ).alias("to")
    static let endpoint = Flag(
        "endpoint", "HOST:PORT", default: "firestore.googleapis.com:443", help: "Where the source serves gRPC.")
    static let plain = Flag(switch: "plain", help: "Do not encrypt the connections to the source.")
    static let authorities = Flag<String>(
        "endpoint-ca", "FILE", required: false,
        help: "Authorities of the source's certificate, PEM, instead of those of the system.")
    static let tokenFile = Flag<String>(
        "token-file", "FILE", required: false,
        help: "A file with the bearer token for the source. It is read again when the source refuses the token.")

    static let targetProject = Flag<String>(
        "project", "ID", required: false, help: "The project of the target; without it that of the source.")
    static let database = Flag("database", "ID", default: "(default)", help: "The database, on both sides.")

    static let yes = Flag(switch: "yes", help: "Do not ask.")
    static let follow = Flag(switch: "follow", help: "Follow the changes until SIGINT or SIGTERM.")
    static let lookInterval = Flag(
        "new-collections", "TIME", default: TimeSpan.seconds(10),
        in: TimeSpan(milliseconds: 100)...TimeSpan.seconds(3_600),
        help: "While changes are followed, look for new collections of the root after each TIME.")
    static let parallel = Flag(
        "parts", "N", default: 4, in: 1...64, help: "Parts that are copied or compared at the same time.")
    static let stateFile = Flag<String>(
        "state", "FILE", required: false, help: "Where the state is kept; PROJECT.hearth-migrate without this flag.")
    static let resume = Flag(switch: "resume", help: "Continue the migration whose state is kept.")
    static let patience = Flag(
        "patience", "TIME", default: TimeSpan.seconds(3_600),
        help: "How long to wait for a side that cannot be reached, or has used up a quota.")

    static let flagGroups = [
        FlagGroup(heading: "Source", flags: [project, endpoint, plain, authorities, tokenFile, from]),
        FlagGroup(
            heading: "Target",
            flags: [
                to, targetProject, database, ServerFlags.timeout, ServerFlags.tls, ServerFlags.authorities,
                ServeSettings.clusterStore, ClusterFlags.directory,
            ]),
        FlagGroup(
            heading: "Options",
            flags: [yes, follow, lookInterval, ImportCommand.mapProject, parallel, patience, stateFile, resume]
                + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        if let source = arguments.value(of: from) {
            if arguments.has(project) { throw UsageError(message: "--from and --from-firestore cannot be combined") }
            return try StoreMigration.run(
                from: source, to: arguments[to], store: arguments[ServeSettings.clusterStore],
                bases: arguments.value(of: ClusterFlags.directory), ProgressFlags.line(arguments))
        }
        guard let project = arguments.value(of: project) else {
            throw UsageError(message: "migrate needs --from-firestore PROJECT, or --from with a store")
        }
        try await copy(project, arguments)
    }

    private static func copy(_ project: String, _ arguments: ParsedArguments) async throws {
        let from = try DatabaseName(project: project, database: arguments[database])
        let toDatabase = try DatabaseName(
            project: arguments.value(of: targetProject) ?? project, database: arguments[database])
        let source = try HearthClient(sourceConfiguration(arguments, from))
        let target = try HearthClient(ServerFlags.configuration(arguments, of: arguments[to]))
        let limit = Duration.milliseconds(arguments[patience].milliseconds)
        let migration = Migration(
            source: MigrationSource(
                client: source, database: from, patience: Patience(side: "the source", limit: limit)),
            names: MigrationNames(
                source: from, target: toDatabase, mapsReferences: arguments[ImportCommand.mapProject]),
            target: target, targetPatience: Patience(side: "the target", limit: limit),
            options: Migration.Options(
                endpoint: arguments[endpoint], statePath: arguments.value(of: stateFile) ?? "\(project).hearth-migrate",
                resumes: arguments[resume],
                asks: !arguments[yes], follows: arguments[follow], parallel: arguments[parallel],
                lookInterval: .milliseconds(arguments[lookInterval].milliseconds), line: ProgressFlags.line(arguments)))
        do {
            try await migration.run()
        } catch {
            await source.close()
            await target.close()
            throw error
        }
        await source.close()
        await target.close()
    }

    private static func sourceConfiguration(
        _ arguments: ParsedArguments, _ database: DatabaseName
    ) throws -> HearthClient.Configuration {
        var configuration = try HearthClient.Configuration(address: arguments[endpoint])
        if configuration.store != nil || configuration.socketPath != nil {
            throw UsageError(message: "--endpoint must be HOST:PORT")
        }
        var connections = GRPCClientConfiguration()
        if arguments[plain] {
            if arguments.has(authorities) { throw UsageError(message: "--plain and --endpoint-ca cannot be combined") }
        } else {
            let settings = TLSClientSettings(
                authorities: arguments.value(of: authorities).map { .file($0) } ?? .system,
                protocols: [GRPCClientConfiguration.protocolName])
            do throws(TLSError) {
                connections.tls = try TLSContext(client: settings)
            } catch {
                throw UsageError(message: "--endpoint-ca: \(error)")
            }
        }
        configuration.tls = connections.tls
        configuration.transport = GRPCTransport(connections, for: database)
        if let path = arguments.value(of: tokenFile) {
            _ = try token(in: path, InputFile.secret("the token", in: path))
            configuration.tokenProvider = { _ in try Self.token(in: path, InputFile.contents(of: path)) }
            if configuration.exposesToken {
                throw UsageError(message: "--plain would send the token to \(configuration.address) in plain text")
            }
        }
        configuration.connectionsPerLoop = 1
        configuration.outageMax = .milliseconds(arguments[ServerFlags.timeout].milliseconds)
        return configuration
    }

    private static func token(in path: String, _ contents: [UInt8]) throws -> String {
        guard let token = String(decoding: contents, as: UTF8.self).split(whereSeparator: \.isWhitespace).first else {
            throw CommandFailure("\(path) has no token")
        }
        return String(token)
    }
}
