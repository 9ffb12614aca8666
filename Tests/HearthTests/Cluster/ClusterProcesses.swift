// Servers of a cluster as processes, and a client that finds the one that leads.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

/// The wall clock of a process, which moves while the process runs.
struct MovableClock {
    private let file: String
    private let library: String

    /// The library that moves the clock of a process; nil where it is not installed.
    private static let library = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketime.so.1" }
        .first { FileManager.default.fileExists(atPath: $0) }

    /// - Parameter file: made for the clock.
    /// - Returns: nil where the library is not installed.
    init?(file: String) throws {
        guard let library = Self.library else { return nil }
        self.file = file
        self.library = library
        try move(bySeconds: 0)
    }

    /// Of the process. It looks at the file once a second.
    var environment: [String: String] {
        [
            "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
            // Otherwise waits until a monotonic time end at once, and threads of the server take all of the processor.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        ]
    }

    /// The difference from the machine's clock from now on.
    func move(bySeconds seconds: Int) throws {
        try "\(seconds < 0 ? "" : "+")\(seconds)s\n".write(toFile: file, atomically: true, encoding: .utf8)
    }
}

/// A server of a cluster, which can be ended and started again on its directory and port.
final class ClusterNode: @unchecked Sendable {
    // Sendable: one task at a time starts and ends it.

    let port: Int
    let data: String
    /// Nil: that of the machine.
    let clock: MovableClock?
    private let place: TestHost
    private let database: String
    private let arguments: [String]
    private(set) var server: ServerProcess?

    init(
        _ database: String, data: String, arguments: [String] = [], host: TestHost = .local, clock: MovableClock? = nil
    ) throws {
        self.database = database
        self.clock = clock
        self.data = data
        self.arguments = arguments
        place = host
        port = try LoopbackSocket.reservePort()
    }

    var host: String { place.address }
    var address: String { "\(host):\(port)" }

    /// - Parameter environment: of the process, beside that of the tests and of its clock.
    func start(environment: [String: String] = [:]) throws {
        server = try ServerProcess(
            data: data, port: port,
            arguments: ["--cluster", database, "--advertise", address, "--drain-time", "1s"] + arguments,
            environment: environment.merging(clock?.environment ?? [:]) { $1 }, host: place)
    }

    func kill() {
        server?.kill()
        server = nil
    }

    func stop() -> Int32 {
        defer { server = nil }
        return server?.stop() ?? 0
    }

    func signal(_ number: Int32) { server?.process.signal(number) }

    /// The page of metrics; empty while the server does not answer.
    var metrics: String {
        HTTPTestClient(ifListening: port, address: host, patienceSeconds: 2)?.request("GET", "/metrics")?.body ?? ""
    }

    var leads: Bool { metrics.contains("hearth_cluster_leads 1\n") }

    /// Whether it leads one of several stores.
    func leads(_ store: String) -> Bool { metrics.contains("hearth_cluster_leads{store=\"\(store)\"} 1\n") }

    /// Groups that came over the stream of the leader.
    var groupsStreamed: Int {
        let lines = metrics.split(separator: "\n")
        let name = "hearth_cluster_groups_streamed_total "
        return lines.first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count)) } ?? 0
    }

    var log: String { server?.process.errors ?? "" }

    /// The first status of replies that is not 503, which a server sends while its store is closed: at first, and after
    /// it has lost its lease.
    func statusOfOpenStore(_ status: () -> Int?) async throws -> Int? {
        var found: Int?
        try await eventually("\(data) has its store: \(log.suffix(2_000))") {
            found = status()
            return found != 503
        }
        return found
    }

    /// Whether the server has found its clock right, or has begun again, since it last found it wrong.
    var knowsRightClock: Bool {
        let log = log
        func last(_ event: String) -> String.Index? { log.range(of: "event=\(event)", options: .backwards)?.lowerBound }
        guard let wrong = last("cluster_clock_differs") else { return true }
        return ["cluster_clock_agrees", "cluster_store_reopened"].contains { last($0).map { $0 > wrong } ?? false }
    }
}

/// Clients write through the server that leads, whichever it is.
final class ClusterWriter: Sendable {
    private let nodes: [ClusterNode]
    private let database: DatabaseName
    private let acknowledged = Mutex<[Int]>([])
    private let isStopping = Atomic(false)

    init(_ nodes: [ClusterNode]) throws {
        self.nodes = nodes
        database = try DatabaseName(project: "hearth")
    }

