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

    /// - Parameter authorization: asked about calls of other services than Firestore; nil permits all of them.
    init(
        _ firestore: FirestoreService, _ administration: AdminService, _ indexes: IndexAdminService,
        _ authorization: Authorization?
    ) {
        self.authorization = authorization
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

    /// What the queries of the loop have read in the last hour.
    var queryCosts: [QueryCost] { firestore.queryCosts }

    /// The server drains: calls that last as long as their clients like are ended.
    func stopServing() { streams.stopServing() }

    func begin(_ call: Call, payload: RawSpan) {
        let method = call.method
        if method.service == .firestore { return firestore.begin(call, method, payload) }
        firestore.counters.callsStarted.add()
        do {
            try authorization?.admit(call.origin, for: method.purpose)
            switch method {
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
