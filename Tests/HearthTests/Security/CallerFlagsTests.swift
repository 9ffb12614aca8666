// The limits of callers that the flags of `hearth serve` and its mode lead to.

import Authorization
import Identity
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct CallerFlagsTests {
    private func arguments(_ words: [String]) throws -> ParsedArguments {
        let flags = ServeSettings.groups.flatMap(\.flags)
        return try ArgumentParser(flags: flags, words: [], environment: { _ in nil }).parse(words)
    }

    private func limits(_ words: [String], _ mode: SecurityMode) throws -> [Int] {
        let arguments = try arguments(words)
        var configuration = ServeSettings.configuration(arguments, ServeSettings.defaults.log)
        CallerFlags.set(&configuration, arguments, mode)
        let rates = CallerFlags.rates(arguments, mode)
        return [
            configuration.transport.networkConnectionsMax, configuration.webChannel.networkSessionsMax,
            rates.networkRequests, rates.userRequests, rates.networkRefusals,
            rates.networkCommits, rates.userCommits, rates.networkRuleWork, rates.userRuleWork, rates.networkListeners,
            rates.userListeners,
        ]
    }

    @Test
    func `A closed server has limits, and others have those of flags`() throws {
        let defaults = [1_000, 1_000, 2_000, 1_000, 600, 1_000, 500, 2_000_000, 1_000_000, 100_000, 10_000]
        try expectEqual(limits([], .closed), defaults)
        for mode in [SecurityMode.open, .insecure, .emulator] {
            try expectEqual(limits([], mode), Array(repeating: 0, count: 11))
            try expectEqual(limits(["--user-requests", "7"], mode), [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0])
        }
        let names = [
            "--max-address-connections", "--max-address-web-sessions", "--address-requests", "--user-requests",
            "--address-refusals", "--address-commits", "--user-commits", "--address-rule-work", "--user-rule-work",
            "--address-listeners", "--user-listeners",
        ]
        try expectEqual(limits(names.flatMap { [$0, "0"] }, .closed), Array(repeating: 0, count: 11))
        try expectEqual(limits(names.enumerated().flatMap { [$1, "\($0 + 1)"] }, .closed), Array(1...11))
        for name in names { #expect(throws: (any Error).self) { try arguments([name, "-1"]) } }
    }

    @Test
    func `The limits in force are printed`() throws {
        expectEqual(CallerFlags.summary(try arguments([]), .open), "limits: none")
        let one = try arguments(["--address-requests", "0", "--user-requests", "7"])
        let text = CallerFlags.summary(one, .closed)
        expect(text.hasPrefix("limits: 1000 connections of an address, ") && !text.contains("requests a second of an"))
        expect(text.contains("7 requests a second of a user"))
    }
}
