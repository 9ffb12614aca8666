import Basics
import DocumentModel
import Foundation

/// The results of a query that is listened to, in the query's order.
struct QueryView {
    private struct Row {
        /// Compares like the query's order.
        let key: [UInt8]
        let content: SnapshotRow
    }

    private let orders: [DocumentModel.Order]
    private var sorted: [Row] = []
    /// Keys of the rows by the names of their documents.
    private var keys: [String: [UInt8]] = [:]
    /// Names of documents with pending writes.
    private var pending: Set<String> = []
    /// The results in order, until something changes: many listeners see one snapshot only.
    private var unindexed: [SnapshotRow]?

    /// - Parameter orders: the complete order of the query, or empty for a view of one document.
    init(orders: [DocumentModel.Order]) { self.orders = orders }

    var rows: [SnapshotRow] { unindexed ?? sorted.map(\.content) }
    var count: Int { unindexed?.count ?? sorted.count }
    /// After ``index()``.
    var names: some Sequence<String> { keys.keys }
    var hasPendingWrites: Bool { !pending.isEmpty }

    /// The document of a name, if it is in the results; after ``index()``.
    func document(_ name: String) -> StoredDocument? {
        guard let key = keys[name] else { return nil }
        return sorted[index(of: key)].content.document
    }

    /// The results from a position on.
    func rows(from position: Int) -> [SnapshotRow] { Array(rows[position...]) }

    /// Makes documents known by their names. Calling it again does nothing.
    mutating func index() {
        guard let rows = unindexed else { return }
        unindexed = nil
        sorted = rows.map { Row(key: key(of: $0.document, $0.name), content: $0) }
        for row in sorted { note(row) }
    }

    /// Applies what has changed.
    ///
    /// - Parameter changes: documents by their names; `nil` for those that have left the results.
    /// - Returns: removed, then added, then modified documents, each in the order of the query. The indexes are those
    ///   of applying one change after the other. Documents that look the same are left out.
    mutating func apply(_ changes: [String: StoredDocument?]) -> [RowChange] {
        index()
        if sorted.isEmpty { return fill(changes) }
        var removed: [[UInt8]] = []
        var added: [Row] = []
        var modified: [(old: [UInt8], new: Row, isMetadata: Bool)] = []
        for (name, stored) in changes {
            let old = keys[name]
            guard let stored else {
                if let old { removed.append(old) }
                keys[name] = nil
                pending.remove(name)
                continue
            }
            let row = Row(key: key(of: stored, name), content: SnapshotRow(name: name, document: stored))
            if let old {
                let before = sorted[index(of: old)].content.document
                if before == stored { continue }
                let isMetadata = before.looksLike(stored)
                // Other differences are invisible.
                if isMetadata, before.hasPendingWrites == stored.hasPendingWrites {
                    replace(row, at: old)
                    continue
                }
                modified.append((old, row, isMetadata))
            } else {
                added.append(row)
            }
            note(row)
        }
        removed.sort { Self.precedes($0, $1) }
        added.sort { Self.precedes($0.key, $1.key) }
        modified.sort { Self.precedes($0.new.key, $1.new.key) }
        return removed.map { remove($0) } + added.map { add($0) }
            + modified.map { modify($0.old, $0.new, isMetadata: $0.isMetadata) }
    }

    /// The first documents.
    private mutating func fill(_ changes: [String: StoredDocument?]) -> [RowChange] {
        for (name, stored) in changes {
            guard let stored else { continue }
            let row = Row(key: key(of: stored, name), content: SnapshotRow(name: name, document: stored))
            sorted.append(row)
            note(row)
        }
        sorted.sort { Self.precedes($0.key, $1.key) }
        return sorted.enumerated().map { index, row in
            RowChange(type: .added, row: row.content, oldIndex: nil, newIndex: index)
        }
    }

    /// Takes over the results of a query in its order, or in the opposite one. The view is empty before.
    mutating func fill(_ rows: [SnapshotRow], isReversed: Bool) {
        unindexed = isReversed ? rows.reversed() : rows
        for row in rows where row.document.hasPendingWrites { pending.insert(row.name) }
    }

    private mutating func note(_ row: Row) {
        keys[row.content.name] = row.key
        if row.content.document.hasPendingWrites {
            pending.insert(row.content.name)
        } else {
            pending.remove(row.content.name)
        }
    }

    private mutating func replace(_ row: Row, at key: [UInt8]) {
        sorted[index(of: key)] = row
        note(row)
    }

    private mutating func remove(_ key: [UInt8]) -> RowChange {
        let index = index(of: key)
        let row = sorted.remove(at: index)
        return RowChange(type: .removed, row: row.content, oldIndex: index, newIndex: nil)
    }

    private mutating func add(_ row: Row) -> RowChange {
        let index = index(of: row.key)
        sorted.insert(row, at: index)
        return RowChange(type: .added, row: row.content, oldIndex: nil, newIndex: index)
    }

    private mutating func modify(_ old: [UInt8], _ row: Row, isMetadata: Bool) -> RowChange {
        let oldIndex = index(of: old)
        sorted.remove(at: oldIndex)
        let newIndex = index(of: row.key)
        sorted.insert(row, at: newIndex)
        return RowChange(
            type: .modified, row: row.content, oldIndex: oldIndex, newIndex: newIndex, isMetadata: isMetadata)
    }

    /// The first position whose key does not precede a key.
    private func index(of key: [UInt8]) -> Int {
        // Most new documents are the last ones.
        if let last = sorted.last, Self.precedes(last.key, key) { return sorted.count }
        return sorted.partitioningIndex { !Self.precedes($0.key, key) }
    }

    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.byteSpan.compareBytes(right.byteSpan) < 0
    }

    /// Bytes that compare like the query's order.
    private func key(of document: StoredDocument, _ name: String) -> [UInt8] {
        var key = WireWriter(capacity: 64)
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
