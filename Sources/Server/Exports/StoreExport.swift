internal import Basics
package import DocumentModel
package import DocumentStore
package import ManagedExport
internal import QueryEngine

/// Managed exports of a store in this process.
package enum StoreExport {
    /// Writes all documents of a database in one state. Blocks; memory is bounded by a page of the storage.
    ///
    /// - Parameter isCancelled: asked before each page.
    /// - Throws: `ExportFolderProblem`, `RequestError`.
    package static func write(
        _ database: DatabaseName, of store: DocumentStore, to writer: ExportFolderWriter,
        isCancelled: () -> Bool = { false }
    ) throws {
        let reader = store.makeReader()
        // Every descendant of the root, in name order.
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "", allDescendants: true)])
        var run = QueryExecution(try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan))
        let point = try reader.readPoint(.latest, in: database)
        var problem: ExportFolderProblem?
        var isFinished = false
        while !isFinished, problem == nil {
            if isCancelled() { throw RequestError.shuttingDown }
            let source = try reader.source(at: point, matching: run.plan.matcher)
            var documents = 0
            let progress = try run.next(from: source) { (row) throws(RequestError) in
                do throws(ExportFolderProblem) {
                    try writer.append(path: row.path, fields: row.fields)
                } catch {
                    problem = error
                }
                documents += 1
                return documents >= pageDocuments || problem != nil ? .full : .more
            }
            if case .finished = progress { isFinished = true }
            reader.releaseSnapshots()
        }
        if let problem { throw problem }
    }

    /// Whether a database has a document.
    package static func hasDocuments(_ database: DatabaseName, in store: DocumentStore) throws -> Bool {
        let reader = store.makeReader()
        defer { reader.releaseSnapshots() }
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "", allDescendants: true)])
        query.limit = 1
        var run = QueryExecution(try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan))
        let point = try reader.readPoint(.latest, in: database)
        var hasFound = false
        while true {
            let source = try reader.source(at: point, matching: run.plan.matcher)
            let progress = try run.next(from: source) { (row) throws(RequestError) in
                hasFound = true
                return .full
            }
            if hasFound { return true }
            if case .finished = progress { return false }
        }
    }

    /// Documents between two snapshots of the storage.
    private static let pageDocuments = 5_000
}
