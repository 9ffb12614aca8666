// The order in which results come: what the client wrote, completed by Firestore's rules. Source: comment of
// `StructuredQuery.order_by`; semantics page, section 5.
//
//     where("a", ">", 1).where("b", "!=", 2).orderBy("c", desc)   c DESC, a DESC, b DESC, __name__ DESC

internal import Basics
package import DocumentModel

/// A total order of documents: the client's orders, then the fields of inequality filters, then the name.
package struct EffectiveOrder: Sendable, Equatable {
    package let components: [Order]

    /// How many of the components the client wrote; the others are implied. Cursors have values for these alone.
    let writtenCount: Int

    /// The order of names.
    static let byName = EffectiveOrder(components: [Order(field: .documentName)])

    private init(components: [Order]) {
        self.components = components
        writtenCount = 0
    }

    /// Completes a client's orders.
    ///
    /// - Parameters:
    ///   - explicit: the orders that the client wrote.
    ///   - inequalityFields: fields that a range or an exclusion bounds, of all branches of the filter.
    ///   - totalled: the fields of sums and averages, which are ordered by after these.
    ///   - isByName: whether something other than an order makes the name come before the totalled fields.
    /// - Throws: `INVALID_ARGUMENT` for a field that is ordered by twice, or after the name.
    init(
        explicit: [Order], inequalityFields: Set<FieldPath>, totalled: [FieldPath] = [], isByName: Bool = false
    ) throws(RequestError) {
        try EffectiveOrder.checkWritten(explicit)
        components = EffectiveOrder.completed(explicit, inequalityFields: inequalityFields, totalled: totalled)
        writtenCount = explicit.count
        let endsWithName = explicit.last?.field.isDocumentName ?? false
        guard endsWithName || isByName else { return }
        let implied = Set(components.dropFirst(writtenCount).map(\.field))
        let added = implied.intersection(totalled).subtracting(inequalityFields).sorted()
        if !added.isEmpty {
            let names = added.map(\.description).joined(separator: ", ")
            throw .invalidArgument(
                "This query requires an index that has fields [\(names)] after __name__ and Firestore does not "
                    + "currently support such an index. "
                    + "Please try the query again with additional ordering on those fields."
            )
        }
        if endsWithName, !implied.isEmpty { throw .orderAfterName }
    }

    /// A client's orders, then the fields of inequality filters, then the totalled fields, then the name: what the
    /// client has not written in the direction of its last order. Nothing is checked.
    package static func completed(
        _ explicit: [Order], inequalityFields: Set<FieldPath>, totalled: [FieldPath] = []
    ) -> [Order] {
        let written = explicit.map(\.field)
        let compared = inequalityFields.filter { !$0.isDocumentName && !written.contains($0) }.sorted()
        let added = Set(totalled).subtracting(written).subtracting(compared).sorted()
        let name: [FieldPath] = written.contains(where: \.isDocumentName) ? [] : [.documentName]
        let direction = explicit.last?.direction ?? .ascending
        return explicit + (compared + added + name).map { Order(field: $0, direction: direction) }
    }

    /// All documents have different names, so nothing can follow the name.
    private static func checkWritten(_ orders: [Order]) throws(RequestError) {
        var seen: Set<FieldPath> = []
        for order in orders {
            if seen.contains(.documentName) { throw .orderAfterName }
            guard seen.insert(order.field).inserted else {
                throw .invalidArgument("order by clause cannot contain duplicate fields \(order.field)")
            }
        }
    }

    /// The direction of the order if it is by name alone.
    var directionByNameAlone: SortDirection? {
        guard let first = components.first, first.field.isDocumentName else { return nil }
        return first.direction
    }

    /// The fields that a document must have to be a result.
    var fields: [FieldPath] { components.map(\.field).filter { !$0.isDocumentName } }
}

extension RequestError {
    fileprivate static let orderAfterName = RequestError.invalidArgument(
        "order by clause cannot contain more fields after the key")
}

extension EffectiveOrder: CustomStringConvertible {
    /// For example `(a ASC, __name__ ASC)`, as explain shows it.
    package var description: String {
        "(" + components.map(\.description).joined(separator: ", ") + ")"
    }
}
