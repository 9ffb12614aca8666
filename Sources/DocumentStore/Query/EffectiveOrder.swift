// The order in which results come: what the client wrote, completed by Firestore's rules. Source: comment of
// `StructuredQuery.order_by`; semantics page, section 5.
//
//     where("a", ">", 1).where("b", "!=", 2).orderBy("c", desc)   c DESC, a DESC, b DESC, __name__ DESC

internal import Basics
package import DocumentModel

/// A total order of documents: the client's orders, then the fields of inequality filters, then the name.
package struct EffectiveOrder: Sendable, Equatable {
    package let components: [Order]

    /// Completes a client's orders.
    ///
    /// - Parameters:
    ///   - explicit: the orders that the client wrote.
    ///   - inequalityFields: fields that a range or an exclusion bounds, of all branches of the filter.
    ///   - required: further fields to order by, as sums and averages imply.
    init(explicit: [Order], inequalityFields: Set<FieldPath>, required: [FieldPath] = []) throws(RequestError) {
        var components = explicit
        var seen: Set<FieldPath> = []
        for order in explicit where !seen.insert(order.field).inserted {
            throw .invalidArgument("order_by cannot contain the field \(order.field) twice.")
        }
        let direction = explicit.last?.direction ?? .ascending
        for field in inequalityFields.sorted() + required where !field.isDocumentName {
            if seen.insert(field).inserted { components.append(Order(field: field, direction: direction)) }
        }
        if !seen.contains(.documentName) {
            components.append(Order(field: .documentName, direction: direction))
        }
        self.components = components
    }

    /// The direction of the order if it is by name alone.
    var directionByNameAlone: SortDirection? {
        guard let first = components.first, first.field.isDocumentName else { return nil }
        return first.direction
    }

    /// The fields that a document must have to be a result.
    var fields: [FieldPath] { components.map(\.field).filter { !$0.isDocumentName } }
}

extension EffectiveOrder: CustomStringConvertible {
    /// For example `(a ASC, __name__ ASC)`, as explain shows it.
    package var description: String {
        "(" + components.map(\.description).joined(separator: ", ") + ")"
    }
}
