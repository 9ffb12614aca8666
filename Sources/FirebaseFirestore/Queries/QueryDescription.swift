import Basics
import DocumentModel
internal import QueryEngine

/// A query of the client API as a value: scope, filters, orders, cursors and limits.
///
/// The methods of ``Query`` return changed copies, ``QueryRules`` checks each change, and `structuredQuery()` makes the
/// message for the server. Equal descriptions request the same documents in the same order.
struct QueryDescription: Equatable, Sendable {
    /// Which end of the order a limit keeps.
    enum LimitSide: Equatable, Sendable { case first, last }

    struct Limit: Equatable, Sendable {
        var count: Int32
        var side: LimitSide
    }

    /// The path of the collection, from the root; of a collection group the id alone.
    private let path: [UTF8Text]
    /// Whether every collection of the id below `parent` takes part: a collection group.
    var isGroup: Bool
    /// All of these hold.
    var filters: [DocumentModel.Filter] = []
    /// The orders the program asked for.
    var orders: [DocumentModel.Order] = []
    var limit: Limit?
    var startAt: DocumentModel.Cursor?
    var endAt: DocumentModel.Cursor?

    init(collection segments: [String]) {
        path = segments.map { UTF8Text($0) }
        isGroup = false
    }

    init(group id: String) {
        path = [UTF8Text(id)]
        isGroup = true
    }

    /// The document above the collection, as segments from the root; empty for collections at the root.
    var parent: [String] { path.dropLast().map(\.string) }

    var collectionID: String { path[path.count - 1].string }

    /// The path of the collection, from the root.
    var collectionSegments: [String] { path.map(\.string) }

    /// The orders that decide: the explicit ones, then inequality fields without an order by name, then the document's
    /// name, each appended one in the direction of the last explicit one.
    var effectiveOrders: [DocumentModel.Order] {
        EffectiveOrder.completed(orders, inequalityFields: DocumentModel.Filter.and(filters).inequalityFields)
    }

    /// Whether results arrive in reverse and are to be turned round: `limit(toLast:)` asks for the first ones of the
    /// reversed order.
    var isReversed: Bool { limit?.side == .last }

    /// The message for the server.
    func structuredQuery() -> StructuredQuery {
        var query = StructuredQuery(
            from: [CollectionSelector(collectionID: collectionID, allDescendants: isGroup)],
            filter: filters.count > 1 ? .and(filters) : filters.first,
            orderBy: orders, startAt: startAt, endAt: endAt, limit: limit?.count)
        // Cursors of documents reach into the implied orders, so those are spelled out.
        if isReversed || (startAt?.values.count ?? 0) > orders.count || (endAt?.values.count ?? 0) > orders.count {
            query.orderBy = effectiveOrders
        }
        if isReversed {
            query.orderBy = query.orderBy.map(\.reversed)
            // The end of the order is the start of the reversed one; what was just before is now just after.
            query.startAt = endAt.map { Cursor(values: $0.values, before: !$0.before) }
            query.endAt = startAt.map { Cursor(values: $0.values, before: !$0.before) }
        }
        return query
    }
}

extension DocumentModel.Filter {
    /// The conditions on single fields, in order.
    var leaves: [DocumentModel.Filter] {
        switch self {
        case .and(let parts), .or(let parts): parts.flatMap(\.leaves)
        case .field, .unary: [self]
        }
    }
}
