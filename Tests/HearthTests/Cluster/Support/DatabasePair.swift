// Two PostgreSQL servers that the tests of a suite share.

import Glibc
import PostgreSQLLog
import Synchronization
import TestSupport

/// Each test has a separate database in both servers. A suite uses its pair from one place at a time.
final class DatabasePair: @unchecked Sendable {
    // Sendable: the tests of a suite run one after the other.

    /// The home database of a test, and another one.
    struct Databases {
        let home: String
        let other: String
    }

    let home: PostgreSQLServer
    let other: PostgreSQLServer
    private var count = 0

    private static let pairs = Mutex<[String: DatabasePair]>([:])

    private init() throws {
        home = try PostgreSQLServer()
        other = try PostgreSQLServer()
    }

    /// The pair of a suite, which is there until the process ends.
    static func of(_ suite: String) throws -> DatabasePair {
        try pairs.withLock { pairs in
            if let pair = pairs[suite] { return pair }
            if pairs.isEmpty { atexit { DatabasePair.pairs.withLock { $0 = [:] } } }
            let pair = try DatabasePair()
            pairs[suite] = pair
            return pair
        }
    }

    /// Starts what an earlier test has stopped, and makes databases for this one.
    func makeDatabases() throws -> Databases {
        count += 1
        func make(_ server: PostgreSQLServer) throws -> String {
            try server.startIfStopped()
            let session = try PostgreSQLSession(address: server.address)
            defer { session.close() }
            try session.run(SQLStatement(script: "CREATE DATABASE test\(count)"))
            return server.address(of: "test\(count)")
        }
        return Databases(home: try make(home), other: try make(other))
    }
}
