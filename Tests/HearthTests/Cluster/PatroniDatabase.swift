// PostgreSQL whose standby is promoted by Patroni, which keeps its state in etcd.

import Foundation
import Glibc
import PostgreSQLLog
import TestSupport

/// Two hosts with Patroni and PostgreSQL each. Patroni promises that a commit survives the loss of the primary
/// (`synchronous_mode_strict`).
final class PatroniDatabase: ClusterDatabase, @unchecked Sendable {
    // Sendable: a test changes it from one place at a time.

    private let members: [PatroniMember]
    private let directory = TemporaryDirectory("etcd")
    private let keeper: HearthProcess
    let faults: [ClusterFault] = [.databaseCrashes, .primaryLost, .primaryMoves, .primaryStandsStill]

    /// - Parameter keeper: where etcd runs.
    init(hosts: [TestHost], keeper host: TestHost) async throws {
        let client = "http://\(host.address):\(try LoopbackSocket.reservePort())"
        let peer = "http://\(host.address):\(try LoopbackSocket.reservePort())"
        keeper = HearthProcess(
            [
                "--data-dir", directory.path(of: "data"), "--listen-client-urls", client, "--advertise-client-urls",
                client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                "default=\(peer)",
            ], executable: "/usr/bin/etcd", host: host)
        try keeper.start()
        members = try hosts.enumerated().map { number, host in
            try PatroniMember("d\(number)", keeper: String(client.dropFirst("http://".count)), host: host)
        }
        try members[0].start()
        try await eventually("the first member is the primary: \(members[0].log)") { members[0].isPrimary }
        try members[1].start()
        try await expectStandby()
    }

    deinit {
        for member in members { member.kill() }
        keeper.signal(SIGKILL)
        keeper.waitForEnd()
    }

    var address: String { "postgresql://hearth@\(members.map(\.place).joined(separator: ","))/postgres" }

    private func primary() async throws -> (PatroniMember, other: PatroniMember) {
        var found: PatroniMember?
        try await eventually("a member is the primary") {
            found = members.first { $0.isPrimary }
            return found != nil
        }
        return found === members[1] ? (members[1], members[0]) : (members[0], members[1])
    }

    private func expectStandby() async throws {
        try await eventually("there is a synchronous standby: \(members.map { $0.log.suffix(2_000) })") {
            for member in members where member.hasOldState { try member.restart() }
            return members.contains { $0.isSynchronousStandby }
        }
    }

    func make(_ fault: ClusterFault) async throws {
        try await expectStandby()
        let (primary, other) = try await primary()
        switch fault {
        case .databaseCrashes: primary.killServer()
        case .primaryMoves:
            let answer = primary.post("/switchover", "{\"leader\":\"\(primary.name)\",\"candidate\":\"\(other.name)\"}")
            print("cluster: \(answer)")
        case .primaryStandsStill:
            primary.signalAll(SIGSTOP)
            defer { primary.signalAll(SIGCONT) }
            try await eventually("the standby takes over") { other.takesWrites }
        default:
            primary.kill()
            try await eventually("the standby takes over") { other.takesWrites }
            try primary.start()
        }
        try await expectStandby()
    }
}

/// Patroni with its PostgreSQL on one host.
private final class PatroniMember {
    let name: String
    private let host: TestHost
    private let directory = TemporaryDirectory("patroni")
    private let ports: (server: Int, control: Int)
    private let prefix: [String]
    private var process: HearthProcess?

    init(_ name: String, keeper: String, host: TestHost) throws {
        self.name = name
        self.host = host
        ports = (try LoopbackSocket.reservePort(), try LoopbackSocket.reservePort())
        let home = directory.path(of: "home")
        prefix = try PostgreSQLServer.prefix(owning: [home])
        let configuration = Self.configuration(
            name, home, keeper, control: "\(host.address):\(ports.control)", server: "\(host.address):\(ports.server)",
            programs: try PostgreSQLServer.folder())
        try configuration.write(toFile: directory.path(of: "patroni.yml"), atomically: true, encoding: .utf8)
    }

