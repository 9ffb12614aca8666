internal import Authorization
internal import Basics
internal import Calls
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import Identity

/// The handler of one loop's calls: gives each to the service that it names. Confined to the loop.
final class CallRouter: ServiceHandler {
    private let firestore: FirestoreService
    private let health: HealthService
    private let reflection: ReflectionService
    private let administration: AdminService
    private let indexes: IndexAdminService
    private let streams: LongLivedStreams
    private let authorization: Authorization?
    private let leader: KnownLeader?

    /// - Parameters:
    ///   - authorization: asked about calls of other services than Firestore; nil permits all of them.
    ///   - leader: who takes the writes; nil if this server always does.
    init(
        _ firestore: FirestoreService, _ administration: AdminService, _ indexes: IndexAdminService,
        _ authorization: Authorization?, leader: KnownLeader? = nil
    ) {
        self.authorization = authorization
        self.leader = leader
        self.administration = administration
        self.indexes = indexes
        self.firestore = firestore
        streams = firestore.longLivedStreams
        health = HealthService(counters: firestore.counters, streams: streams)
        reflection = ReflectionService(counters: firestore.counters, streams: streams)
    }

    /// How often streams are looked at, in milliseconds.
    private static let accessCheckMilliseconds: UInt64 = 1_000

    /// Looks at streams every second, from now on, if there is an access control.
    func checkAccess(on loop: EventLoop) {
        if authorization == nil { return }
        loop.schedule(afterMilliseconds: Self.accessCheckMilliseconds) { [weak self] in
            self?.streams.checkAccess()
            self?.checkAccess(on: loop)
        }
    }

    /// The listeners of the loop.
    var listeners: [ListenerDescription] { streams.listeners }

    /// The server drains: calls that last as long as their clients like are ended.
    func stopServing() { streams.stopServing() }

    func begin(_ call: Call, payload: RawSpan) {
        let method = call.method
        if method.service == .firestore { return firestore.begin(call, method, payload) }
        if method == .adminForward { return beginForwarded(call, payload) }
        firestore.counters.callsStarted.add()
        do {
            try authorization?.admit(call.origin, for: method.purpose)
            if let forwarder = firestore.forwarder, forwarder.isNeeded, method.forwarding != .none {
                return try forwarder.forward(call, method, payload, isInTransaction: false)
            }
            switch method {
            case .adminNewestVersion: try newestVersion(call, payload)
            case .healthCheck:
                let answer = try health.check(payload)
                firestore.succeed(call) { $0.append(answer) }
            case .healthWatch: try health.watch(call, payload)
            case .serverReflectionInfo: reflection.begin(call, payload)
            default:
                if method.service == .administration {
                    try administration.begin(call, payload)
                } else {
                    try indexes.begin(call, payload)
                }
            }
        } catch {
            firestore.fail(call, error)
        }
    }

    // MARK: Followers

    /// A call of a follower's client. It counts as that, and not as a call of the follower. What a follower may ask for
    /// is what a caller may that administers the server: everything.
    private func beginForwarded(_ call: Call, _ payload: RawSpan) {
        do {
            try authorization?.admit(call.origin, for: .administration)
            try checkTakesWrites()
            let view = try ForwardRequestView(payload)
            guard let method = UInt16(exactly: view.method).flatMap(FirestoreMessages.Method.init(rawValue:)),
                method.forwarding != .none
            else { throw RequestError(.unimplemented, "Method \(view.method) cannot be forwarded.") }
            let carrier = ForwardedCarrier(call, view, firestore.store)
            let head = RequestHead(
                rpc: method.rpc, deadlineMilliseconds: call.head.deadlineMilliseconds, requestID: call.head.requestID,
                isComplete: call.head.isComplete)
            begin(
                Call(carrier: carrier, stream: call.stream, head: head, begunAt: call.begunAt), payload: view.message)
        } catch {
            firestore.counters.callsStarted.add()
            firestore.fail(call, error)
        }
    }

    /// - Throws: `UNAVAILABLE` if another server takes the writes: the follower looks for it then.
    private func checkTakesWrites() throws(RequestError) {
        if leader?.isHere ?? true { return }
        throw RequestError(.unavailable, "This server does not take the writes.")
    }

    /// What strict reads of followers must see: all that was acknowledged before.
    private func newestVersion(_ call: Call, _ payload: RawSpan) throws {
        _ = try EmptyMessage(wire: payload)
        let version = firestore.store.publishedVersion.microseconds
        guard leader?.isNewest ?? true else {
            throw RequestError(.unavailable, "This server does not take the writes.")
        }
        firestore.succeed(call) { StepDownResponse(version: version).encode(into: &$0) }
    }

    func loopWillWait() { firestore.loopWillWait() }

    func abandoned(_ reason: CancellationReason) { firestore.counters.callsAbandoned.add() }
}

extension FirestoreMessages.Method {
    /// What a call of another service than Firestore is for.
    fileprivate var purpose: Purpose {
        switch self {
        case .healthCheck, .healthWatch: .health
        case .serverReflectionInfo: .observation
        default: .administration
        }
    }
}
