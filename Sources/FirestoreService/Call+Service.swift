package import Calls
internal import DocumentStore
package import FirestoreMessages

/// What the service reads from a call besides its message.
extension Call {
    /// The RPC; every procedure that is served is a ``Method``.
    @inline(__always)
    package var method: Method {
        guard let method = Method(rawValue: rpc.number) else {
            preconditionFailure("RPC \(rpc.number) is not a method")
        }
        return method
    }

    /// What identifies a repetition of this request; nil where the client gives none.
    var requestIdentifier: RequestIdentifier? {
        head.requestID.map {
            RequestIdentifier(
                sessionHigh: $0.sessionHigh, sessionLow: $0.sessionLow, sequence: $0.sequence,
                oldestPending: $0.oldestPending)
        }
    }

    /// The request of the client that must have been applied before this one; nil where the client names none.
    var predecessor: RequestIdentifier? {
        head.requestID?.after.map {
            RequestIdentifier(
                sessionHigh: $0.session.high, sessionLow: $0.session.low, sequence: $0.sequence,
                oldestPending: $0.sequence)
        }
    }

    /// Records how long the call took, when its end is decided. Bidirectional calls last as long as their clients
    /// like and are not recorded.
    /// - Returns: the time in nanoseconds; 0 for a call that ends in the loop iteration in which it began.
    @inline(__always)
    func recordTime(in counters: ServiceCounters) -> UInt64 {
        guard rpc.shape != .bidirectional else { return 0 }
        let now = loop.turnNanoseconds
        if now == begunAt {
            counters.callAnsweredImmediately(rpc, on: loop)
            return 0
        }
        counters.recordDuration(rpc, nanoseconds: now &- begunAt)
        return now &- begunAt
    }
}
