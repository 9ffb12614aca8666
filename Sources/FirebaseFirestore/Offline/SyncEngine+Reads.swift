// Reads of the program: from the server, with the pending writes applied, or from the cache.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
internal import QueryEngine

/// What a read has found.
struct ReadResult: Sendable {
    var rows: [SnapshotRow]
    var isFromCache: Bool
}

extension SyncEngine {
    typealias Completion = @Sendable (Result<ReadResult, RequestError>) -> Void

    // MARK: Documents

    /// Reads one document; the result has a row if it exists. The completion runs on the engine's queue.
    func read(_ name: String, source: FirestoreSource, cancellation: Cancellation?, completion: @escaping Completion) {
        queue.async {
            if self.isClosed { return completion(.failure(RequestError(.cancelled, "The client is closed."))) }
            if source == .cache {
                return completion(self.cached(name, "Failed to get document from cache."))
            }
            let start = self.beginRead()
            self.client.getDocument(name, options: .impatientRead.cancelled(by: cancellation)) { result in
                self.queue.async {
                    completion(self.finish(name, source: source, result, start: start))
                    self.endRead(start)
                }
            }
        }
    }

    private func cached(_ name: String, _ problem: String) -> Result<ReadResult, RequestError> {
        do throws(RequestError) {
            switch try store.state(of: name) {
            case .unknown:
                return .failure(RequestError(.unavailable, "\(problem) (The document is not in the cache.)"))
            case .missing:
                store.noteUse(of: [name])
                return .success(ReadResult(rows: [], isFromCache: true))
            case .found(let document):
                store.noteUse(of: [name])
                return .success(
                    ReadResult(
                        rows: [SnapshotRow(name: name, document: StoredDocument(document))], isFromCache: true))
            }
        } catch {
            return .failure(error)
        }
    }

    private func finish(
        _ name: String, source: FirestoreSource, _ result: Result<StoredDocument?, RequestError>, start: Int
    ) -> Result<ReadResult, RequestError> {
        if isClosed { return .failure(RequestError(.cancelled, "The client is closed.")) }
        switch result {
        case .failure(let error):
            guard error.code == .unavailable, source == .default else { return .failure(error) }
            let found = cached(name, "Failed to get document because the client is offline.")
            if case .failure(let missing) = found, missing.code == .unavailable {
                return .failure(RequestError(.unavailable, "\(missing.message) \(error.message)"))
            }
            return found
        case .success(let document):
            do throws(RequestError) {
                let isNewer = acknowledged.contains { $0.event > start && $0.name == name }
                if document != nil || !isNewer {
                    let content = document?.remoteContent ?? .missing(readMicroseconds: nil)
                    let changes = try store.apply([RemoteUpdate(name: name, content: content)])
                    if !changes.isEmpty { broadcast(changes) }
                }
                let found = try store.state(of: name).document.map {
                    SnapshotRow(name: name, document: StoredDocument($0))
                }
                return .success(ReadResult(rows: found.map { [$0] } ?? [], isFromCache: false))
            } catch {
                return .failure(error)
            }
        }
    }

    /// - Returns: the number of the last event before the read.
    private func beginRead() -> Int {
        readsInFlight[eventNumber, default: 0] += 1
        store.keepsAll = true
        return eventNumber
    }

    private func endRead(_ start: Int) {
        let left = (readsInFlight[start] ?? 1) - 1
        readsInFlight[start] = left == 0 ? nil : left
        if left == 0, !acknowledged.isEmpty {
            let oldest = readsInFlight.keys.min() ?? .max
            acknowledged.removeAll { $0.event <= oldest }
        }
        guard readsInFlight.isEmpty, !isClosed else { return }
        store.keepsAll = false
        collectEagerly()
    }

    // MARK: Queries

    /// A query that is read once.
    struct QueryRead: Sendable {
        let request: RunQueryRequest
        let plan: QueryPlan
        let orders: [DocumentModel.Order]
        /// The last documents of the order instead of the first.
        let isReversed: Bool
    }

    /// Runs a query. The completion runs on the engine's queue.
    func run(
        _ query: QueryRead, source: FirestoreSource, cancellation: Cancellation?, completion: @escaping Completion
    ) {
        queue.async {
            if self.isClosed { return completion(.failure(RequestError(.cancelled, "The client is closed."))) }
            if source == .cache { return completion(self.cached(query)) }
            let start = self.beginRead()
            self.client.collectQuery(query.request, options: .impatientRead.cancelled(by: cancellation)) { result in
                self.queue.async {
                    self.finish(query, source: source, result, start: start, completion: completion)
                    self.endRead(start)
                }
            }
        }
    }

