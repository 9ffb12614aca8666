internal import Basics
internal import Calls
internal import FirestoreMessages
internal import FirestoreService

/// The handler of one loop's calls: gives each to the service that it names. Confined to the loop.
final class CallRouter: ServiceHandler {
    private let firestore: FirestoreService
    private let health: HealthService
    private let reflection: ReflectionService
    private let administration: AdminService
    private let indexes: IndexAdminService
    private let streams: LongLivedStreams

    init(_ firestore: FirestoreService, _ administration: AdminService, _ indexes: IndexAdminService) {
        self.administration = administration
        self.indexes = indexes
        self.firestore = firestore
        streams = firestore.longLivedStreams
        health = HealthService(counters: firestore.counters, streams: streams)
        reflection = ReflectionService(counters: firestore.counters, streams: streams)
    }

    /// The server drains: calls that last as long as their clients like are ended.
    func stopServing() { streams.stopServing() }

    func begin(_ call: Call, payload: RawSpan) {
        let method = call.method
        if method.service == .firestore { return firestore.begin(call, method, payload) }
        firestore.counters.callsStarted.add()
        do {
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
