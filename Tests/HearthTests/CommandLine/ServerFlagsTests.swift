// The commands that are clients: the token of the environment.

import HearthClient
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct ServerFlagsTests {
    private func configuration(_ token: String?) throws -> HearthClient.Configuration {
        let parser = ArgumentParser(flags: ServerFlags.all, words: [], environment: { _ in nil })
        return try ServerFlags.configuration(try parser.parse([]), of: "127.0.0.1:1") { name in
            name == "HEARTH_TOKEN" ? token : nil
        }
    }

    @Test
    func `The token comes from the environment, and no flag has it`() async throws {
        try await expectEqual(configuration("abc").tokenProvider?(false), "abc")
        try expectNil(configuration(nil).tokenProvider)
        try expectNil(configuration("").tokenProvider)
        expect(ServerFlags.all.allSatisfy { $0.environmentVariable != ServerFlags.tokenVariable })
    }

    @Test
    func `A text that is not a token is refused without being repeated`() throws {
        let error = #expect(throws: UsageError.self) { try configuration("canary token") }
        expectEqual(error?.message.hasPrefix("HEARTH_TOKEN: "), true)
        expectEqual(error?.message.contains("canary"), false)
    }
}
