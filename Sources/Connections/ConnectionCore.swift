public import Basics
package import Calls
package import EventLoops

/// The kind of socket that a connection was accepted from.
package enum SocketKind: Sendable {
    /// A TCP port.
    case tcp
    /// A Unix socket for services on this machine, whose clients have the rights of those of the port.
    case unix
    /// The Unix socket in the data directory, which only the user of the server may use: its clients may do everything.
    case administration

    /// Whether no network lies between: there is no TLS, no proxy and no address.
    package var isUnix: Bool { self != .tcp }
}

/// What every connection of a server owns, whichever protocol it uses. Confined to its loop's thread.
@usableFromInline package final class ConnectionCore {
    package let channel: Channel
    package let loop: EventLoop
    package let handler: any ServiceHandler
    package let configuration: ServerConfiguration
    package let owner: any ConnectionOwner
    package let peerAddress: String
    package let socket: SocketKind
    /// Whether the connection came to a loopback address, or over a Unix socket.
    package let isLoopback: Bool
    /// The address of the other end; nil over a Unix socket.
    package let address: NetworkAddress?
    /// Whether fields of requests that name their clients are believed: they come from a trusted proxy.
    package let isTrustedProxy: Bool
    /// What a trusted proxy has sent before the first byte; nil if there was nothing.
    package let proxyHeader: ProxyHeader?
    /// What a trusted proxy says about its client, without the fields of requests; nil if the other end is none.
    package let forwarding: Forwarding?
    /// The names of the client's verified certificate. That of a trusted proxy is not its clients'.
    package let certificateNames: [String]
    /// Loop time at which the connection was accepted.
    package let openedAt: UInt64
    @usableFromInline let confined = Confined(State())

    @usableFromInline package struct State {
        /// The connection has ended or is about to; nothing is served on it any more.
        package internal(set) var isOver = false
        package internal(set) var calls = CallTable()
        /// Calls that came over this connection.
        package internal(set) var callsBegun: UInt64 = 0
        package internal(set) var connectionContext: AnyObject?
        /// Loop time before which the client is not treated as too slow.
        package internal(set) var readsAgainAt: UInt64 = 0
        /// What the server's sum of incomplete messages includes of ours.
        package internal(set) var assemblyBytesCounted = 0
        package internal(set) var livenessTimer: EventLoop.Timer?
    }

    package init(
        channel: Channel, handler: any ServiceHandler, owner: any ConnectionOwner,
        configuration: ServerConfiguration, peerAddress: String, proxyHeader: ProxyHeader?, socket: SocketKind,
        openedAt: UInt64
    ) {
        self.channel = channel
        loop = channel.loop
        self.handler = handler
        self.owner = owner
        self.configuration = configuration
        self.peerAddress = peerAddress
        self.socket = socket
        self.openedAt = openedAt
        address = socket.isUnix ? nil : NetworkAddress(endpoint: peerAddress)
        self.proxyHeader = proxyHeader
        // The client that a header names may be a trusted proxy too. If it names none, nothing more is believed.
        let sender = proxyHeader.map(\.address) ?? address
        isTrustedProxy = sender.map { configuration.trustedProxies.contains($0) } ?? false
        forwarding =
            proxyHeader.map { Forwarding(address: $0.address, isSecure: $0.isSecure) }
            ?? (isTrustedProxy ? Forwarding() : nil)
        isLoopback = socket.isUnix || channel.isAtLoopback
        certificateNames = isTrustedProxy ? [] : channel.handshake?.peer?.names ?? []
    }

    @inlinable
    package var state: State {
        @inline(__always) _read { yield confined.state }
        @inline(__always) _modify { yield &confined.state }
    }

    /// What a trusted proxy says about the client of a request.
    ///
    /// - Parameter fields: what the request's fields say, if the other end is believed.
    package func forwarding(with fields: Forwarding) -> Forwarding {
        Forwarding(address: fields.address ?? forwarding?.address, isSecure: fields.isSecure)
    }

    /// Counts a call, which begins now.
    package func makeCall(_ stream: UInt32, _ head: RequestHead, on carrier: any CallCarrier) -> Call {
        state.callsBegun &+= 1
        return Call(carrier: carrier, stream: stream, head: head, begunAt: loop.turnNanoseconds)
    }
}
