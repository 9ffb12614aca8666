// BatchGetDocuments: one message for each distinct name, all found ones before the missing ones.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func batchGetDocuments(_ call: Call, _ request: RawSpan) throws {
        let view = try BatchGetDocumentsRequestView(request)
        guard view.documentCount <= limits.batchGetDocuments else {
            throw RequestError.invalidArgument(
                "A batch get may name at most \(limits.batchGetDocuments) documents, not \(view.documentCount).")
        }
        let database = try database(view.database)
        let access = try admit(call, view.database)
        let source = spareBatchGets.popLast() ?? BatchGetSource(service: self)
        do {
            try source.take(view, in: database)
            if case .newTransaction(let options) = view.consistency {
                return beginTransaction(call, options, in: database) { service, transaction in
                    source.newTransaction = transaction.bytes
                    try service.rollingBack(call, source.newTransaction) { service in
                        try service.start(source, call, .transaction(transaction), in: database, access)
                    }
                }
            }
            try start(source, call, view.consistency.selector(in: store), in: database, access)
        } catch {
            source.recycle()
            throw error
        }
    }

    private func start(
        _ source: BatchGetSource, _ call: Call, _ selector: ReadSelector, in database: DatabaseName,
        _ access: (any CallAccess)?
    ) throws {
        source.call = call
        source.access = access
        if let access, case .transaction = selector, try store.mustWait(for: selector) {
            return try judgeBeforeLocking(source, call, selector, in: database, access)
        }
        try read(source, call, selector, in: database)
    }

    private func read(
        _ source: BatchGetSource, _ call: Call, _ selector: ReadSelector, in database: DatabaseName
    ) throws {
        try withReadPoint(
            call, selector, in: database, locking: source.allNames, begun: source.newTransaction
        ) { service, point in
            source.point = point
            service.stream(call, source)
        }
    }

    /// Has the documents judged in the present state before they are locked, in steps between which other calls have
    /// their turn.
    private func judgeBeforeLocking(
        _ source: BatchGetSource, _ call: Call, _ selector: ReadSelector, in database: DatabaseName,
        _ access: any CallAccess
    ) throws {
        if try source.judge(access, judgedBeforeLocking(in: database)) {
            source.judgedCount = 0
            return try read(source, call, selector, in: database)
        }
        let bound = LoopBound((service: self, source: source, access: access))
        call.loop.execute {
            let (service, source, access) = bound.value
            let next = { (service: FirestoreService) in
                try service.rollingBack(call, source.newTransaction) { service in
                    try service.judgeBeforeLocking(source, call, selector, in: database, access)
                }
            }
            guard call.isOpen else { return service.rollBackUnsent(source.newTransaction) }
            do { try next(service) } catch { service.failOrRepeat(call, error, next) }
        }
    }
}

/// The answers to one BatchGetDocuments. Used again for later calls, so that one for a few names allocates nothing.
final class BatchGetSource: ResponseSource {
    /// Keeps the sources that are not in use.
    private unowned let service: FirestoreService
    /// The service while the source is in use, which may be longer than its store is served.
    private var user: FirestoreService?
    /// The state that is read; set before the source is streamed.
    var point: ReadPoint?
    /// The id that the first message carries; empty unless the request began a transaction.
    var newTransaction: [UInt8] = []
    /// The call; set before the source is streamed.
    var call: Call?
    /// Asked whether the documents may be read, before anything is sent; nil if they may.
    var access: (any CallAccess)?
    /// How many of `names` may be read.
    var judgedCount = 0
    private var selection: FieldSelection?
    /// The names, back to back, each once.
    private var nameBytes: [UInt8] = []
    private var names: [Range<Int>] = []
    private var missing: [Range<Int>] = []
    /// How many of `names`, then of `missing`, are dealt with.
    private var position = 0
    private var missingPosition = 0
    private var hasSent = false
    /// What the next document waits for.
    private var wait: StorageWait?

    /// Documents that are looked up at once when one has to be waited for.
    private static var prefetchedMax: Int { 64 }
    /// Documents that are looked up in vain before other calls have their turn.
    private static var lookupsPerStep: Int { 256 }
    /// Above this many names doubles are found by hashing.
    private static var comparedNamesMax: Int { 16 }

    init(service: FirestoreService) {
        self.service = service
    }

    /// Copies what is needed of the request and checks every name, so that a bad one fails the call as a whole.
    func take(_ view: borrowing BatchGetDocumentsRequestView, in database: DatabaseName) throws(RequestError) {
        user = service
        selection = view.mask?.selection
        var seen: Set<ByteKey> = []
        let hashes = view.documentCount > Self.comparedNamesMax
        try view.forEachDocument { (name) throws(RequestError) in
            let checked = try service.documentName(name)
            guard checked.databaseBytes.equalsBytes(database.utf8.span.bytes) else {
                throw .invalidArgument(
                    "Document \"\(String(repairingUTF8: name))\" is not in the request's database \(database).")
            }
            if hashes {
                guard seen.insert(ByteKey(copying: name)).inserted else { return }
            } else if holds(name) {
                return
            }
            let start = nameBytes.count
            name.withUnsafeBytes { nameBytes.append(contentsOf: $0) }
            names.append(start..<nameBytes.count)
        }
    }

