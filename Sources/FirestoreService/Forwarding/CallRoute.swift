// Who answers a call at a server that follows another.
//
//     writes, transactions that may write    the server that takes the writes
//     reads of the newest state              here; strict ones when everything acknowledged is here
//     reads at a time, and of transactions
//     that only read, which are a time       here, when the time is here

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Listening

/// Which server answers a call.
enum CallRoute: Equatable {
    case here
    /// Here, and it reads the newest state.
    case hereNewest
    /// By the server that takes the writes.
    case leader(isInTransaction: Bool)

    /// - Throws: what is wrong with a request that cannot be read.
    init(_ method: FirestoreMessages.Method, _ request: RawSpan) throws {
        switch method {
        case .commit, .batchWrite, .createDocument, .updateDocument, .deleteDocument, .write:
            self = .leader(isInTransaction: false)
        case .beginTransaction: self = Self.begin(try BeginTransactionRequest(wire: request).options ?? .readWrite)
        case .rollback: self = Self.inTransaction(try RollbackRequest(wire: request).transaction)
        case .listen: self = .here
        default:
            switch try ReadConsistency(of: method, in: request) {
            case .latest: self = .hereNewest
            case .readTime: self = .here
            case .newTransaction(let options): self = Self.begin(options)
            case .transaction(let id): self = Self.inTransaction(id)
            }
        }
    }

    private static func begin(_ options: TransactionOptions) -> CallRoute {
        switch options {
        case .readOnly(let time): time == nil ? .hereNewest : .here
        case .readWrite: .leader(isInTransaction: true)
        }
    }

    /// An id that cannot be read is refused where it arrives.
    private static func inTransaction(_ id: [UInt8]) -> CallRoute {
        let identifier = try? TransactionIdentifier(bytes: id.byteSpan)
        return identifier?.isReadOnly ?? true ? .here : .leader(isInTransaction: true)
    }
}

extension FirestoreMessages.Method {
    /// Whether a request may change documents, now or in the transaction that it begins or belongs to.
    ///
    /// - Throws: what is wrong with a request that cannot be read.
    package func mayWrite(_ request: RawSpan) throws -> Bool {
        // One that only reads is not worth the look at its stages.
        if self == .executePipeline { return true }
        if case .leader = try CallRoute(self, request) { return true }
        return false
    }
}

extension FirestoreService {
    /// Has a call forwarded, or wait for the newest state, if it must be.
    ///
    /// - Returns: whether that was done; otherwise the call is to be performed now.
    func isRouted(
        _ call: Call, _ method: FirestoreMessages.Method, _ request: RawSpan, by forwarder: any CallForwarder
    ) throws -> Bool {
        switch try CallRoute(method, request) {
        case .here: return false
        case .leader(let isInTransaction):
            try forwarder.forward(call, method, request, isInTransaction: isInTransaction)
            return true
        case .hereNewest:
            guard forwarder.readsAreStrict else { return false }
            let request = [UInt8](copying: request)
            try forwarder.whenNewest(call, isListener: false) { [self] outcome in
                do {
                    try outcome.get()
                    try reader.strictly { try performHere(call, method, request.byteSpan) }
                } catch {
                    if case .failure = outcome { call.noteRetry(afterSeconds: 1) }
                    failOrRepeat(call, method, request.byteSpan, error, isStrict: true)
                }
            }
            return true
        }
    }

    /// Has the first snapshots of a stream show everything that was acknowledged before; nil if they do anyway.
    func whenNewest(_ call: Call) -> ListenSession.WhenNewest? {
        guard let forwarder else { return nil }
        return { completion in
            guard forwarder.isNeeded, forwarder.readsAreStrict else { return completion(.success(())) }
            do throws(RequestError) {
                try forwarder.whenNewest(call, isListener: true, completion)
            } catch {
                completion(.failure(error))
            }
        }
    }

    /// Has a pipeline that writes forwarded if it must be.
    func isForwarded(_ call: Call, _ request: RawSpan, writes: Bool) throws(RequestError) -> Bool {
        guard writes, let forwarder, forwarder.isNeeded else { return false }
        try forwarder.forward(call, .executePipeline, request, isInTransaction: false)
        return true
    }
}
