// Headers of the PROXY protocol, version 2, made byte by byte.

/// A header, well-formed unless a test changes it.
package struct TestProxyHeader {
    /// As in the protocol: version 2 and PROXY, IPv4 over a stream.
    package var versionAndCommand: UInt8 = 0x21
    package var familyAndKind: UInt8 = 0x11
    package var addresses: [UInt8]
    package var additions: [UInt8] = []
    /// The length that the header claims; nil for the true one.
    package var claimedLength: Int?

    /// A client of this IPv4 address.
    package init(_ client: [UInt8] = [192, 0, 2, 7]) { addresses = client + [127, 0, 0, 1, 0x12, 0x34, 0x1F, 0x90] }

    /// What `change` makes of the header.
    package func with(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }

    /// The proxy speaks for itself.
    package static let local = TestProxyHeader().with {
        $0.versionAndCommand = 0x20
        $0.familyAndKind = 0
        $0.addresses = []
    }

    package static func ipv6(_ client: [UInt8]) -> Self {
        TestProxyHeader().with {
            $0.familyAndKind = 0x21
            $0.addresses = client + [UInt8](repeating: 0, count: 20)
        }
    }

    /// An addition of this type.
    package static func addition(_ type: UInt8, _ value: [UInt8]) -> [UInt8] {
        [type, UInt8(value.count >> 8), UInt8(value.count & 255)] + value
    }

    package var bytes: [UInt8] {
        let length = claimedLength ?? addresses.count + additions.count
        let head = [versionAndCommand, familyAndKind, UInt8(length >> 8), UInt8(length & 255)]
        return Array("\r\n\r\n\0\r\nQUIT\n".utf8) + head + addresses + additions
    }
}
