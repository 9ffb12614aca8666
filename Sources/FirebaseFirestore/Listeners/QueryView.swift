import Basics
import DocumentModel
import Foundation
internal import QueryEngine

/// The results of a query that is listened to, in the query's order. A copy is cheap, and a change of a row costs
/// O(log n).
struct QueryView {
    private let orders: [DocumentModel.Order]
    private var tree = RowTree()
    /// The rows by the names of their documents.
    private var byName: [UTF8Text: ViewRow] = [:]
    /// Names of documents with pending writes.
    private var pending: Set<UTF8Text> = []
    /// The results in order, until something changes: many listeners see one snapshot only.
    private var unindexed: [SnapshotRow]?

    /// - Parameter orders: the complete order of a query, or empty for a view of one document. Every row has the fields
    ///   of it.
    init(orders: [DocumentModel.Order]) { self.orders = orders }

    /// A view of the results of a query.
    ///
    /// - Parameter isReversed: whether the view has the opposite order.
    init(_ plan: QueryPlan, isReversed: Bool) {
        let orders = plan.order.components
        self.init(orders: isReversed ? orders.map(\.reversed) : orders)
    }

    var rows: RowList { unindexed.map { RowList($0) } ?? RowList(tree) }
    var count: Int { unindexed?.count ?? tree.count }
    /// After ``index()``.
    var names: some Sequence<UTF8Text> { byName.keys }
    var hasPendingWrites: Bool { !pending.isEmpty }
    /// Whether ``index()`` was called, or there was nothing to do.
    var isIndexed: Bool { unindexed == nil }

    /// The document of a name, if it is in the results; after ``index()``.
    func document(_ name: UTF8Text) -> VisibleDocument? { byName[name]?.content.document }

    /// The row of a document, if it is in the results; after ``index()``.
    func row(_ name: UTF8Text) -> ViewRow? { byName[name] }

    /// The row at a position; after ``index()``.
    func row(at position: Int) -> ViewRow { tree[position] }

    /// Makes documents known by their names. Calling it again does nothing.
    mutating func index() {
        guard let rows = unindexed else { return }
        unindexed = nil
        byName.reserveCapacity(rows.count)
        let sorted = rows.map { row(of: $0.document, $0.name) }
        for row in sorted { note(row) }
        tree = RowTree(sorted)
    }

    /// Applies what has changed.
    ///
    /// - Parameter changes: documents by their names; `nil` for those that have left the results.
    /// - Returns: removed, then added, then modified documents, each in the order of the query. The indexes are those
    ///   of applying one change after the other. Documents that look the same are left out.
    mutating func apply(_ changes: [UTF8Text: VisibleDocument?]) -> [SnapshotRowChange] {
        index()
        if tree.isEmpty { return fill(changes) }
        var removed: [ViewRow] = []
        var added: [ViewRow] = []
        var modified: [(old: ViewRow, new: ViewRow, isMetadata: Bool)] = []
        for (name, stored) in changes {
            let old = byName[name]
            guard let stored else {
                if let old { removed.append(old) }
                byName[name] = nil
                pending.remove(name)
                continue
            }
            let row = row(of: stored, name.string)
            if let old {
                let before = old.content.document
                if before == stored { continue }
                let isMetadata = before.looksLike(stored)
                // Other differences are invisible.
                if isMetadata, before.hasPendingWrites == stored.hasPendingWrites {
                    tree.insert(row)
                } else {
                    modified.append((old, row, isMetadata))
                }
            } else {
                added.append(row)
            }
            note(row)
        }
        removed.sort { $0.key.precedes($1.key) }
        added.sort { $0.key.precedes($1.key) }
        modified.sort { $0.new.key.precedes($1.new.key) }
        return removed.map { remove($0) } + added.map { add($0) }
            + modified.map { modify($0.old, $0.new, isMetadata: $0.isMetadata) }
    }

    /// The first documents.
    private mutating func fill(_ changes: [UTF8Text: VisibleDocument?]) -> [SnapshotRowChange] {
        var sorted: [ViewRow] = []
        for (name, stored) in changes {
            guard let stored else { continue }
            let row = row(of: stored, name.string)
            sorted.append(row)
            note(row)
        }
        sorted.sort { $0.key.precedes($1.key) }
        tree = RowTree(sorted)
        return sorted.enumerated().map { index, row in
            SnapshotRowChange(type: .added, row: row.content, oldIndex: nil, newIndex: index)
        }
    }

    /// Takes over the results of a query in its order, or in the opposite one. The view is empty before.
    mutating func fill(_ rows: [SnapshotRow], isReversed: Bool) {
        unindexed = isReversed ? rows.reversed() : rows
        for row in rows where row.document.hasPendingWrites { pending.insert(UTF8Text(row.name)) }
    }

    private mutating func note(_ row: ViewRow) {
        let name = UTF8Text(row.content.name)
        byName[name] = row
        if row.content.document.hasPendingWrites {
            pending.insert(name)
        } else {
            pending.remove(name)
        }
    }

    private mutating func remove(_ row: ViewRow) -> SnapshotRowChange {
        let index = tree.position(of: row.key)
        tree.remove(row.key)
        return SnapshotRowChange(type: .removed, row: row.content, oldIndex: index, newIndex: nil)
    }

    private mutating func add(_ row: ViewRow) -> SnapshotRowChange {
        let index = tree.position(of: row.key)
        tree.insert(row)
        return SnapshotRowChange(type: .added, row: row.content, oldIndex: nil, newIndex: index)
    }

    private mutating func modify(_ old: ViewRow, _ row: ViewRow, isMetadata: Bool) -> SnapshotRowChange {
        let oldIndex = tree.position(of: old.key)
        tree.remove(old.key)
        let newIndex = tree.position(of: row.key)
        tree.insert(row)
        return SnapshotRowChange(
            type: .modified, row: row.content, oldIndex: oldIndex, newIndex: newIndex, isMetadata: isMetadata)
    }

    private func row(of document: VisibleDocument, _ name: String) -> ViewRow {
        ViewRow(key: key(of: document, name), content: SnapshotRow(name: name, document: document))
    }

    /// Bytes that compare like the query's order.
    func key(of document: VisibleDocument, _ name: String) -> [UInt8] {
        var key = ByteBuffer(capacity: 64)
        let fields = document.queryFields
        for order in orders {
            let isDescending = order.direction == .descending
            if order.field.isDocumentName {
                let bytes = Array(name.utf8)
                ValueKey.append(resourceName: bytes.byteSpan, descending: isDescending, into: &key)
            } else if let value = DocumentBytes.value(at: order.field, in: fields.byteSpan) {
                ValueKey.append(wireValue: value, descending: isDescending, into: &key)
            }
        }
        return key.copyBytes()
    }
}
