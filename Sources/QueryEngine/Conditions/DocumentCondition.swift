// Conditions of documents that no filter of queries says.

/// A further condition of the documents that a query returns.
///
/// Its answer depends on the document alone: listeners compare a document before and after a change. It may be asked
/// from any thread, and its cost is bounded.
package protocol DocumentCondition: Sendable {
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - fields: its canonical field entries.
    func holds(path: RawSpan, fields: RawSpan) -> Bool
}
