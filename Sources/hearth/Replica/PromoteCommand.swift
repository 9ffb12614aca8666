// `hearth promote`: a replica becomes a server that takes writes.

import Authorization
import Basics
import DocumentStore
import EmbeddedEngine
import FileSystem
import FirestoreMessages
import FirestoreService
import Glibc
import HearthClient
import Identity
import Storage

/// Makes the directory of a replica one that takes writes.
enum PromoteCommand: BlockingSubcommand {
    static let name = "promote"
    static let summary = "Makes a replica a server that takes writes, in place of its source."
    static let words: [String] = []
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory of the replica.")
    static let force = Flag(
        switch: "force", help: "Does not ask the source, which is lost: commits that the replica lacks are lost too.")
    static let flagGroups = [
        FlagGroup(
            heading: "Flags",
            flags: [data, force, ServeSettings.followTLS, ServeSettings.followAuthorities] + ProgressFlags.all)
    ]

    static let discussion = """
        The replica must not be running. hearth promote takes the commits that it lacks, asks
        the source to take no more writes, takes its last commit and its rules, and makes the
        replica an independent store: nothing is lost. The source is not asked if the replica
        cannot continue. It serves reads until it is stopped, and does not start again on its
        directory. Then start the replica with hearth serve, without --follow. Another
        replica of the source is not promoted after that.

        With --force the source is not asked. The command prints the time of the last commit
        that the replica has; what was committed after it is lost, unless the source comes
        back and hearth salvage reads it. Nothing stops a source that still runs: make sure
        that clients do not reach it. Listeners of clients start again.

        HEARTH_FOLLOW_TOKEN is the token of a principal that administers the source.

        Examples:

          hearth promote --data /var/lib/hearth
          hearth promote --data /var/lib/hearth --force
        """

    static func run(_ arguments: ParsedArguments) throws {
        let directory = arguments[data]
        try PathWords.checkDataDirectory(directory)
        // A server would put a copy in its place that has come, over what was promoted.
        try BasePlacing.settle(directory)
        guard let source = try ReplicaFile.source(in: directory) else {
            throw CommandFailure("\(directory) is not a replica")
        }
        // A replica that is running is found before its source takes no more writes.
        try EmbeddedEngine.whileUnused(directory) { _ in }
        if arguments[force] { return try promoteAlone(directory, source) }
        let client = try Replica.client(
            of: source, usesTLS: arguments[ServeSettings.followTLS],
            authorities: arguments.value(of: ServeSettings.followAuthorities))
        let progress = ProgressFlags.line(arguments)
        let successor = try ReplicaFile.successor(in: directory)
        let version = try Replica.wait {
            try await takeLastCommit(of: source, client, as: successor, directory, progress)
        }
        try EmbeddedEngine.whileUnused(directory) { _ in
            try ReplicaFile.remove(from: directory, beginsTimeline: false)
        }
        try StandardOutput.print("\(directory) promoted with all commits of \(source), up to \(time(version))")
    }

    private static func promoteAlone(_ directory: String, _ source: String) throws {
        var configuration = StoreConfiguration.forTool(directory)
        configuration.leader = source
        let store = try DocumentStore.open(configuration)
        let version = store.publishedVersion.microseconds
        let lag = store.lagMicroseconds / 1_000_000
        do {
            defer { store.close() }
            // The clock of this machine may be late.
            try store.endFollowing(above: ReplicaFile.timeMax(in: directory))
        }
        try EmbeddedEngine.whileUnused(directory) { _ in
            try ReplicaFile.remove(from: directory, beginsTimeline: true)
        }
        try StandardOutput.print(
            "\(directory) promoted without its source \(source): its last commit is of \(time(version)), \(lag) "
                + "seconds ago; later commits of the source are lost")
    }

    /// Takes what is missing while the source takes writes, which shows whether the replica can continue. Then has the
    /// source take no more writes, and takes the rest.
    /// - Returns: the version of the last commit.
    private static func takeLastCommit(
        of source: String, _ client: HearthClient, as successor: UInt64, _ directory: String, _ progress: ProgressLine
    ) async throws -> UInt64 {
        var configuration = StoreConfiguration.forTool(directory)
        configuration.leader = source
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        var line = progress
        defer { line.clear() }
        do {
            try await catchUp(store, with: client, as: successor, directory, &line)
        } catch {
            throw CommandFailure(
                "\(ErrorText.describe(error)). \(source) was not asked to step down this time")
        }
        let last = try await client.administer(
            .adminStepDown, StepDownRequest(successor: successor), isRepeatable: true, as: StepDownResponse.self
        ).version
        try await catchUp(store, with: client, as: successor, directory, &line)
        guard store.publishedVersion.microseconds == last else {
            throw CommandFailure(
                "\(source) takes no writes any more, and the replica lacks its last commit; run the command again")
        }
        await client.close()
        return last
    }

    /// Takes the commits that the source has when it is asked, and its rules and revocations. The source keeps what it
    /// commits after that.
    private static func catchUp(
        _ store: DocumentStore, with client: HearthClient, as follower: UInt64, _ directory: String,
        _ line: inout ProgressLine
    ) async throws {
        let stream = client.follow(
            FollowRequest(
                version: store.publishedVersion.microseconds, timeline: store.timelineStart.microseconds,
                follower: follower))
        var byteCount = 0
        while let message = try await stream.next() {
            switch message {
            case .records(let bytes):
                try await FollowerTask.apply(bytes, to: store)
                byteCount += bytes.count
                line.update(WorkProgress("taking the last commits", done: byteCount, total: 0, .bytes))
            case .base(let reason, _):
                throw CommandFailure(
                    "the replica cannot continue from what it has: \(reason); serve it with --follow first")
            case .revocations(let bytes):
                try IdentityDirectory(dataDirectory: directory).revocations().add(try Revocations.decode(bytes))
            case .rules(let text): _ = try RulesKeeper(RulesHistory(dataDirectory: directory)).apply(text)
            // It comes after everything that the source had.
            case .closed: return
            case .accepted, .file, .contents, .baseIsComplete, .derived, .groups: break
            }
        }
        throw CommandFailure("the source has ended the stream of its commits; run the command again")
    }

    private static func time(_ microseconds: UInt64) -> String {
        var seconds = time_t(microseconds / 1_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
        return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
