// The commands that are clients: the token of the environment.

import HearthClient
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
        #expect(try await configuration("abc").tokenProvider?(false) == "abc")
        #expect(try configuration(nil).tokenProvider == nil)
        #expect(try configuration("").tokenProvider == nil)
        #expect(ServerFlags.all.allSatisfy { $0.environmentVariable != ServerFlags.tokenVariable })
    }

    @Test
    func `A text that is not a token is refused without being repeated`() throws {
        let error = #expect(throws: UsageError.self) { try configuration("canary token") }
        #expect(error?.message.hasPrefix("HEARTH_TOKEN: ") == true)
        #expect(error?.message.contains("canary") == false)
    }
}
