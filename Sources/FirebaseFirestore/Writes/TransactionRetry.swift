// The life of a transaction that retries by itself, as a pure state machine: which failures lead to another attempt,
// after which wait, and whether the server should give the next attempt priority.

import Basics
import DocumentModel

/// Counts attempts and decides what follows a failed one.
///
/// Source: section 3.7 of the Swift API page. Attempts wait 0, then 1 s x 1.5 up to 60 s with half of it as jitter. A
/// conflict (ABORTED) waits much less, because the server lets the retried attempt (`retry_transaction`) take its turn
/// on the contended documents before others.
struct TransactionRetry {
    /// The attempts of a transaction unless its options say otherwise.
    static let standardAttempts = 5

    enum Decision: Equatable, Sendable {
        case retry(afterNanoseconds: UInt64)
        case giveUp
    }

    let maximumAttempts: Int
    private(set) var attempt = 1
    private var jitter: JitterGenerator

    init(maximumAttempts: Int = Self.standardAttempts, jitterSeed: UInt64) {
        self.maximumAttempts = max(1, maximumAttempts)
        jitter = JitterGenerator(seed: jitterSeed)
    }

    /// The present attempt failed.
    mutating func failed(_ code: StatusCode, _ message: String) -> Decision {
        guard Self.isRetryable(code, message), attempt < maximumAttempts else { return .giveUp }
        defer { attempt += 1 }
        guard attempt > 1 else { return .retry(afterNanoseconds: 0) }
        let policy = code == .aborted ? BackoffPolicy.contention : .transaction
        return .retry(afterNanoseconds: policy.delayNanoseconds(attempt: attempt - 2, unit: jitter.nextUnit()))
    }

    /// Failures after which a whole transaction may be tried again: by code, and the one text that tells of a
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
