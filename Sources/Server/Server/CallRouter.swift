internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import Identity

/// The handler of one loop's calls: gives each to the service that it names, of the store that it is about. Confined to
/// the loop.
final class CallRouter: ServiceHandler {
    let stores: LoopStores
    let counters: ServiceCounters
    /// Those of no store.
    let streams = LongLivedStreams()
    let authorization: Authorization?
    private let health: HealthService
    private let reflection: ReflectionService

    /// - Parameter authorization: asked about calls of other services than Firestore; nil permits all of them.
    init(_ stores: LoopStores, _ counters: ServiceCounters, _ authorization: Authorization?) {
        self.stores = stores
        self.counters = counters
        self.authorization = authorization
        health = HealthService(counters: counters, streams: streams)
        reflection = ReflectionService(counters: counters, streams: streams)
    }

    /// How often streams are looked at, in milliseconds.
    private static let accessCheckMilliseconds: UInt64 = 1_000

    /// Looks at streams every second, from now on, if there is an access control.
    func checkAccess(on loop: EventLoop) {
        if authorization == nil { return }
        loop.schedule(afterMilliseconds: Self.accessCheckMilliseconds) { [weak self] in
            guard let self else { return }
            streams.checkAccess()
            stores.checkAccess()
            checkAccess(on: loop)
        }
    }

    /// The listeners of the loop.
    var listeners: [ListenerDescription] { stores.listeners }

    /// What the queries of the loop have read in the last hour.
    var queryCosts: [QueryCost] { stores.queryCosts }

    /// The server drains: calls that last as long as their clients like are ended.
    func stopServing() {
        streams.stopServing()
        stores.stopServing()
    }

    /// Decides whether a call may be made, as far as that is known before its message has been read. With the message
    /// it is decided again, which counts the call twice where calls are limited.
    ///
    /// - Parameter resource: a database, or a name in it; nil for calls of those who may administer the server.
    /// - Throws: `UNAUTHENTICATED`, `PERMISSION_DENIED`, `RESOURCE_EXHAUSTED`.
    func admitUnread(
        _ call: Call, _ method: FirestoreMessages.Method, about resource: String? = nil
    ) throws(RequestError) {
        guard let authorization else { return }
        guard method.service == .firestore, let resource else {
            return try authorization.admit(call.origin, for: method.purpose)
        }
        do throws(RequestError) {
            // Where another server decides, and where the name is none, only the credential counts.
            if let database = DatabaseName(ofName: resource),
                stores.known(database)?.firestore.forwarder?.isNeeded != true
            {
                _ = try authorization.admit(call, method, in: database, reusing: nil)
            } else {
                _ = try authorization.vouch(for: call)
            }
        } catch {
            // The key of the token may come while the message is read.
            if !authorization.retry(call, after: error, {}) { throw error }
        }
    }

    /// Ends a call whose request message could not be made.
    func refuse(_ call: Call, _ error: RequestError) { stores.first.firestore.refuse(call, error) }

    func fail(_ call: Call, _ error: any Error) { stores.first.firestore.fail(call, error) }

    func begin(_ call: Call, payload: RawSpan) { begin(call, payload, nil) }

    /// - Parameter forwarded: the carrier of a call that another server has forwarded.
    func begin(_ call: Call, _ payload: RawSpan, _ forwarded: ForwardedCarrier?) {
        let method = call.method
        if method.service == .firestore { return beginAtStore(call, method, payload, forwarded) }
        if method == .adminForward { return beginForwarded(call, payload) }
        counters.callsStarted.add()
        do {
            try authorization?.admit(call.origin, for: method.purpose)
            switch method {
            case .adminNewestVersion: try newestVersion(call, payload)
            case .adminMoveDatabase: try moveDatabase(call, payload)
            case .adminReceiveDatabase: try receiveDatabase(call, payload)
            case .healthCheck:
                let answer = try health.check(payload)
                stores.first.firestore.succeed(call) { $0.append(answer) }
            case .healthWatch: try health.watch(call, payload)
            case .serverReflectionInfo: reflection.begin(call, payload)
            case .adminFollow:
                let store = try stores.followed(FollowRequest(wire: payload))
                try store.checkServes()
                try store.services.administration.begin(call, payload)
            default: try administer(call, method, payload, forwarded)
            }
        } catch {
            fail(call, error)
        }
    }

    func loopWillWait() { stores.loopWillWait() }

    func abandoned(_ reason: CancellationReason) { counters.callsAbandoned.add() }
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

extension DatabaseName {
    /// The database that a name lies in or is; nil if the name does not begin with one.
    fileprivate init?(ofName name: String) {
        let database = name.withUTF8Span { name in
            DatabaseName.prefixByteCount(of: name).flatMap { try? DatabaseName(name.extracting(first: $0)) }
        }
        guard let database else { return nil }
        self = database
    }
}
