internal import Authorization
internal import Basics
internal import Calls
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import Identity

/// The handler of one loop's calls: gives each to the service that it names, of the store that it is about. Confined to
/// the loop.
final class CallRouter: ServiceHandler {
    let store: LoopStore
    let counters: ServiceCounters
    /// Those of no store.
    let streams = LongLivedStreams()
    private let health: HealthService
    private let reflection: ReflectionService
    let authorization: Authorization?

    /// - Parameter authorization: asked about calls of other services than Firestore; nil permits all of them.
    init(_ store: LoopStore, _ counters: ServiceCounters, _ authorization: Authorization?) {
        self.store = store
        self.counters = counters
        self.authorization = authorization
        health = HealthService(counters: counters, streams: streams)
        reflection = ReflectionService(counters: counters, streams: streams)
    }

    private var firestore: FirestoreService { store.firestore }

    /// How often streams are looked at, in milliseconds.
    private static let accessCheckMilliseconds: UInt64 = 1_000

    /// Looks at streams every second, from now on, if there is an access control.
    func checkAccess(on loop: EventLoop) {
        if authorization == nil { return }
        loop.schedule(afterMilliseconds: Self.accessCheckMilliseconds) { [weak self] in
            guard let self else { return }
            streams.checkAccess()
            firestore.longLivedStreams.checkAccess()
            checkAccess(on: loop)
        }
    }

    /// The listeners of the loop.
    var listeners: [ListenerDescription] { firestore.longLivedStreams.listeners }

    /// What the queries of the loop have read in the last hour.
    var queryCosts: [QueryCost] { firestore.queryCosts }

    /// The server drains: calls that last as long as their clients like are ended.
    func stopServing() {
        streams.stopServing()
        firestore.longLivedStreams.stopServing()
    }

    /// Ends a call whose request message could not be made.
    func refuse(_ call: Call, _ error: RequestError) { firestore.refuse(call, error) }

    func begin(_ call: Call, payload: RawSpan) {
        let method = call.method
        if method.service == .firestore {
            if store.isRetired { return refuseWhileClosed(call) }
            return firestore.begin(call, method, payload)
        }
        if method == .adminForward { return beginForwarded(call, payload) }
        counters.callsStarted.add()
        do {
            try authorization?.admit(call.origin, for: method.purpose)
            if method.needsStore { try store.checkServes() }
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
                    try store.services.administration.begin(call, payload)
                } else {
                    try store.services.indexes.begin(call, payload)
                }
            }
        } catch {
            firestore.fail(call, error)
        }
    }

    private func refuseWhileClosed(_ call: Call) {
        call.noteRetry(afterSeconds: 1)
        refuse(call, .storeIsBeingOpened)
    }

    // MARK: Followers

    /// A call of a follower's client. It counts as that, and not as a call of the follower. What a follower may ask for
    /// is what a caller may that administers the server: everything.
    private func beginForwarded(_ call: Call, _ payload: RawSpan) {
        do {
            try authorization?.admit(call.origin, for: .administration)
            try store.checkServes()
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
            counters.callsStarted.add()
            firestore.fail(call, error)
        }
    }

    private var leader: KnownLeader? { store.services.leader }

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

    func abandoned(_ reason: CancellationReason) { counters.callsAbandoned.add() }
}

extension FirestoreMessages.Method {
    /// Whether a call of another service than Firestore is about a store.
    fileprivate var needsStore: Bool {
        switch service {
        case .health, .reflection: false
        case .administration: self != .adminGetServer
        case .firestore, .firestoreAdmin, .operations: true
        }
    }

    /// What a call of another service than Firestore is for.
    fileprivate var purpose: Purpose {
        switch self {
        case .healthCheck, .healthWatch: .health
        case .serverReflectionInfo: .observation
        default: .administration
        }
    }
}
