/// What a request shows of its sender. A small value.
package struct RequestOrigin: Equatable, Sendable {
    /// The field `Authorization`; nil without one.
    package var authorization: String?
    /// Alternative names of a verified client certificate, as `URI:...` and `DNS:...`.
    package var certificateNames: [String]
    /// Whether it came over the socket in the file system, which only the user of the server may use.
    package var isLocal: Bool
    /// Whether it came to an address of this machine alone.
    package var isLoopback: Bool
    /// Whether it has a field that proxies add: then anyone may have sent it.
    package var isProxied: Bool
    /// The address of the other end, with its port.
    package var peerAddress: String

    package init(
        authorization: String? = nil, certificateNames: [String] = [], isLocal: Bool = false, isLoopback: Bool = true,
        isProxied: Bool = false, peerAddress: String = ""
    ) {
        self.authorization = authorization
        self.certificateNames = certificateNames
        self.isLocal = isLocal
        self.isLoopback = isLoopback
        self.isProxied = isProxied
        self.peerAddress = peerAddress
    }

    /// Whether two requests show the same, whatever port they came from.
    package func showsSame(as other: RequestOrigin) -> Bool {
        authorization == other.authorization && certificateNames == other.certificateNames && isLocal == other.isLocal
            && isLoopback == other.isLoopback && isProxied == other.isProxied
    }
}
