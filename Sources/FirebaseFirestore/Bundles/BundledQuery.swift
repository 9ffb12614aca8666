import Basics
import DocumentModel
import FirestoreMessages
internal import QueryEngine

/// A query of a bundle as the cache keeps it.
///
///     | keeps the last, varint | parent length | parent | StructuredQuery ... |
struct BundledQuery: Equatable {
    /// The documents root of the database, or a document.
    let parent: String
    /// The query of the program, in its order.
    let query: StructuredQuery
    /// Whether the limit keeps the last documents of the order instead of the first.
    let keepsLast: Bool

    init(parent: String, query: StructuredQuery, keepsLast: Bool) {
        self.parent = parent
        self.query = query
        self.keepsLast = keepsLast
    }

    func encoded() -> [UInt8] {
        var writer = ByteBuffer(capacity: 256)
        writer.appendVarint(keepsLast ? 1 : 0)
        writer.appendVarint(UInt64(parent.utf8.count))
        writer.append(utf8: parent)
        query.encode(into: &writer)
        return writer.copyBytes()
    }

    init(stored: [UInt8]) throws(RequestError) {
        do {
            var reader = WireReader(stored.byteSpan)
            keepsLast = try reader.varint() != 0
            parent = String(repairingUTF8: try reader.lengthDelimited())
            query = try StructuredQuery(wire: stored.byteSpan.extracting(reader.position..<stored.count))
        } catch {
            throw RequestError(.dataLoss, "A named query in the cache is damaged.")
        }
    }

    /// The query for programs.
    ///
    /// - Throws: INVALID_ARGUMENT if the query breaks a rule, or if programs cannot make such queries.
    func description(in database: DatabaseName) throws(RequestError) -> QueryDescription {
        guard query.from.count == 1, !query.from[0].collectionID.isEmpty, query.select == nil, query.offset == 0,
            query.findNearest == nil
        else {
            throw .invalidArgument("A named query has one collection, and no projection, offset or nearest neighbours.")
        }
        let root = database.documentsRoot
        guard parent == root || parent.hasUTF8Prefix("\(root)/") else {
            throw .invalidArgument("A named query belongs to another database: '\(parent.prefix(200))'.")
        }
        // Checks everything else.
        _ = try QueryPlan(query, parent: Array(parent.utf8).byteSpan)
        let segments = parent.dropping(prefix: root).slashSeparated.filter { !$0.isEmpty }
        var description =
            query.from[0].allDescendants
            ? QueryDescription(group: query.from[0].collectionID)
            : QueryDescription(collection: segments + [query.from[0].collectionID])
        if query.from[0].allDescendants, !segments.isEmpty {
            throw .invalidArgument("A named query of a collection group has the whole database as its parent.")
        }
        if case .and(let parts)? = query.filter {
            description.filters = parts
        } else if let filter = query.filter {
            description.filters = [filter]
        }
        description.orders = query.orderBy
        description.startAt = query.startAt
        description.endAt = query.endAt
        if let limit = query.limit {
            guard limit > 0 else { throw .invalidArgument("The limit of a named query is positive.") }
            description.limit = QueryDescription.Limit(count: limit, side: keepsLast ? .last : .first)
        }
        if keepsLast, query.limit == nil || query.orderBy.isEmpty {
            throw .invalidArgument("A named query that keeps the last documents has a limit and an order.")
        }
        return description
    }

    /// The bytes that identify the query in the store, as those of a listener to it.
    func canonical(in database: DatabaseName) throws(RequestError) -> [UInt8] {
        let description = try description(in: database)
        let kind = ListenTarget.Kind.query(parent: parent, description.structuredQuery())
        return SyncEngine.Subject(kind: kind, isReversed: description.isReversed).canonical(database)
    }
}