    /// The names that are asked for, each once.
    var allNames: [[UInt8]] { names.map { Array(nameBytes[$0]) } }

    /// Decides whether the documents may be read, for one ``JudgementStep``.
    ///
    /// - Returns: whether all may be read; else there is more to decide.
    /// - Throws: `PERMISSION_DENIED`; `pending`, after which the step is made again.
    func judge(_ access: any CallAccess, _ state: JudgedState) throws(RequestError) -> Bool {
        if access.isUnrestricted { return true }
        let step = JudgementStep()
        let bytes = nameBytes
        while judgedCount < names.count {
            let view = try service.documentName(bytes.byteSpan.extracting(names[judgedCount]))
            try access.checkGet(view.pathBytes, state)
            judgedCount += 1
            if judgedCount < names.count, step.isOver { return false }
        }
        return true
    }

    private func holds(_ name: RawSpan) -> Bool {
        let bytes = nameBytes
        for held in names where bytes.byteSpan.extracting(held).equalsBytes(name) { return true }
        return false
    }

    func next(into writer: inout ByteBuffer) -> SourceStep {
        guard let point, let call else { preconditionFailure("a batch get is streamed after its read point is set") }
        if let wait, !wait.isOver { return .waiting }
        do throws(RequestError) {
            try wait?.finish()
            wait = nil
            if let access {
                guard try judge(access, JudgedState(service.reader, point, .pends)) else {
                    call.resumeLater()
                    return .waiting
                }
                self.access = nil
            }
            var lookups = 0
            while position < names.count {
                guard lookups < Self.lookupsPerStep else {
                    call.resumeLater()
                    return .waiting
                }
                lookups += 1
                let name = names[position]
                let isFound = try appendFound(name, at: point, to: &writer)
                position += 1
                if isFound { return sent() }
                missing.append(name)
            }
        } catch {
            guard error.isPending else { return failed(error) }
            if access == nil {
                let next = names[position...].prefix(Self.prefetchedMax)
                service.reader.prefetch(next.lazy.map { [nameBytes] in Array(nameBytes[$0]) }, at: point)
            }
            wait = StorageWait(service, call)
            return .waiting
        }
        if missingPosition < missing.count {
            append(missing: missing[missingPosition], at: point, to: &writer)
            missingPosition += 1
            return sent()
        }
        if !hasSent {
            // No names: one message has the read time, and the transaction if one was begun.
            appendTail(at: point, to: &writer)
            return sent()
        }
        service.ended(call)
        finish()
        return .finished
    }

    private func failed(_ error: RequestError) -> SourceStep {
        let status = call.map { service.requestError(error, $0) } ?? error
        service.rollBackUnsent(newTransaction)
        finish()
        return .failed(status.code, status.message)
    }

    func cancelled() {
        service.rollBackUnsent(newTransaction)
        finish()
    }

    private func sent() -> SourceStep {
        hasSent = true
        newTransaction.removeAll()
        return .message
    }

    /// Appends the message of a document that exists; false if it does not.
    private func appendFound(_ name: Range<Int>, at point: ReadPoint, to writer: inout ByteBuffer) throws(RequestError)
        -> Bool
    {
        let bytes = nameBytes
        let name = bytes.byteSpan.extracting(name)
        var isFound = false
        try service.reader.withDocument(name, at: point, .pends) { (document) throws(RequestError) in
            guard let document else { return }
            try service.withSelectedFields(document.fields, selection) { fields in
                BatchGetDocumentsResponseWriter.appendFound(
                    name: document.name, fields: fields, createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds, to: &writer)
                appendTail(at: point, to: &writer)
            }
            service.counters.countRead(document.name, of: "\(point.database)")
            isFound = true
        }
        return isFound
    }

    private func append(missing name: Range<Int>, at point: ReadPoint, to writer: inout ByteBuffer) {
        BatchGetDocumentsResponseWriter.append(missing: nameBytes.span.bytes.extracting(name), to: &writer)
        appendTail(at: point, to: &writer)
        service.counters.documentsMissing.add()
    }

    /// The transaction, on the first message alone, and the read time.
    private func appendTail(at point: ReadPoint, to writer: inout ByteBuffer) {
        BatchGetDocumentsResponseWriter.append(transaction: newTransaction, to: &writer)
        BatchGetDocumentsResponseWriter.appendReadTime(point.readMicroseconds, to: &writer)
    }

    /// The stream is over: the source is free for another call.
    private func finish() {
        service.counters.streamsOpen.subtract()
        recycle()
    }

    /// Forgets the call and waits for the next one.
    func recycle() {
        let service = service
        user = nil
        point = nil
        call = nil
        access = nil
        judgedCount = 0
        selection = nil
        newTransaction = []
        position = 0
        missingPosition = 0
        hasSent = false
        wait = nil
        // What a large request needed is given back.
        guard nameBytes.capacity <= 64 << 10 else { return }
        nameBytes.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        missing.removeAll(keepingCapacity: true)
        if service.spareBatchGets.count < 64 { service.spareBatchGets.append(self) }
    }
}
