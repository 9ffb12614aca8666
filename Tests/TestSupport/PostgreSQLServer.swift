// A PostgreSQL server for tests, on a temporary directory.

import Foundation
import Glibc

/// A server that listens on a port of 127.0.0.1, and is gone when the test is over.
package final class PostgreSQLServer: @unchecked Sendable {
    // Sendable: a test starts and stops it from one place at a time.

    /// There is no server; the text says what to do.
    package struct StartError: Error, CustomStringConvertible {
        package let description: String
    }

    private let directory: TemporaryDirectory
    private let folder: String
    private let prefix: [String]
    private let options: [String]
    private var process: HearthProcess?
    package let port: Int

    /// A connection string for a server's databases.
    package var address: String { "postgresql://hearth@127.0.0.1:\(port)/postgres" }

    /// Where Debian has the programs of a server.
    private static func folder() throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.max(by: { (Int($0) ?? 0) < (Int($1) ?? 0) }) else {
            throw StartError(
                description: "PostgreSQL is not installed in \(root): run Tools/install-dependencies --tests")
        }
        return "\(root)/\(newest)/bin"
    }

    /// Makes a cluster of databases and starts its server.
    ///
    /// - Parameter options: further settings, as `name=value`.
    package init(options: [String] = []) throws {
        folder = try Self.folder()
        self.options = options
        directory = TemporaryDirectory("postgresql")
        let data = directory.path(of: "data")
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
        var prefix: [String] = []
        // The server refuses to run as root.
        if getuid() == 0 {
            guard let user = getpwnam("postgres") else {
                throw StartError(description: "there is no user postgres, as which the server is run")
            }
            guard chown(data, user.pointee.pw_uid, user.pointee.pw_gid) == 0 else {
                throw StartError(description: "the directory cannot be given to the user postgres: errno \(errno)")
            }
            prefix = ["/usr/bin/setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        }
        self.prefix = prefix
        port = try LoopbackSocket.freePort()
        let made = Self.command(
            prefix + [
                "\(folder)/initdb", "--pgdata", data, "--auth", "trust", "--username", "hearth", "--no-sync",
                "--locale", "C", "--encoding", "UTF8",
            ])
        try made.start()
        made.waitForEnd()
        guard made.status == 0 else { throw StartError(description: "initdb failed: \(made.errors)") }
        try start()
    }

    deinit { stop(SIGQUIT) }

    private static func command(_ words: [String]) -> HearthProcess {
        HearthProcess(Array(words.dropFirst()), executable: words[0])
    }

    /// Starts the server and waits until it takes connections.
    package func start() throws {
        var words = prefix + ["\(folder)/postgres", "-D", directory.path(of: "data"), "-p", String(port)]
        let settings = [
            "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=60", "shared_buffers=16MB",
        ]
        for setting in settings + options { words += ["-c", setting] }
        let process = Self.command(words)
        try process.start()
        guard process.waitForError("ready to accept connections") else {
            throw StartError(description: "the server does not start: \(process.errors)")
        }
        self.process = process
    }

    /// Ends the server: SIGINT ends its sessions, SIGQUIT ends it as a crash would.
    package func stop(_ signal: Int32) {
        guard let process else { return }
        self.process = nil
        process.signal(signal)
        process.waitForEnd()
    }
}

extension LoopbackSocket {
    /// A port on which nobody listens now.
    package static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 ? getsockname(descriptor, pointer, &length) : -1
            }
        }
        guard result == 0 else { throw PostgreSQLServer.StartError(description: "no free port: errno \(errno)") }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
