// `hearth serve --follow`: the directory of a replica, its copy of the source, and the stream of commits.

import Authorization
import Basics
import DocumentStore
import FileSystem
import FirestoreMessages
import FirestoreService
import Glibc
import HearthClient
import Identity
import Server
import Synchronization

/// The replica that this process serves.
final class Replica: Sendable {
    /// The environment variable with the token for the source.
    static let tokenVariable = "HEARTH_FOLLOW_TOKEN"

    /// The source: `HOST:PORT`.
    let source: String
    private let directory: String
    private let log: Log
    private let configuration: HearthClient.Configuration
    private let client: HearthClient
    private let task: FollowerTask
    /// What it has in common with the source.
    let revocations: SourceRevocations
    private let stream = Mutex<ReplicaStream?>(nil)

    private init(
        source: String, directory: String, _ configuration: HearthClient.Configuration, log: Log
    ) throws {
        self.source = source
        self.directory = directory
        self.log = log
        self.configuration = configuration
        client = try HearthClient(configuration)
        task = FollowerTask(client: client, source: source, log: log)
        revocations = SourceRevocations(source: source, client)
    }

    /// The replica that a command line asks for; nil without `--follow`.
    ///
    /// - Throws: a `CommandFailure` if the directory is a replica and is not to be served as one, or has an independent
    ///   store and is to become a replica, or belongs to a server that a replica has replaced.
    static func make(_ arguments: ParsedArguments, directory: String, _ log: Log) throws -> Replica? {
        try BasePlacing.settle(directory)
        let kept = try ReplicaFile.source(in: directory)
        if SupersededFile.exists(in: directory) {
            throw CommandFailure(
                "\(directory) was replaced by a replica that was promoted, or moved to a cluster; remove its file "
                    + "SUPERSEDED to serve it all the same, or read its commits with hearth salvage")
        }
        guard let endpoint = arguments.value(of: ServeSettings.follow) else {
            guard let kept else { return nil }
            throw CommandFailure(
                "\(directory) is a replica of \(kept): serve it with --follow, or make it an independent store with "
                    + "hearth promote")
        }
        if kept == nil, Directory.exists("\(directory)/FORMAT") {
            throw CommandFailure(
                "\(directory) has an independent store, which a replica would replace: name an empty directory")
        }
        let configuration = try configuration(
            of: endpoint.flagText, usesTLS: arguments[ServeSettings.followTLS],
            authorities: arguments.value(of: ServeSettings.followAuthorities))
        return try Replica(source: endpoint.flagText, directory: directory, configuration, log: log)
    }

    /// A client for a source.
    /// - Parameter authorities: a file; nil means those of the system.
    static func client(of source: String, usesTLS: Bool, authorities: String?) throws -> HearthClient {
        try HearthClient(configuration(of: source, usesTLS: usesTLS, authorities: authorities))
    }

    static func configuration(
        of source: String, usesTLS: Bool, authorities: String?
    ) throws -> HearthClient.Configuration {
        var configuration = try HearthClient.Configuration(address: source)
        configuration.eventLoops = 1
        configuration.connectionsPerLoop = 1
        configuration.outageMax = .seconds(5)
        // The stream lasts; `FollowerTask` ends one that is silent.
        configuration.streamTimeout = .seconds(30 * 86_400)
        if usesTLS || authorities != nil { try configuration.useTLS(authorities: authorities) }
        if let token { try configuration.useToken(token) }
        return configuration
    }

    /// Where calls are forwarded to.
    var leader: KnownLeader.Server { Self.leader(configuration) }

    /// A server that calls are forwarded to.
    static func leader(_ configuration: HearthClient.Configuration) -> KnownLeader.Server {
        KnownLeader.Server(
            host: configuration.host, port: configuration.port, tls: configuration.tls, token: token)
    }

    private static var token: String? {
        getenv(tokenVariable).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Copies the source if the directory is empty.
    func prepare() throws {
        if Directory.exists("\(directory)/FORMAT") { return }
        if try BasePlacing.hasState(directory) {
            throw CommandFailure("\(directory) has a part of a data directory: name an empty directory")
        }
        try fetchBase()
    }

    private func fetchBase() throws {
        log(.info, "base_fetching", ["source": source])
        let progress = Mutex<UInt64>(SystemClock.monotonicMilliseconds())
        let (client, source, directory, log) = (client, source, directory, log)
        do {
            try Self.wait {
                try await FollowerTask.fetchBase(from: client, source: source, to: directory) { done, all in
                    let now = SystemClock.monotonicMilliseconds()
                    let isDue = progress.withLock { last in
                        guard now >= last + 1_000 else { return false }
                        last = now
                        return true
                    }
                    if isDue { log(.info, "base_progress", ["bytes": String(done), "of": String(all)]) }
                }
            }
        } catch {
            throw CommandFailure("cannot copy \(source) to \(directory): \(ErrorText.describe(error))")
        }
        log(.info, "base_fetched", ["source": source])
    }

    /// Begins to follow. If the replica must be copied again the process gets SIGTERM; see ``rebuild()``.
    func start(_ store: DocumentStore, rules: RulesKeeper?, revocations: RevocationKeeper) {
        let stream = ReplicaStream(
            source: source, store, rules: rules, revocations: revocations, self.revocations, log: log)
        self.stream.withLock { $0 = stream }
        task.start(stream) { [log, source] in
            log(.error, "replica_outdated", ["source": source, "message": stream.rebuildReason ?? ""])
            kill(getpid(), SIGTERM)
        }
    }

    /// Ends the stream; nothing is applied after this.
    func stop() {
        let task = task
        try? Self.wait { await task.stop() }
    }

    /// Whether the source does not continue from what this replica has.
    var mustRebuild: Bool { stream.withLock { $0 }?.rebuildReason != nil }

    /// Replaces the directory by a copy of the source and starts the process again. The server has stopped. The old
    /// state stays until the copy is complete.
    func rebuild() throws {
        try fetchBase()
        log(.warning, "replica_rebuilt", ["source": source])
        execv("/proc/self/exe", CommandLine.unsafeArgv)
        throw CommandFailure("the replica was copied again; the process cannot be started again: errno \(errno)")
    }

    /// Does asynchronous work and waits for it.
    static func wait<Output: Sendable>(_ work: @escaping @Sendable () async throws -> Output) throws -> Output {
        let outcome = Monitor<Result<Output, any Error>?>(nil)
        Task {
            let result: Result<Output, any Error>
            do { result = .success(try await work()) } catch { result = .failure(error) }
            outcome.update { $0 = result }
        }
        return try outcome.wait { $0 }.get()
    }
}
