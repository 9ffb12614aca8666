// Rules that are applied and taken back, with a server and without one.

import Authorization
import AuthorizationTestSupport
import Basics
import FirestoreMessages
import Foundation
import Identity
import SecurityRules
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesKeeperTests {
    private let directory = TemporaryDirectory("rules", on: .memory)
    private var history: RulesHistory { RulesHistory(dataDirectory: directory.path) }

    private static func text(_ collection: String) -> String {
        "service cloud.firestore { match /databases/{d}/documents { match /\(collection)/{x} { allow read; } } }"
    }

    private func keeper(_ authorization: Authorization? = nil, file: String? = nil) -> RulesKeeper {
        RulesKeeper(history, authorization: authorization, file: file)
    }

    private func refusal(_ body: () throws(RequestError) -> Void) -> RequestError? {
        do throws(RequestError) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    private func inForce(_ authorization: Authorization, project: String = "p") -> String? {
        authorization.state.rules(of: project)?.ruleset.source.text
    }

    @Test
    func `Rules close an open server, and the same text changes nothing`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .open)
        let keeper = keeper(authorization)
        let generation = authorization.generation
        let first = try keeper.apply(Self.text("a"))
        expect(first.changed && first.closed && first.security == "closed" && first.rules.number == 1)
        expect(authorization.generation > generation && authorization.state.authenticator.mode == .closed)
        expectEqual(inForce(authorization), Self.text("a"))
        let settled = authorization.generation
        let again = try keeper.apply(Self.text("a"))
        expect(!again.changed && !again.closed && again.rules == first.rules && authorization.generation == settled)
        let second = try keeper.apply(Self.text("b"))
        expect(second.changed && !second.closed && second.rules.number == 2)
        expectEqual(inForce(authorization), Self.text("b"))
        try expect(history.text(1) == Self.text("a") && history.text(2) == Self.text("b"))
    }

    @Test(arguments: [SecurityMode.insecure, .emulator, .closed])
    func `A server that is not open keeps its mode`(mode: SecurityMode) throws {
        let authorization = try TestAuthorization.make(nil, mode: mode)
        let answer = try keeper(authorization).apply(Self.text("a"))
        expect(answer.changed && !answer.closed && answer.security == mode.rawValue)
        expect(authorization.state.authenticator.mode == mode && inForce(authorization) == Self.text("a"))
    }

    @Test
    func `Rules end the emulator's mode that its route began, with the rules of the route`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .open)
        try authorization.setEmulatorRules(try Ruleset(Self.text("route")), of: "p")
        expectEqual(authorization.state.authenticator.mode, .emulator)
        let answer = try keeper(authorization).apply(Self.text("a"))
        expect(answer.closed && answer.security == "closed" && inForce(authorization) == Self.text("a"))
        let refused = refusal { () throws(RequestError) in
            try authorization.setEmulatorRules(try! Ruleset(Self.text("route")), of: "p")
        }
        expectEqual(refused?.code, .permissionDenied)
    }

    @Test
    func `A reload of credentials leaves mode and rules`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .open)
        _ = try keeper(authorization).apply(Self.text("a"))
        authorization.replace(try TestAuthorization.authenticator(mode: .open))
        expect(authorization.state.authenticator.mode == .closed && inForce(authorization) == Self.text("a"))
    }

    @Test
    func `Texts that are equal to readers and differ in their bytes are different rules`() throws {
        let keeper = keeper()
        _ = try keeper.apply("// \u{E9}\n" + Self.text("a"))
        let answer = try keeper.apply("// e\u{301}\n" + Self.text("a"))
        expect(answer.changed && answer.rules.number == 2 && answer.security.isEmpty)
    }

    @Test
    func `A rollback applies the rules before, and another one takes that back`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .closed)
        let keeper = keeper(authorization)
        for _ in 0..<2 {
            let refused = refusal { () throws(RequestError) in _ = try keeper.rollback() }
            expectEqual(refused?.code, .failedPrecondition)
            _ = try keeper.apply(Self.text("a"))
        }
        _ = try keeper.apply(Self.text("b"))
        for (number, name) in [(3, "a"), (4, "b"), (5, "a")] {
            let answer = try keeper.rollback()
            expect(answer.changed && answer.rules.number == Int64(number))
            expectEqual(inForce(authorization), Self.text(name))
        }
        try expectEqual(keeper.list().rules.map(\.number), [1, 2, 3, 4, 5])
    }

    @Test
    func `A rollback to rules with an error is refused and changes nothing`() throws {
        _ = try history.append("service {")
        let authorization = try TestAuthorization.make(nil, mode: .closed)
        let keeper = keeper(authorization)
        _ = try keeper.apply(Self.text("a"))
        let refused = refusal { () throws(RequestError) in _ = try keeper.rollback() }
        expect(refused?.code == .failedPrecondition && refused?.message.contains("number 1") == true)
        try expect(history.newest() == 2 && inForce(authorization) == Self.text("a"))
    }

    @Test
    func `Rules with an error are refused with their places, and not kept`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .open)
        let long = "service cloud.firestore { " + String(repeating: "x", count: 100_000)
        for text in ["service cloud.firestore {\n  match /a {", long, String(repeating: " ", count: 300_000)] {
            let refused = refusal { () throws(RequestError) in _ = try keeper(authorization).apply(text) }
            expectEqual(refused?.code, .invalidArgument)
            expectEqual(refused.map { $0.message.contains("errors:\n") && $0.message.utf8.count < 4_000 }, true)
        }
        try expect(history.newest() == nil && authorization.state.authenticator.mode == .open)
    }

    @Test
    func `A server with rules of a file refuses others, and lists what is kept`() throws {
        _ = try keeper().apply(Self.text("a"))
        let authorization = try TestAuthorization.make("match /z/{x} { allow get; }", mode: .closed)
        let keeper = keeper(authorization, file: "firestore.rules")
        let before = inForce(authorization)
        let refusals = [
            refusal { () throws(RequestError) in _ = try keeper.apply(Self.text("b")) },
            refusal { () throws(RequestError) in _ = try keeper.rollback() },
        ]
        for refused in refusals {
            expect(refused?.code == .failedPrecondition && refused?.message.contains("--rules") == true)
        }
        expectEqual(inForce(authorization), before)
        let list = try keeper.list()
        expect(list.rules.map(\.number) == [1] && list.file == "firestore.rules")
        try expectEqual(keeper.get(0).text, Self.text("a"))
    }

    @Test
    func `A text is found by its number, and 0 is the newest`() throws {
        let keeper = keeper()
        func code(_ number: Int64) -> StatusCode? {
            refusal { () throws(RequestError) in _ = try keeper.get(number) }?.code
        }
        expectEqual(code(0), .notFound)
        for name in ["a", "b"] { _ = try keeper.apply(Self.text(name)) }
        try expect(keeper.get(0).text == Self.text("b") && keeper.get(0).rules.number == 2)
        try expectEqual(keeper.get(1).text, Self.text("a"))
        for number in [3, -1, Int64.min, .max] { expectEqual(code(number), .notFound) }
    }

    @Test
    func `Rules replace newest ones that are damaged`() throws {
        _ = try keeper().apply(Self.text("a"))
        try Data([0xFF]).write(to: URL(fileURLWithPath: history.file(1)))
        let answer = try keeper().apply(Self.text("a"))
        expect(answer.changed && answer.rules.number == 2)
        expectEqual(refusal { () throws(RequestError) in _ = try keeper().get(1) }?.code, .failedPrecondition)
        try expectEqual(keeper().get(2).text, Self.text("a"))
    }

    @Test
    func `A start notices rules that were applied after it read them`() throws {
        let keeper = keeper()
        try keeper.checkNewest(is: nil)
        _ = try keeper.apply(Self.text("a"))
        try keeper.checkNewest(is: 1)
        for number in [nil, 2] {
            expectEqual(refusal { () throws(RequestError) in try keeper.checkNewest(is: number) }?.code, .aborted)
        }
        // The rules of a file are in force whatever is kept.
        try self.keeper(file: "firestore.rules").checkNewest(is: nil)
    }
}
