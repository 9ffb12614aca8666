// Reading: single documents, collections, and what lies below a document.

package import DocumentModel
internal import KeyValueStore

/// A thread's way to read the store.
///
/// One per event loop (or per thread of a tool or test), made by `DocumentStore.makeReader()`; it owns buffers and a
/// storage reader, and must not be used from two threads. Reads never wait for commits.
package final class StoreReader {
    let store: DocumentStore

    init(store: DocumentStore) {
        self.store = store
    }

    /// Fixes the state that the following reads see.
    ///
    /// - Parameter database: the database's full name.
    /// - Throws: `INVALID_ARGUMENT` for a time in the future or a transaction that is not open,
    ///   `FAILED_PRECONDITION` for a time before the retention.
    package func readPoint(_ selector: ReadSelector, in database: DatabaseName) throws(RequestError) -> ReadPoint {
        fatalError("not built yet")
    }

    /// The same for a database given by its name's bytes, without allocating when it is the one used last.
    package func readPoint(_ selector: ReadSelector, inDatabase bytes: RawSpan) throws(RequestError) -> ReadPoint {
        fatalError("not built yet")
    }

    /// Lends the document of this full resource name, or nil when there is none at that point.
    ///
    /// - Throws: `INVALID_ARGUMENT` when the name is malformed or of another database; `RESOURCE_EXHAUSTED` when the
    ///   point's transaction has read too much; what `body` throws.
    package func withDocument<Answer>(
        _ name: RawSpan, at point: ReadPoint, _ body: (DocumentView?) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        fatalError("not built yet")
    }

    /// The ids of the collections directly below `parent` (nil: of the root collections) that hold a document or any
    /// descendant, in UTF-8 order.
    ///
    /// - Parameters:
    ///   - after: only ids greater than this one; nil from the start.
    ///   - limit: at most so many.
    package func collectionIDs(
        below parent: DocumentPath?, after: String?, limit: Int, at point: ReadPoint
    ) throws(RequestError) -> [String] {
        fatalError("not built yet")
    }

    /// How many documents the collection holds; a look-up when the point is the latest state, else a scan.
    package func documentCount(of collection: CollectionPath, at point: ReadPoint) throws(RequestError) -> Int {
        fatalError("not built yet")
    }
}
