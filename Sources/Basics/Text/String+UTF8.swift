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
    ///
    /// Not with `utf8Span`: the span of a string of up to 15 bytes lies in the caller's stack frame, and optimized code
    /// of Swift 6.3 may end the frame before the span was read, by a tail call.
    @inlinable
    package func withUTF8Span<Output, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Output
    ) throws(Failure) -> Output {
        var text = self
        let result = text.withUTF8 { bytes -> Result<Output, Failure> in
            do throws(Failure) {
                return .success(try body(unsafe RawSpan(_unsafeElements: bytes)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Whether both have the same UTF-8 bytes.
    @inlinable
    package func hasSameUTF8(as other: String) -> Bool {
        withUTF8Span { bytes in other.withUTF8Span { bytes.equalsBytes($0) } }
    }

    /// Whether the UTF-8 bytes begin with those of the other text. `hasPrefix` compares characters, and a slash is one
    /// character with a combining mark after it.
    package func hasUTF8Prefix(_ prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    /// The text after a prefix that it has, by bytes like `hasUTF8Prefix`.
    package func dropping(prefix: String) -> String {
        String(decoding: utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// The texts between slashes, empty ones too, by bytes like `hasUTF8Prefix`.
    package var slashSeparated: [String] {
        utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Order by UTF-8 bytes: negative, 0 or positive.
    @inlinable
    package func compareUTF8(_ other: String) -> Int {
        withUTF8Span { bytes in other.withUTF8Span { bytes.compareBytes($0) } }
    }
}
