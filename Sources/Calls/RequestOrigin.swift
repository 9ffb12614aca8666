/// What a request shows of its sender. A small value.
package struct RequestOrigin: Equatable, Sendable {
    /// The field `Authorization`; nil without one.
    package var authorization: String?
    /// Who calls, as another server has verified it; nil for calls that clients make here.
    package var vouchedCaller: [UInt8]?
    /// Alternative names of a verified client certificate, as `URI:...` and `DNS:...`.
    package var certificateNames: [String]
    /// Whether it came over the socket in the file system, which only the user of the server may use.
    package var isLocal: Bool
    /// Whether it came to an address of this machine alone, and not from a trusted proxy.
    package var isLoopback: Bool
    /// Whether it has a field that proxies add: then anyone may have sent it.
    package var isProxied: Bool
    /// Whether it came from a trusted proxy.
    package var isForwarded: Bool
    /// The address of the other end, with its port.
    package var peerAddress: String
    /// The client's address: the one that a trusted proxy names, else that of the other end. Nil over no network.
    package var address: NetworkAddress?

    package init(
        authorization: String? = nil, certificateNames: [String] = [], isLocal: Bool = false, isLoopback: Bool = true,
        isProxied: Bool = false, isForwarded: Bool = false, peerAddress: String = "", address: NetworkAddress? = nil
    ) {
        self.authorization = authorization
        self.certificateNames = certificateNames
        self.isLocal = isLocal
        self.isLoopback = isLoopback
        self.isProxied = isProxied
        self.isForwarded = isForwarded
        self.peerAddress = peerAddress
        self.address = address ?? NetworkAddress(endpoint: peerAddress)
    }

    /// The origin of a request or call.
    ///
    /// - Parameters:
    ///   - stream: its number on the connection.
    ///   - authorization: nil without one.
    package init(_ stream: UInt32, on carrier: any CallCarrier, authorization: String?) {
        let forwarding = carrier.forwarding(stream)
        self.authorization = authorization
        vouchedCaller = carrier.vouchedCaller(stream)
        certificateNames = carrier.certificateNames
        isLocal = carrier.isLocal
        isLoopback = carrier.isLoopback && forwarding == nil
        isProxied = carrier.isProxied
        isForwarded = forwarding != nil
        peerAddress = carrier.peerAddress
        address = forwarding?.address ?? carrier.address
    }

    /// The client's address as logs show it; with the port if it is that of the other end.
    package var client: String { isForwarded ? address.map { "\($0)" } ?? peerAddress : peerAddress }

    /// The address that answers for the request where callers are counted by their addresses; nil over no network.
    ///
    /// It is also nil if a proxy that is not trusted may have sent the request: one of its clients could keep the
    /// others out. Only an address of a private network may be such a proxy. Any other address is the caller's,
    /// whatever fields it sends.
    package var countedAddress: NetworkAddress? {
        guard let address, isProxied, !isForwarded, address.isPrivate else { return address }
        return nil
    }

    /// The network whose limits the request uses; nil if it has none.
    ///
    /// A private network has none: its addresses may be those of proxies and translators that show nothing. The clients
    /// of trusted proxies have limits wherever they are.
    package var limitedNetwork: NetworkAddress? {
        guard let address, isForwarded || !address.isPrivate else { return nil }
        return address.network
    }

    /// Whether two requests show the same, whatever port they came from.
    package func showsSame(as other: RequestOrigin) -> Bool {
        authorization == other.authorization && vouchedCaller == other.vouchedCaller
            && certificateNames == other.certificateNames && isLocal == other.isLocal
            && isLoopback == other.isLoopback && isProxied == other.isProxied && isForwarded == other.isForwarded
            && address == other.address
    }
}
