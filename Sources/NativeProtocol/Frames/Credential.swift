internal import Basics

/// A client's token, as CREDENTIAL carries it. Its description does not show it.
package struct Credential: Equatable, Sendable {
    /// The longest token in bytes. With it, CREDENTIAL is not longer than the smallest frame limit.
    package static let bytesMax = 16 << 10

    /// Visible ASCII (0x21 to 0x7E), at most ``bytesMax`` bytes; empty for none.
    package let token: String

    /// No token.
    package static let none = Credential()

    private init() { token = "" }

    /// - Parameter token: empty for none.
    /// - Returns: nil for a token that is too long or has other characters than visible ASCII.
    package init?(_ token: String) {
        let bytes = Array(token.utf8)
        guard bytes.count <= Self.bytesMax, Self.isToken(bytes.byteSpan) else { return nil }
        self.token = token
    }

    /// Whether all bytes are visible ASCII.
    static func isToken(_ bytes: RawSpan) -> Bool {
        for at in 0..<bytes.byteCount where !(0x21...0x7E ~= bytes[byteAt: at]) { return false }
        return true
    }
}

extension Credential: CustomStringConvertible, CustomReflectable {
    package var description: String { token.isEmpty ? "no token" : "a token of \(token.utf8.count) bytes" }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
