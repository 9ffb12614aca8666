// Members of many stores on the loops of a few servers, over a real PostgreSQL.

import Basics
import Foundation
import Glibc
import PostgreSQLLog
import Replication
import Storage
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct MemberLoopTests {
    private let server: PostgreSQLServer
    private let session: PostgreSQLSession

    init() throws {
        server = try PostgreSQLServer(options: ["max_connections=900"])
        session = try PostgreSQLSession(address: server.address)
    }

    /// A server of some stores, as a test has it.
    private final class StoreServer {
        let name: String
        let loop: MemberLoop
        var members: [TestMember] = []

        init(_ name: String, address: String) {
            self.name = name
            loop = MemberLoop(database: address)
        }

        func serve(_ stores: [(name: String, identity: StoreIdentity)]) throws {
            for store in stores {
                members.append(try TestMember(on: loop, name, of: store.name, store: store.identity))
            }
        }

        func stop() { for member in members { member.driver.stop() } }
    }

    private func stores(_ count: Int, prefix: String = "s") throws -> [(name: String, identity: StoreIdentity)] {
        try (0..<count).map { ("\(prefix)\($0)", try makeStore(server, "\(prefix)\($0)")) }
    }

    /// A server whose connections have a separate role, so that they can be counted.
    private func storeServer(_ name: String) throws -> StoreServer {
        try session.run(SQLStatement(script: "CREATE ROLE \(name) SUPERUSER LOGIN"))
        return StoreServer("\(name):1", address: "postgresql://\(name)@\(server.place)/postgres")
    }

    private func connections(of name: String) throws -> UInt64 {
        let rows = try session.run(
            SQLStatement("SELECT count(*) FROM pg_stat_activity WHERE usename = $1::text", [.text(name)]))
        return try #require(rows.first?.number(0))
    }

    /// The threads of this process with a name.
    private func threads(_ name: String) -> Int {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return tasks.count { task in
            (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)) == name + "\n"
        }
    }

    @Test
    func `One thread drives all members of a server, and the end of one is nothing to the others`() throws {
        let stores = try stores(8)
        let before = threads("cluster")
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        let second = try storeServer("second")
        try second.serve(stores)
        try waitUntil("each server has one thread") { threads("cluster") == before + 2 }
        for (index, member) in first.members.enumerated() {
            for number in 1...3 { try member.append("\(index), \(number)", version: UInt64(number)) }
        }
        for member in second.members { try member.waitFor(3) }
        // One store is closed and opened again at the first server, which still leads the others.
        let closed = first.members.removeFirst()
        closed.driver.stop()
        #expect(throws: StorageError.self) { try closed.append("late", version: 4) }
        for member in first.members { try member.append("more", version: 4) }
        try second.members[0].waitUntilLeading()
        try first.serve([stores[0]])
        try second.members[0].append("again", version: try #require(second.members[0].host.state.lowest) + 1)
        try #require(first.members.last).waitFor(4)
        for (leader, follower) in zip(first.members, second.members.dropFirst()) {
            try follower.waitFor(4)
            #expect(follower.host.state.groups == leader.host.state.groups)
        }
        for server in [first, second] { server.stop() }
        try waitUntil("the threads have ended") { threads("cluster") == before }
        try waitUntil("the connections are closed") {
            try connections(of: "first") == 0 && connections(of: "second") == 0
        }
        // The loop begins again with the next member.
        try first.serve([stores[1]])
        try #require(first.members.last).waitUntilLeading()
        try #require(first.members.last).driver.stop()
    }

    @Test
    func `A group that cannot be applied yet, and a locked lease, hold up one store and no other`() throws {
        let stores = try stores(4)
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        let second = try storeServer("second")
        try second.serve(stores)
        second.members[0].host.hold()
        try first.members[0].append("held", version: 1)
        let locking = try PostgreSQLSession(address: server.address)
        defer { locking.close() }
        try locking.run(SQLStatement("BEGIN"))
        try locking.run(SQLStatement("SELECT FROM hearth.stores WHERE name = 's1' FOR UPDATE"))
        for member in [first.members[2], first.members[3]] {
            for number in 1...50 { try member.append("\(number)", version: UInt64(number)) }
        }
        for member in [second.members[2], second.members[3]] { try member.waitFor(50) }
        #expect(first.members[2].driver.state.isLeading && first.members[3].driver.state.isLeading)
        try locking.run(SQLStatement("ROLLBACK"))
        second.members[0].host.release()
        for server in [first, second] { server.stop() }
    }
}
