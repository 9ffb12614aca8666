// The way of one loop to the server that takes the writes.
//
//     client ──► loop ──► FirestoreService ──isRouted──► LeaderLink ──► one connection ──► the other server
//                  ▲                                          │              (Admin/Forward)
//                  └── reply, when the commit is visible here ◄┘
//
// The connection is made on the loop of the calls, so a forwarded call changes no threads. Bytes of messages go as they
// are, after a head that says who calls. A call whose connection is lost is made again until its deadline, if that
// changes nothing twice: a commit has a request identifier.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import Identity
internal import NativeProtocol

/// Forwards calls of one loop. Confined to it.
final class LeaderLink: CallForwarder {
    /// What all loops share.
    struct Context {
        let leader: KnownLeader
        /// What the store is called among several; empty for the only one.
        let storeName: String
        let authorization: Authorization?
        let store: DocumentStore
        let readsAreStrict: Bool
        let staleReadsMax: UInt64
        let log: Log
    }

    let context: Context
    let loop: EventLoop
    unowned let service: FirestoreService
    private var connection: ClientConnection?
    /// Counts connections: the end of an earlier one is not that of the present one.
    private var connectionCount = 0
    private var isClosed = false
    private var numbers = CommitSequence()
    private var calls: [ObjectIdentifier: any ForwardedWork] = [:]
    private var bytes = 0
    private var forms = VouchedForms()
    /// The store for which this server calls the one that takes the writes.
    let called: CalledStore
    let newest = NewestVersions()
    let visible: VisibleVersions

    /// Calls of one loop that may be forwarded at once, and the bytes of their requests.
    private static let callsMax = 10_000
    private static let bytesMax = 128 << 20
    /// How long a call without a deadline is tried, in milliseconds.
    static let patienceMilliseconds: UInt64 = 60_000

    init(_ context: Context, _ service: FirestoreService, on loop: EventLoop) {
        self.context = context
        self.service = service
        self.loop = loop
        visible = VisibleVersions(context.store, on: loop)
        called = CalledStore(context.store)
        let link = LoopBound(WeakLink(self))
        context.leader.whenMoved { loop.execute { link.value.link?.leaderMoved() } }
    }

    /// Observers outlive the loop's services.
    private struct WeakLink {
        weak var link: LeaderLink?
        init(_ link: LeaderLink) { self.link = link }
    }

    var isNeeded: Bool { !context.leader.isHere }
    var readsAreStrict: Bool { context.readsAreStrict && context.store.lagMicroseconds >= context.staleReadsMax }

    // MARK: Calls

    func forward(
        _ call: Call, _ method: FirestoreMessages.Method, _ request: RawSpan, isInTransaction: Bool
    ) throws(RequestError) {
        let head = try head(of: call, method)
        guard calls.count < Self.callsMax, bytes + request.byteCount <= Self.bytesMax else {
            throw RequestError(.resourceExhausted, "Too many calls wait for the server that takes the writes.")
        }
        if method == .write {
            do {
                try ForwardedWriteStream(self, call, head, request).begin()
            } catch let error as RequestError {
                throw error
            } catch {
                throw RequestError(.invalidArgument, "The first message of a write stream cannot be read.")
            }
        } else {
            ForwardedCall(self, call, head, request, isInTransaction: isInTransaction).begin()
        }
    }

    private func head(of call: Call, _ method: FirestoreMessages.Method) throws(RequestError) -> ForwardedHead {
        let origin = call.origin
        var approach: ForwardedApproach = []
        if origin.isLoopback { approach.insert(.loopback) }
        if origin.isProxied { approach.insert(.proxied) }
        if origin.isForwarded { approach.insert(.trustedProxy) }
        return ForwardedHead(
            method: method, caller: try callerBytes(of: call), address: origin.address?.bytes ?? [],
            approach: approach,
            client: UInt32(truncatingIfNeeded: UInt(bitPattern: ObjectIdentifier(call.carrier).hashValue)),
            store: called)
    }

    /// Who makes a call, for the other server. Without an access control nobody is known.
    ///
    /// - Throws: `UNAUTHENTICATED` for a credential that is refused, `RESOURCE_EXHAUSTED` after many failures.
    func callerBytes(of call: Call) throws(RequestError) -> [UInt8] {
        forms.bytes(
            of: try context.authorization?.vouch(for: call) ?? VouchedCaller(.anonymous, isVerified: false))
    }

    /// Keeps work that is under way, until ``remove(_:)``.
    func add(_ work: some ForwardedWork) {
        calls[ObjectIdentifier(work)] = work
        bytes += work.requestBytes
    }

    func remove(_ work: some ForwardedWork) {
        if calls.removeValue(forKey: ObjectIdentifier(work)) != nil { bytes -= work.requestBytes }
    }

    // MARK: Request identifiers

    func makeTicket() -> CommitSequence.Ticket { numbers.begin() }
    func finish(_ ticket: CommitSequence.Ticket) { numbers.finish(ticket) }
    func requestID(_ ticket: CommitSequence.Ticket) -> RequestID {
        RequestID(ticket, oldestPending: numbers.oldestPending(of: ticket))
    }

