/// Names of protocols that one connection may speak (ALPN, RFC 7301), the preferred one first.
struct ApplicationProtocols: Sendable {
    let names: [[UInt8]]

    /// - Throws: `configuration` for a name that is empty or has more than 255 bytes.
    init(_ names: [String]) throws(TLSError) {
        self.names = names.map { Array($0.utf8) }
        if let wrong = names.first(where: { !(1...255).contains($0.utf8.count) }) {
            throw TLSError(.configuration, "'\(wrong)' is not a protocol's name of 1 to 255 bytes")
        }
    }

    /// The list as a client sends it: each name after a byte with its length.
    var wireForm: [UInt8] { names.flatMap { [UInt8($0.count)] + $0 } }

    /// The first of our names that a client offers.
    ///
    /// - Parameter offered: the client's list in its wire form, hostile.
    /// - Returns: the half-open range of the name in `offered`; nil if there is no common one.
    func choose(from offered: Span<UInt8>) -> Range<Int>? {
        for name in names {
            var start = 0
            while start < offered.count {
                let end = start + 1 + Int(offered[start])
                if end > offered.count { return nil }
                if Self.equals(name, offered, start + 1..<end) { return start + 1..<end }
                start = end
            }
        }
        return nil
    }

    private static func equals(_ name: [UInt8], _ offered: Span<UInt8>, _ range: Range<Int>) -> Bool {
        name.count == range.count && name.indices.allSatisfy { name[$0] == offered[range.lowerBound + $0] }
    }
}
