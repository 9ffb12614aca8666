internal import DocumentStore
internal import FirestoreMessages
internal import Transport

/// What the service reads from a call besides its message.
extension Call {
    /// The RPC; every procedure of the gateway's tables is a ``Method``.
    @inline(__always)
    var method: Method {
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

    var principal: Principal { carriesCredentials ? Principal(authorization: authorization) : .trusted }

    /// Records how long the call took, when its end is decided. Bidirectional calls last as long as their clients
    /// like and are not recorded.
    @inline(__always)
    func recordTime(in counters: ServiceCounters) {
        guard rpc.shape != .bidirectional else { return }
        let now = loop.turnNanoseconds
        if now == begunAt {
            counters.callAnsweredAtOnce(rpc, on: loop)
        } else {
            counters.callTook(rpc, nanoseconds: now &- begunAt)
        }
    }
}

extension RPCTable {
    /// What a gateway serves over TCP.
    static let gateway = RPCTable(Method.allCases.filter { $0.service != .administration })

    /// What it serves over the socket in its data directory: all of that, and its administration.
    static let local = RPCTable(Method.allCases)

    private convenience init(_ methods: [Method]) {
        self.init(
            methods.map { Entry($0.rpc, name: $0.name, paths: $0.paths) },
            refusals: [
                "/google.firestore.v1.Firestore/ExecutePipeline":
                    "ExecutePipeline is not implemented by this server yet: query with RunQuery"
            ])
    }
}
