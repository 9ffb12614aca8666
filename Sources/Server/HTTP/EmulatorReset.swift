// Deleting every document of a database: what test suites ask of the emulator between tests.
//
// The documents that exist when the request comes are walked at that one version, page by page, and each page's
// deletions are one commit. So up to `pageDocuments` documents go at once for every reader; of more, a reader may see
// the later ones for a while. What is written meanwhile stays, unless it is to a document that was there. Memory is
// that of one page.

internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreService
internal import QueryEngine

/// One deletion under way; on the loop's thread.
final class EmulatorReset {
    /// Deletions in one commit, and bytes of their names.
    private static var pageDocuments: Int { 5_000 }
    private static var pageBytes: Int { 1 << 20 }

    private let service: FirestoreService
    private let database: DatabaseName
    private let namePrefix: [UInt8]
    private let done: (Result<Int, RequestError>) -> Void
    private var deleted = 0

    /// - Parameter done: called on the loop's thread with the number of deleted documents, or the reason of a failure.
    init(
        _ service: FirestoreService, _ database: DatabaseName, _ done: @escaping (Result<Int, RequestError>) -> Void
    ) {
        self.service = service
        self.database = database
        self.done = done
        namePrefix = database.utf8 + Array("/documents/".utf8)
    }

    func start(on loop: EventLoop) {
        do throws(RequestError) {
            // Every descendant of the root, in name order, without its fields.
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "", allDescendants: true)])
            query.select = Projection(fields: [.documentName])
            let plan = try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan)
            let point = try service.reader.readPoint(.latest, in: database)
            try deletePage(QueryExecution(plan), at: point, loop)
        } catch {
            done(.failure(error))
        }
    }

    /// Collects the names of one page and commits their deletion, then continues with the next.
    private func deletePage(
        _ run: consuming QueryExecution, at point: ReadPoint, _ loop: EventLoop
    ) throws(RequestError) {
        var run = run
        var writes = WriteList(database: database, rules: .stored)
        var bytes = 0
        var (isExhausted, isPending) = (false, false)
        do throws(RequestError) {
            let source = try service.reader.source(at: point, matching: run.plan.matcher, .pends)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                var name = namePrefix
                name.append(contentsOf: [UInt8](copying: result.path))
                try writes.delete(name.byteSpan)
                bytes += name.count
                return writes.count >= Self.pageDocuments || bytes >= Self.pageBytes ? .full : .more
            }
            if case .finished = progress { isExhausted = true }
        } catch {
            guard error.isPending else { throw error }
            isPending = true
        }
        deleted += writes.count
        let rest = LoopBound((reset: self, run: RunBox(run), point: point))
        let completion: @Sendable (Result<Void, RequestError>) -> Void = { [isExhausted] result in
            loop.execute {
                let (reset, run, point) = rest.value
                reset.pageEnded(result, run, at: point, isExhausted: isExhausted, loop)
            }
        }
        if writes.isEmpty {
            // What was found before a page that is not in memory is deleted first.
            if isPending { service.reader.whenReady(completion) } else { completion(.success(())) }
            return
        }
        service.store.commit(CommitRequest(writes: writes)) { completion($0.map { _ in }) }
    }

    private func pageEnded(
        _ result: Result<Void, RequestError>, _ run: RunBox, at point: ReadPoint, isExhausted: Bool, _ loop: EventLoop
    ) {
        do throws(RequestError) {
            try result.get()
            if isExhausted { return done(.success(deleted)) }
            try deletePage(run.take(), at: point, loop)
        } catch {
            done(.failure(error))
        }
    }
}

/// A query run on its way through a closure, which cannot hold what is noncopyable.
private final class RunBox {
    private var run: QueryExecution?

    init(_ run: consuming QueryExecution) {
        self.run = consume run
    }

    func take() -> QueryExecution {
        guard let run = run.take() else { preconditionFailure("a run is taken once") }
        return run
    }
}
