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

    /// Appends zeros, for a function of C that writes over them.
    package mutating func append(zeros count: Int) { append(contentsOf: repeatElement(0, count: count)) }

    /// Appends a copy of the span's bytes.
    @inlinable
    package mutating func append(contentsOf source: RawSpan) {
        unsafe source.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }
}

extension RawSpan {
    /// The number that eight bytes are, the lowest first.
    @inlinable
    package func littleEndian64(at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The same of four bytes.
    @inlinable
    package func littleEndian32(at offset: Int) -> UInt32 {
        UInt32(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
