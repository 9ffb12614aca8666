// The PROXY protocol, version 2: how a proxy that forwards bytes names its client, before the first byte of the client.
//
//     0           12        13       14       16
//     ┌───────────┬─────────┬────────┬────────┬──────────────────────────────────┬───────────┐
//     │ signature │ version │ family │ length │ source, destination, their ports │ additions │
//     │           │ command │ kind   │        │ 12, 36 or 216 bytes, or none     │ TLV       │
//     └───────────┴─────────┴────────┴────────┴──────────────────────────────────┴───────────┘
//
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt, section 2.2. Of the additions only the one about TLS is
// read. Version 1, a line of text, is recognised and not read.

internal import Basics

/// What a proxy says about a connection in its first bytes. Pure data.
package struct ProxyHeader: Equatable, Sendable {
    /// The client's address; nil if the proxy speaks for itself, or names no IP address.
    package var address: NetworkAddress?
    /// Whether the client's connection to the proxy is encrypted.
    package var isSecure: Bool

    package init(address: NetworkAddress? = nil, isSecure: Bool = false) {
        self.address = address
        self.isSecure = isSecure
    }

    /// What the first bytes of a connection are.
    package enum Beginning: Equatable, Sendable {
        /// No header: the bytes are the client's.
        case none
        /// So many bytes in all are needed to say more. They may begin a header of version 1 or 2.
        case incomplete(bytesNeeded: Int)
        /// A header of so many bytes.
        case header(ProxyHeader, byteCount: Int)
        /// A header of version 1.
        case version1
        /// A header that breaks a rule.
        case violation(String)
    }

    /// The bytes before the addresses.
    package static let fixedBytes = 16
    /// Bytes after those that a header may have. Addresses take 216 at most; the rest is for additions.
    package static let restBytesMax = 4_096

    package static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let signature1 = Array("PROXY ".utf8)

    /// Whether bytes begin with the first byte of version 2, as no protocol of the port does.
    package static func mayBegin(_ bytes: RawSpan) -> Bool {
        bytes.byteCount > 0 && bytes[byteAt: 0] == signature[0]
    }

    /// - Parameter bytes: all that have arrived.
    package static func beginning(of bytes: RawSpan) -> Beginning {
        if bytes.byteCount == 0 { return .incomplete(bytesNeeded: 1) }
        guard mayBegin(bytes) else { return beginning1(of: bytes) }
        let known = min(bytes.byteCount, signature.count)
        guard bytes.extracting(first: known).equalsBytes(signature.byteSpan.extracting(first: known)) else {
            return .none
        }
        guard bytes.byteCount >= fixedBytes else { return .incomplete(bytesNeeded: fixedBytes) }
        let count = Int(bytes[byteAt: 14]) << 8 | Int(bytes[byteAt: 15])
        if count > restBytesMax { return .violation("a header of more than \(fixedBytes + restBytesMax) bytes") }
        guard bytes.byteCount >= fixedBytes + count else { return .incomplete(bytesNeeded: fixedBytes + count) }
        do throws(Violation) {
            let header = try ProxyHeader(
                versionAndCommand: bytes[byteAt: 12], familyAndKind: bytes[byteAt: 13],
                bytes.extracting(fixedBytes..<fixedBytes + count))
            return .header(header, byteCount: fixedBytes + count)
        } catch {
            return .violation(error.text)
        }
    }

    private static func beginning1(of bytes: RawSpan) -> Beginning {
        let known = min(bytes.byteCount, signature1.count)
        guard bytes.extracting(first: known).equalsBytes(signature1.byteSpan.extracting(first: known)) else {
            return .none
        }
        return known < signature1.count ? .incomplete(bytesNeeded: bytes.byteCount + 1) : .version1
    }

    // MARK: The fields

    fileprivate struct Violation: Error {
        let text: String
    }

    private enum Command: UInt8 {
        /// The proxy speaks for itself, for example to see whether the server answers.
        case local = 0
        /// The proxy forwards the bytes of a client.
        case proxy = 1
    }

    private enum Family: UInt8 {
        case unspecified = 0
        case ipv4 = 1
        case ipv6 = 2
        case unix = 3

        /// Bytes of both addresses and ports.
        var addressBytes: Int {
            switch self {
            case .unspecified: 0
            case .ipv4: 12
            case .ipv6: 36
            case .unix: 216
            }
        }
    }

    private static let version: UInt8 = 2
    /// Kinds of transport: unspecified, stream, datagram.
    private static let kindMax: UInt8 = 2
    private static let stream: UInt8 = 1

    /// - Parameter rest: what follows the length.
    private init(versionAndCommand: UInt8, familyAndKind: UInt8, _ rest: RawSpan) throws(Violation) {
        guard versionAndCommand >> 4 == Self.version else { throw Violation(text: "an unknown version") }
        guard let command = Command(rawValue: versionAndCommand & 0x0F) else {
            throw Violation(text: "an unknown command")
        }
        guard let family = Family(rawValue: familyAndKind >> 4), familyAndKind & 0x0F <= Self.kindMax else {
            throw Violation(text: "an unknown family of addresses or kind of transport")
        }
        self.init()
        // What else the header of a connection of the proxy has does not matter, and need not be well-formed.
        if command == .local { return }
        guard rest.byteCount >= family.addressBytes else { throw Violation(text: "incomplete addresses") }
        if familyAndKind & 0x0F == Self.stream { address = Self.source(family, rest) }
        isSecure = try Self.isSecure(rest.extracting(family.addressBytes..<rest.byteCount))
    }

    private static func source(_ family: Family, _ rest: RawSpan) -> NetworkAddress? {
        switch family {
        case .ipv4: NetworkAddress(bytes: rest.extracting(first: 4))
        case .ipv6: NetworkAddress(bytes: rest.extracting(first: 16))
        case .unspecified, .unix: nil
        }
    }

    /// Type of the addition about TLS; its first byte has the flag of a connection that uses it.
    private static let tlsType: UInt8 = 0x20
    private static let tlsFlag: UInt8 = 0x01
    /// Type and length of an addition.
    private static let additionHeadBytes = 3

    private static func isSecure(_ additions: RawSpan) throws(Violation) -> Bool {
        var isSecure = false
        var offset = 0
        while offset < additions.byteCount {
            guard additions.byteCount - offset >= additionHeadBytes else { throw .incompleteAddition }
            let count = Int(additions[byteAt: offset + 1]) << 8 | Int(additions[byteAt: offset + 2])
            let start = offset + additionHeadBytes
            guard additions.byteCount - start >= count else { throw .incompleteAddition }
            if additions[byteAt: offset] == tlsType, count > 0, additions[byteAt: start] & tlsFlag != 0 {
                isSecure = true
            }
            offset = start + count
        }
        return isSecure
    }
}

extension ProxyHeader.Violation {
    fileprivate static let incompleteAddition = Self(text: "an incomplete addition")
}
