/// The proxies whose word about their clients is taken.
package struct TrustedProxies: Sendable {
    package var ranges: [NetworkRange]

    package init(_ ranges: [NetworkRange] = []) { self.ranges = ranges }

    package func contains(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }
}

/// What a trusted proxy says about the client of a request.
package struct Forwarding: Equatable, Sendable {
    /// The client's address; nil if the proxy does not say it, or says two.
    package var address: NetworkAddress?
    /// Whether the client's request to the proxy was encrypted.
    package var isSecure: Bool

    package init(address: NetworkAddress? = nil, isSecure: Bool = false) {
        self.address = address
        self.isSecure = isSecure
    }
}