    private func cached(_ query: QueryRead) -> Result<ReadResult, RequestError> {
        do throws(RequestError) {
            var rows: [SnapshotRow] = []
            try store.run(query.plan) { name, document in
                rows.append(SnapshotRow(name: name, document: StoredDocument(document)))
            }
            if query.isReversed { rows.reverse() }
            store.noteUse(of: rows.lazy.map(\.name))
            continueIndexes()
            return .success(ReadResult(rows: rows, isFromCache: true))
        } catch {
            return .failure(error)
        }
    }

    private func finish(
        _ query: QueryRead, source: FirestoreSource, _ result: Result<QueryReply, RequestError>, start: Int,
        completion: Completion
    ) {
        if isClosed { return completion(.failure(RequestError(.cancelled, "The client is closed."))) }
        let reply: QueryReply
        switch result {
        case .success(let found): reply = found
        case .failure(let error):
            return completion(error.code == .unavailable && source == .default ? cached(query) : .failure(error))
        }
        let updates = reply.documents.map { RemoteUpdate(name: $0.name, content: $0.content.remoteContent) }
        let recent = acknowledged.filter { $0.event > start }.map(\.name)
        let isPlain = store.isQueueEmpty && recent.isEmpty
        if isPlain {
            // Nothing of this client changes the result: the program gets it before it is cached.
            var rows = reply.documents.map { SnapshotRow(name: $0.name, document: $0.content) }
            if query.isReversed { rows.reverse() }
            completion(.success(ReadResult(rows: rows, isFromCache: false)))
        }
        do throws(RequestError) {
            let changes = try store.apply(updates)
            if !isPlain { completion(.success(try overlaid(query, reply, recent))) }
            if !changes.isEmpty { broadcast(changes) }
            try removeStale(query, reply)
        } catch {
            if isPlain { report(error) } else { completion(.failure(error)) }
        }
    }

    /// The server's result with the writes of this client that the server may not have seen.
    private func overlaid(
        _ query: QueryRead, _ reply: QueryReply, _ recent: [String]
    ) throws(RequestError) -> ReadResult {
        let readMicroseconds = UInt64(clamping: reply.readTime?.microseconds ?? 0)
        var view = QueryView(orders: query.orders)
        var found: [String: StoredDocument?] = [:]
        let rootByteCount = database.documentsRoot.utf8.count + 1
        let results = Set(reply.documents.map(\.name))
        for name in results.union(store.pendingNames).union(recent) {
            guard let document = try store.state(of: name).document else { continue }
            let isOwn = document.hasPendingWrites || document.updateMicroseconds > readMicroseconds
            guard results.contains(name) || isOwn else { continue }
            let path = Array(name.utf8.dropFirst(rootByteCount))
            let fields = document.fields(readingTimestampsAs: .ordered)
            guard query.plan.matcher.matches(path: path.byteSpan, fields: fields.byteSpan) else { continue }
            found[name] = StoredDocument(document)
        }
        _ = view.apply(found)
        var rows = view.rows
        if let limit = query.plan.limit, rows.count > limit {
            rows = query.isReversed ? Array(rows.suffix(limit)) : Array(rows.prefix(limit))
        }
        return ReadResult(rows: rows, isFromCache: false)
    }

    /// Results up to this size are compared with the cache.
    private static let comparedMax = 2000

    /// Forgets cached documents that the query would return, but the server does not.
    private func removeStale(_ query: QueryRead, _ reply: QueryReply) throws(RequestError) {
        guard query.plan.limit == nil, reply.documents.count <= Self.comparedMax, let readTime = reply.readTime else {
            return
        }
        let readMicroseconds = UInt64(clamping: readTime.microseconds)
        let results = Set(reply.documents.map(\.name))
        var stale: [String] = []
        try store.run(query.plan) { name, document in
            if !document.hasPendingWrites, document.updateMicroseconds <= readMicroseconds, !results.contains(name) {
                stale.append(name)
            }
        }
        if stale.isEmpty { return }
        broadcast(try store.forget(stale))
    }
}
