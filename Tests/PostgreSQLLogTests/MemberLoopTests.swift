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

    /// Appends a group at the one of two members that leads. If the other one takes its lease over meanwhile, as on a
    /// machine without time, its append fails and it ends: a server would restart it. Then the other one gets a group.
    private func append(_ text: String, to members: [TestMember]) throws -> (leader: TestMember, other: TestMember) {
        func append(at leader: TestMember) throws {
            try leader.append(text, version: try #require(leader.host.state.lowest) + 1)
        }
        try waitUntil("a server leads") { members.contains { $0.driver.state.holdsLease } }
        let (first, second) = members[0].driver.state.holdsLease ? (members[0], members[1]) : (members[1], members[0])
        do {
            try append(at: first)
            return (first, second)
        } catch is StorageError {
            try second.waitUntilLeading()
            try append(at: second)
            return (second, first)
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
            expectEqual(follower.host.state.groups, leader.host.state.groups)
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
        expect(first.members[2].driver.state.isLeading && first.members[3].driver.state.isLeading)
        try locking.run(SQLStatement("ROLLBACK"))
        second.members[0].host.release()
        for server in [first, second] { server.stop() }
    }

    @Test
    func `A server leads although the first host of its address does not reply`() throws {
        let silent = try LoopbackSocket.silentPort()
        let stores = try stores(2)
        let first = StoreServer(
            "first:1", address: "postgresql://hearth@127.0.0.1:\(silent),\(server.place)/postgres")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        for member in first.members { try member.append("one", version: 1) }
        first.stop()
    }

    @Test
    func `The connections of a server do not grow with the stores that it follows`() throws {
        let stores = try stores(24)
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        let second = try storeServer("second")
        var most: UInt64 = 0
        for count in [2, 24] {
            try second.serve(Array(stores[second.members.count..<count]))
            for (index, member) in first.members.enumerated() {
                try member.append("\(index)", version: member.driver.state.figures.place.version + 1)
            }
            for member in second.members {
                try waitUntil("the follower has all groups") {
                    most = max(most, try connections(of: "second"))
                    return member.host.state.groups.count == first.members[0].host.state.groups.count
                }
            }
        }
        // One for rows of leases, one for groups, one for commits that wait for standbys.
        expect((1...3).contains(most))
        // Two for each store that the first server leads, and it follows none.
        try waitUntil("the leader has no further connections") { try connections(of: "first") == 48 }
        for server in [first, second] { server.stop() }
    }

    @Test
    func `A store with a long log does not hold up the others`() throws {
        let stores = try stores(6)
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        // 30 MB, of which a read has four.
        let text = String(repeating: "x", count: 500_000)
        for number in 1...60 { try first.members[0].append(text, version: UInt64(number)) }
        for member in first.members.dropFirst() { try member.append("one", version: 1) }
        let second = try storeServer("second")
        // All of them are to begin at the same time.
        let hosts = Monitor<[RecordingHost]>([])
        let othersAt = Monitor<[Int]>([])
        let long = try TestMember(on: second.loop, "second:1", of: "s0", store: stores[0].identity)
        long.host.whenApplying {
            let others = hosts.withLock { $0 }
            othersAt.update { $0.append(others.count { $0.state.groups.count == 1 }) }
        }
        try second.serve(Array(stores.dropFirst()))
        hosts.update { $0 = second.members.map(\.host) }
        try long.waitFor(60)
        let counts = othersAt.withLock { $0 }
        expect(counts.count >= 7, "the long log came in parts")
        expectEqual(counts.last, 5, "the other stores had their groups before the long log was read: \(counts)")
        expectEqual(long.host.state.groups, first.members[0].host.state.groups)
        long.driver.stop()
        for server in [first, second] { server.stop() }
    }

    @Test
    func `Shared connections that end or hang are replaced, and every store continues`() throws {
        let stores = try stores(5)
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        let second = try storeServer("second")
        try second.serve(stores)
        func expectAll(_ count: Int) throws {
            for member in first.members { try member.append("\(count)", version: UInt64(count)) }
            for member in second.members { try member.waitFor(count) }
        }
        func backends() throws -> [UInt64] {
            try session.run(SQLStatement("SELECT pid FROM pg_stat_activity WHERE usename = 'second'")).compactMap {
                $0.number(0)
            }
        }
        try expectAll(1)
        for count in 2...4 {
            try session.run(
                SQLStatement("SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE usename = 'second'"))
            try expectAll(count)
        }
        let stopped = try backends()
        expect(!stopped.isEmpty)
        for backend in stopped { kill(pid_t(backend), SIGSTOP) }
        defer { for backend in stopped { kill(pid_t(backend), SIGCONT) } }
        try expectAll(5)
        for member in second.members {
            expect(member.host.state.restarts.isEmpty)
            expect(member.host.state.events.contains { $0.contains("connectionLost") })
        }
        for server in [first, second] { server.stop() }
    }

    @Test
    func `All stores of a leader that dies are led again, by servers that share them`() throws {
        let isLong = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil
        let stores = try stores(isLong ? 200 : 30)
        let first = try storeServer("first")
        try first.serve(stores)
        for member in first.members { try member.waitUntilLeading() }
        for member in first.members { try member.append("one", version: 1) }
        let others = try ["second", "third"].map { try storeServer($0) }
        for server in others { try server.serve(stores) }
        for server in others { for member in server.members { try member.waitFor(1) } }
        let start = SystemClock.monotonicMilliseconds()
        first.stop()
        let stopped = SystemClock.monotonicMilliseconds()
        for (second, third) in zip(others[0].members, others[1].members) {
            try waitUntil("one of the servers leads") {
                second.driver.state.holdsLease || third.driver.state.holdsLease
            }
        }
        let counts = others.map { server in server.members.count { $0.driver.state.holdsLease } }
        print(
            "\(stores.count) stores led again by \(counts) after \(SystemClock.monotonicMilliseconds() - start) ms,",
            "of which \(stopped - start) to stop the leader")
        for (second, third) in zip(others[0].members, others[1].members) {
            let (leader, follower) = try append("two", to: [second, third])
            try waitUntil("the follower has the group, or has ended: \(follower.host.state)") {
                follower.host.state.groups.count >= 2 || !follower.host.state.restarts.isEmpty
            }
            if follower.host.state.restarts.isEmpty {
                expectEqual(follower.host.state.groups, leader.host.state.groups)
            }
        }
        for server in others { server.stop() }
    }

    @Test
    func `A claim whose connections cannot be opened is given up, and another server leads`() throws {
        let stores = try stores(3)
        let first = try storeServer("first")
        // Its shared connections are open; it gets no others.
        try session.run(
            SQLStatement(
                script: """
                    ALTER ROLE first NOSUPERUSER CONNECTION LIMIT 2;
                    GRANT ALL ON SCHEMA hearth TO first;
                    GRANT ALL ON ALL TABLES IN SCHEMA hearth TO first
                    """))
        try first.serve(stores)
        try waitUntil("a claim was given up") {
            first.members.contains { $0.host.state.events.contains { $0.contains("no connection could be opened") } }
        }
        let second = try storeServer("second")
        try second.serve(stores)
        for (mine, other) in zip(second.members, first.members) {
            try waitUntil("a server leads") { mine.driver.state.holdsLease || other.driver.state.holdsLease }
        }
        for server in [first, second] { server.stop() }
    }
}
