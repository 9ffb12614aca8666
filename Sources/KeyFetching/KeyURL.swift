/// A URL from which keys may be fetched: `https`, or `http` of this machine, for tests.
package struct KeyURL: Equatable, Sendable {
    package let text: String
    /// Whether it is `http` of this machine.
    let isPlain: Bool

    private static let localHosts = ["127.0.0.1", "[::1]", "localhost"]

    /// - Returns: nil for another scheme, for plain text of another machine, and for a user name or a password in it.
    package init?(_ text: String) {
        let secure = "https://"
        let plain = "http://"
        // Readers of URLs differ about other characters.
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }) else { return nil }
        isPlain = text.hasPrefix(plain)
        guard isPlain || text.hasPrefix(secure) else { return nil }
        let authority = text.dropFirst(isPlain ? plain.count : secure.count).prefix { !"/?#".contains($0) }
        guard !authority.isEmpty, !authority.contains("@") else { return nil }
        if isPlain, !Self.isLocal(authority) { return nil }
        self.text = text
    }

    private static func isLocal(_ authority: Substring) -> Bool {
        localHosts.contains { host in
            guard authority.hasPrefix(host) else { return false }
            let port = authority.dropFirst(host.count)
            return port.isEmpty || port.hasPrefix(":") && port.dropFirst().allSatisfy { ("0"..."9").contains($0) }
        }
    }

    /// The URL for logs and people: without its query, which may have a secret.
    package var masked: String {
        guard let query = text.firstIndex(where: { "?#".contains($0) }) else { return text }
        return "\(text[..<query])?…"
    }
}
