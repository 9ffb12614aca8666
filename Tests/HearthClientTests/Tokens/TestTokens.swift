// Tokens and a provider of them, for tests.

import Basics
import Synchronization

@testable import HearthClient

/// Gives tokens by a script and notes the questions.
final class TestProvider: Sendable {
    private struct State {
        var questions: [Bool] = []
        var running = 0
        var runningMax = 0
    }

    private let state = Mutex(State())
    private let script: @Sendable (_ question: Int, _ force: Bool) async throws -> String?

    /// - Parameter script: gets the number of the question, from 1.
    init(_ script: @escaping @Sendable (_ question: Int, _ force: Bool) async throws -> String?) {
        self.script = script
    }

    /// What each question had as `forceRefresh`.
    var questions: [Bool] { state.withLock { $0.questions } }
    /// The most questions at once.
    var questionsAtOnceMax: Int { state.withLock { $0.runningMax } }

    @Sendable func token(_ force: Bool) async throws -> String? {
        let number = state.withLock { state in
            state.questions.append(force)
            state.running += 1
            state.runningMax = max(state.runningMax, state.running)
            return state.questions.count
        }
        defer { state.withLock { $0.running -= 1 } }
        return try await script(number, force)
    }
}

enum TestToken {
    /// A JSON Web Token with a signature that nobody checks.
    static func make(_ claims: String) -> String {
        "\(base64URL(#"{"alg":"RS256"}"#)).\(base64URL(claims)).c2lnbmF0dXJl"
    }

    static func base64URL(_ text: String) -> String {
        var encoded: [UInt8] = []
        Base64.append(Array(text.utf8).span.bytes, to: &encoded)
        return String(decoding: encoded, as: UTF8.self).replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
    }
}
