// For whom proxies forward a request: `Forwarded` (RFC 7239), and `X-Forwarded-For` and `X-Forwarded-Proto` before it.
//
//     X-Forwarded-For: 198.51.100.7, 192.0.2.1, 10.0.0.3
//                      └ anyone may  └ the     └ a trusted
//                        write this    client    proxy
//
// Each proxy appends the address that it was called from. Read from the right, the first one that is not of a trusted
// proxy is the client's: it is the last that a trusted proxy has seen itself.

import Basics
import Calls

/// The fields of one request, in their order. Only those of a connection from a trusted proxy are gathered.
struct ForwardedFields {
    /// The lists of all fields of a name, joined with commas.
    private var forwarded = ""
    private var addresses = ""
    private var schemes = ""

    /// Takes a field, if it is one of them; letters of the name may have any case.
    mutating func take(_ name: RawSpan, _ value: RawSpan) {
        switch name.byteCount {
        case 9 where name.equalsIgnoringCase("forwarded"): Self.append(value, to: &forwarded)
        case 15 where name.equalsIgnoringCase("x-forwarded-for"): Self.append(value, to: &addresses)
        case 17 where name.equalsIgnoringCase("x-forwarded-proto"): Self.append(value, to: &schemes)
        default: break
        }
    }

    private static func append(_ value: RawSpan, to list: inout String) {
        if !list.isEmpty { list += "," }
        list += String(repairingUTF8: value)
    }

    /// What the fields say.
    ///
    /// A proxy writes one of the two lists, and may pass on the other one as anyone has sent it. So two lists that
    /// disagree say nothing.
    func forwarding(trusting proxies: TrustedProxies) -> Forwarding {
        let elements = Self.parts(forwarded[...], at: ",")
        let nodes = elements.map { Self.parameter("for", of: $0) }
        var clients: [NetworkAddress?] = []
        if nodes.contains(where: { $0 != nil }) { clients.append(Self.client(of: nodes, proxies)) }
        if !addresses.isEmpty { clients.append(Self.client(of: Self.parts(addresses[...], at: ","), proxies)) }
        let isAgreed = clients.allSatisfy { $0 == clients[0] }
        let scheme = elements.last.flatMap { Self.parameter("proto", of: $0) } ?? Self.parts(schemes[...], at: ",").last
        return Forwarding(
            address: isAgreed ? clients.first ?? nil : nil, isSecure: scheme?.lowercased() == "https")
    }

    /// Addresses of one list that are looked at, from the right.
    private static let hopsMax = 32

    /// The first address from the right that is not of a trusted proxy; the leftmost one if all are.
    ///
    /// - Returns: nil if a node before it is not an address.
    private static func client(of nodes: [Substring?], _ proxies: TrustedProxies) -> NetworkAddress? {
        var last: NetworkAddress?
        for (index, node) in nodes.reversed().enumerated() {
            guard index < hopsMax, let node, let address = NetworkAddress(endpoint: node) else { return nil }
            last = address
            if !proxies.contains(address) { break }
        }
        return last
    }

    // MARK: Syntax

    /// The value of a parameter in an element of `Forwarded`; nil without it. No address has a comma or a semicolon, so
    /// an element with one in quotes has no value that is an address.
    private static func parameter(_ name: String, of element: Substring) -> Substring? {
        for pair in parts(element, at: ";") {
            let halves = pair.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2, trimmed(Substring(halves[0])).lowercased() == name else { continue }
            let value = trimmed(Substring(halves[1]))
            let isQuoted = value.utf8.count >= 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
            return isQuoted ? value.dropFirst().dropLast() : value
        }
        return nil
    }

    /// The parts of a text between separators, without space around them; empty ones are dropped. Bytes are compared:
    /// a separator may be one character with others around it.
    private static func parts(_ text: Substring, at separator: Unicode.Scalar) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: separator)).map { trimmed(Substring($0)) }.filter { !$0.isEmpty }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace: (UInt8) -> Bool = { $0 == ASCII.space || $0 == ASCII.tab }
        var rest = text.utf8.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return Substring(rest)
    }
}

extension HTTPHead {
    /// What the fields of proxies say.
    func forwarding(trusting proxies: TrustedProxies) -> Forwarding {
        var fields = ForwardedFields()
        forEachField { name, value in fields.take(name, value) }
        return fields.forwarding(trusting: proxies)
    }
}
