import Basics
import DocumentModel
import DocumentStore

/// What sessions have read at the newest version, kept for other sessions of the hub that send the same. Confined to
/// the thread of the hub.
///
/// After a commit all listeners of a query send the same document. The first of them reads it.
struct SharedReads {
    private var documents: [ChangedDocument] = []
    private var byteCount = 0
    private var queries: [TargetQuery] = []

    /// Bytes of documents up to which documents are kept.
    private static let bytesMax = 4 << 20
    /// The document at a version; nil if it does not exist.
    mutating func document(
        _ changed: ChangedDocument, at version: UInt64, _ reader: DatabaseReader
    ) throws(RequestError) -> EncodedDocument? {
        if let known = changed.document(at: version) { return known }
        var document: EncodedDocument?
        let path = changed.path
        try reader.withDocument(path.byteSpan, at: version) { (found: LentDocument?) in
            if let found { document = EncodedDocument(found, namePrefix: reader.namePrefix) }
        }
        let size = document?.bytes.count ?? 0
        if byteCount + size > Self.bytesMax { return document }
        byteCount += size
        changed.keep(document, at: version)
        documents.append(changed)
        return document
    }

    /// The comparison of a query's results at two versions, for all its targets; nil for a query without a limit, or
    /// with a large one.
    mutating func comparison(of target: Target, from base: UInt64, to version: UInt64) -> WindowComparison? {
        guard let query = target.windowQuery, query.sharesComparisons else { return nil }
        if let comparison = query.comparison, comparison.base == base, comparison.version == version {
            return comparison
        }
        let comparison = WindowComparison(query, from: base, to: version)
        if query.comparison == nil { queries.append(query) }
        query.comparison = comparison
        return comparison
    }

    /// Forgets everything.
    mutating func removeAll() {
        for document in documents { document.forget() }
        for query in queries { query.comparison = nil }
        documents.removeAll(keepingCapacity: documents.count < 100)
        queries.removeAll()
        byteCount = 0
    }
}
