// Changes that the server computes: `google.firestore.v1.DocumentTransform.FieldTransform`.

/// A change of one field that depends on its stored value or on the server's clock.
package struct FieldTransform: Sendable, Equatable {
    /// A numeric operand.
    package enum Number: Sendable, Equatable {
        case integer(Int64)
        case double(Double)
    }

    /// What is done to the field. Rules: semantics of the public schema, restated in `docs/writes.md`.
    package enum Operation: Sendable, Equatable {
        /// The field becomes the time of the commit.
        case requestTime
        /// The field grows by the operand; int64 saturates, any double makes the sum a double.
        case increment(Number)
        /// The field becomes the larger of itself and the operand.
        case maximum(Number)
        /// The field becomes the smaller of itself and the operand.
        case minimum(Number)
        /// The elements that the array lacks are appended, in order.
        case appendMissingElements([EncodedValue])
        /// Every element equal to one of these is removed.
        case removeAllFromArray([EncodedValue])
    }

    package let path: FieldPath
    package let operation: Operation

    package init(path: FieldPath, operation: Operation) {
        self.path = path
        self.operation = operation
    }
}
