// Which failures are worth another try.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct RetryPolicyTests {
    @Test(arguments: [
        (CallKind.repeatable, RetryPolicy.Decision.now), (.commit, .now), (.queuedWrite, .now), (.once, .giveUp),
    ])
    func `A lost connection repeats everything that may be repeated`(kind: CallKind, decision: RetryPolicy.Decision) {
        expectEqual(RetryPolicy.decide(kind, .connectionLost, answeredTries: 0), decision)
    }

    @Test(arguments: [
        CallKind.repeatable, .commit, .queuedWrite, .once,
    ])
    func `What was certainly not processed is always repeated`(kind: CallKind) {
        expectEqual(RetryPolicy.decide(kind, .notProcessed, answeredTries: 3), .now)
    }

    @Test
    func `Queued writes and commits of transactions outlast a server that is unavailable, other calls do not`() {
        expectEqual(RetryPolicy.decide(.queuedWrite, .status(.unavailable), answeredTries: 1000), .afterBackoff)
        expectEqual(RetryPolicy.decide(.transactionCommit, .status(.unavailable), answeredTries: 1000), .afterBackoff)
        expectEqual(RetryPolicy.decide(.commit, .status(.unavailable), answeredTries: 4), .afterBackoff)
        expectEqual(RetryPolicy.decide(.commit, .status(.unavailable), answeredTries: 5), .giveUp)
    }

    @Test(
        arguments: [
            StatusCode.invalidArgument, .notFound, .alreadyExists, .permissionDenied, .failedPrecondition, .outOfRange,
            .unimplemented, .dataLoss, .unauthenticated,
        ], [CallKind.repeatable, .commit, .queuedWrite, .once])
    func `Final codes are final`(code: StatusCode, kind: CallKind) {
        expectEqual(RetryPolicy.decide(kind, .status(code), answeredTries: 1), .giveUp)
    }

    /// "Write stream" in the semantics of the API: a client drops a write on all other codes.
    @Test(arguments: [
        StatusCode.aborted, .cancelled, .deadlineExceeded, .internal, .resourceExhausted, .unavailable, .unknown,
    ])
    func `No queued write is dropped for a failure that passes`(code: StatusCode) {
        expectEqual(RetryPolicy.decide(.queuedWrite, .status(code), answeredTries: 1000), .afterBackoff)
        expectEqual(RetryPolicy.decide(.commit, .status(code), answeredTries: 1000), .giveUp)
    }

    @Test
    func `A commit is not repeated after INTERNAL, a read is`() {
        expectEqual(RetryPolicy.decide(.commit, .status(.internal), answeredTries: 1), .giveUp)
        expectEqual(RetryPolicy.decide(.repeatable, .status(.internal), answeredTries: 1), .afterBackoff)
    }
}
