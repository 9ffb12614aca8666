// When a transaction is tried again.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct TransactionRetryTests {
    @Test(arguments: [
        (StatusCode.aborted, true), (.failedPrecondition, true), (.alreadyExists, true), (.cancelled, true),
        (.unknown, true), (.deadlineExceeded, true), (.resourceExhausted, true), (.internal, true),
        (.unavailable, true), (.unauthenticated, true), (.invalidArgument, false), (.notFound, false),
        (.permissionDenied, false), (.outOfRange, false), (.unimplemented, false), (.dataLoss, false),
    ])
    func `Codes that another attempt may cure are retried, the others end the transaction`(
        code: StatusCode, isRetried: Bool
    ) {
        expectEqual(TransactionRetry.isRetryable(code, ""), isRetried)
    }

    @Test(arguments: [
        (StatusCode.deadlineExceeded, false), (.cancelled, false), (.unknown, false), (.internal, false),
        (.aborted, true), (.unavailable, true), (.unauthenticated, true),
    ])
    func `A commit that may have been applied is not followed by another attempt`(code: StatusCode, isRetried: Bool) {
        for isOfCommit in [false, true] {
            var retry = TransactionRetry(jitterSeed: 1)
            let decision = retry.failed(code, "", isOfCommit: isOfCommit)
            expectEqual(decision != .giveUp, isRetried || !isOfCommit)
        }
    }

    @Test
    func `A transaction that the server has forgotten is retried`() {
        expect(
            TransactionRetry.isRetryable(
                .invalidArgument, "The referenced transaction has expired or is no longer valid."))
    }

    @Test
    func `Five attempts in all: the second at once, the others after growing waits`() {
        var retry = TransactionRetry(jitterSeed: 1)
        expectEqual(retry.failed(.unavailable, "", isOfCommit: true), .retry(afterNanoseconds: 0))
        for (attempt, seconds) in [1.0, 1.5, 2.25].enumerated() {
            guard case .retry(let wait) = retry.failed(.unavailable, "", isOfCommit: true) else {
                Issue.record("attempt \(attempt + 3) is missing")
                return
            }
            expect((seconds * 0.5...seconds * 1.5).contains(Double(wait) / 1e9))
        }
        expectEqual(retry.attempt, 5)
        expectEqual(retry.failed(.unavailable, "", isOfCommit: true), .giveUp)
    }

    @Test
    func `While the server cannot be reached all waits together are less than a second`() {
        for seed in 0..<100 as Range<UInt64> {
            var retry = TransactionRetry(jitterSeed: seed)
            var total: UInt64 = 0
            func next() -> TransactionRetry.Decision {
                retry.failed(.unavailable, "", isOfCommit: false, hasReachedServer: false)
            }
            while case .retry(let wait) = next() { total += wait }
            expect(retry.attempt == 5 && total < 1_000_000_000)
        }
    }

    @Test
    func `After a conflict the wait is short: the server queues the retried attempt`() {
        var retry = TransactionRetry(jitterSeed: 1)
        _ = retry.failed(.aborted, "", isOfCommit: true)
        guard case .retry(let wait) = retry.failed(.aborted, "", isOfCommit: true) else {
            Issue.record("no third attempt")
            return
        }
        expect(wait < 100_000_000)
    }

    @Test
    func `One attempt means none after a failure`() {
        var retry = TransactionRetry(attemptsMax: 1, jitterSeed: 1)
        expectEqual(retry.failed(.aborted, "", isOfCommit: true), .giveUp)
    }
}
