import Basics
import DocumentModel
import Foundation

/// The results of a query that is listened to, in the query's order.
struct QueryView {
    private struct Row {
        /// Compares like the query's order.
        let key: [UInt8]
        let document: QueryDocumentSnapshot
    }

    private let query: Query
    private let orders: [DocumentModel.Order]
    private var rows: [Row] = []
    /// Keys of the rows by the names of their documents.
    private var keys: [String: [UInt8]] = [:]

    init(_ query: Query) {
        self.query = query
        orders = query.definition.effectiveOrders
    }

    var documents: [QueryDocumentSnapshot] { rows.map(\.document) }

    /// Applies what has changed.
    ///
    /// - Parameter changes: documents by their names; `nil` for those that have left the results.
    /// - Returns: removed, then added, then modified documents, each in the order of the query. The indexes are those
    ///   of applying one change after the other.
    mutating func apply(_ changes: [String: StoredDocument?]) -> [DocumentChange] {
        var removed: [[UInt8]] = []
        var added: [Row] = []
        var modified: [(old: [UInt8], new: Row)] = []
        for (name, stored) in changes {
            let old = keys[name]
            guard let stored else {
                if let old { removed.append(old) }
                keys[name] = nil
                continue
            }
            guard let reference = DocumentReference(name: name, owner: query.firestore) else { continue }
            let key = key(of: stored, name)
            keys[name] = key
            let row = Row(key: key, document: QueryDocumentSnapshot(reference: reference, found: stored))
            if let old { modified.append((old, row)) } else { added.append(row) }
        }
        removed.sort { Self.precedes($0, $1) }
        added.sort { Self.precedes($0.key, $1.key) }
        modified.sort { Self.precedes($0.new.key, $1.new.key) }
        return removed.map { remove($0) } + added.map { add($0) } + modified.map { modify($0.old, $0.new) }
    }

    private mutating func remove(_ key: [UInt8]) -> DocumentChange {
        let index = index(of: key)
        let row = rows.remove(at: index)
        return DocumentChange(
            type: .removed, document: row.document, oldIndex: UInt(index), newIndex: UInt(NSNotFound))
    }

    private mutating func add(_ row: Row) -> DocumentChange {
        let index = index(of: row.key)
        rows.insert(row, at: index)
        return DocumentChange(type: .added, document: row.document, oldIndex: UInt(NSNotFound), newIndex: UInt(index))
    }

    private mutating func modify(_ old: [UInt8], _ row: Row) -> DocumentChange {
        let oldIndex = index(of: old)
        rows.remove(at: oldIndex)
        let newIndex = index(of: row.key)
        rows.insert(row, at: newIndex)
        return DocumentChange(
            type: .modified, document: row.document, oldIndex: UInt(oldIndex), newIndex: UInt(newIndex))
    }

    /// The first position whose key does not precede a key.
    private func index(of key: [UInt8]) -> Int {
        // Most new documents are the last ones.
        if let last = rows.last, Self.precedes(last.key, key) { return rows.count }
        return rows.partitioningIndex { !Self.precedes($0.key, key) }
    }

    private static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.byteSpan.compareBytes(right.byteSpan) < 0
    }

    /// Bytes that compare like the query's order.
    private func key(of document: StoredDocument, _ name: String) -> [UInt8] {
        var key = WireWriter(capacity: 64)
        let fields = document.fields
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
