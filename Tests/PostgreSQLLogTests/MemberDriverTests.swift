// Members of a store over a real PostgreSQL.

import Basics
import Foundation
import PostgreSQLLog
import Replication
import Storage
import Synchronization
import TestSupport
import Testing

/// The versions of records as they lie in a group.
private enum FollowedVersions {
    /// That of the last record; nil without one.
    static func last(_ records: [UInt8]) -> UInt64? {
        func number(_ range: Range<Int>) -> UInt64 { records[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        var (offset, version) = (0, UInt64?.none)
        while offset < records.count {
            version = number(offset..<offset + 8)
            offset += 12 + Int(number(offset + 8..<offset + 12))
        }
        return version
    }
}

@Suite(.serialized, .timeLimit(.minutes(20)))
struct MemberDriverTests {
    private let server: PostgreSQLServer
    private let store: StoreIdentity

    init() throws {
        server = try PostgreSQLServer()
        store = try makeStore(server)
    }

    private func member(_ name: String, place: LogPlace = .start) throws -> TestMember {
        try TestMember(server.address, name, store: store, place: place)
    }

    @Test
    func `One member leads, the other applies its groups in order, large ones too, and takes over after it`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        let second = try member("second:2")
        for number in 1...20 { try first.append("group \(number)", version: UInt64(number)) }
        // Three rows.
        try first.append(String(repeating: "large", count: 260_000), version: 21)
        try second.waitFor(21)
        expectEqual(second.host.state.groups, first.host.state.groups)
        expectEqual(second.host.state.leader, "first:1")
        try waitUntil("the closed time arrives") { second.host.state.closed == 21 }
        expect(!second.driver.state.isLeading)

        first.driver.stop()
        #expect(throws: StorageError.self) { try first.append("late", version: 22) }
        try second.waitUntilLeading()
        let lowest = try #require(second.host.state.lowest)
        expect(lowest >= 21)
        try second.append("more", version: lowest + 1)
        second.driver.stop()
        // A member that begins with nothing gets the whole log.
        let third = try member("third:3")
        try third.waitFor(22)
        expectEqual(third.host.state.groups, second.host.state.groups)
        third.driver.stop()
    }

    @Test
    func `Groups that are acknowledged while the server crashes again and again are in the log, once`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        let mustStop = Atomic(false)
        let number = Atomic<UInt64>(0)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !mustStop.load(ordering: .relaxed) {
                let version = number.add(1, ordering: .relaxed).newValue
                do { try first.append("group \(version)", version: version) } catch { break }
            }
            done.signal()
        }
        for _ in 0..<4 {
            let before = first.host.state.groups.count
            try waitUntil("groups are appended") {
                first.host.state.groups.count > before + 20 || !first.host.state.restarts.isEmpty
            }
            let state = first.host.state
            try #require(state.restarts.isEmpty, "\(state.restarts), after \(state.events.suffix(20))")
            server.stop(SIGQUIT)
            try server.start()
        }
        try waitUntil("the member has found its way back") { first.driver.state.holdsLease }
        mustStop.store(true, ordering: .relaxed)
        try done.wait(until: "the last append has ended")
        expect(first.host.state.restarts.isEmpty)
        let groups = first.host.state.groups
        first.driver.stop()
        let second = try member("second:2")
        try second.waitFor(groups.count)
        try second.waitUntilLeading()
        expectEqual(second.host.state.groups, groups)
        second.driver.stop()
    }

    @Test
    func `A database that answers and refuses appends takes no commits, and the reason is reported once`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(
            SQLStatement(
                script: """
                    CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
                        AS $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$;
                    CREATE TRIGGER full_disk BEFORE INSERT ON hearth.log_main_0 EXECUTE FUNCTION full_disk();
                    """))
        let began = SystemClock.monotonicMilliseconds()
        let outcome = Monitor<Result<Void, StorageError>?>(nil)
        let group = TestMember.group("two", version: 2)
        first.driver.append(group.byteSpan, version: CommitVersion(microseconds: 2)) { result in
            outcome.update { $0 = result }
        }
        func events(_ name: String) -> [String] { first.host.state.events.filter { $0.hasPrefix(name) } }
        try waitUntil("commits are refused: \(events(""))") { !events("away").isEmpty }
        expect(first.driver.state.holdsLease)
        // Once a minute.
        let most = 1 + (SystemClock.monotonicMilliseconds() - began) / 60_000
        for name in ["statementRefused", "outcomeUnknown", "connectionLost"] {
            expect((1...most).contains(UInt64(events(name).count)), "\(events(""))")
        }
        expect(events("statementRefused").allSatisfy { $0.contains("No space left on device") })
        try session.run(SQLStatement(script: "DROP TRIGGER full_disk ON hearth.log_main_0"))
        try outcome.wait { $0 }.get()
        try waitUntil("commits are taken: \(events(""))") { !events("back").isEmpty }
        expect(first.host.state.restarts.isEmpty)
        first.driver.stop()
    }

    @Test
    func `A leader that another one has replaced learns it, and its append is not in the log`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        // What a take-over does, while the first believes that it leads.
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(SQLStatement("UPDATE hearth.stores SET epoch = epoch + 1, holder_high = 1, holder_low = 1"))
        #expect(throws: StorageError.self) { try first.append("two", version: 2) }
        try waitUntil("the first restarts") { first.host.state.restarts == [.deposed] }
        expect(!first.driver.state.holdsLease)
        let rows = try session.run(SQLStatement("SELECT count(*) FROM hearth.log_main_0"))
        expectEqual(rows.first?.number(0), 1)
        first.driver.stop()
    }

    @Test
    func `A member whose state is not in the log learns whether a base or nothing continues it`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        for number: UInt64 in 1...3 { try first.append("group \(number)", version: number) }
        let strange = try member("strange:1", place: LogPlace(sequence: 2, hash: 99, version: 2))
        try waitUntil("the strange one restarts") { strange.host.state.restarts == [.diverged] }
        let ahead = try member("ahead:1", place: LogPlace(sequence: 9, hash: 99, version: 9))
        try waitUntil("the one ahead restarts") { ahead.host.state.restarts == [.diverged] }

        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        let place = first.driver.state.figures.place
        try session.run(
            SQLStatement(
                "INSERT INTO hearth.bases VALUES ('main', 1, $1::bigint, $2::bigint, $3::bigint, 0, now(), '', 0)",
                [.number(place.sequence), .number(place.hash), .number(place.version)]))
        try session.run(SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence < 3"))
        let outdated = try member("outdated:1", place: LogPlace(sequence: 1, hash: 5, version: 1))
        try waitUntil("the outdated one restarts") { outdated.host.state.restarts == [.outdated] }
        for member in [first, strange, ahead, outdated] { member.driver.stop() }
    }

    @Test
    func `Records after any version come from memory and from the database, unless they have been trimmed`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        var records: [[UInt8]] = []
        for number: UInt64 in 1...20 {
            // Two records in a group.
            let group = TestMember.group("odd", version: 2 * number - 1) + TestMember.group("even", version: 2 * number)
            try first.append(group, version: 2 * number)
            records.append(group)
        }
        let place = try #require(
            first.driver.durableGroups(
                after: SharedLogPlace(store: store, sequence: 0, hash: 0), bytesMax: 12 * records[0].count)?.end)
        // It has the groups after the twelfth in memory.
        let second = try member("second:2", place: LogPlace(sequence: 12, hash: place.hash, version: 24))
        try second.waitFor(8)
        func read(_ member: TestMember, after version: UInt64, bytesMax: Int) throws -> [UInt8] {
            try member.driver.records(after: CommitVersion(microseconds: version), bytesMax: bytesMax)
        }
        func expectAll(_ member: TestMember, after version: UInt64) throws {
            var found: [UInt8] = []
            var reached = version
            while reached < 40 {
                let next = try read(member, after: reached, bytesMax: 100)
                try #require(!next.isEmpty)
                found += next
                reached = try #require(FollowedVersions.last(next))
            }
            expectEqual(found, Array(records[Int(version / 2)...].joined()), "after \(version)")
            try expect(read(member, after: 40, bytesMax: 100).isEmpty)
        }
        for version: UInt64 in [0, 1, 2, 11, 22, 23, 24, 25, 39] {
            for member in [first, second] { try expectAll(member, after: version) }
        }
        try expectEqual(second.driver.recordsStart(), .zero)
        for member in [first, second] { member.driver.stop() }

        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(
            SQLStatement(
                "INSERT INTO hearth.bases VALUES ('main', 1, 12, $1::bigint, 24, 0, now(), '', 0)",
                [.number(place.hash)]))
        try session.run(SQLStatement("ALTER TABLE hearth.log_main_0 RENAME TO log_main_1"))
        try session.run(SQLStatement("DELETE FROM hearth.log_main_1 WHERE sequence < 12"))
        try expectEqual(second.driver.recordsStart(), CommitVersion(microseconds: 24))
        try expectEqual(LogLookup.place(before: 25, second.driver.settings.tables, session).sequence, 12)
        let error = #expect(throws: StorageError.self) { try read(second, after: 11, bytesMax: 100) }
        expectEqual(error?.code, .versionTooOld)
        server.stop(SIGQUIT)
        let away = #expect(throws: StorageError.self) { try read(second, after: 11, bytesMax: 100) }
        expectEqual(away?.code, .inputOutput)
        try expectEqual(read(second, after: 24, bytesMax: 1), records[12])
    }

    @Test
    func `A follower gets groups over the stream while the database is away, if it has those before them`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        let second = try member("second:2")
        for number: UInt64 in 1...3 { try first.append("group \(number)", version: number) }
        try waitUntil("the third group is there") { second.driver.state.figures.place.sequence == 3 }
        let place = SharedLogPlace(
            store: store, sequence: 3, hash: second.driver.state.figures.place.hash)
        for number: UInt64 in 4...5 { try first.append("group \(number)", version: number) }
        try second.waitFor(5)
        let sent = try #require(first.driver.durableGroups(after: place, bytesMax: 1))
        expectEqual(sent.end.sequence, 4)
        let more = try #require(first.driver.durableGroups(after: sent.end, bytesMax: 1 << 20))
        expectEqual(first.driver.durableGroups(after: more.end, bytesMax: 1)?.bytes.isEmpty, true)
        let strange = SharedLogPlace(store: store, sequence: 3, hash: 1)
        expectNil(first.driver.durableGroups(after: strange, bytesMax: 1))

        let third = try member("third:3", place: LogPlace(sequence: 3, hash: place.hash, version: 3))
        server.stop(SIGQUIT)
        // The fifth group alone does not continue what the third one has.
        let groups = try #require(LoggedGroup.decode(sent.bytes + more.bytes, of: store))
        expect(!third.receive(Array(groups.dropFirst()), after: 4, closed: 9) || third.host.state.groups.count == 2)
        if third.host.state.groups.isEmpty {
            // A time that was sent after groups that were refused is not closed.
            expect(!third.receive([], after: 5, closed: 9))
            expectEqual(third.host.state.closed, 0)
            expect(third.receive(groups, after: 3, closed: 9))
        }
        expectEqual(third.host.state.groups, Array(first.host.state.groups.suffix(2)))
        expectEqual(third.host.state.closed, 9)
        for member in [first, second, third] { member.driver.stop() }
    }

    @Test
    func `Groups that come over the stream while others are applied are applied together, before their time`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        for number: UInt64 in 1...6 { try first.append("group \(number)", version: number) }
        let start = SharedLogPlace(store: store, sequence: 0, hash: 0)
        let bytes = try #require(first.driver.durableGroups(after: start, bytesMax: 1 << 20)?.bytes)
        let groups = try #require(LoggedGroup.decode(bytes, of: store))
        server.stop(SIGQUIT)
        let second = try member("second:2")
        second.host.hold()
        let outcomes = Monitor<[Bool]>([])
        func send(_ range: Range<Int>, closed: UInt64) {
            second.driver.receive(Array(groups[range]), after: UInt64(range.lowerBound), closed: closed) { isTaken in
                outcomes.update { $0.append(isTaken) }
            }
        }
        send(0..<2, closed: 0)
        try second.waitFor(2)
        send(2..<3, closed: 0)
        send(3..<3, closed: 3)
        send(3..<6, closed: 0)
        send(6..<6, closed: 9)
        expect(second.host.state.groups.count == 2 && second.host.state.closed == 0)
        second.host.release()
        _ = outcomes.wait { $0.count == 5 ? true : nil }
        expectEqual(outcomes.withLock { $0 }, [true, true, true, true, true])
        expectEqual(second.host.state.groups, first.host.state.groups)
        expectEqual(second.host.state.applications, 2)
        expectEqual(second.host.state.closed, 9)
        for member in [first, second] { member.driver.stop() }
    }

    @Test
    func `A follower does not apply a group that no synchronous standby has confirmed`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        let second = try member("second:2")
        try waitUntil("the first group is there") { second.driver.state.figures.place.sequence == 1 }
        let address = server.address
        let session = try PostgreSQLSession(address: address)
        defer { session.close() }
        func setStandby(_ name: String) throws {
            try session.run(SQLStatement("ALTER SYSTEM SET synchronous_standby_names = '\(name)'"))
            try session.run(SQLStatement("SELECT pg_reload_conf()"))
            try waitUntil("the setting is in force") {
                try session.run(SQLStatement("SHOW synchronous_standby_names")).first?.text(0) == name
            }
        }
        func waiting(_ words: String) throws -> Bool {
            let rows = try session.run(
                SQLStatement(
                    """
                    SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND starts_with(query, $1::text)
                    """, [.text(words)]))
            return (rows.first?.number(0) ?? 0) > 0
        }
        /// The checkpointer lets sessions wait for standbys, and may read the setting later than this session.
        func waitUntilCommitsWait() throws {
            let probe = "SELECT pg_logical_emit_message(true, 'probe', '')"
            let ended = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                do {
                    let session = try PostgreSQLSession(address: address)
                    while true { _ = try session.run(SQLStatement(probe), withinMilliseconds: 300_000) }
                } catch {
                    ended.signal()
                }
            }
            try waitUntil("a commit waits for the standby") { try waiting(probe) }
            try session.run(
                SQLStatement(
                    """
                    SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
                    WHERE wait_event = 'SyncRep' AND starts_with(query, $1::text)
                    """, [.text(probe)]))
            try ended.wait(until: "the probe has ended")
        }
        try setStandby("a_standby_that_does_not_exist")
        try waitUntilCommitsWait()
        first.driver.stop()
        // The next group as a leader appends it.
        let records = TestMember.group("two", version: 2)
        let header = GroupHeader(
            store: store, epoch: Epoch(1), after: second.driver.state.figures.place, version: 2,
            contentHash: LoggedGroup.contentHash(records))
        let appending = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let session = try? PostgreSQLSession(address: address)
            _ = try? session?.run(
                SQLStatement(
                    """
                    INSERT INTO hearth.log_main_0 VALUES (2, 0, 1, 1, $1::bigint, 2, $2::bigint, $3::bigint, $4::bytea,
                        $5::bytea)
                    """,
                    [
                        .number(header.previousHash), .number(header.contentHash), .number(header.hash),
                        .bytes(records), .bytes([2]),
                    ]), withinMilliseconds: 300_000)
            appending.signal()
        }
        try waitUntil("the append waits for its standby") { try waiting("INSERT INTO hearth.log_main_0") }
        // The wait is cut off: the primary has the group now, and the standby may not.
        try session.run(
            SQLStatement(
                """
                SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity
                WHERE wait_event = 'SyncRep' AND starts_with(query, 'INSERT INTO hearth.log_main_0')
                """))
        try appending.wait(until: "the append has ended")
        try waitUntil("the second one has read the group, and waits for the standby") {
            try waiting("INSERT INTO hearth.servers")
        }
        expectEqual(second.host.state.groups.count, 1)
        try setStandby("")
        try second.waitFor(2)
        second.driver.stop()
    }

    @Test
    func `A member that has derived something else from a group begins again`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        for number: UInt64 in 1...3 { try first.append("group \(number)", version: number) }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(SQLStatement("UPDATE hearth.log_main_0 SET derived = '\\x09' WHERE sequence = 2"))
        let second = try member("second:2")
        try waitUntil("the second one begins again") {
            second.host.state.restarts == [.differs(keySpace: "test", sequence: 2)]
        }
        for member in [first, second] { member.driver.stop() }
    }

    @Test
    func `A server reports another one that leads under its address, and not what it was before a start`() throws {
        let first = try member("same:1")
        try first.waitUntilLeading()
        let second = try member("same:1")
        let taken = "\(MemberEvent.addressIsTaken)"
        try waitUntil("it is reported: \(second.host.state.events)") { second.host.state.events.contains(taken) }
        first.driver.stop()
        try second.waitUntilLeading()
        expectEqual(second.host.state.events.count { $0 == taken }, 1)
        second.driver.stop()
        let third = try member("same:1")
        try third.waitUntilLeading()
        expect(!third.host.state.events.contains(taken))
        third.driver.stop()
    }

    @Test
    func `A group that lacks a row is damage, and nothing after it is closed`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        // Three rows.
        try first.append(String(repeating: "large", count: 260_000), version: 2)
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try waitUntil("the time is closed") {
            try session.run(SQLStatement("SELECT closed FROM hearth.stores")).first?.number(0) == 2
        }
        first.driver.stop()
        try session.run(SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence = 2 AND piece = 2"))
        let second = try member("second:2")
        try waitUntil("the damage is reported: \(second.host.state.events)") {
            second.host.state.events.contains { $0.contains("group 2 lacks pieces") } || second.host.state.closed > 0
        }
        expect(second.host.state.closed < 2 && second.host.state.lowest == nil)
        second.driver.stop()
        let reader = LogReader(session, second.driver.settings.tables, of: store, after: .start)
        let error = #expect(throws: StorageError.self) { while try !reader.next().isEmpty {} }
        expectEqual(error?.code, .corrupt)
    }

    /// The connections of all members end, as when a standby takes the place of the primary.
    private func endConnections(_ session: PostgreSQLSession) throws {
        try session.run(
            SQLStatement(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
                """))
    }

    @Test
    func `A leader that has nothing to append learns that the database has lost its last group`() throws {
        let leader = try member("first:1")
        try leader.waitUntilLeading()
        for number: UInt64 in 1...2 { try leader.append("group \(number)", version: number) }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        // Nothing is lost.
        try endConnections(session)
        try waitUntil("it is connected again: \(leader.host.state.events)") {
            leader.host.state.events.count { $0.contains("connected(\"log\")") } > 1
        }
        try leader.append("group 3", version: 3)
        expect(leader.host.state.restarts.isEmpty)
        // A standby that lacks the group has taken over.
        try session.run(SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence = 3"))
        try endConnections(session)
        try waitUntil("it restarts: \(leader.host.state.events)") { leader.host.state.restarts == [.deposed] }
        expectEqual(leader.driver.state.figures.reached.sequence, 3)
        leader.driver.stop()
    }

    @Test
    func `A leader that was replaced does not bring back a table that its successor has dropped`() throws {
        let leader = try member("first:1")
        try leader.waitUntilLeading()
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(
            SQLStatement(
                script: """
                    UPDATE hearth.stores SET epoch = epoch + 1, holder_high = 1, holder_low = 1;
                    DROP TABLE IF EXISTS hearth.log_main_0
                    """))
        #expect(throws: StorageError.self) { try leader.append("one", version: 1) }
        try waitUntil("it restarts: \(leader.host.state.events)") { leader.host.state.restarts == [.deposed] }
        let isGone = try session.run(SQLStatement("SELECT to_regclass('hearth.log_main_0') IS NULL"))
        expectEqual(isGone.first?.number(0), 1)
        leader.driver.stop()
    }

    @Test
    func `A server that cannot read the log to its end leaves the lease to one that can`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        let second = try member("second:2")
        try waitUntil("it has applied the group") { second.driver.state.figures.place.sequence == 1 }
        // It claims the lease while it applies a group, and reads the next one as the holder.
        second.host.hold()
        try first.append("two", version: 2)
        try second.waitFor(2)
        // Three rows.
        try first.append(String(repeating: "large", count: 260_000), version: 3)
        try waitUntil("its figures have the group") { first.driver.state.figures.place.sequence == 3 }
        let end = first.driver.state.figures.place
        first.driver.stop()
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence = 3 AND piece = 2"))
        try waitUntil("it holds the lease: \(second.host.state.events)") {
            try session.run(SQLStatement("SELECT address FROM hearth.stores")).first?.text(0) == "second:2"
        }
        second.host.release()
        // It has what the other one cannot read.
        let third = try member("third:3", place: end)
        try waitUntil("third leads: \(second.host.state.events)") { third.driver.state.holdsLease }
        expect(second.host.state.events.contains { $0.contains("claimGivenUp") })
        try waitUntil("its role says why") { second.driver.state.figures.role == "cannot read the log" }
        // It can read what is whole.
        try session.run(SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence = 3"))
        try waitUntil("it follows") { second.driver.state.figures.role == "following" }
        for member in [second, third] { member.driver.stop() }
    }

    @Test
    func `No lease is handed over to a server whose clock is wrong`() throws {
        let difference = Atomic<UInt64>(3_600_000_000)
        let first = try member("first:1")
        try first.waitUntilLeading()
        let second = try TestMember(server.address, "second:2", store: store) {
            SystemClock.microseconds() + difference.load(ordering: .relaxed)
        }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        /// What the servers announce, and who is seen as one that can lead.
        func candidates() throws -> [String] {
            for (name, member) in [("first:1", first), ("second:2", second)] {
                let tables = StoreTables(name: "main", advertised: name)
                try session.run(tables.announcement(member.driver.state.figures, version: "1"))
            }
            return try session.run(StoreTables.servers(of: ["main"])).map { $0.text(0) }.sorted()
        }
        try waitUntil("its role says why") { second.driver.state.figures.role == "its clock is wrong" }
        try expectEqual(candidates(), ["first:1"])
        try expectEqual(session.run(StoreTables.servers(ofEach: ["main"])).map { $0.text(1) }, ["first:1"])
        difference.store(0, ordering: .relaxed)
        try waitUntil("it can lead") { try candidates() == ["first:1", "second:2"] }
        for member in [first, second] { member.driver.stop() }
    }

    @Test
    func `A leader's clock that jumps ahead does not take the ceiling along`() throws {
        let ahead = Atomic<UInt64>(0)
        let hour: UInt64 = 3_600_000_000
        let leader = try TestMember(server.address, "first:1", store: store) {
            SystemClock.microseconds() + ahead.load(ordering: .relaxed)
        }
        try leader.waitUntilLeading()
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        func row() throws -> (renewals: UInt64, ceiling: UInt64) {
            let row = try session.run(SQLStatement("SELECT renewals, ceiling FROM hearth.stores")).first
            return (row?.number(0) ?? 0, row?.number(1) ?? 0)
        }
        ahead.store(hour, ordering: .relaxed)
        let before = try row().renewals
        try waitUntil("the lease is renewed") { try row().renewals > before + 3 }
        try expect(row().ceiling < SystemClock.microseconds() + hour / 2)
        expect(leader.host.state.events.contains { $0.contains("clockDiffers") })
        expect(!leader.host.state.events.contains { $0.contains("clockAgrees") })
        ahead.store(0, ordering: .relaxed)
        try waitUntil("it notes that its clock is right again") {
            leader.host.state.events.contains { $0.contains("clockAgrees") }
        }
        leader.driver.stop()
    }

    @Test
    func `A damaged log is reported once`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        for number: UInt64 in 1...3 { try first.append("group \(number)", version: number) }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        func reads() throws -> UInt64 {
            let row = try session.run(
                SQLStatement("SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'log_main_0'")
            ).first
            return row?.number(0) ?? 0
        }
        try session.run(SQLStatement("UPDATE hearth.log_main_0 SET hash = hash + 1 WHERE sequence = 2"))
        let second = try member("second:2")
        try waitUntil("its role says why") { second.driver.state.figures.role == "cannot read the log" }
        let before = try reads()
        try waitUntil("it has read several times") { try reads() >= before + 3 }
        expectEqual(second.host.state.events.count { $0.contains("damaged") }, 1, "\(second.host.state.events)")
        for member in [first, second] { member.driver.stop() }
    }

    /// A server with another role, for which row security counts.
    private func restricted(_ session: PostgreSQLSession, _ policy: String) throws -> TestMember {
        try session.run(
            SQLStatement(
                script: """
                    CREATE ROLE restricted LOGIN;
                    GRANT ALL ON SCHEMA hearth TO restricted;
                    GRANT ALL ON ALL TABLES IN SCHEMA hearth TO restricted;
                    \(policy)
                    """))
        return try TestMember("postgresql://restricted@\(server.place)/postgres", "second:2", store: store)
    }

    @Test(arguments: [0, 2] as [UInt64])
    func `A server whose connection for the log does not see its lease does not lead by it`(groups: UInt64) throws {
        if groups > 0 {
            let first = try member("first:1")
            try first.waitUntilLeading()
            for number in 1...groups { try first.append("group \(number)", version: number) }
            first.driver.stop()
        }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        // As a primary of the past would be. Only this connection waits without end.
        let second = try restricted(
            session,
            """
            ALTER TABLE hearth.stores ENABLE ROW LEVEL SECURITY;
            CREATE POLICY past ON hearth.stores USING (current_setting('statement_timeout') <> '0')
            """)
        try waitUntil("the claim is given up: \(second.host.state.events)") {
            let state = second.host.state
            return state.events.contains { $0.contains("claimGivenUp") } || !state.restarts.isEmpty
                || second.driver.state.holdsLease
        }
        expect(!second.driver.state.holdsLease && second.host.state.restarts.isEmpty)
        try session.run(SQLStatement(script: "ALTER TABLE hearth.stores DISABLE ROW LEVEL SECURITY"))
        try second.waitUntilLeading()
        expectEqual(second.host.state.groups.count, Int(groups))
        second.driver.stop()
    }

    @Test
    func `A follower applies only what the database has in which the commit after it waits for the standby`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 1)
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        // What the connection for such commits sees, since it leads to another server of the database.
        let second = try restricted(
            session,
            """
            ALTER TABLE hearth.log_main_0 ENABLE ROW LEVEL SECURITY;
            CREATE POLICY past ON hearth.log_main_0
                USING (sequence < 2 OR current_query() NOT LIKE '%hearth.servers%')
            """)
        try second.waitFor(1)
        try first.append("two", version: 2)
        try waitUntil("it has tried to confirm the group: \(second.host.state.events)") {
            let state = second.host.state
            return state.events.contains { $0.contains("does not have what was read") } || state.groups.count > 1
        }
        expectEqual(second.host.state.groups.count, 1)
        try session.run(SQLStatement(script: "ALTER TABLE hearth.log_main_0 DISABLE ROW LEVEL SECURITY"))
        try second.waitFor(2)
        for member in [first, second] { member.driver.stop() }
    }

    @Test
    func `The records of a log that lacks the last group of a server are refused`() throws {
        let first = try member("first:1")
        try first.waitUntilLeading()
        try first.append("one", version: 20)
        try first.append("two", version: 60)
        // The database was restored since it was here.
        let strange = try member("strange:1", place: LogPlace(sequence: 2, hash: 99, version: 50))
        let outcome = Monitor<Result<[UInt8], StorageError>?>(nil)
        Thread.detachNewThread {
            let found = Result { () throws(StorageError) in
                try strange.driver.records(after: CommitVersion(microseconds: 10), bytesMax: 1 << 20)
            }
            outcome.update { $0 = found }
        }
        var found: Result<[UInt8], StorageError>?
        try waitUntil("the records are read, or refused") {
            found = outcome.withLock { $0 }
            return found != nil
        }
        #expect(throws: StorageError.self) { try found?.get() }
        for member in [first, strange] { member.driver.stop() }
    }

    @Test
    func `A leader takes a time above the ceiling when the ceiling has been raised`() throws {
        let leader = try member("first:1")
        try leader.waitUntilLeading()
        let time = SystemClock.microseconds() + 1_800_000_000
        try waitUntil("the lease is renewed") { leader.driver.admits(1) }
        expect(!leader.driver.admits(time))
        try waitUntil("the ceiling is raised") { leader.driver.admits(time) }
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        let ceiling = try session.run(SQLStatement("SELECT ceiling FROM hearth.stores")).first?.number(0)
        try expect(#require(ceiling) > time)
        leader.driver.stop()
    }

    @Test
    func `A leader whose last group went with its table is deposed by the first group of the next table`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        // Its last group fills a table.
        let records = TestMember.group("base", version: 10)
        let header = GroupHeader(
            store: store, epoch: Epoch(1), sequence: StoreTables.groupsPerTable, previousHash: 4, version: 10,
            contentHash: LoggedGroup.contentHash(records))
        try session.run(
            SQLStatement(
                script: """
                    CREATE TABLE hearth.log_main_0 (sequence bigint, piece integer, pieces integer, epoch bigint,
                        previous_hash bigint, version bigint, content_hash bigint, hash bigint, data bytea,
                        derived bytea, PRIMARY KEY (sequence, piece))
                    """))
        try session.run(
            SQLStatement(
                "INSERT INTO hearth.log_main_0 VALUES ($1::bigint, 0, 1, 1, 4, 10, $2::bigint, $3::bigint, $4::bytea)",
                [.number(header.sequence), .number(header.contentHash), .number(header.hash), .bytes(records)]))
        let leader = try member("first:1", place: header.place)
        try leader.waitUntilLeading()
        // A standby without the table takes over.
        try session.run(SQLStatement(script: "DROP TABLE hearth.log_main_0"))
        let outcome = Monitor<Result<Void, StorageError>?>(nil)
        leader.driver.append(TestMember.group("next", version: 11).byteSpan, version: CommitVersion(microseconds: 11)) {
            result in outcome.update { $0 = result }
        }
        try waitUntil("it is deposed: \(leader.host.state.events)") { leader.host.state.restarts == [.deposed] }
        #expect(throws: StorageError.self) { try outcome.wait { $0 }.get() }
        leader.driver.stop()
    }

    @Test
    func `Groups continue in the next table`() throws {
        let per = StoreTables.groupsPerTable
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        // A log whose first table is nearly full: its last group is a base.
        let header = GroupHeader(
            store: store, epoch: Epoch(1), sequence: per - 1, previousHash: 4, version: 10,
            contentHash: LoggedGroup.contentHash(TestMember.group("base", version: 10)))
        try session.run(
            SQLStatement(
                """
                CREATE TABLE hearth.log_main_0 (sequence bigint, piece integer, pieces integer, epoch bigint,
                previous_hash bigint, version bigint, content_hash bigint, hash bigint, data bytea,
                PRIMARY KEY (sequence, piece))
                """))
        try session.run(
            SQLStatement(
                // A table of an earlier version, without a column.
                """
                INSERT INTO hearth.log_main_0 VALUES ($1::bigint, 0, 1, 1, 4, 10, $2::bigint, $3::bigint, $4::bytea)
                """,
                [
                    .number(per - 1), .number(header.contentHash), .number(header.hash),
                    .bytes(TestMember.group("base", version: 10)),
                ]))
        let first = try member("first:1", place: header.place)
        let second = try member("second:1", place: header.place)
        try waitUntil("one leads") { first.driver.state.holdsLease || second.driver.state.holdsLease }
        let (leader, other) = first.driver.state.holdsLease ? (first, second) : (second, first)
        for number: UInt64 in 11...15 { try leader.append("group \(number)", version: number) }
        try other.waitFor(5)
        expectEqual(other.host.state.groups, leader.host.state.groups)
        let rows = try session.run(SQLStatement("SELECT count(*) FROM hearth.log_main_1"))
        expectEqual(rows.first?.number(0), 4)
        for member in [first, second] { member.driver.stop() }
    }
}
