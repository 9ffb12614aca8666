// Lending the bytes of an array.

extension [UInt8] {
    /// The array's bytes, lent.
    @inlinable
    package var byteSpan: RawSpan {
        @_lifetime(borrow self)
        borrowing get {
            // `Span.bytes` counts as unsafe because of element types with padding; bytes have none.
            unsafe span.bytes
        }
    }
}
