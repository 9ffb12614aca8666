// One Firestore value as the bytes of its `Value` message: operands of filters, cursor values, transform operands.
//
// The query and write layers never look at a value as a tree: they compare and copy encoded bytes. An `EncodedValue` owns
// such bytes in canonical form (minimal varints, sorted map keys, timestamps floored to microseconds, one NaN), so that
// equal operands have equal bytes and a comparison need not normalise again.

/// The canonical bytes of one `google.firestore.v1.Value` message, without tag and length.
package struct EncodedValue: Sendable, Hashable {
    /// The message bytes; never empty (a value without a type is refused where values are decoded).
    package let bytes: [UInt8]

    /// Wraps bytes that are canonical already.
    @inlinable package init(canonical bytes: [UInt8]) {
        self.bytes = bytes
    }
}
