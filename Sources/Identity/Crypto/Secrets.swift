// Random secrets, their hashes, and comparisons whose time says nothing.

internal import COpenSSL

/// A SHA-256 hash.
package struct SHA256Hash: Hashable, Sendable {
    package static let byteCount = 32

    /// As the bytes lie in memory.
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    package init(of text: [UInt8]) {
        let isDone = unsafe withUnsafeMutableBytes(of: &words) { digest in
            unsafe EVP_Digest(text, text.count, digest.baseAddress, nil, EVP_sha256(), nil)
        }
        precondition(isDone == 1, "OpenSSL has no SHA-256")
    }

    /// nil unless there are 32 bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        unsafe withUnsafeMutableBytes(of: &words) { unsafe $0.copyBytes(from: bytes) }
    }

    /// 32 bytes.
    package var bytes: [UInt8] { unsafe withUnsafeBytes(of: words) { unsafe [UInt8]($0) } }

    /// Compares in a time that does not depend on the bytes.
    package static func == (one: SHA256Hash, other: SHA256Hash) -> Bool {
        let first = (one.words.0 ^ other.words.0) | (one.words.1 ^ other.words.1)
        let second = (one.words.2 ^ other.words.2) | (one.words.3 ^ other.words.3)
        return first | second == 0
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}

/// Compares in a time that depends on the number of bytes alone.
func constantTimeEquals(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    unsafe one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
}

/// HMAC-SHA-256: 32 bytes.
func messageCode(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: SHA256Hash.byteCount)
    var count: UInt32 = 0
    let isDone = unsafe HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count) != nil
    precondition(isDone && count == 32, "OpenSSL has no HMAC")
    return code
}

/// Random bytes for secrets, from the system.
func randomSecret(byteCount: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    precondition(unsafe RAND_bytes(&bytes, Int32(byteCount)) == 1, "the system has no random bytes")
    return bytes
}
