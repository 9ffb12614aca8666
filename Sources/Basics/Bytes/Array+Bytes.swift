// Bytes of arrays, lent and copied.

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

    /// A copy of the span's bytes.
    @inlinable
    package init(copying span: RawSpan) {
        self = unsafe span.withUnsafeBytes { unsafe [UInt8]($0) }
    }

    /// Appends a copy of the span's bytes.
    @inlinable
    package mutating func append(contentsOf source: RawSpan) {
        unsafe source.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}

extension BidirectionalCollection<UInt8> {
    /// The number that these bytes are, the lowest first: eight at most.
    package var littleEndianNumber: UInt64 { reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}
