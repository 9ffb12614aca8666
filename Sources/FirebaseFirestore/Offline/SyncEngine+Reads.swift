// Reads of the program: from the server, with the pending writes applied, or from the cache. A read and the writes of
// the program have the order of their calls: a write that was issued after a read is not in its result, unless the
// server has applied it before it answers the read.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import HearthClient
internal import QueryEngine

/// What a read has found.
struct ReadResult: Sendable {
    var rows: [SnapshotRow]
    var isFromCache: Bool
}

extension SyncEngine {
    typealias Completion = @Sendable (Result<ReadResult, RequestError>) -> Void

    /// When a read began.
    struct ReadStart {
        /// The number of this event.
        let event: Int
        /// The number of the first batch that the read does not see.
        let nextBatch: UInt64
    }

    // MARK: Documents

    /// Reads one document; the result has a row if it exists. The completion runs on the engine's queue.
    func read(_ name: String, source: FirestoreSource, cancellation: Cancellation?, completion: @escaping Completion) {
        queue.async {
            if self.isClosed { return completion(.failure(RequestError(.cancelled, "The client is closed."))) }
            if source == .cache {
                let next = self.store.nextBatchNumber
                return completion(self.cached(name, before: next, "Failed to get document from cache."))
            }
            let start = self.beginRead()
            let options = HearthClient.CallOptions.failFast.cancelled(by: cancellation)
            self.client.getDocument(name, options: options) { result in
                self.queue.async {
                    if case .success(let document) = result, self.isNewerCached(name, than: document) {
                        return self.readAgain(name, source: source, options, start: start, completion: completion)
                    }
                    let update = result.map { document in
                        RemoteUpdate(name: name, content: document?.remoteContent ?? .missing(readMicroseconds: nil))
                    }
                    completion(self.finish(name, source: source, update, start: start))
                    self.endRead(start)
                }
            }
        }
    }

    /// Whether the cache has a state of a document that may be later than the server's answer.
    ///
    /// - Parameter document: nil if it does not exist.
    private func isNewerCached(_ name: String, than document: StoredDocument?) -> Bool {
        if isClosed { return false }
        let updated = document.map { UInt64(clamping: $0.updateTime.microseconds) }
        return (try? store.isNewer(name, than: updated)) ?? false
    }

    /// Reads a document with the time of its state. Either the cache has learnt of a later change meanwhile, or the
    /// server does not have the cached state any more: the document was deleted, or the server was restored to an
    /// earlier state.
    private func readAgain(
        _ name: String, source: FirestoreSource, _ options: HearthClient.CallOptions,
        start: ReadStart, completion: @escaping Completion
    ) {
        let request = BatchGetDocumentsRequest(database: "\(database)", documents: [name])
        client.collectBatchGet(request, options: options) { result in
            self.queue.async {
                let update = result.flatMap { reply in
                    reply.remoteUpdates.first.map { .success($0) }
                        ?? .failure(RequestError(.internal, "The server has sent no result."))
                }
                completion(self.finish(name, source: source, update, start: start))
                self.endRead(start)
            }
        }
    }

    private func cached(
        _ name: String, before nextBatch: UInt64, _ problem: String
    ) -> Result<ReadResult, RequestError> {
        do throws(RequestError) {
            switch try store.state(of: name, before: nextBatch) {
            case .unknown:
                return .failure(RequestError(.unavailable, "\(problem) (The document is not in the cache.)"))
            case .missing:
                store.noteUse(of: [name])
                return .success(ReadResult(rows: [], isFromCache: true))
            case .found(let document):
                store.noteUse(of: [name])
                return .success(
                    ReadResult(
                        rows: [SnapshotRow(name: name, document: VisibleDocument(document))], isFromCache: true))
            }
        } catch {
            return .failure(error)
        }
    }

