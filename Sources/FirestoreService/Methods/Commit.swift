// Commit and BatchWrite: writes are read and checked here, applied by the store's commit thread.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages

extension FirestoreService {
    func commit(_ call: Call, _ request: RawSpan) throws {
        let view = try CommitRequestView(request)
        let access = try admit(call, view.database)
        var writes = WriteList(database: try database(view.database))
        // The writes make up nearly all of the request, and canonical documents are no longer than they came.
        writes.reserveCapacity(byteCount: request.byteCount)
        try view.forEachWrite { try writes.append(wire: $0) }
        let transaction =
            view.transaction.isEmpty ? nil : try TransactionIdentifier(bytes: view.transaction)
        // What pipelines of the transaction have written comes first, and has no results in the answer.
        let ownCount = writes.count
        let heldLists = try transaction.map { try addHeldWrites(of: $0, to: &writes) } ?? 0
        try writes.checkTransformLimit()
        commit(call, writes, transaction, heldLists: heldLists, permittedBy: access) { service, result in
            // A repetition finds no held writes any more, and the results of all.
            let hasOthers = result.writeResults.count > ownCount
            let response = CommitResponse(
                writeResults: hasOthers ? Array(result.writeResults.suffix(ownCount)) : result.writeResults,
                commitTime: TimestampValue(microseconds: Int64(clamping: result.commitMicroseconds)))
            service.succeed(call) { response.encode(into: &$0) }
        }
    }

    /// Puts the writes that a transaction holds before those of its commit.
    /// - Returns: the number of lists that it holds.
    func addHeldWrites(of transaction: TransactionIdentifier, to writes: inout WriteList) throws(RequestError) -> Int {
        let held = store.heldWrites(in: transaction)
        if held.isEmpty { return 0 }
        var all = WriteList(database: writes.database)
        for list in held { try all.append(list) }
        try all.append(writes)
        writes = all
        return held.count
    }

    /// Hands writes to the store and continues on the loop's thread when they are durable.
    ///
    /// - Parameter access: asked whether the writes may stand; nil if they may.
    func commit(
        _ call: Call, _ writes: WriteList, _ transaction: TransactionIdentifier? = nil, heldLists: Int = 0,
        permittedBy access: (any CallAccess)?, _ body: @escaping (FirestoreService, CommitResult) throws -> Void
    ) {
        counters.countWrites(writes)
        let request = CommitRequest(
            writes: writes, transaction: transaction, heldLists: heldLists, identifier: call.requestIdentifier,
            predecessor: call.predecessor)
        let then = LoopBound((service: self, body: body))
        commit(call, request, permittedBy: access, maySync: isAlone(call)) { outcome in
            let loop = call.loop
            // The loop itself makes the commit of a client that is alone.
            if loop.isCurrent { return then.value.service.finish(call, outcome, then.value.body) }
            loop.execute { then.value.service.finish(call, outcome, then.value.body) }
        }
    }

    private func finish(
        _ call: Call, _ outcome: Result<CommitResult, RequestError>,
        _ body: @escaping (FirestoreService, CommitResult) throws -> Void
    ) {
        do {
            try body(self, try outcome.get())
        } catch {
            failOrRepeat(call, error) { try body($0, try outcome.get()) }
        }
    }

    /// Hands a commit to the store, judged if need be.
    ///
    /// - Parameters:
    ///   - maySync: whether this loop may wait for the sync.
    ///   - completion: called once, on any thread.
    func commit(
        _ call: Call, _ request: consuming CommitRequest, permittedBy access: (any CallAccess)?, maySync: Bool = false,
        completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        do throws(RequestError) {
            try access?.beginCommit(call)
        } catch {
            return completion(.failure(error))
        }
        if waitingCommits.mustWait(call, request, reader) {
            // What cannot be read is met again by the commit.
            let request = request
            return waitingCommits.add(call, reader) { [self] _ in
                submit(call, request, permittedBy: access, maySync: false, completion: completion)
            }
        }
        submit(call, request, permittedBy: access, maySync: maySync, completion: completion)
    }

    /// The same when its turn has come.
    private func submit(
        _ call: Call, _ request: consuming CommitRequest, permittedBy access: (any CallAccess)?, maySync: Bool,
        completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        guard let access, !access.isUnrestricted else {
            return store.commit(request, maySync: maySync, completion: completion)
        }
        JudgedCommit(self, call, request, access, completion).begin()
    }

    func batchWrite(_ call: Call, _ request: RawSpan) throws {
        let view = try BatchWriteRequestView(request)
        // Each write by itself is what server libraries do; rules judge the writes of a commit together.
        let access = try admit(call, view.database)
        try access?.requireUnrestricted()
        try access?.beginCommit(call)
        guard view.writeCount <= limits.batchWriteWrites else {
            throw RequestError.invalidArgument(
                "A batch write may have at most \(limits.batchWriteWrites) writes, not \(view.writeCount).")
        }
        var writes = WriteList(database: try database(view.database))
        writes.reserveCapacity(byteCount: request.byteCount)
        try view.forEachWrite { try writes.append(wire: $0) }
        if let name = writes.firstRepeatedName() {
            throw RequestError.invalidArgument(
                "A batch write may write each document once; it writes \"\(name)\" again.")
        }
        counters.countWrites(writes)
        let request = CommitRequest(writes: writes, identifier: call.requestIdentifier)
        let completion = continuation(call) { (service, result: BatchWriteResult) in
            let response = BatchWriteResponse(result)
            service.succeed(call) { response.encode(into: &$0) }
        }
        if waitingCommits.mustWait(call, request, reader) {
            return waitingCommits.add(call, reader) { [store] _ in store.batchWrite(request, completion: completion) }
        }
        store.batchWrite(request, completion: completion)
    }
}

extension BatchWriteResponse {
    /// The answer to writes that succeeded or failed each on its own.
    init(_ result: BatchWriteResult) {
        self.init()
        for outcome in result.outcomes {
            switch outcome {
            case .success(let write):
                writeResults.append(write)
                statuses.append(StatusMessage(code: .ok))
            case .failure(let error):
                writeResults.append(WriteResult(updateMicroseconds: nil))
                statuses.append(StatusMessage(code: error.code, message: error.message))
            }
        }
    }
}

extension WriteList {
    /// Appends the writes of another list.
    fileprivate mutating func append(_ other: WriteList) throws(RequestError) {
        guard other.database == database else {
            throw .invalidArgument("The writes of the transaction are in another database.")
        }
        for write in other.writes {
            var message = ByteBuffer(capacity: 256)
            other.encode(write, into: &message)
            try append(wire: message.bytes)
        }
    }
}
