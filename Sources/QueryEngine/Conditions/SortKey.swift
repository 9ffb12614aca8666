// Documents and cursors as bytes that compare like the query's order.
//
// The key of a document is the concatenation of its ordered fields' order-preserving keys, inverted where the order is
// descending, and of its path. No component's key is a prefix of another's, so a cursor over the first k components is
// compared with the first bytes of a document's key, and equal bytes mean equal values.

package import Basics
package import DocumentModel

package enum SortKey {
    /// Appends a document's key.
    ///
    /// - Parameter index: that of the document, if there is one.
    /// - Returns: false if the document lacks an ordered field and so is not a result; the writer then holds a part.
    package static func append(
        path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil, order: [Order], into writer: inout ByteBuffer
    ) -> Bool {
        for place in order.indices {
            let isDescending = order[place].direction == .descending
            if order[place].field.isDocumentName {
                append(path: path, descending: isDescending, into: &writer)
            } else {
                guard let value = DocumentBytes.value(at: order[place].field, in: fields, by: index) else {
                    return false
                }
                ValueKey.append(wireValue: value, descending: isDescending, into: &writer)
            }
        }
        return true
    }

    /// Appends the key of a name alone.
    package static func append(path: RawSpan, descending: Bool, into writer: inout ByteBuffer) {
        let start = writer.count
        ValueKey.append(path: path, into: &writer)
        writer.append(byte: KeyEncoding.terminator)
        if descending { writer.invertBits(from: start) }
    }

    /// The key of a cursor: of the first components only, as many as it has values.
    ///
    /// - Throws: `INVALID_ARGUMENT` for more values than orders were written, or a name that is not a reference to a
    ///   document of the database.
    static func key(
        of cursor: Cursor, order: EffectiveOrder, database: DatabaseName
    ) throws(RequestError) -> [UInt8] {
        if cursor.values.count > order.writtenCount { throw .invalidArgument("Cursor has too many values.") }
        var writer = ByteBuffer(capacity: 64)
        for (value, component) in zip(cursor.values, order.components) {
            let isDescending = component.direction == .descending
            if component.field.isDocumentName {
                let position = try NamePosition(cursorValue: value, database: database)
                append(path: position.path.byteSpan, descending: isDescending, into: &writer)
            } else {
                ValueKey.append(wireValue: value.span, descending: isDescending, into: &writer)
            }
        }
        return writer.copyBytes()
    }
}

/// The part of an order that cursors leave.
struct CursorRange: Sendable, Equatable {
    struct Bound: Sendable, Equatable {
        /// The key of the first components.
        var key: [UInt8]
        /// Whether documents equal in these components are inside.
        var isInclusive: Bool

        /// Nil if the cursor bounds nothing.
        init?(_ cursor: Cursor, isInclusive: Bool, order: EffectiveOrder, database: DatabaseName) throws(RequestError) {
            if cursor.values.isEmpty, isInclusive { return nil }
            key = try SortKey.key(of: cursor, order: order, database: database)
            self.isInclusive = isInclusive
        }

        var excludesAll: Bool { key.isEmpty && !isInclusive }
    }

    var start: Bound?
    var end: Bound?

    var isEverything: Bool { start == nil && end == nil }

    /// Whether a cursor without values leaves nothing: a start after all documents, or an end before all.
    var isNothing: Bool { start?.excludesAll ?? false || end?.excludesAll ?? false }

    /// What no cursor bounds.
    static let everything = CursorRange()

    private init() {}

    /// Reads a query's cursors. One without values lies before or after all documents, because all have the empty key
    /// as their first bytes.
    init(
        startAt: Cursor?, endAt: Cursor?, order: EffectiveOrder, database: DatabaseName
    ) throws(RequestError) {
        if let startAt {
            start = try Bound(startAt, isInclusive: startAt.before, order: order, database: database)
        }
        if let endAt { end = try Bound(endAt, isInclusive: !endAt.before, order: order, database: database) }
    }

    /// Whether a document's key lies between the cursors.
    func contains(key: RawSpan) -> Bool {
        if let start {
            let order = key.extracting(first: start.key.count).compareBytes(start.key.byteSpan)
            if order < 0 || (order == 0 && !start.isInclusive) { return false }
        }
        if let end {
            let order = key.extracting(first: end.key.count).compareBytes(end.key.byteSpan)
            if order > 0 || (order == 0 && !end.isInclusive) { return false }
        }
        return true
    }
}