    private func finish(
        _ name: String, source: FirestoreSource, _ result: Result<RemoteUpdate, RequestError>, start: ReadStart
    ) -> Result<ReadResult, RequestError> {
        if isClosed { return .failure(RequestError(.cancelled, "The client is closed.")) }
        switch result {
        case .failure(let error):
            guard error.meansNoAnswer, source == .default else { return .failure(error) }
            let problem = "Failed to get document because the client is offline."
            switch cached(name, before: start.nextBatch, problem) {
            case .success(let found) where found.rows.isEmpty:
                // As in the SDK: an absence that only the cache knows is not a result.
                return .failure(
                    RequestError(.unavailable, "\(problem) (The cache knows a deletion.) \(error.message)"))
            case .failure(let unknown) where unknown.code == .unavailable:
                return .failure(RequestError(.unavailable, "\(unknown.message) \(error.message)"))
            case let found: return found
            }
        case .success(let update):
            do throws(RequestError) {
                let isNewer = acknowledged.contains { $0.event > start.event && $0.name.hasSameUTF8(as: name) }
                var isKept = true
                if update.isFound || !isNewer {
                    var changes: [LocalChange] = []
                    isKept = try keep([update], changing: &changes)
                    if !changes.isEmpty { broadcast(changes) }
                }
                let state = try store.state(of: name, before: start.nextBatch, with: isKept ? nil : update)
                let found = state.document.map { SnapshotRow(name: name, document: VisibleDocument($0)) }
                return .success(ReadResult(rows: found.map { [$0] } ?? [], isFromCache: false))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Stores documents that were read from the server.
    ///
    /// - Parameter changes: gets what has changed for the program.
    /// - Returns: whether the cache knows them; false if it has no room for all of them.
    private func keep(
        _ updates: [RemoteUpdate], changing changes: inout [LocalChange]
    ) throws(RequestError) -> Bool {
        do throws(RequestError) {
            try store.apply(updates, changing: &changes)
            if !changes.isEmpty { readFailure.ended() }
            return true
        } catch {
            guard error.code == .resourceExhausted else { throw error }
            readFailure.occurred(error)
            return false
        }
    }

    private func beginRead() -> ReadStart {
        eventNumber += 1
        readsInFlight.insert(eventNumber)
        store.moment = eventNumber
        return ReadStart(event: eventNumber, nextBatch: store.nextBatchNumber)
    }

    private func endRead(_ start: ReadStart) {
        readsInFlight.remove(start.event)
        if !acknowledged.isEmpty {
            let oldest = readsInFlight.min() ?? .max
            acknowledged.removeAll { $0.event <= oldest }
        }
        if !isClosed { collectEagerly() }
    }

    // MARK: Queries

    /// A query that is read once.
    struct QueryRead: Sendable {
        let request: RunQueryRequest
        let plan: QueryPlan
        /// The last documents of the order instead of the first.
        let isReversed: Bool

        /// The plan of all results.
        func unlimitedPlan() throws(RequestError) -> QueryPlan {
            guard plan.limit != nil, var query = request.query else { return plan }
            query.limit = nil
            return try QueryPlan(query, parent: Array(request.parent.utf8).byteSpan)
        }

        /// Bytes that identify what a listener of the query listens to.
        func canonical(_ database: DatabaseName) -> [UInt8] {
            Subject(kind: .query(parent: request.parent, request.query), isReversed: isReversed).canonical(database)
        }
    }

    /// Runs a query. The completion runs on the engine's queue.
    func run(
        _ query: QueryRead, source: FirestoreSource, cancellation: Cancellation?, completion: @escaping Completion
    ) {
        queue.async {
            if self.isClosed { return completion(.failure(RequestError(.cancelled, "The client is closed."))) }
            if source == .cache { return completion(self.cached(query, before: self.store.nextBatchNumber)) }
            let options = HearthClient.CallOptions.failFast.cancelled(by: cancellation)
            self.ask(query, query.plan.limit, source: source, options, start: self.beginRead(), completion: completion)
        }
    }

    /// Asks the server for the first results of a query. Writes that it does not have may take the place of some of
    /// them: then it is asked for more.
    ///
    /// - Parameter limit: how many results it is asked for; nil for all.
    private func ask(
        _ query: QueryRead, _ limit: Int?, source: FirestoreSource, _ options: HearthClient.CallOptions,
        start: ReadStart, completion: @escaping Completion
    ) {
        var request = query.request
        request.query?.limit = limit.map { Int32(clamping: $0) }
        client.collectQuery(request, options: options) { result in
            self.queue.async {
                if self.finish(query, limit, source: source, result, start: start, completion: completion) {
                    return self.endRead(start)
                }
                // Twice as many: few questions, however many such writes there are.
                let more = limit.map { 2 * $0 + 1 }
                self.ask(query, more, source: source, options, start: start, completion: completion)
            }
        }
    }

    private func cached(_ query: QueryRead, before nextBatch: UInt64) -> Result<ReadResult, RequestError> {
        do throws(RequestError) {
            let later = store.pendingNames(from: nextBatch)
            if !later.isEmpty {
                return .success(ReadResult(rows: try cached(query, without: later, nextBatch), isFromCache: true))
            }
            var rows: [SnapshotRow] = []
            try store.run(query.plan) { name, document in
                rows.append(SnapshotRow(name: name, document: VisibleDocument(document)))
            }
            if query.isReversed { rows.reverse() }
            store.noteUse(of: rows.lazy.map(\.name))
            continueIndexes()
            return .success(ReadResult(rows: rows, isFromCache: true))
        } catch {
            return .failure(error)
        }
    }

    /// The results of a query over the cache without the writes of the batches from a number on.
    ///
    /// - Parameter names: the documents that these batches change.
    private func cached(
        _ query: QueryRead, without names: Set<UTF8Text>, _ nextBatch: UInt64
    ) throws(RequestError) -> [SnapshotRow] {
        // Without a limit: such a write may have displaced a result.
        let everything = try query.unlimitedPlan()
        var found: [UTF8Text: VisibleDocument?] = [:]
        try store.run(everything) { name, document in
            let name = UTF8Text(name)
            if !names.contains(name) { found[name] = VisibleDocument(document) }
        }
        for name in names {
            guard let document = try store.state(of: name.string, before: nextBatch).document,
                matches(query, name.string, document)
            else { continue }
            found[name] = VisibleDocument(document)
        }
        return rows(of: query, found)
    }

    private func matches(_ query: QueryRead, _ name: String, _ document: LocalDocument) -> Bool {
        let path = Array(name.utf8.dropFirst(database.documentsRoot.utf8.count + 1))
        let fields = document.fields(readingTimestampsAs: .ordered)
        return query.plan.matcher.matches(path: path.byteSpan, fields: fields.byteSpan)
    }

    /// The documents in the order of a query, as many as it has.
    private func rows(of query: QueryRead, _ found: [UTF8Text: VisibleDocument?]) -> [SnapshotRow] {
        var view = QueryView(query.plan, isReversed: query.isReversed)
        _ = view.apply(found)
        let rows = Array(view.rows)
        guard let limit = query.plan.limit, rows.count > limit else { return rows }
        return query.isReversed ? Array(rows.suffix(limit)) : Array(rows.prefix(limit))
    }

    /// Takes the server's answer to a query.
    ///
    /// - Parameter limit: how many results the server was asked for; nil for all.
    /// - Returns: false if more results are needed; the completion was not called then.
    private func finish(
        _ query: QueryRead, _ limit: Int?, source: FirestoreSource, _ result: Result<QueryReply, RequestError>,
        start: ReadStart, completion: Completion
    ) -> Bool {
        let reply: QueryReply
        switch isClosed ? .failure(RequestError(.cancelled, "The client is closed.")) : result {
        case .success(let found): reply = found
        case .failure(let error):
            let mayBeCached = error.meansNoAnswer && source == .default
            completion(mayBeCached ? cached(query, before: start.nextBatch) : .failure(error))
            return true
        }
        let read = reply.readTime.map { UInt64(clamping: $0.microseconds) }
        let updates = reply.documents.map {
            RemoteUpdate(name: $0.name, content: $0.content.remoteContent, readMicroseconds: read)
        }
        let recent = acknowledged.filter { $0.event > start.event }.map(\.name)
        let isPlain = store.isQueueEmpty && recent.isEmpty
        if !store.configuration.isEager { readQueries.insert(query.canonical(database)) }
        if isPlain {
            // Nothing of this client changes the result: the program gets it before it is cached.
            var rows = reply.documents.prefix(query.plan.limit ?? .max).map { document in
                SnapshotRow(name: document.name, document: VisibleDocument(document.content))
            }
            if query.isReversed { rows.reverse() }
            completion(.success(ReadResult(rows: rows, isFromCache: false)))
        }
        var changes: [LocalChange] = []
        let isKept: Bool
        var isComplete = true
        do throws(RequestError) {
            isKept = try keep(updates, changing: &changes)
            if !isPlain {
                let rows = try overlaid(query, reply, recent, start, unstored: isKept ? [] : updates)
                isComplete = Self.hasAll(rows, of: query, reply, limit)
                if isComplete { completion(.success(ReadResult(rows: rows, isFromCache: false))) }
            }
        } catch {
            if isPlain { report(error) } else { completion(.failure(error)) }
            return true
        }
        if !changes.isEmpty { broadcast(changes) }
        if !isKept { return isComplete }
        do throws(RequestError) {
            try removeStale(query, reply)
        } catch {
            readFailure.occurred(error)
        }
        return isComplete
    }

    /// Whether rows are all results of a query: there may be others after the last one that the server has sent.
    ///
    /// - Parameter limit: how many results the server was asked for; nil for all.
    private static func hasAll(_ rows: [SnapshotRow], of query: QueryRead, _ reply: QueryReply, _ limit: Int?) -> Bool {
        guard let limit, let last = reply.documents.last, reply.documents.count >= limit else { return true }
        guard rows.count == query.plan.limit, let end = query.isReversed ? rows.first : rows.last else { return false }
        let view = QueryView(query.plan, isReversed: false)
        let bound = view.key(of: VisibleDocument(last.content), last.name)
        return !bound.precedes(view.key(of: end.document, end.name))
    }

    /// The server's result with the writes of this client that the server may not have seen.
    ///
    /// - Parameter unstored: the documents of the result, if the cache does not know them.
    private func overlaid(
        _ query: QueryRead, _ reply: QueryReply, _ recent: [String], _ start: ReadStart, unstored: [RemoteUpdate]
    ) throws(RequestError) -> [SnapshotRow] {
        let readMicroseconds = UInt64(clamping: reply.readTime?.microseconds ?? 0)
        let unstored = Dictionary(unstored.map { (UTF8Text($0.name), $0) }) { first, _ in first }
        var found: [UTF8Text: VisibleDocument?] = [:]
        let results = Set(reply.documents.map { UTF8Text($0.name) })
        for name in results.union((store.pendingNames + recent).map { UTF8Text($0) }) {
            let state = try store.state(of: name.string, before: start.nextBatch, with: unstored[name])
            guard let document = state.document else { continue }
            let isOwn = document.hasPendingWrites || document.updateMicroseconds > readMicroseconds
            guard results.contains(name) || isOwn, matches(query, name.string, document) else { continue }
            found[name] = VisibleDocument(document)
        }
        return rows(of: query, found)
    }

    /// Results up to this size are compared with the cache.
    private static let comparedMax = 2000

    /// Forgets cached documents that the query would return, but the server does not. Those that the server sends to a
    /// listener stay: it will be sent their changes.
    private func removeStale(_ query: QueryRead, _ reply: QueryReply) throws(RequestError) {
        guard query.plan.limit == nil, reply.documents.count <= Self.comparedMax, let readTime = reply.readTime else {
            return
        }
        let readMicroseconds = UInt64(clamping: readTime.microseconds)
        let results = Set(reply.documents.map { UTF8Text($0.name) })
        var stale: [String] = []
        try store.run(query.plan) { name, document in
            let isSettled = !document.hasPendingWrites && document.updateMicroseconds <= readMicroseconds
            if isSettled, !results.contains(UTF8Text(name)) { stale.append(name) }
        }
        stale.removeAll { use(of: $0) == .covered }
        if stale.isEmpty { return }
        broadcast(try store.forget(stale))
    }
}

extension RemoteUpdate {
    fileprivate var isFound: Bool { if case .found = content { true } else { false } }
}

extension RequestError {
    /// Whether the server cannot be reached, or has not answered in time.
    fileprivate var meansNoAnswer: Bool { code == .unavailable || code == .deadlineExceeded }
}
