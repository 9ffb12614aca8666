// UTF-8 bytes of strings.

extension String {
    /// The text of the bytes, or nil when they are not valid UTF-8.
    package init?(validatingUTF8 bytes: RawSpan) {
        // Checking first and decoding then is several times faster than `String(validating:as:)`.
        guard UTF8Validation.isValid(bytes) else { return nil }
        self.init(repairingUTF8: bytes)
    }

    /// The text of the bytes; what is not valid UTF-8 is replaced by U+FFFD. For messages to people.
    package init(repairingUTF8 bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// Lends the UTF-8 bytes. Firestore's strings are ordered and equal by these bytes; `==` and `<` of Swift's
    /// `String` are not (they follow Unicode's canonical equivalence).
    @inlinable
    package func withUTF8Span<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(utf8Span.span.bytes)
    }

    /// Whether both have the same UTF-8 bytes.
    @inlinable
    package func hasSameUTF8(as other: String) -> Bool {
        unsafe utf8Span.span.bytes.equalsBytes(other.utf8Span.span.bytes)
    }

    /// Order by UTF-8 bytes: negative, 0 or positive.
    @inlinable
    package func compareUTF8(_ other: String) -> Int {
        unsafe utf8Span.span.bytes.compareBytes(other.utf8Span.span.bytes)
    }
}
