package import Basics

/// Decides whether a failed transaction runs again, after which delay, and with which priority: a state machine without
/// I/O.
///
/// Attempts wait 0, then 1 s x 1.5 up to 60 s with half of it as jitter, as in the SDK. After a conflict (ABORTED) the
/// delay is much shorter, because the server gives the retried attempt (`retry_transaction`) its turn on the contended
/// documents. While the server cannot be reached the delays are short too: the program learns within a second that it
/// is offline.
package struct TransactionRetry {
    /// The attempts of a transaction unless its options say otherwise.
    package static let standardAttempts = 5

    package enum Decision: Equatable, Sendable {
        case retry(afterNanoseconds: UInt64)
        case giveUp
    }

    let attemptsMax: Int
    private(set) var attempt = 1
    private var jitter: JitterGenerator

    package init(attemptsMax: Int = Self.standardAttempts, jitterSeed: UInt64) {
        self.attemptsMax = max(1, attemptsMax)
        jitter = JitterGenerator(seed: jitterSeed)
    }

    /// The present attempt failed.
    ///
    /// - Parameters:
    ///   - isOfCommit: whether its commit failed. If that leaves open whether it was applied, another attempt might
    ///     apply it a second time.
    ///   - hasReachedServer: whether this attempt or one before has got an answer from the server.
    package mutating func failed(
        _ code: StatusCode, _ message: String, isOfCommit: Bool, hasReachedServer: Bool = true
    ) -> Decision {
        guard Self.isRetryable(code, message), !(isOfCommit && Self.leavesOpen(code)), attempt < attemptsMax else {
            return .giveUp
        }
        defer { attempt += 1 }
        guard attempt > 1 else { return .retry(afterNanoseconds: 0) }
        let policy = policy(after: code, hasReachedServer)
        return .retry(afterNanoseconds: policy.delayNanoseconds(attempt: attempt - 2, unit: jitter.nextUnit()))
    }

    private func policy(after code: StatusCode, _ hasReachedServer: Bool) -> BackoffPolicy {
        if code == .aborted { return .contention }
        return code == .unavailable && !hasReachedServer ? .outage : .transaction
    }

    /// Failures of a commit after which it may have been applied.
    static func leavesOpen(_ code: StatusCode) -> Bool {
        switch code {
        case .deadlineExceeded, .cancelled, .unknown, .internal: true
        default: false
        }
    }

    /// Failures after which a whole transaction may be tried again: by code, and the one text that reports a
    /// transaction the server no longer knows, for example because it was restarted.
    static func isRetryable(_ code: StatusCode, _ message: String) -> Bool {
        switch code {
        case .aborted, .failedPrecondition, .alreadyExists, .cancelled, .unknown, .deadlineExceeded,
            .resourceExhausted, .internal, .unavailable, .unauthenticated:
            true
        case .invalidArgument:
            message.contains("transaction has expired")
        case .ok, .notFound, .permissionDenied, .outOfRange, .unimplemented, .dataLoss:
            false
        }
    }
}
