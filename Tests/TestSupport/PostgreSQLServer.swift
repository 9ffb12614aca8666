// A PostgreSQL server for tests, on a temporary directory.

import Foundation
import Glibc
import Synchronization

/// A server on a separate port, which is gone when the test is over.
package final class PostgreSQLServer: @unchecked Sendable {
    // Sendable: a test starts and stops it from one place at a time.

    /// There is no server; the text says what to do.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    private let directory: TemporaryDirectory
    private let folder: String
    private let prefix: [String]
    private let options: [String]
    private let host: TestHost
    private var process: HearthProcess?
    package let port: Int

    /// A connection string for a server's databases.
    package var address: String { address(of: "postgres") }

    /// A connection string for one of its databases.
    package func address(of database: String) -> String { "postgresql://hearth@\(place)/\(database)" }

    /// Host and port.
    package var place: String { "\(host.address):\(port)" }

    private var data: String { directory.path(of: "data") }

    /// Where Debian has the programs of a server.
    package static func folder() throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.max(by: { (Int($0) ?? 0) < (Int($1) ?? 0) }) else {
            throw StartError(
                description: "PostgreSQL is not installed in \(root): run Tools/install-dependencies --tests")
        }
        return "\(root)/\(newest)/bin"
    }

    /// What runs a program as a user that PostgreSQL accepts, with the user's directories.
    ///
    /// - Parameter directories: made for that user; each may be there already.
    package static func prefix(owning directories: [String]) throws -> [String] {
        for directory in directories {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        // The server refuses to run as root.
        guard getuid() == 0 else { return [] }
        guard let user = getpwnam("postgres") else {
            throw StartError(description: "there is no user postgres, as which the server is run")
        }
        for directory in directories where chown(directory, user.pointee.pw_uid, user.pointee.pw_gid) != 0 {
            throw StartError(description: "the directory cannot be given to the user postgres: errno \(errno)")
        }
        return ["/usr/bin/setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    }

    /// Makes a cluster of databases and starts its server.
    ///
    /// - Parameter options: further settings, as `name=value`.
    package convenience init(options: [String] = [], host: TestHost = .local) throws {
        try self.init(on: host, options)
        try run("/bin/cp", ["--archive", "--no-target-directory", try PostgreSQLTemplate.path(), data])
        if !host.launcher.isEmpty {
            // Nobody else reaches a namespace of the test.
            let rules = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(data)/pg_hba.conf"))
            try rules.seekToEnd()
            try rules.write(contentsOf: Data("host all,replication all 0.0.0.0/0 trust\n".utf8))
            try rules.close()
        }
        try start()
    }

    /// Makes a standby of another server, which sends it its log, and starts it.
    ///
    /// - Parameter port: one that is free; nil lets the system choose.
    package convenience init(
        standbyOf primary: PostgreSQLServer, options: [String] = [], host: TestHost = .local, port: Int? = nil
    ) throws {
        try self.init(on: host, options, port: port)
        try run(
            "\(folder)/pg_basebackup",
            [
                "--pgdata", data, "--checkpoint", "fast", "--no-sync", "--write-recovery-conf", "--dbname",
                Self.connection(to: primary),
            ])
        try start()
    }

    private static func connection(to primary: PostgreSQLServer) -> String {
        "host=\(primary.host.address) port=\(primary.port) user=hearth application_name=standby"
    }

    private init(on host: TestHost, _ options: [String], port: Int? = nil) throws {
        folder = try Self.folder()
        self.options = options
        self.host = host
        directory = TemporaryDirectory("postgresql")
        prefix = try Self.prefix(owning: [directory.path(of: "data")])
        self.port = try port ?? LoopbackSocket.reservePort()
    }

    deinit { stop(SIGQUIT) }

    private func command(_ words: [String]) -> HearthProcess {
        HearthProcess(Array(words.dropFirst()), executable: words[0], host: host)
    }

    /// Runs a program to its end.
    private func run(_ program: String, _ arguments: [String]) throws {
        try Self.waitForSuccess(of: command(prefix + [program] + arguments), program)
    }

    fileprivate static func waitForSuccess(of process: HearthProcess, _ program: String) throws {
        try process.start()
        process.waitForEnd()
        guard process.status == 0 else { throw StartError(description: "\(program) failed: \(process.errors)") }
    }

    /// Starts the server and waits until it takes connections.
    package func start() throws {
        var words = prefix + ["\(folder)/postgres", "-D", data, "-p", String(port)]
        let settings = [
            "listen_addresses=\(host.address)", "unix_socket_directories=", "max_connections=60",
            "shared_buffers=16MB",
        ]
        for setting in settings + options { words += ["-c", setting] }
        let process = command(words)
        try process.start()
        // A standby says that it takes read-only connections.
        guard process.waitForError("ready to accept") else {
            throw StartError(description: "the server does not start: \(process.errors)")
        }
        self.process = process
    }

    /// Starts the server if ``stop(_:)`` has ended it.
    package func startIfStopped() throws {
        if process == nil { try start() }
    }

    /// Has a standby get the log of another server; nil: of none.
    package func follow(_ primary: PostgreSQLServer?) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(data)/postgresql.auto.conf"))
        try file.seekToEnd()
        let connection = primary.map(Self.connection) ?? ""
        try file.write(contentsOf: Data("primary_conninfo = '\(connection)'\n".utf8))
        try file.close()
        process?.signal(SIGHUP)
    }

    /// Makes a standby a server that takes writes.
    package func promote() throws {
        try run("\(folder)/pg_ctl", ["promote", "--pgdata", data, "--wait", "--timeout", "300"])
    }

    /// Has all processes of the server stand still with SIGSTOP, or continue with SIGCONT: connections are taken by the
    /// system, and nobody answers.
    package func signalAll(_ signal: Int32) throws {
        guard let process else { return }
        let path = "/proc/\(process.identifier)/task/\(process.identifier)/children"
        let children = try String(contentsOfFile: path, encoding: .utf8).split(separator: " ").compactMap { Int32($0) }
        for identifier in [process.identifier] + children where kill(identifier, signal) != 0 && errno != ESRCH {
            throw StartError(description: "a process of the server cannot be signalled: errno \(errno)")
        }
    }

    /// Ends the server: SIGINT ends its sessions, SIGQUIT ends it as a crash would.
    package func stop(_ signal: Int32) {
        guard let process else { return }
        self.process = nil
        process.signal(signal)
        process.waitForEnd()
    }
}

/// What `initdb` makes, which takes a second. It is made once in a process; each server has a copy.
private struct PostgreSQLTemplate {
    private let directory = TemporaryDirectory("postgresql-template")
    private var data: String { directory.path(of: "data") }

    private static let made = Mutex<PostgreSQLTemplate?>(nil)

    /// Of the directory to copy, which is there until the process ends.
    static func path() throws -> String {
        try made.withLock { made in
            if let made { return made.data }
            let template = try PostgreSQLTemplate()
            atexit { PostgreSQLTemplate.made.withLock { $0 = nil } }
            made = template
            return template.data
        }
    }

    private init() throws {
        let words =
            try PostgreSQLServer.prefix(owning: [data]) + ["\(PostgreSQLServer.folder())/initdb", "--pgdata", data]
            + ["--auth", "trust", "--username", "hearth", "--no-sync", "--locale", "C", "--encoding", "UTF8"]
        try PostgreSQLServer.waitForSuccess(
            of: HearthProcess(Array(words.dropFirst()), executable: words[0]), "initdb")
    }
}
