/// Bytes as a key of a dictionary or as an element of a set.
///
/// An array of bytes is hashed byte by byte, so that a look-up takes three times as long for 20 bytes, and ten times as
/// long for a thousand.
package struct ByteKey: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Copies bytes.
    package init(copying bytes: RawSpan) { self.bytes = [UInt8](copying: bytes) }

    package func hash(into hasher: inout Hasher) {
        // The length separates the keys of a list.
        hasher.combine(bytes.count)
        // Read before the call returns.
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}
