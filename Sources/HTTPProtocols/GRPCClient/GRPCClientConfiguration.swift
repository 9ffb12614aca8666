package import EventLoops
package import TLS

/// What a connection to a gRPC server says about itself, tolerates, and watches.
package struct GRPCClientConfiguration: Sendable {
    /// Time for name resolution, TCP, TLS and the server's SETTINGS.
    package var connectMilliseconds: UInt64 = 10_000
    /// With calls open and nothing heard for so long, the server is pinged. Servers of Google end connections with more
    /// than a few pings an hour that no data accompany.
    package var keepAliveMilliseconds: UInt64 = 60_000
    /// A ping without any answer for so long ends the connection.
    package var keepAliveTimeoutMilliseconds: UInt64 = 20_000
    /// TLS, with a certificate of the host's name; nil = plain text. The context must offer ``protocolName``.
    package var tls: TLSContext?
    /// The token of calls that start before another one is shown, without `Bearer`; empty = none.
    package var token = ""
    /// Further metadata of every call: names in lower case, values in visible ASCII and spaces.
    package var metadata: [(name: String, value: String)] = []
    /// Largest message accepted, after inflating.
    package var messageBytesMax = 64 << 20
    /// What the server may send on one call before it is taken.
    package var streamWindowBytes: UInt32 = 1 << 20
    /// The same for all calls of the connection.
    package var connectionWindowBytes: UInt32 = 16 << 20
    /// Header fields of one answer, in bytes.
    package var metadataBytesMax = 64 << 10
    /// Unsent bytes and slow servers.
    package var channel = ChannelLimits(highWaterBytes: 1 << 20, outputBytesMax: 256 << 20, stallMilliseconds: 60_000)

    package init() {}

    /// The name of HTTP/2 in ALPN.
    package static let protocolName = "h2"
}

/// An event of a connection, delivered on the loop's thread.
package enum GRPCClientEvent: Sendable {
    /// The server's SETTINGS have come: calls are served.
    case ready
    /// The server takes no more calls here; open ones continue. New ones belong on another connection.
    case goingAway(String)
    /// The end, and what happened in words that name the address; comes once, after every call has ended.
    case closed(String)
}
