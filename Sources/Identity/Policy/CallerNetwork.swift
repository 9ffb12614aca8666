internal import Glibc

/// The network that a caller comes from: an IPv4 address, or the first 64 bits of an IPv6 address, all of which one
/// customer of a provider has.
package struct CallerNetwork: Hashable, Sendable {
    private let bits: UInt64
    private let isIPv6: Bool

    /// - Parameter address: 4 or 16 bytes in network order; an IPv4 address within IPv6 counts as IPv4.
    /// - Returns: nil for another number of bytes.
    package init?(bytes address: [UInt8]) {
        var bytes = address
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        if bytes.count == 16, bytes.starts(with: mapped) { bytes.removeFirst(mapped.count) }
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        isIPv6 = bytes.count == 16
        bits = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// - Parameter text: an address without port; a zone after `%` is ignored.
    package init?(_ text: String) {
        let text = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false).first.map { String($0) }
        guard let text else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: Array(bytes.prefix(4)))
        } else if unsafe inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }
}
