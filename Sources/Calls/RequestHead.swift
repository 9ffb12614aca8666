// What a request says about a call besides its message: procedure, deadline, request id.

package import Basics

/// Names one attempt-independent request of a client, so that a retry after a lost answer is applied once.
package struct RequestID: Hashable, Sendable {
    /// The client session: 16 random bytes, in wire order high word first.
    package var sessionHigh: UInt64
    package var sessionLow: UInt64
    /// Position of the request in its session.
    package var sequence: UInt64
    /// Every sequence below this one has been answered to the client; the server may forget their results.
    package var oldestPending: UInt64
    /// A request of the client without a reply: unless it was applied, this one is refused. Nil if there is none.
    package var after: CommitSequence.Ticket?

    package init(
        sessionHigh: UInt64, sessionLow: UInt64, sequence: UInt64, oldestPending: UInt64,
        after: CommitSequence.Ticket? = nil
    ) {
        self.sessionHigh = sessionHigh
        self.sessionLow = sessionLow
        self.sequence = sequence
        self.oldestPending = oldestPending
        self.after = after
    }
}

/// All that the server learns of a call before its first message.
package struct RequestHead: Equatable, Sendable {
    package var rpc: RPC
    /// Time that the client gives the call from its arrival, in milliseconds; nil = no limit.
    package var deadlineMilliseconds: UInt32?
    package var requestID: RequestID?
    /// Whether the first message is the client's last.
    package var isComplete: Bool

    package init(rpc: RPC, deadlineMilliseconds: UInt32? = nil, requestID: RequestID? = nil, isComplete: Bool = true) {
        self.rpc = rpc
        self.deadlineMilliseconds = deadlineMilliseconds
        self.requestID = requestID
        self.isComplete = isComplete
    }

    /// The placeholder before the first request.
    package static let none = RequestHead(rpc: RPC(number: 0, shape: .unary))
}

/// What a request says besides its message.
package struct RequestOptions: Sendable {
    /// Time that the call may take altogether, counted from when it is started; nil = no limit.
    package var deadlineMilliseconds: UInt32?
    package var requestID: RequestID?

    package init(deadlineMilliseconds: UInt32? = nil, requestID: RequestID? = nil) {
        self.deadlineMilliseconds = deadlineMilliseconds
        self.requestID = requestID
    }
}
