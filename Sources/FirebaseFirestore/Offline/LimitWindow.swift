import Basics
import DocumentModel
internal import QueryEngine

/// The number of results of a query that is listened to, and how more than these are read from the cache.
struct ViewLimit {
    let count: Int
    /// The query with a greater limit.
    let widerPlan: QueryPlan
    let widerCount: Int

    /// Results beyond the limit that a view reads once it has needed one of them. It keeps twice as many at most.
    static let surplus = 1024

    /// - Parameters:
    ///   - query: the query with its limit.
    ///   - parent: the name of its parent.
    init(
        _ count: Int, of query: StructuredQuery, parent: [UInt8], surplus: Int = Self.surplus
    ) throws(RequestError) {
        self.count = count
        widerCount = count + surplus
        var wider = query
        wider.limit = Int32(clamping: widerCount)
        widerPlan = try QueryPlan(wider, parent: parent.byteSpan)
    }
}

/// The first results of a limited query over the cache: those that are shown, and more of them, so that a result that
/// leaves makes room for the next one without a further query. Without I/O.
///
///     in the query's order:   | shown, up to the limit | kept |  not known
///                                                          bound
///
/// Every document of the cache that the query finds up to the bound is in the window. At first it has only the results
/// that are shown.
struct LimitWindow {
    private let limit: ViewLimit
    /// Whether the last results are shown instead of the first: all is mirrored.
    private let isReversed: Bool
    private var view: QueryView
    /// The key of the last row that was read from the cache; nil if the window has all results.
    private var bound: [UInt8]?

    init(_ limit: ViewLimit, isReversed: Bool) {
        self.limit = limit
        self.isReversed = isReversed
        view = QueryView(limit.widerPlan, isReversed: isReversed)
    }

    var count: Int { view.count }
    /// Whether the rows of the cache have to be read again: results may be missing among those that are shown.
    var needsRows: Bool { bound != nil && view.count < limit.count }

    /// Takes over the first results of the query over the cache.
    ///
    /// - Parameters:
    ///   - rows: in the order of the query.
    ///   - limit: how many there are at most.
    mutating func fill(_ rows: [SnapshotRow], limit: Int) {
        view.fill(rows, isReversed: false)
        view.index()
        bound = rows.count < limit ? nil : view.count == 0 ? [] : row(view.count - 1).key
    }

    /// Replaces all rows.
    ///
    /// - Parameters:
    ///   - rows: the first results of the wider query over the cache, in the order of the query.
    ///   - shown: what stands for some documents of the cache.
    mutating func refill(_ rows: [SnapshotRow], showing shown: [UTF8Text: VisibleDocument]) {
        view = QueryView(limit.widerPlan, isReversed: isReversed)
        fill(rows, limit: limit.widerCount)
        var changes: [UTF8Text: VisibleDocument?] = [:]
        for (name, document) in shown where view.document(name) != nil { changes[name] = document }
        apply(changes)
    }

    /// The query with as many results as the window takes.
    var widerPlan: QueryPlan { limit.widerPlan }

    /// The row at a position from the shown end.
    func row(_ position: Int) -> ViewRow {
        view.row(at: isReversed ? view.count - 1 - position : position)
    }

    /// The row of a document.
    func row(of name: UTF8Text) -> ViewRow? { view.row(name) }

    /// How many rows are shown.
    var shownCount: Int { min(limit.count, view.count) }

    /// Whether a row of the window is shown.
    func isShown(_ row: ViewRow) -> Bool { shownCount > 0 && !isBeyond(row.key, self.row(shownCount - 1).key) }

    private func isBeyond(_ key: [UInt8], _ bound: [UInt8]) -> Bool {
        isReversed ? key.precedes(bound) : bound.precedes(key)
    }

    /// Applies what has changed.
    ///
    /// - Parameter changes: documents by their names; nil for those that do not match.
    mutating func apply(_ changes: [UTF8Text: VisibleDocument?]) {
        var known: [UTF8Text: VisibleDocument?] = [:]
        for (name, document) in changes {
            if let document, bound.map({ !isBeyond(view.key(of: document, name.string), $0) }) ?? true {
                known[name] = document
            } else if view.document(name) != nil {
                known[name] = .some(nil)
            }
        }
        _ = view.apply(known)
        trim()
    }

    /// Forgets rows if there are many more than are shown.
    private mutating func trim() {
        guard view.count > limit.widerCount + (limit.widerCount - limit.count) else { return }
        var excess: [UTF8Text: VisibleDocument?] = [:]
        for position in limit.widerCount..<view.count { excess[UTF8Text(row(position).content.name)] = .some(nil) }
        bound = row(limit.widerCount - 1).key
        _ = view.apply(excess)
    }
}
