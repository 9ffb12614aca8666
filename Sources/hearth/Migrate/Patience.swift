import Basics
import HearthClient

/// Repeats calls to one side of a migration while it cannot answer: it was restarted, it is overloaded, a quota is used
/// up, or its token has expired and the file of the token has no new one yet.
struct Patience: Sendable {
    /// What is waited for, in messages.
    let side: String
    /// How long a call is repeated before the migration ends.
    let limit: Duration

    private static let firstWait = Duration.milliseconds(100)
    private static let longestWait = Duration.seconds(30)

    /// Makes a call until it succeeds or fails for good.
    ///
    /// - Throws: what the call throws last; `CancellationError`. In a task that is cancelled nothing is repeated.
    nonisolated(nonsending) func call<Answer>(
        _ body: nonisolated(nonsending) () async throws -> Answer
    ) async throws -> Answer {
        let clock = ContinuousClock()
        let start = clock.now
        var wait = Self.firstWait
        while true {
            do {
                return try await body()
            } catch let error as RequestError
                where !Task.isCancelled && Self.mayPass(error.code) && clock.now - start < limit
            {
                CommandRouter.complain("waiting for \(side): \(error.message)")
                // Clients that failed together should not return together.
                try await Task.sleep(for: wait * Double.random(in: 0.7...1.3))
                wait = min(wait * 2, Self.longestWait)
            }
        }
    }

    /// Whether the same call may succeed later. Servers and proxies cancel calls too, for example when they end.
    private static func mayPass(_ code: StatusCode) -> Bool {
        switch code {
        case .unavailable, .resourceExhausted, .deadlineExceeded, .aborted, .cancelled, .internal, .unauthenticated,
            .unknown:
            true
        default: false
        }
    }
}
