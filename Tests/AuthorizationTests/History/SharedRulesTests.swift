// Rules that several servers have in common.

import Authorization
import AuthorizationTestSupport
import Basics
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SharedRulesTests {
    /// What the database of a cluster does, in memory.
    private final class Table: SharedRules {
        private let state = Mutex(
            (texts: [(number: Int, text: String)](), isAway: false, intruders: [String](), session: UInt64(1)))

        var texts: [Int] { state.withLock { $0.texts.map(\.number) } }

        func set(isAway: Bool) { state.withLock { $0.isAway = isAway } }

        /// Another server adds these right before the next texts.
        func intrude(_ texts: [String]) { state.withLock { $0.intruders = texts } }

        /// The texts after a number are lost, as when a standby takes over that lacks them.
        func lose(after number: Int) {
            state.withLock { state in
                state.texts.removeAll { $0.number > number }
                state.session += 1
            }
        }

        private func check() throws(RequestError) {
            if state.withLock({ $0.isAway }) { throw RequestError(.unavailable, "away") }
        }

        func news(after seen: SeenRules) throws(RequestError) -> RulesNews {
            try check()
            return state.withLock { state in
                let last = state.session == seen.session ? nil : state.texts.last?.number
                return RulesNews(
                    texts: state.texts.filter { $0.number > seen.number || $0.number == last }, session: state.session)
            }
        }

        func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool {
            try check()
            return state.withLock { state in
                if !state.intruders.isEmpty {
                    state.texts.append(((state.texts.last?.number ?? 0) + 1, state.intruders.removeFirst()))
                }
                guard state.texts.last?.number ?? 0 == last else { return false }
                state.texts.append((number, text))
                return true
            }
        }
    }

    private final class Server {
        let directory = TemporaryDirectory("shared-rules", on: .memory)
        let authorization: Authorization
        let keeper: RulesKeeper
        var history: RulesHistory { RulesHistory(dataDirectory: directory.path) }

        init(_ table: Table?, file: String? = nil) throws {
            authorization = try TestAuthorization.make(nil, mode: .closed)
            keeper = RulesKeeper(
                RulesHistory(dataDirectory: directory.path), authorization: authorization, file: file, shared: table)
        }

        var inForce: String? { authorization.state.rules(of: "p")?.ruleset.source.text }
    }

    private static func text(_ collection: String) -> String {
        "service cloud.firestore { match /databases/{d}/documents { match /\(collection)/{x} { allow read; } } }"
    }

    @Test
    func `What is applied at one server is taken over by the others, with its history and numbers`() throws {
        let table = Table()
        let servers = try (0..<3).map { _ in try Server(table) }
        for (number, name) in ["a", "b", "c"].enumerated() {
            let answer = try servers[number].keeper.apply(Self.text(name))
            expect(answer.changed && answer.rules.number == Int64(number + 1))
            expectEqual(servers[number].inForce, Self.text(name))
        }
        for server in servers {
            _ = try server.keeper.takeShared()
            expectEqual(server.inForce, Self.text("c"))
            try expectEqual(server.keeper.list().rules.map(\.number), [1, 2, 3])
            try expectNil(server.keeper.takeShared())
        }
        // A rollback at a server that has not taken the last one yet goes back from that one.
        _ = try servers[0].keeper.apply(Self.text("d"))
        let answer = try servers[1].keeper.rollback()
        expect(answer.rules.number == 5 && servers[1].inForce == Self.text("c"))
        // Two changes that come together, of which the last leads back to what is in force.
        try expectEqual(servers[2].keeper.takeShared(), 5)
        try expectEqual(servers[2].keeper.list().rules.map(\.number), [1, 2, 3, 4, 5])
        expectEqual(servers[2].inForce, Self.text("c"))
        // One that begins has all of it.
        let late = try Server(table)
        try late.keeper.joinShared()
        expect(late.inForce == Self.text("c") && table.texts == [1, 2, 3, 4, 5])
        try expectEqual(late.keeper.list().rules.map(\.number), [1, 2, 3, 4, 5])
    }

    @Test
    func `A text that another server applies meanwhile comes first`() throws {
        let table = Table()
        let server = try Server(table)
        table.intrude([Self.text("a"), Self.text("b")])
        let answer = try server.keeper.apply(Self.text("c"))
        expect(answer.rules.number == 3 && server.inForce == Self.text("c") && table.texts == [1, 2, 3])
        // The same text is not added again, also if the other one was the last to apply it.
        table.intrude([])
        let other = try Server(table)
        _ = try other.keeper.apply(Self.text("d"))
        let again = try server.keeper.apply(Self.text("d"))
        expect(!again.changed && table.texts == [1, 2, 3, 4] && server.inForce == Self.text("d"))
        table.intrude((0..<9).map { Self.text("x\($0)") })
        expectEqual(failureCode { () throws(RequestError) in _ = try server.keeper.apply(Self.text("e")) }, .aborted)
    }

    @Test
    func `The first server with rules makes them those of all, and the others give theirs up`() throws {
        let table = Table()
        let (first, second, empty) = (try Server(table), try Server(table), try Server(table))
        for name in ["a", "b"] { _ = try first.history.append(Self.text(name)) }
        for name in ["x", "y", "z"] { _ = try second.history.append(Self.text(name)) }
        for server in [empty, first, second] { try server.keeper.joinShared() }
        expect(table.texts == [2] && second.inForce == Self.text("b"))
        // Numbers agree from the next one on.
        let answer = try second.keeper.apply(Self.text("c"))
        expect(answer.rules.number == 5 && table.texts == [2, 5])
        for server in [empty, first] {
            try expectEqual(server.keeper.takeShared(), 5)
            try expect(server.inForce == Self.text("c") && server.history.newest() == 5)
        }
    }

    @Test
    func `Where the table has lost rules, the servers go back with it, and on together`() throws {
        let table = Table()
        let servers = try (0..<2).map { _ in try Server(table) }
        for name in ["a", "b", "c", "d"] { _ = try servers[0].keeper.apply(Self.text(name)) }
        _ = try servers[1].keeper.takeShared()
        table.lose(after: 2)
        try expectEqual(servers[1].keeper.takeShared(), 2)
        expectEqual(servers[1].inForce, Self.text("b"))
        try expectNil(servers[1].keeper.takeShared())
        // Others take the numbers of those that were lost before this server looks.
        let late = try Server(table)
        try late.keeper.joinShared()
        for name in ["e", "f"] { _ = try late.keeper.apply(Self.text(name)) }
        expectEqual(table.texts, [1, 2, 3, 4])
        for server in servers {
            _ = try server.keeper.takeShared()
            expectEqual(server.inForce, Self.text("f"))
        }
        // Everything is lost.
        table.lose(after: 0)
        for server in servers { try expectNil(server.keeper.takeShared()) }
        try expect(servers[0].keeper.apply(Self.text("g")).changed)
        _ = try servers[1].keeper.takeShared()
        expect(servers.allSatisfy { $0.inForce == Self.text("g") })
    }

    @Test
    func `While the table is away nothing is changed, and rules with an error are not taken over`() throws {
        let table = Table()
        let server = try Server(table)
        _ = try server.keeper.apply(Self.text("a"))
        table.set(isAway: true)
        expectEqual(
            failureCode { () throws(RequestError) in _ = try server.keeper.apply(Self.text("b")) }, .unavailable)
        expectEqual(failureCode { () throws(RequestError) in _ = try server.keeper.rollback() }, .unavailable)
        expectEqual(failureCode { () throws(RequestError) in _ = try server.keeper.takeShared() }, .unavailable)
        try expect(server.inForce == Self.text("a") && server.history.newest() == 1)
        table.set(isAway: false)
        try expect(table.add("service {", as: 2, after: 1))
        expectEqual(failureCode { () throws(RequestError) in _ = try server.keeper.takeShared() }, .invalidArgument)
        try expect(server.inForce == Self.text("a") && server.history.newest() == 1)
        try expect(table.add(Self.text("c"), as: 3, after: 2))
        try expectEqual(server.keeper.takeShared(), 3)
        expectEqual(server.inForce, Self.text("c"))
        // A server with rules of a file takes none.
        let fixed = try Server(table, file: "firestore.rules")
        try fixed.keeper.joinShared()
        try expect(fixed.keeper.takeShared() == nil && fixed.history.newest() == nil)
    }
}