    /// What the servers have acknowledged so far.
    var numbers: [Int] { acknowledged.withLock { $0 } }

    func stop() { isStopping.store(true, ordering: .relaxed) }

    /// Writes pairs of documents, one commit after the other, until it is stopped: number after number, each once.
    func run() async throws {
        var number = 0
        var place = 0
        while !isStopping.load(ordering: .relaxed) {
            let client = try Self.client(of: nodes[place % nodes.count])
            place += 1
            do {
                while !isStopping.load(ordering: .relaxed) {
                    number += 1
                    try await client.commit(try Self.writes(of: number, in: database))
                    acknowledged.withLock { $0.append(number) }
                }
            } catch {
                // Another server leads, or will: the number is lost or not, but not acknowledged.
                try await Task.sleep(for: .milliseconds(20))
            }
            await client.close()
        }
    }

    static func client(of node: ClusterNode) throws -> HearthClient { try client(host: node.host, port: node.port) }

    static func client(host: String = "127.0.0.1", port: Int) throws -> HearthClient {
        var configuration = HearthClient.Configuration(host: host, port: UInt16(port))
        configuration.outageMax = .milliseconds(200)
        configuration.callTimeout = .seconds(20)
        return try HearthClient(configuration)
    }

    /// A pair of documents.
    static func writes(of number: Int, in database: DatabaseName) throws -> CommitWrites {
        var writes = CommitWrites(database: database)
        for side in ["left", "right"] {
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 2) { entry in
                entry.appendField(1, string: "n")
                entry.withLengthPrefix(field: 2) { Value.integer(Int64(number)).encode(into: &$0) }
            }
            writes.set("\(database.documentsRoot)/\(side)/d\(number)", fields: writer.copyBytes())
        }
        return writes
    }

    /// The numbers of the documents on one side at a server.
    func numbers(_ side: String, at node: ClusterNode) throws -> Set<Int> {
        let listed = try HearthBinary.run(["query", "--address", node.address, side])
        guard listed.status == 0 else { return [] }
        return Set(
            listed.output.split(separator: "\n").compactMap { line in
                line.split(separator: "\"n\":").last.flatMap { Int($0.prefix { $0.isNumber }) }
            })
    }
}

/// What a client gets that listens to a collection of a server.
struct ListenedState {
    /// Continues from what the client has.
    let token: [UInt8]
    /// The server has had it discard what it had.
    let isReset: Bool

    /// - Parameter token: of an earlier state; empty for a client that has none.
    init(_ node: ClusterNode, resuming token: [UInt8]) async throws {
        try await self.init(port: node.port, resuming: token)
    }

    init(port: Int, resuming token: [UInt8]) async throws {
        let database = try DatabaseName(project: "hearth")
        var target = ListenTarget(
            .query(
                parent: database.documentsRoot, StructuredQuery(from: [CollectionSelector(collectionID: "c")])),
            id: 1)
        if !token.isEmpty { target.resume = .token(token) }
        let client = try ClusterWriter.client(port: port)
        let messages = client.listen([ListenRequest(database: "\(database)", .add(target))])
        var isReset = false
        var isCurrent = false
        var found: [UInt8] = []
        while !isCurrent || found.isEmpty, let message = try await messages.next() {
            guard case .targetChange(let change) = message else { continue }
            if change.kind == .reset { isReset = true }
            if change.kind == .current { isCurrent = true }
            if isCurrent, !change.resumeToken.isEmpty { found = change.resumeToken }
        }
        await client.close()
        self.token = found
        self.isReset = isReset
    }
}

extension ClusterNode {
    /// Servers that are not started yet, each with a directory below one.
    static func several(
        _ count: Int, _ database: PostgreSQLServer, in directory: TemporaryDirectory, _ arguments: [String] = []
    ) throws -> [ClusterNode] {
        try several(count, database.address, in: directory, arguments)
    }

    static func several(
        _ count: Int, _ address: String, in directory: TemporaryDirectory, _ arguments: [String] = []
    ) throws -> [ClusterNode] {
        try (0..<count).map { number in
            try ClusterNode(address, data: directory.path(of: "data\(number)"), arguments: arguments)
        }
    }

    /// Waits until one of the servers leads.
    static func leader(of nodes: [ClusterNode]) async throws -> ClusterNode {
        var found: ClusterNode?
        try await eventually("a server leads") {
            found = nodes.first { $0.server != nil && $0.leads }
            return found != nil
        }
        return try #require(found)
    }
}
