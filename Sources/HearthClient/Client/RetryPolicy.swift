// The failures of a call that the client retries, in one table. Whether it retries depends on the status code and on
// the kind of call.

import Basics
import DocumentModel

/// How a call may be repeated.
enum CallKind: Sendable, Equatable {
    /// Reads, begin and rollback: repeating them changes nothing.
    case repeatable
    /// A commit with a request id: the server applies it once however often it arrives.
    case commit
    /// The commit of a transaction: like `commit`, and it is not given up before its deadline while the server cannot
    /// say whether it was applied. The transaction must not run again before that is known.
    case transactionCommit
    /// A write of the SDK: like `commit`, and it is not given up while the server cannot be reached.
    case queuedWrite
    /// Anything that must not be sent twice.
    case once

    /// Whether the call has a request identifier.
    var hasIdentifier: Bool {
        switch self {
        case .commit, .transactionCommit, .queuedWrite: true
        case .repeatable, .once: false
        }
    }
}

/// Why a try of a call ended without success.
enum CallFailure: Sendable, Equatable {
    /// The server answered with a status.
    case status(StatusCode)
    /// The connection ended; the server may or may not have worked on the call.
    case connectionLost
    /// The server did not process the call, which may have failed because there was no connection.
    case notProcessed
}

/// Decides about another try.
enum RetryPolicy {
    enum Decision: Sendable, Equatable {
        case giveUp
        /// At once, on whatever connection there is next.
        case now
        /// After the backoff of this many tries.
        case afterBackoff
    }

    /// - Parameter answeredTries: tries that ended with a status, this one included; a lost connection does not count.
    static func decide(_ kind: CallKind, _ failure: CallFailure, answeredTries: Int) -> Decision {
        switch failure {
        case .notProcessed:
            return .now
        case .connectionLost:
            return kind == .once ? .giveUp : .now
        case .status(let code):
            return answeredTries < triesMax(kind, code) ? .afterBackoff : .giveUp
        }
    }

    /// How often a call is tried in total while it fails with `code`; 1 = no retry.
    static func triesMax(_ kind: CallKind, _ code: StatusCode) -> Int {
        switch (code, kind) {
        // Failures that pass. The SDKs drop no write for them.
        case (.aborted, .queuedWrite), (.cancelled, .queuedWrite), (.deadlineExceeded, .queuedWrite),
            (.internal, .queuedWrite), (.resourceExhausted, .queuedWrite), (.unavailable, .queuedWrite),
            (.unknown, .queuedWrite):
            .max
        // The server shuts down and reports that it did not process the call.
        case (.unavailable, .transactionCommit): .max
        // Full, perhaps for a short time: a few tries are made.
        case (.unavailable, _), (.resourceExhausted, _), (.internal, .repeatable): 5
        default: 1
        }
    }
}
