internal import Basics
internal import Glibc

/// An IPv4 or IPv6 address without port and zone. An IPv4 address within IPv6 (`::ffff:192.0.2.1`) is that of IPv4.
package struct NetworkAddress: Hashable, Sendable {
    /// The address as one of IPv6, in network order.
    let high: UInt64
    let low: UInt64

    /// What IPv4 addresses within IPv6 begin with, below `high`, which is zero.
    private static let mapped: UInt64 = 0xFFFF << 32

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Characters of the longest address.
    private static let charactersMax = 45

    /// - Parameter text: an address; a zone after `%` is ignored.
    /// - Returns: nil for anything else.
    package init?(_ text: some StringProtocol) {
        let text = text.prefix { $0 != "%" }
        guard text.utf8.count <= Self.charactersMax, text.utf8.allSatisfy(Self.isPart) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, String(text), &bytes) == 1 {
            self.init(bytes: bytes.byteSpan.extracting(first: 4))
        } else if unsafe inet_pton(AF_INET6, String(text), &bytes) == 1 {
            self.init(bytes: bytes.byteSpan)
        } else {
            return nil
        }
    }

    /// - Parameter bytes: 4 or 16 in network order.
    package init?(bytes: RawSpan) {
        func number(_ range: Range<Int>) -> UInt64 { range.reduce(0) { $0 << 8 | UInt64(bytes[byteAt: $1]) } }
        switch bytes.byteCount {
        case 4: self.init(high: 0, low: Self.mapped | number(0..<4))
        case 16: self.init(high: number(0..<8), low: number(8..<16))
        default: return nil
        }
    }

    /// The address of `192.0.2.1:80`, `[2001:db8::1]:80`, or of the same without a port.
    package init?(endpoint: some StringProtocol) {
        if endpoint.hasPrefix("[") {
            guard let end = endpoint.firstIndex(of: "]") else { return nil }
            self.init(endpoint[..<end].dropFirst())
        } else {
            let hasPort = endpoint.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1
            self.init(hasPort ? endpoint.prefix { $0 != ":" } : endpoint[...])
        }
    }

    /// The network that one customer of a provider has: an IPv4 address, or the /64 of an IPv6 address.
    package var network: NetworkAddress { isIPv4 ? self : NetworkAddress(high: high, low: 0) }

    package var isIPv4: Bool { high == 0 && low & ~0xFFFF_FFFF == Self.mapped }

    /// The 4 or 16 bytes, in network order.
    package var bytes: [UInt8] {
        if isIPv4 { return (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) } }
        return (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * ($0 & 7))) }
    }

    /// Whether the address is of this machine, of a link, or of a private network: no caller from the Internet has it.
    package var isPrivate: Bool { Self.privateRanges.contains { $0.contains(self) } }

    private static let privateRanges = [
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "::1/128", "fc00::/7",
        "fe80::/10",
    ].compactMap { NetworkRange($0) }

    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"), UInt8(ascii: "."), UInt8(ascii: ":"):
            true
        default: false
        }
    }
}

/// As in `192.0.2.1` and `[2001:db8::1]`.
extension NetworkAddress: CustomStringConvertible {
    package var description: String {
        let bytes = bytes
        if isIPv4 { return bytes.map { "\($0)" }.joined(separator: ".") }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard unsafe inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count)) != nil else { return "unknown" }
        return "[\(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))]"
    }
}

/// The addresses with one prefix, as CIDR writes them: `10.0.0.0/8`, `2001:db8::/32`, or one address.
package struct NetworkRange: Equatable, Sendable, CustomStringConvertible {
    /// As it was given.
    package let description: String
    private let first: NetworkAddress
    /// Bits of an IPv6 address that all of them have.
    private let prefixBits: Int

    /// - Returns: nil for what is not such a range, for an address with bits after the prefix, and for the prefix of
    ///   all addresses.
    package init?(_ text: some StringProtocol) {
        let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let half = halves.first, !half.contains("%"), let address = NetworkAddress(half) else { return nil }
        let bitsMax = address.isIPv4 && !half.contains(":") ? 32 : 128
        var bits = bitsMax
        if halves.count == 2 {
            guard halves[1].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let number = Int(halves[1]), 1...bitsMax ~= number
            else { return nil }
            bits = number
        }
        prefixBits = bits + 128 - bitsMax
        first = address.masked(to: prefixBits)
        description = String(text)
        guard first == address else { return nil }
    }

    package func contains(_ address: NetworkAddress) -> Bool { address.masked(to: prefixBits) == first }
}

extension NetworkAddress {
    /// The address with zeros after its first bits.
    ///
    /// - Parameter bits: 0...128.
    fileprivate func masked(to bits: Int) -> NetworkAddress {
        // A shift by 64 or more gives zero.
        NetworkAddress(
            high: bits >= 64 ? high : high & ~(UInt64.max >> UInt64(bits)),
            low: bits <= 64 ? 0 : low & ~(UInt64.max >> UInt64(bits - 64)))
    }
}
