package import Basics
package import Calls
internal import DocumentModel
package import DocumentStore
package import FirestoreMessages
internal import Storage

/// The Firestore service of one event loop: request bytes in, store, reply bytes out.
///
/// Each method is written once, here and in the files beside this one, for every protocol. A method runs to
/// completion on the thread of the loop that received the request:
///
/// - A read decodes the request in place, fixes a read point, and writes the reply from the storage's own pages
///   straight into the connection's output. A point read allocates nothing.
/// - A write is decoded, checked and copied on the loop's thread, handed to the store's commit thread, and answered
///   from the loop when it is durable.
/// - A streaming reply is a `ResponseSource`, which the transport asks message by message as the client makes room.
///
/// Errors are thrown as `RequestError` and answered in one place, ``begin(_:_:)``. Anything else that is thrown is a
/// bug: the call ends with INTERNAL and the error is logged. Made, used and released on its loop's thread.
package final class FirestoreService {
    package let store: DocumentStore
    package let limits: ServiceLimits
    package let counters: ServiceCounters
    package let reader: StoreReader
    /// Asked before every call; nil where everything is permitted to everyone.
    package let accessControl: (any AccessControl)?
    /// Whether there is an access control; asking this costs less than looking at it.
    private let isControlled: Bool
    private let hot = Confined(Hot())
    let log: Log
    /// Sources of streaming replies that have ended, for the next ones.
    var spareBatchGets: [BatchGetSource] = []
    package let longLivedStreams = LongLivedStreams()
    /// Has the calls answered that another server must answer; nil where there is no other.
    package var forwarder: (any CallForwarder)? {
        get { hot.state.forwarder }
        set { hot.state.forwarder = newValue }
    }
    let queryReads = QueryReads()
    /// What the queries of this loop have read in the last hour, by their form.
    package var queryCosts: [QueryCost] { queryReads.costs }
    let waitingCommits = WaitingCommits()
    /// What reads of unary calls do that meet something which is not in memory.
    private(set) var coldRead = ColdRead.pends
    /// Bytes of a request that is kept while its call waits for storage.
    private static let parkedRequestBytesMax = 64 << 10
    private var loopListeners: LoopListeners?

    /// What every call uses.
    private struct Hot {
        /// What the last call was permitted, which the next one often is too.
        var lastAccess: (any CallAccess)?
        /// The database named last, so that a client's writes do not parse it each time.
        var lastDatabase: DatabaseName?
        var forwarder: (any CallForwarder)?
        var loneClient = LoneClientDetector()
        /// Bytes of requests that wait for keys of their tokens.
        var bytesAwaitingKeys = 0
    }

    /// Most of these on a loop. Nobody knows yet whose they are; a request beyond is refused like its token.
    private static let bytesAwaitingKeysMax = 16 << 20

    package init(
        store: DocumentStore, limits: ServiceLimits = ServiceLimits(), accessControl: (any AccessControl)? = nil,
        counters: ServiceCounters = ServiceCounters(), log: Log
    ) {
        self.store = store
        self.limits = limits
        self.accessControl = accessControl
        isControlled = accessControl != nil
        self.counters = counters
        self.log = log
        reader = store.makeReader()
        reader.keepViews()
    }

    /// Takes a call. The request's bytes are lent for the time of this function.
    ///
    /// Does not throw: whatever goes wrong becomes the call's answer.
    package func begin(_ call: Call, _ request: RawSpan) { begin(call, call.method, request) }

    /// The same; the caller knows the method.
    package func begin(_ call: Call, _ method: Method, _ request: RawSpan) {
        counters.callsStarted.add()
        hot.state.loneClient.note(call)
        do {
            try perform(call, method, request)
        } catch {
            if isControlled, isTriedAgain(call, method, request, after: error) { return }
            failOrRepeat(call, method, request, error)
        }
    }

    /// Ends a call with what its work has thrown, or makes it again when storage has what it lacked.
    ///
    /// - Parameter isStrict: the work was done ``StoreReader/strictly(_:)``. What is visible by then may be newer than
    ///   what the leader had acknowledged, so it is asked again.
    func failOrRepeat(
        _ call: Call, _ method: Method, _ request: RawSpan, _ error: any Error, isStrict: Bool = false
    ) {
        guard (error as? RequestError)?.isPending == true else { return fail(call, error) }
        guard request.byteCount <= Self.parkedRequestBytesMax else {
            return performWaiting(call, method, request, isStrict: isStrict)
        }
        let request = [UInt8](copying: request)
        repeatWhenReady(call) { service in
            if isStrict { return try service.perform(call, method, request.byteSpan) }
            try service.performHere(call, method, request.byteSpan)
        }
    }

    /// Performs a call whose request is too large to be kept: its reads wait.
    private func performWaiting(_ call: Call, _ method: Method, _ request: RawSpan, isStrict: Bool) {
        coldRead = .waits
        defer { coldRead = .pends }
        do {
            if isStrict { return try reader.strictly { try performHere(call, method, request) } }
            try performHere(call, method, request)
        } catch {
            fail(call, error)
        }
    }

    @inline(__always)
    private func perform(_ call: Call, _ method: Method, _ request: RawSpan) throws {
        if let forwarder, forwarder.isNeeded, try isRouted(call, method, request, by: forwarder) { return }
        try performHere(call, method, request)
    }

    @inline(__always)
    func performHere(_ call: Call, _ method: Method, _ request: RawSpan) throws {
        switch method {
        case .getDocument: try getDocument(call, request)
        case .batchGetDocuments: try batchGetDocuments(call, request)
        case .commit: try commit(call, request)
        case .beginTransaction: try beginTransaction(call, request)
        case .rollback: try rollback(call, request)
        case .runQuery: try runQuery(call, request)
        case .runAggregationQuery: try runAggregationQuery(call, request)
        case .executePipeline: try executePipeline(call, request)
        case .listDocuments: try listDocuments(call, request)
        case .listCollectionIds: try listCollectionIDs(call, request)
        case .createDocument: try createDocument(call, request)
        case .updateDocument: try updateDocument(call, request)
        case .deleteDocument: try deleteDocument(call, request)
        case .batchWrite: try batchWrite(call, request)
        case .partitionQuery: try partitionQuery(call, request)
        case .write: try write(call, request)
        case .listen: try listen(call, request)
        default:
            throw RequestError(.unimplemented, "\(method.name) is not a method of Firestore.")
        }
    }

    /// Has a call made again that was refused for what can still come. A bidirectional call cannot wait for it.
    private func isTriedAgain(_ call: Call, _ method: Method, _ request: RawSpan, after error: any Error) -> Bool {
        guard call.rpc.shape != .bidirectional, let accessControl, let error = error as? RequestError,
            error.code == .unauthenticated,
            hot.state.bytesAwaitingKeys + request.byteCount <= Self.bytesAwaitingKeysMax
        else { return false }
        let request = [UInt8](copying: request)
        let service = LoopBound(self)
        let waits = accessControl.retry(call, after: error) {
            call.loop.execute { service.value.beginAgain(call, method, request) }
        }
        if waits { hot.state.bytesAwaitingKeys += request.count }
        return waits
    }

    private func beginAgain(_ call: Call, _ method: Method, _ request: [UInt8]) {
        hot.state.bytesAwaitingKeys -= request.count
        do {
            try perform(call, method, request.byteSpan)
        } catch {
            failOrRepeat(call, method, request.byteSpan, error)
        }
    }

    /// Whether the client has this loop to itself: then the loop may wait for the sync of its commit.
    func isAlone(_ call: Call) -> Bool { hot.state.loneClient.isAlone(call) }

    /// Releases the state that the reads of one round share.
    package func loopWillWait() {
        hot.state.loneClient.newRound()
        reader.releaseSnapshots()
    }

    /// The store is about to be closed: lasting streams end, and what reads have shared is released. Other calls end
    /// with what the closed store answers.
    package func retire() {
        longLivedStreams.stopServing()
        loopListeners?.end()
        loopWillWait()
    }

    /// The listeners of the service's loop.
    func listeners(on loop: any LoopThread) -> LoopListeners {
        if let loopListeners { return loopListeners }
        let listeners = LoopListeners(
            store, limits: limits.listeners, reader: reader, counters: counters, on: loop)
        loopListeners = listeners
        return listeners
    }

    // MARK: Replies

    /// Ends the call with OK and one message. If `write` throws, the call is still open.
    @inline(__always)
    package func succeed<Failure: Error>(
        _ call: Call, _ write: (inout ByteBuffer) throws(Failure) -> Void
    ) throws(Failure) {
        try call.respond(write)
        ended(call)
    }

    /// Ends a call whose request message could not be made.
    package func refuse(_ call: Call, _ error: RequestError) {
        counters.callsStarted.add()
        fail(call, error)
    }

    /// Ends the call with whatever was thrown.
    package func fail(_ call: Call, _ error: any Error) {
        call.fail(requestError(error, call))
    }

    /// Counts a call that ends with OK.
    /// - Parameter plan: describes a query, for the log of slow calls.
    @inline(__always)
    package func ended(_ call: Call, plan: () -> String = { "" }) {
        counters.callEnded(call.rpc, .ok)
        let nanoseconds = call.recordTime(in: counters)
        if nanoseconds > 0 { noteTime(nanoseconds, of: call, .ok, plan) }
    }

    /// Logs a call that was slow.
    private func noteTime(_ nanoseconds: UInt64, of call: Call, _ code: StatusCode, _ plan: () -> String = { "" }) {
        let milliseconds = nanoseconds / 1_000_000
        guard limits.slowCallMilliseconds > 0, milliseconds >= limits.slowCallMilliseconds else { return }
        var pairs = [("method", call.method.label), ("code", "\(code)"), ("milliseconds", "\(milliseconds)")]
        let plan = plan()
        if !plan.isEmpty { pairs.append(("plan", plan)) }
        log.write(.warning, "slow_call", pairs)
    }

    /// An error that no call should end with. The client gets no text of it, which may have paths; the log does.
    private static func failure(_ error: any Error) -> RequestError {
        var failure = RequestError(.internal, "The server failed.")
        failure.details = "\(error)"
        return failure
    }

    /// Counts an error, logs it if it is the server's fault, and returns the error for the client.
    package func requestError(_ error: any Error, _ call: Call) -> RequestError {
        let method = call.method
        let status =
            switch error {
            case let error as RequestError: error
            case let error as InvalidDocument: RequestError(error)
            default: Self.failure(error)
            }
        counters.callEnded(call.rpc, status.code)
        let nanoseconds = call.recordTime(in: counters)
        if nanoseconds > 0 { noteTime(nanoseconds, of: call, status.code) }
        switch status.code {
        case .internal, .dataLoss, .unknown:
            counters.callsBroken.add()
            let message = [status.message, status.details].compactMap(\.self).joined(separator: " ")
            log(.error, "call_broken", ["method": method.name, "code": "\(status.code)", "message": message])
        default:
            counters.callsFailed.add()
            log(.debug, "call_failed", ["method": method.name, "code": "\(status.code)", "message": status.message])
        }
        return status
    }

    /// Continues on the loop's thread when the store's threads have an outcome. An error ends the call.
    ///
    /// - Returns: what to hand the store as completion; it may be called on any thread.
    package func continuation<Outcome: Sendable>(
        _ call: Call, _ body: @escaping (FirestoreService, Outcome) throws -> Void
    ) -> @Sendable (Result<Outcome, RequestError>) -> Void {
        let bound = LoopBound((service: self, body: body))
        return { outcome in
            call.loop.execute {
                let (service, body) = bound.value
                do {
                    try body(service, try outcome.get())
                } catch {
                    service.failOrRepeat(call, error) { try body($0, try outcome.get()) }
                }
            }
        }
    }

    // MARK: Checks of every method

    /// Asks whether a call may be made.
    ///
    /// - Parameter name: a database, or a name in it.
    /// - Returns: what its caller may do; nil if that is everything.
    @inline(__always)
    package func admit(_ call: Call, _ name: RawSpan) throws(RequestError) -> (any CallAccess)? {
        guard isControlled else { return nil }
        return try askAccessControl(call, name)
    }

    private func askAccessControl(_ call: Call, _ name: RawSpan) throws(RequestError) -> (any CallAccess)? {
        guard let accessControl else { return nil }
        if accessControl.admitsEveryone, !call.isProxied { return nil }
        let access = try accessControl.admit(
            call, call.method, in: database(ofName: name), reusing: hot.state.lastAccess)
        hot.state.lastAccess = access
        return access
    }

    /// The state in which what a call reads is judged. Deciding throws `pending` if rules read what is not in memory;
    /// the call is then made again, as after its own reads.
    func judged(at point: ReadPoint) -> JudgedState { JudgedState(reader, point, coldRead) }

    /// The present state. A read by name that takes locks is judged in it before, and again in the state that it reads:
    /// a caller who may not read a document does not hold up those who write it.
    func judgedBeforeLocking(in database: DatabaseName) throws(RequestError) -> JudgedState {
        judged(at: try reader.readPoint(.latest, in: database))
    }

    /// The database that a name lies in or is.
    private func database(ofName name: RawSpan) throws(RequestError) -> DatabaseName {
        try database(name.extracting(0..<(DatabaseName.prefixByteCount(of: name) ?? name.byteCount)))
    }

    /// The database of this name; the same value again for the same name.
    func database(_ name: RawSpan) throws(RequestError) -> DatabaseName {
        if let last = hot.state.lastDatabase, last.utf8.span.bytes.equalsBytes(name) { return last }
        let database = try DatabaseName(name)
        hot.state.lastDatabase = database
        return database
    }

    /// The document's name, or why it is none.
    @_lifetime(copy name)
    func documentName(_ name: RawSpan) throws(RequestError) -> ResourceNameView {
        let view = try ResourceNameView(resource: name, rules: .request)
        guard view.isDocument else { throw RequestError(.notADocument, name: name) }
        return view
    }
}

/// A value of a loop's thread on its way through other threads, which only pass it on.
package struct LoopBound<Value>: @unchecked Sendable {
    // Sendable: made on the loop's thread and opened again on the same thread only, by `LoopThread.execute`.
    package let value: Value

    package init(_ value: Value) { self.value = value }
}

extension ReadConsistency {
    /// What the store is asked for; a transaction yet to begin is the caller's to begin first.
    func selector(in store: DocumentStore) throws(RequestError) -> ReadSelector {
        switch self {
        case .latest: .latest
        case .readTime(let time): .time(time)
        case .transaction(let id): store.selector(of: try TransactionIdentifier(bytes: id.span.bytes))
        case .newTransaction: throw .invalidArgument("A new transaction cannot begin with this request.")
        }
    }
}
