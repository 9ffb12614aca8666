// The Firestore service of one event loop: request bytes in, store, reply bytes out.
//
// Each method is written once, here and in the files beside this one, for every front there is. A method runs to completion on
// the thread of the loop that received the request:
//
//   read     decode the request in place, fix a read point, and write the reply from the storage's own pages straight into
//            the connection's output; nothing is allocated for a point read
//   write    decode, check and copy the writes on the loop's thread, hand them to the store's commit thread, and answer from
//            the loop when they are durable
//   stream   hand the front a `ResponseSource`, which it pulls message by message as the peer makes room
//
// Errors are thrown as `RequestError` and answered in one place, ``begin(_:_:_:)``. Anything else that is thrown is a bug:
// it is answered INTERNAL and logged.

internal import Basics
internal import DocumentModel
package import DocumentStore
internal import FirestoreMessages
package import Transport

/// The methods over one loop's reader. Made, used and let go on that loop's thread.
package final class FirestoreService<Call: ServiceCall> {
    package let store: DocumentStore
    package let limits: ServiceLimits
    package let counters: ServiceCounters
    let reader: StoreReader
    let policy: (any AccessPolicy)?
    /// Whether there is a policy; asking this costs less than looking at it.
    private let isRestricted: Bool
    let log: Log
    /// The database named last, so that a client's writes do not parse it each time.
    private var lastDatabase: DatabaseName?
    /// Sources of streaming replies that have ended, for the next ones.
    var spareBatchGets: [BatchGetSource<Call>] = []
    /// Streams that last as long as their clients like.
    private var lasting: [ObjectIdentifier: any LastingStream] = [:]
    private var isServing = true

    package init(
        store: DocumentStore, limits: ServiceLimits = ServiceLimits(), policy: (any AccessPolicy)? = nil,
        counters: ServiceCounters = ServiceCounters(), log: Log
    ) {
        self.store = store
        self.limits = limits
        self.policy = policy
        isRestricted = policy != nil
        self.counters = counters
        self.log = log
        reader = store.makeReader()
        reader.keepViews()
    }

    /// Takes a call. The request's bytes are lent for the time of this function.
    ///
    /// Does not throw: whatever goes wrong becomes the call's answer.
    package func begin(_ call: Call, _ method: Method, _ request: RawSpan) {
        counters.callsStarted.add()
        do {
            switch method {
            case .getDocument: try getDocument(call, request)
            case .batchGetDocuments: try batchGetDocuments(call, request)
            case .commit: try commit(call, request)
            case .beginTransaction: try beginTransaction(call, request)
            case .rollback: try rollback(call, request)
            case .runQuery: try runQuery(call, request)
            case .runAggregationQuery: try runAggregationQuery(call, request)
            case .listDocuments: try listDocuments(call, request)
            case .listCollectionIds: try listCollectionIDs(call, request)
            case .createDocument: try createDocument(call, request)
            case .updateDocument: try updateDocument(call, request)
            case .deleteDocument: try deleteDocument(call, request)
            case .batchWrite: try batchWrite(call, request)
            case .partitionQuery: try partitionQuery(call, request)
            case .write: try write(call, request)
            case .listen:
                throw RequestError(.unimplemented, "Listen is not implemented by this server yet: read with RunQuery.")
            case .healthCheck, .healthWatch, .serverReflectionInfo:
                throw RequestError(.unimplemented, "\(method.name) is not a method of Firestore.")
            }
        } catch {
            fail(call, method, error)
        }
    }

    /// Lets go of the state that reads in a row share.
    package func loopWillWait() { reader.letGo() }

    // MARK: Draining

    /// The server drains: streams that last as long as their clients like end when what they were told is done.
    func stopServing() {
        isServing = false
        for stream in lasting.values { stream.stopServing() }
    }

    func begins(_ stream: some LastingStream) {
        lasting[ObjectIdentifier(stream)] = stream
        if !isServing { stream.stopServing() }
    }

    func ends(_ stream: some LastingStream) { lasting[ObjectIdentifier(stream)] = nil }

    // MARK: Answering

    /// Answers with OK and one message; when `write` throws, the call is still to be answered.
    @inline(__always)
    func succeed<Failure: Error>(
        _ call: Call, _ write: (inout WireWriter) throws(Failure) -> Void
    ) throws(Failure) {
        try call.respond(write)
        ended(call)
    }

    /// Ends a call that its front could not make into a request.
    func refuse(_ call: Call, _ method: Method, _ error: RequestError) {
        counters.callsStarted.add()
        fail(call, method, error)
    }

    /// Ends the call with whatever was thrown.
    func fail(_ call: Call, _ method: Method, _ error: any Error) {
        call.fail(requestError(error, call))
    }

    /// Counts a call that ends with OK.
    @inline(__always)
    func ended(_ call: Call) {
        counters.callEnded(call.method, .ok)
        call.noteTime(in: counters)
    }

    /// Counts an error, logs it if it is our fault, and says what the client is told.
    func requestError(_ error: any Error, _ call: Call) -> RequestError {
        let method = call.method
        let status =
            switch error {
            case let error as RequestError: error
            case let error as InvalidDocument: RequestError(error)
            default: RequestError(.internal, "The server failed: \(error)")
            }
        counters.callEnded(method, status.code)
        call.noteTime(in: counters)
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

    /// Goes on after the store's threads have an outcome: back on the loop, with errors answered.
    ///
    /// - Returns: what to hand the store as completion; it may be called on any thread.
    func continuation<Outcome: Sendable>(
        _ call: Call, _ method: Method, _ body: @escaping (FirestoreService<Call>, Outcome) throws -> Void
    ) -> @Sendable (Result<Outcome, RequestError>) -> Void {
        let bound = LoopBound((service: self, body: body))
        return { outcome in
            call.onLoop {
                let (service, body) = bound.value
                do {
                    try body(service, try outcome.get())
                } catch {
                    service.fail(call, method, error)
                }
            }
        }
    }

    // MARK: What every method asks

    /// Asks the policy, if there is one.
    @inline(__always)
    func authorize(_ call: Call, _ method: Method, _ resource: RawSpan) throws(RequestError) {
        guard isRestricted, let policy else { return }
        try policy.check(method, on: resource, by: call.principal)
    }

    /// Asks the policy, if there is one, whether a whole database may be deleted.
    func authorizeReset(of database: DatabaseName, by principal: Principal) throws(RequestError) {
        guard let policy else { return }
        try policy.checkReset(of: database.utf8.byteSpan, by: principal)
    }

    /// The database of this name; the same value again for the same name.
    func database(_ name: RawSpan) throws(RequestError) -> DatabaseName {
        if let lastDatabase, lastDatabase.utf8.span.bytes.equalsBytes(name) { return lastDatabase }
        let database = try DatabaseName(name)
        lastDatabase = database
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

/// A stream that lasts as long as its client likes, and would hold up a drain. Confined to the loop.
protocol LastingStream: AnyObject {
    /// Takes nothing more, and ends with UNAVAILABLE when what was taken is done.
    func stopServing()
}

/// A value of a loop's thread on its way through other threads, which only pass it on.
struct LoopBound<Value>: @unchecked Sendable {
    // Sendable: made on the loop's thread and opened again on the same thread only, by `ServiceCall.onLoop`.
    let value: Value

    init(_ value: Value) { self.value = value }
}

extension ReadConsistency {
    /// What the store is asked for; a transaction yet to begin is the caller's to begin first.
    func selector() throws(RequestError) -> ReadSelector {
        switch self {
        case .latest: .latest
        case .readTime(let time): .time(time)
        case .transaction(let id): .transaction(try TransactionIdentifier(bytes: id.span.bytes))
        case .newTransaction: throw .invalidArgument("A new transaction cannot begin with this request.")
        }
    }
}