    // MARK: The connection

    /// The connection to the server that takes the writes; nil if that is not known.
    func connect() -> ClientConnection? {
        if let connection { return connection }
        guard !isClosed, let server = context.leader.location.server else { return nil }
        var configuration = ClientConfiguration()
        configuration.connectMilliseconds = 5_000
        configuration.keepAliveMilliseconds = 5_000
        configuration.keepAliveTimeoutMilliseconds = 5_000
        configuration.gathersRequests = true
        configuration.tls = server.tls
        configuration.credential = server.credential
        connectionCount += 1
        let (number, bound) = (connectionCount, LoopBound(WeakLink(self)))
        let connection = ClientConnection.connect(
            to: server.host, port: server.port, on: loop, configuration
        ) { event in
            switch event {
            case .ready: break
            case .goingAway, .closed: bound.value.link?.connectionEnded(number)
            }
        }
        self.connection = connection
        return connection
    }

    /// Calls from now on have another connection.
    private func connectionEnded(_ number: Int) {
        if number == connectionCount { connection = nil }
    }

    private func leaderMoved() {
        connectionCount += 1
        connection.take()?.close()
        for call in calls.values { call.leaderMoved() }
    }

    /// Ends what is under way. The loop is about to end.
    func close() {
        isClosed = true
        connection.take()?.close()
    }

    /// The store is about to be closed: calls that wait or are under way fail.
    func retire() {
        close()
        for call in Array(calls.values) { call.fail(.storeIsBeingOpened) }
        failReads(.storeIsBeingOpened)
    }

    /// Whether nothing is asked any more.
    var hasEnded: Bool { isClosed }
}

extension CalledStore {
    /// The identity of a store of a cluster; none for another store.
    init(_ store: DocumentStore) {
        let identity = store.configuration.engine.sharedLog?.store
        self.init(high: identity?.high ?? 0, low: identity?.low ?? 0)
    }
}

/// A call that another server answers. Confined to its loop.
protocol ForwardedWork: AnyObject, Sendable {
    /// Bytes of the request that is kept for repetitions.
    var requestBytes: Int { get }
    var link: LeaderLink { get }
    /// The database that the call is about; nil if it is not about one.
    var database: DatabaseName? { get }
    var attempts: ForwardedAttempts { get set }
    /// The pause before the next attempt.
    var pause: EventLoop.Timer? { get set }

    /// Sends the request to the server that takes the writes now.
    func attempt()
    /// Ends the call.
    func fail(_ error: RequestError)
}

extension ForwardedWork {
    /// - Parameter reason: why there is no reply yet, in words; may be empty.
    func tryLater(_ reason: String) {
        // The leader of another store takes its calls by now.
        if let database, let refusal = link.context.store.moveRefusal(of: database) { return fail(refusal) }
        // Nobody can lead without the database of the store.
        if link.context.store.isCutOff { return fail(.noLeader(reason)) }
        let milliseconds = attempts.nextPause()
        guard !attempts.isOver(link.loop.nowMilliseconds + milliseconds) else { return fail(.noLeader(reason)) }
        pause = link.loop.schedule(afterMilliseconds: milliseconds) { [self] in attempt() }
    }

    /// Another server may take the call now.
    func leaderMoved() {
        if endPause() { attempt() }
    }

    /// - Returns: whether there was a pause.
    @discardableResult
    func endPause() -> Bool {
        guard let timer = pause.take() else { return false }
        link.loop.cancel(timer)
        return true
    }
}

/// Times of attempts, in milliseconds of the loop.
struct ForwardedAttempts {
    private var count = 0
    /// When nothing is tried any more.
    private(set) var endsAt: UInt64

    private static let pauseMillisecondsMin: UInt64 = 20
    private static let pauseMillisecondsMax: UInt64 = 1_000

    /// An end before the client's deadline leaves time for a status that says more.
    init(of call: Call) {
        let left = call.remainingMilliseconds
        endsAt = call.loop.nowMilliseconds + (left.map { $0 - min($0 / 10, 100) } ?? LeaderLink.patienceMilliseconds)
    }

    /// Begins to count time again.
    mutating func restart(_ now: UInt64, milliseconds: UInt64 = LeaderLink.patienceMilliseconds) {
        count = 0
        endsAt = now + milliseconds
    }

    func isOver(_ now: UInt64) -> Bool { now >= endsAt }

    /// Milliseconds until the next attempt.
    mutating func nextPause() -> UInt64 {
        let pause = min(Self.pauseMillisecondsMin << UInt64(min(count, 6)), Self.pauseMillisecondsMax)
        count += 1
        return pause / 2 + .random(in: 0...pause / 2)
    }
}

extension RequestError {
    /// No server takes the writes that could be asked in time.
    static func noLeader(_ reason: String) -> RequestError {
        RequestError(
            .unavailable, "The server that takes the writes does not answer\(reason.isEmpty ? "" : ": ")\(reason)")
    }

    /// The server of a transaction cannot say what became of a call.
    static let transactionLost = RequestError(
        .aborted, "The connection to the server of the transaction was lost. Please try again.")
}