    private static func configuration(
        _ name: String, _ home: String, _ keeper: String, control: String, server: String, programs: String
    ) -> String {
        """
        scope: hearth
        name: \(name)
        restapi:
          listen: \(control)
          connect_address: \(control)
        etcd3:
          host: \(keeper)
        bootstrap:
          dcs:
            ttl: 20
            loop_wait: 2
            retry_timeout: 5
            maximum_lag_on_failover: 1048576
            synchronous_mode: true
            synchronous_mode_strict: true
            postgresql:
              use_pg_rewind: false
              use_slots: true
          initdb:
          - encoding: UTF8
          - locale: C
        postgresql:
          listen: \(server)
          connect_address: \(server)
          data_dir: \(home)/data
          bin_dir: \(programs)
          pgpass: \(home)/pgpass
          remove_data_directory_on_rewind_failure: true
          remove_data_directory_on_diverged_timelines: true
          authentication:
            superuser:
              username: hearth
            replication:
              username: hearth
          pg_hba:
          - local all all trust
          - host all all 0.0.0.0/0 trust
          - host replication all 0.0.0.0/0 trust
          parameters:
            unix_socket_directories: \(home)
            shared_buffers: 16MB
            max_connections: 60
            wal_keep_size: 256MB

        """
    }

    /// Host and port of the database.
    var place: String { "\(host.address):\(ports.server)" }
    var log: String { process?.errors ?? "" }
    var isPrimary: Bool { request("GET", "/primary") == 200 }
    /// Whether the database does. Patroni calls a member the primary before that.
    var takesWrites: Bool {
        guard let session = try? PostgreSQLSession(address: "postgresql://hearth@\(place)/postgres") else {
            return false
        }
        session.close()
        return true
    }
    var isSynchronousStandby: Bool { request("GET", "/synchronous") == 200 }

    private func request(_ method: String, _ path: String) -> Int? { control?.request(method, path)?.status }

    private var control: HTTPTestClient? {
        HTTPTestClient(ifListening: ports.control, address: host.address, patienceSeconds: 2)
    }

    /// Posts JSON; returns the reply for people.
    func post(_ path: String, _ body: String) -> String {
        let client = HTTPTestClient(ifListening: ports.control, address: host.address, patienceSeconds: 60)
        return client?.request("POST", path, body: body)?.body ?? "no reply"
    }

    func start() throws {
        let words = prefix + ["/usr/bin/patroni", directory.path(of: "patroni.yml")]
        let process = HearthProcess(Array(words.dropFirst()), executable: words[0], host: host)
        try process.start()
        self.process = process
    }

    /// Patroni before 3.1 may keep an old state of etcd after it stood still, and then finds no synchronous standby.
    /// Its operator restarts it (docs/scale.md).
    var hasOldState: Bool {
        log.components(separatedBy: "Synchronous replication key updated by someone else").count > 4
    }

    /// Patroni begins again, and PostgreSQL continues.
    func restart() throws {
        print("cluster: Patroni \(name) is restarted")
        process?.signal(SIGKILL)
        try waitUntil("it has ended") { process?.isRunning != true }
        try start()
    }

    /// The process identifier of PostgreSQL; nil if it does not run.
    private var server: Int32? {
        let file = directory.path(of: "home/data/postmaster.pid")
        let text = try? String(contentsOfFile: file, encoding: .utf8)
        return text?.split(separator: "\n").first.flatMap { Int32($0) }
    }

    /// PostgreSQL ends as in a crash.
    func killServer() { if let server { Glibc.kill(server, SIGKILL) } }

    /// The whole host is lost.
    func kill() {
        process?.signal(SIGKILL)
        killServer()
        process?.waitForEnd()
        process = nil
    }

    /// Signals Patroni, PostgreSQL, and the processes of its sessions.
    func signalAll(_ number: Int32) {
        process?.signal(number)
        guard let server else { return }
        Glibc.kill(server, number)
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            if let identifier = Int32(name), Self.parent(of: name) == server { Glibc.kill(identifier, number) }
        }
    }

    private static func parent(of identifier: String) -> Int32? {
        let status = try? String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8)
        // After the name in parentheses: state, parent.
        return status?.split(separator: ")").last?.split(separator: " ").dropFirst().first.flatMap { Int32($0) }
    }
}
