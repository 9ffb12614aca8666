// Whether a document is a result of a query: what transactions and listeners ask of single documents.

package import Basics
package import DocumentModel

/// The condition that makes a document a result of a query: scope, filter, fields that the order needs, cursors, and a
/// further condition that listeners may have.
///
/// Offset and limit are not part of it. Immutable; may be used from any thread. A class, so that runs, transactions and
/// listeners share one and pass it on for a reference count.
package final class QueryMatcher: Sendable {
    /// The collections whose documents can be results.
    package let scope: QueryScope
    let filter: CompiledFilter
    let order: EffectiveOrder
    let cursors: CursorRange
    /// Ordered fields whose existence no test in `filter` implies.
    let requiredFields: [FieldPath]
    private let condition: (any DocumentCondition)?

    /// How often the fields of a document are walked at most, to judge and to order it: once for each condition and
    /// each ordered field. A condition with a list counts once for each member, because values are compared with each.
    package let walks: Int

    /// The number of documents as which one counts because of the further condition; 0 without.
    var conditionCost: Int { condition == nil ? 0 : Self.conditionCost }

    /// A condition may take some milliseconds.
    private static let conditionCost = 128

    init(
        scope: QueryScope, filter: CompiledFilter, order: EffectiveOrder, cursors: CursorRange,
        condition: (any DocumentCondition)? = nil
    ) {
        self.scope = scope
        self.filter = filter
        self.order = order
        self.cursors = cursors
        self.condition = condition
        let tested = Set(filter.fieldTests.map(\.path))
        let ordered = order.fields
        requiredFields = ordered.filter { !tested.contains($0) }
        walks = filter.walks + requiredFields.count + ordered.count
    }

    /// Whether the query without offset and limit returns the document.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - fields: its canonical field entries.
    ///   - index: where they are, if it is known.
    package func matches(path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil) -> Bool {
        guard scope.contains(path: path), matchesInScope(path: path, fields: fields, by: index) else { return false }
        return cursors.isEverything || isBetweenCursors(path: path, fields: fields, by: index)
    }

    /// Appends the bytes by which a document is ordered among the results: two documents compare like their keys.
    ///
    /// - Returns: false if the document lacks an ordered field; the writer then holds a part.
    package func appendSortKey(
        path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil, into writer: inout ByteBuffer
    ) -> Bool {
        SortKey.append(path: path, fields: fields, by: index, order: order.components, into: &writer)
    }

    /// Whether a document's sort key lies between the query's cursors.
    func isBetweenCursors(path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil) -> Bool {
        var key = ByteBuffer(capacity: 128)
        return appendSortKey(path: path, fields: fields, by: index, into: &key) && cursors.contains(key: key.bytes)
    }

    /// Whether a document of the scope meets the filter and the condition and has the ordered fields; cursors are not
    /// looked at.
    func matchesInScope(path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil) -> Bool {
        guard filter.matches(path: path, fields: fields, by: index) else { return false }
        for place in requiredFields.indices
        where DocumentBytes.value(at: requiredFields[place], in: fields, by: index) == nil {
            return false
        }
        return condition?.holds(path: path, fields: fields) ?? true
    }
}
