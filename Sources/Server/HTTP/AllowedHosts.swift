// Which names this server answers to over HTTP/1.1: the defence against DNS rebinding.
//
// A page of any site can have its own name resolve to 127.0.0.1 and then speak to a server there as if it were its own:
// its requests carry no foreign Origin. But they carry the page's name in Host. A server that is bound to loopback is
// only ever meant by this machine's names; one that is bound to the network is known by names that it cannot know.

internal import Basics
internal import DocumentModel
internal import HTTPProtocols

/// The names that a request's Host may have. Ports do not matter.
package enum AllowedHosts: Equatable, Sendable {
    case any
    /// localhost, names below it, loopback addresses, and these, in small letters.
    case local(and: [String])

    /// Reads `any`, `local`, or names with commas between; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "any": self = .any
        case "local": self = .local(and: [])
        default:
            let names = text.lowercased().split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            guard names.allSatisfy({ Authority($0).map { $0.port == nil } ?? false }) else { return nil }
            self = .local(and: names)
        }
    }

    /// - Parameter host: the value of a Host header.
    package func contains(_ host: String) -> Bool {
        switch self {
        case .any: true
        case .local(let names): Authority(host).map { $0.isLocal || names.contains($0.host) } ?? false
        }
    }

    /// Whether a request comes from a page of this server: its Origin is the server that it was sent to, by a name that
    /// no other site can have. A server without a list of names trusts addresses alone: another site may have its
    /// name resolve to this server.
    func isOwnPage(_ head: HTTPHead) -> Bool {
        guard let origin = head.value(of: "origin")?.lowercased(), let host = head.value(of: "host")?.lowercased(),
            ["http://\(host)", "https://\(host)"].contains(origin), let authority = Authority(host)
        else { return false }
        return self == .any ? authority.isLocal || authority.isAddress : contains(host)
    }

    /// Refuses a request that was meant for another name. One without Host, as HTTP/1.0 permits, comes from no browser.
    ///
    /// - Returns: whether the request is to be served; if not, it has been answered.
    func admit(_ exchange: HTTPExchange, _ head: HTTPHead) -> Bool {
        guard let host = head.value(of: "host"), !contains(host) else { return true }
        exchange.fail(
            RequestError(
                .permissionDenied,
                "The host name \"\(host)\" is not allowed for this server. Allow it with --allow-host."))
        return false
    }
}

/// `host[:port]`, the form of a Host header and of an origin.
struct Authority {
    /// In small letters; an IPv6 address in its brackets.
    let host: String
    /// Nil where there is none.
    let port: UInt16?

    /// Nil for anything that is not an authority.
    init?(_ text: some StringProtocol) {
        let text = text.lowercased()
        let host: Substring
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[...end]
        } else {
            host = text.prefix { $0 != ":" }
        }
        if host.isEmpty || host.contains(where: { $0 == "/" || $0 == "@" || $0.isWhitespace }) { return nil }
        let rest = text.dropFirst(host.count)
        if rest.isEmpty {
            port = nil
        } else {
            guard rest.first == ":", let number = UInt16(rest.dropFirst()) else { return nil }
            port = number
        }
        self.host = String(host)
    }

    /// Whether the host is an IP address.
    var isAddress: Bool {
        if host.hasPrefix("[") { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether it names this machine.
    var isLocal: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
