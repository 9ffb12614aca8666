internal import Basics

/// A secret of 256 random bits that a server sends as its bearer token: `hearth_ID_SECRET`.
///
/// The prefix lets scanners of source code find keys that were published; the identifier names a key in lists and finds
/// its hash.
enum APIKey {
    static let prefix = "hearth_"
    private static let identifierBytes = 8
    private static let secretBytes = 32

    /// The key of a text; nil unless it has the form of one.
    static func identifier(of text: [UInt8]) -> String? {
        let start = prefix.utf8.count
        let end = start + identifierBytes * 2
        guard text.starts(with: prefix.utf8), text.count > end + 1, text[end] == UInt8(ascii: "_"),
            let secret = Base64URL.decode(text[(end + 1)...]), secret.count == secretBytes
        else { return nil }
        let identifier = String(decoding: text[start..<end], as: UTF8.self)
        return Hexadecimal.bytes(identifier) == nil ? nil : identifier
    }

    /// A new key: its text, which is shown once, and what is kept.
    static func make(now: Int64) -> (text: String, record: APIKeyRecord) {
        let identifier = Hexadecimal.text(randomSecret(byteCount: identifierBytes).byteSpan)
        let text = "\(prefix)\(identifier)_\(Base64URL.encode(randomSecret(byteCount: secretBytes)))"
        return (text, APIKeyRecord(identifier: identifier, hash: SHA256Hash(of: Array(text.utf8)), createdAt: now))
    }
}

/// What the file of principals has about an API key.
package struct APIKeyRecord: Equatable, Sendable {
    /// 16 hexadecimal digits.
    package let identifier: String
    let hash: SHA256Hash
    /// Seconds since 1970.
    package let createdAt: Int64
}
