// The way of a call to the store that it is about.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreMessages
internal import FirestoreService

extension CallRouter {
    // MARK: Firestore

    /// A call of the Firestore service.
    func beginAtStore(
        _ call: Call, _ method: FirestoreMessages.Method, _ payload: RawSpan, _ forwarded: ForwardedCarrier?
    ) {
        if let store = stores.store(of: method, in: payload) {
            return perform(call, method, payload, forwarded, at: store)
        }
        let request = [UInt8](copying: payload)
        let held = method.shape == .bidirectional ? HeldCall(call).inner : call
        do throws(RequestError) {
            try find(call, method, payload) { [self] outcome in
                switch outcome {
                case .success(let store): perform(held, method, request.byteSpan, forwarded, at: store)
                case .failure(let error): refuse(held, error, forwarded)
                }
            }
        } catch {
            refuse(held, error)
        }
    }

    private func perform(
        _ call: Call, _ method: FirestoreMessages.Method, _ payload: RawSpan, _ forwarded: ForwardedCarrier?,
        at store: LoopStore
    ) {
        if let refusal = store.closedRefusal { return refuse(call, refusal, forwarded) }
        if let forwarded {
            forwarded.store = store.served.store
            if let error = store.refusal(ofCallFor: forwarded.called) { return refuse(call, error) }
        }
        store.firestore.begin(call, method, payload)
    }

    private func refuse(_ call: Call, _ error: RequestError, _ forwarded: ForwardedCarrier?) {
        if error.code == .unavailable, forwarded == nil { call.noteRetry(afterSeconds: 1) }
        refuse(call, error)
    }

    /// Finds the store of a request whose database is not known here.
    ///
    /// A database that no store has is put in one for a caller that may call this method in it. Others do not fill the
    /// table of databases.
    private func find(
        _ call: Call, _ method: FirestoreMessages.Method, _ payload: RawSpan,
        _ continuation: @escaping LoopStores.Continuation
    ) throws(RequestError) {
        guard let database = stores.database(of: method, in: payload) else {
            return continuation(.success(stores.first))
        }
        let mayWrite = (try? method.mayWrite(payload)) ?? false
        try stores.find(
            database, creates: mayWrite && isAdmitted(call, method, in: database), byteCount: payload.byteCount
        ) { outcome in
            if call.isOpen { continuation(outcome) }
        }
    }

    private func isAdmitted(
        _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName
    ) -> Bool {
        do throws(RequestError) {
            _ = try authorization?.admit(call, method, in: database, reusing: nil)
            return true
        } catch {
            return false
        }
    }

    // MARK: Administration

    /// A call of an administrative service. Its caller may administer the server.
    func administer(
        _ call: Call, _ method: FirestoreMessages.Method, _ payload: RawSpan, _ forwarded: ForwardedCarrier?
    ) throws {
        guard method.isAboutDatabase, stores.only == nil else {
            return try administer(call, method, payload, forwarded, at: stores.first)
        }
        if let store = stores.store(of: method, in: payload) {
            return try administer(call, method, payload, forwarded, at: store)
        }
        guard let database = stores.database(of: method, in: payload) else {
            return try administer(call, method, payload, forwarded, at: stores.first)
        }
        let request = [UInt8](copying: payload)
        try stores.find(database, creates: method.createsDatabase, byteCount: request.count) { [self] outcome in
            guard call.isOpen else { return }
            do {
                try administer(call, method, request.byteSpan, forwarded, at: try outcome.get())
            } catch {
                fail(call, error)
            }
        }
    }

    private func administer(
        _ call: Call, _ method: FirestoreMessages.Method, _ payload: RawSpan, _ forwarded: ForwardedCarrier?,
        at store: LoopStore
    ) throws {
        if method != .adminGetServer { try store.checkServes() }
        // A store that gave a database away, or is about to get it, has indexes and settings of it too.
        if method.isAboutDatabase, let database = stores.database(of: method, in: payload),
            let refusal = store.served.store.moveRefusal(of: database)
        {
            throw refusal
        }
        if let forwarded {
            forwarded.store = store.served.store
            if let error = store.refusal(ofCallFor: forwarded.called) { throw error }
        }
        if let forwarder = store.firestore.forwarder, forwarder.isNeeded, method.forwarding != .none {
            return try forwarder.forward(call, method, payload, isInTransaction: false)
        }
        if method.service == .administration {
            try store.services.administration.begin(call, payload)
        } else {
            try store.services.indexes.begin(call, payload)
        }
    }

    // MARK: Followers

    /// A call of a follower's client. It counts as that, and not as a call of the follower. What a follower may ask for
    /// is what a caller may that administers the server: everything.
    func beginForwarded(_ call: Call, _ payload: RawSpan) {
        do {
            try authorization?.admit(call.origin, for: .administration)
            let view = try ForwardRequestView(payload)
            guard let method = UInt16(exactly: view.method).flatMap(FirestoreMessages.Method.init(rawValue:)),
                method.forwarding != .none
            else { throw RequestError(.unimplemented, "Method \(view.method) cannot be forwarded.") }
            let carrier = ForwardedCarrier(call, view, stores.first.served.store)
            let head = RequestHead(
                rpc: method.rpc, deadlineMilliseconds: call.head.deadlineMilliseconds, requestID: call.head.requestID,
                isComplete: call.head.isComplete)
            begin(
                Call(carrier: carrier, stream: call.stream, head: head, begunAt: call.begunAt), view.message, carrier)
        } catch {
            counters.callsStarted.add()
            fail(call, error)
        }
    }

    /// What strict reads of followers must see: all that was acknowledged before.
    func newestVersion(_ call: Call, _ payload: RawSpan) throws {
        let request = try NewestVersionRequest(wire: payload)
        guard let store = stores.named(request.store) else {
            throw RequestError(.notFound, "This server does not serve a store \(request.store).")
        }
        try store.checkServes()
        if let error = store.refusal(ofCallFor: request.identity) { throw error }
        let version = store.firestore.store.publishedVersion.microseconds
        guard store.services.leader?.isNewest ?? true else { throw RequestError.takesNoWrites }
        store.firestore.succeed(call) { StepDownResponse(version: version).encode(into: &$0) }
    }
}

extension LoopStore {
    /// `UNAVAILABLE` if another server takes the writes, or has the store that was called: the follower looks for it
    /// then.
    func refusal(ofCallFor called: CalledStore) -> RequestError? {
        if called.isNamed, called != CalledStore(served.store) { return .isOtherStore }
        return services.leader?.isHere ?? true ? nil : .takesNoWrites
    }
}

extension RequestError {
    fileprivate static let takesNoWrites = RequestError(.unavailable, "This server does not take the writes.")
    fileprivate static let isOtherStore = RequestError(
        .unavailable,
        "This server does not have the store for which it is called: another one may have its address as --advertise."
    )
}

extension FirestoreMessages.Method {
    /// Whether an administrative call is about one database.
    fileprivate var isAboutDatabase: Bool {
        switch self {
        case .adminApplyIndexes, .adminListIndexes: true
        case .listDatabases: false
        default: service == .firestoreAdmin || service == .operations
        }
    }

    /// Whether an administrative call may bring a database into being.
    fileprivate var createsDatabase: Bool {
        switch self {
        case .adminApplyIndexes, .createIndex, .updateField, .createDatabase: true
        default: false
        }
    }
}
