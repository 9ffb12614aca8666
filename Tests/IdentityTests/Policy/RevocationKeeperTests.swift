// Revocations that several servers have in common.

import Basics
import FileSystem
import Identity
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RevocationKeeperTests {
    /// What the database of a cluster does, in memory.
    private final class Table: Sendable {
        struct State: Sendable {
            var rows: [(uid: [UInt8], moment: Int64)] = []
            /// Grows when a session ends.
            var session = 0
            var isAway = false
            var isFull = false
        }

        let state = Mutex(State())

        var users: Set<String> { state.withLock { Set($0.rows.map { String(decoding: $0.uid, as: UTF8.self) }) } }

        func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    }

    /// The table as one server has it.
    private final class Session: SharedRevocations {
        private let table: Table
        private let seen = Mutex((session: -1, rows: 0))

        init(_ table: Table) { self.table = table }

        func news() throws(RequestError) -> RevocationNews {
            let (rows, session, isAway) = table.state.withLock { ($0.rows, $0.session, $0.isAway) }
            if isAway { throw RequestError(.unavailable, "away") }
            return seen.withLock { seen in
                let isWhole = seen.session != session
                let news = rows[(isWhole ? 0 : seen.rows)...]
                seen = (session, rows.count)
                return RevocationNews(Dictionary(news.map { ($0.uid, $0.moment) }) { max($0, $1) }, isWhole: isWhole)
            }
        }

        func add(_ moments: Revocations.Moments) throws(RequestError) {
            let refusal = table.state.withLock { state -> StatusCode? in
                if state.isAway { return .unavailable }
                if state.isFull { return .resourceExhausted }
                state.rows += moments.map { ($0.key, $0.value) }
                return nil
            }
            if let refusal { throw RequestError(refusal, "refused") }
        }
    }

    private struct Server {
        let revocations: Revocations
        let keeper: RevocationKeeper

        init(_ table: Table, _ revocations: Revocations = Revocations()) {
            self.revocations = revocations
            keeper = RevocationKeeper(revocations, shared: Session(table))
        }

        func refuses(_ uid: String, signedInAt moment: Int64 = 99) -> Bool {
            revocations.isRevoked(uid: uid, signedInAt: moment)
        }
    }

    @Test
    func `A user who is revoked at one server is refused by the others, and by one that begins later`() throws {
        let table = Table()
        let servers = (0..<2).map { _ in Server(table) }
        for server in servers { try expectEqual(server.keeper.takeShared(), 0) }
        try servers[0].keeper.revoke(uid: "ada", before: 100)
        try servers[1].keeper.revoke(uid: "eve", before: 100)
        let late = Server(table)
        for server in servers + [late] {
            _ = try server.keeper.takeShared()
            expect(server.refuses("ada") && server.refuses("eve") && !server.refuses("bob"))
            try expectEqual(server.keeper.takeShared(), 0)
        }
        // Of two moments the one that reaches farther counts, wherever it comes from.
        try servers[0].keeper.revoke(uid: "ada", before: 300)
        try servers[1].keeper.revoke(uid: "ada", before: 200)
        for server in servers + [late] { _ = try server.keeper.takeShared() }
        for server in servers + [late] {
            expect(server.refuses("ada", signedInAt: 299) && !server.refuses("ada", signedInAt: 300))
        }
    }

    @Test
    func `What a server has alone becomes common: from before, and from another process`() throws {
        let directory = TemporaryDirectory("revocation-keeper")
        let path = directory.path(of: "revocations.json")
        try Revocations(path).revoke(uid: "old", before: 100)
        let table = Table()
        let (first, second) = (Server(table, try Revocations(path)), Server(table))
        try expectEqual(first.keeper.takeShared(), 0)
        try expect(second.keeper.takeShared() == 1 && second.refuses("old"))
        try Revocations(path).revoke(uid: "other", before: 100)
        try first.revocations.refresh()
        _ = try first.keeper.takeShared()
        try expect(second.keeper.takeShared() == 1 && second.refuses("other"))
        // Its file has what comes from the others.
        try second.keeper.revoke(uid: "new", before: 100)
        try expectEqual(first.keeper.takeShared(), 1)
        try expect(Revocations(path).isRevoked(uid: "new", signedInAt: 99))
    }

    @Test
    func `While the table is away a revocation is in force at its server, and the others learn of it later`() throws {
        let table = Table()
        let servers = (0..<2).map { _ in Server(table) }
        for server in servers { _ = try server.keeper.takeShared() }
        for (code, change) in [
            (StatusCode.unavailable, { $0.isAway = true }), (.resourceExhausted, { $0.isFull = true }),
        ] as [(StatusCode, (inout Table.State) -> Void)] {
            table.change(change)
            let uid = "\(code)"
            let error = #expect(throws: RequestError.self) { try servers[0].keeper.revoke(uid: uid, before: 100) }
            expect(error?.code == code && error?.message.contains("at this server only") == true)
            expect(servers[0].refuses(uid) && !table.users.contains(uid))
            expectEqual(failureCode { () throws(RequestError) in _ = try servers[0].keeper.takeShared() }, code)
            table.change { ($0.isAway, $0.isFull) = (false, false) }
            _ = try servers[0].keeper.takeShared()
            try expect(servers[1].keeper.takeShared() == 1 && servers[1].refuses(uid))
        }
    }

    @Test
    func `A table that was restored to an earlier state takes no revocation back, and gets what it lacks`() throws {
        let table = Table()
        let servers = (0..<2).map { _ in Server(table) }
        for (number, uid) in ["ada", "eve", "bob"].enumerated() {
            try servers[number % 2].keeper.revoke(uid: uid, before: 100)
            for server in servers { _ = try server.keeper.takeShared() }
        }
        table.change { state in
            state.rows.removeLast(2)
            state.session += 1
        }
        try expectEqual(servers[0].keeper.takeShared(), 0)
        for server in servers { for uid in ["ada", "eve", "bob"] { expect(server.refuses(uid)) } }
        expectEqual(table.users, ["ada", "eve", "bob"])
        let late = Server(table)
        try expectEqual(late.keeper.takeShared(), 3)
    }

    @Test
    func `Revocations that are sent are read as they were, and cut ones are refused`() throws {
        let moments: Revocations.Moments = [Array("ada".utf8): 100, []: -1, [0, 255]: .max]
        let bytes = Revocations.encode(moments)
        try expectEqual(Revocations.decode(bytes), moments)
        try expect(Revocations.decode([]).isEmpty)
        for length in 1..<bytes.count {
            guard let cut = try? Revocations.decode(Array(bytes[..<length])) else { continue }
            expect(cut.allSatisfy { moments[$0.key] == $0.value } && cut.count < moments.count)
        }
        #expect(throws: PrincipalFault.self) { try Revocations.decode([UInt8](repeating: 255, count: 12)) }
    }

    @Test
    func `On a full disk a revocation takes spare space, and without any it is in force and is kept later`() throws {
        let disk = try TemporaryDisk(megabytes: 1)
        let path = disk.path(of: "revocations.json")
        try Revocations(path).revoke(uid: "old", before: 1)
        try disk.fill()
        let none = try Revocations(path)
        let fault = #expect(throws: PrincipalFault.self) { try none.revoke(uid: "ada", before: 1) }
        expect("\(fault.map { "\($0)" } ?? "")".contains("No space left"))
        expect(none.isRevoked(uid: "ada", signedInAt: 0) && !none.isKept)
        try expect(!Revocations(path).isRevoked(uid: "ada", signedInAt: 0))
        let keeper = RevocationKeeper(none)
        let message = #expect(throws: RequestError.self) { try keeper.revoke(uid: "eve", before: 1) }?.message
        expectEqual(message?.contains("but that is not durable yet"), true)
        #expect(throws: PrincipalFault.self) { try none.refresh() }

        try disk.remove()
        let spare = SpareSpace()
        let lent = Mutex(0)
        spare.lend { bytes in
            lent.withLock { $0 += bytes }
            return (try? disk.remove("lent")) != nil
        }
        try disk.fill("lent")
        try Revocations(path, spareSpace: spare).revoke(uid: "bob", before: 1)
        expect(lent.withLock { $0 } > 0)
        try none.refresh()
        expect(none.isKept && none.isRevoked(uid: "bob", signedInAt: 0))
        let kept = try Revocations(path)
        for uid in ["old", "ada", "eve", "bob"] { expect(kept.isRevoked(uid: uid, signedInAt: 0)) }
    }

    @Test
    func `What cannot be kept here is refused, or tried again`() throws {
        let directory = TemporaryDirectory("revocation-keeper")
        let table = Table()
        let blocked = directory.path(of: "file")
        try Revocations(blocked).revoke(uid: "x", before: 1)
        // No file can be made below a file.
        let server = Server(table, try Revocations("\(blocked)/revocations.json"))
        expectEqual(
            failureCode { () throws(RequestError) in try server.keeper.revoke(uid: "ada", before: 1) },
            .failedPrecondition)
        // It is in force all the same, here and at the others.
        expect(server.refuses("ada", signedInAt: 0) && table.users == ["ada"])
        try Server(table).keeper.revoke(uid: "eve", before: 100)
        for _ in 0..<2 {
            expectEqual(
                failureCode { () throws(RequestError) in _ = try server.keeper.takeShared() }, .failedPrecondition)
        }
        for uid in ["", String(repeating: "x", count: 129)] {
            expectEqual(
                failureCode { () throws(RequestError) in try server.keeper.revoke(uid: uid, before: 1) },
                .invalidArgument)
        }
        let alone = RevocationKeeper(Revocations())
        try alone.revoke(uid: "ada", before: 1)
        try expect(!alone.isShared && alone.takeShared() == 0)
    }
}
