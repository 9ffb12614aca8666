// Every limit of a server, with its default and its reason.

package import Calls
package import EventLoops
package import TLS

/// How a server listens and what it puts up with.
package struct ServerConfiguration: Sendable {
    /// Name or address to listen on.
    package var host = "127.0.0.1"
    /// Port to listen on; 0 lets the system pick one, the same for all loops.
    package var port: UInt16 = 0
    /// Connections waiting to be accepted, for each listener.
    package var backlog: Int32 = 1024
    /// How connections reach the loops.
    package var acceptance = Acceptance.systemDefault

    /// Open connections; a further one is refused in the protocol that it speaks, and closed.
    package var connectionsMax = 10_000
    /// Open connections of one network, an IPv4 address or an IPv6 /64; a further one is refused. 0 = no limit. Trusted
    /// proxies are not counted.
    package var networkConnectionsMax = 0
    /// Whether addresses of private networks are counted too, any of which may be a proxy.
    package var countsPrivateNetworks = false
    /// Connections beyond `connectionsMax` that are open for their refusal; a further one is closed without a word.
    package var refusalsMax = 64
    /// Time for a connection beyond `connectionsMax` to show by its first bytes which protocol it speaks.
    package var refusalMilliseconds: UInt64 = 1_000
    /// Calls open at once on one connection; a further one ends with RESOURCE_EXHAUSTED.
    package var streamsPerConnectionMax: UInt32 = 1024
    /// Payload of one frame; larger messages come in parts, so that they do not hold up others. Not below 16,384.
    package var frameBytesMax: UInt32 = 256 << 10
    /// One message; a larger one ends with RESOURCE_EXHAUSTED. The default is Firestore's request limit.
    package var messageBytesMax: UInt32 = 10 << 20
    /// Bytes of incomplete messages on one connection; a call beyond ends with RESOURCE_EXHAUSTED.
    package var assemblyBytesMax = 32 << 20
    /// Bytes of incomplete messages on all connections; the connection that passes it is closed.
    package var assemblyBytesTotalMax = 1 << 30
    /// Message bytes that a client may send on a bidirectional call before the service has taken them.
    package var initialWindowBytes: UInt32 = 256 << 10

    /// Window of each stream over HTTP/2, for the same purpose; the larger default is what gRPC's clients fill.
    package var http2WindowBytes: UInt32 = 1 << 20
    /// Window of an HTTP/2 connection, over all its streams.
    package var http2ConnectionWindowBytes: UInt32 = 16 << 20
    /// Bytes of replies that the windows of their HTTP/2 streams keep back, on one connection; further requests wait.
    /// The default is some of the largest documents: a client may read queries slowly and make other calls meanwhile.
    package var http2KeptBackBytesMax = 16 << 20
    /// The same on all connections, without the first ``outputPauseBytes`` of each; beyond, a connection gets no more.
    package var http2KeptBackBytesTotalMax = 256 << 20
    /// Header fields of one gRPC request, as HTTP/2 counts them; a call beyond ends with RESOURCE_EXHAUSTED.
    package var metadataBytesMax = 16 << 10
    /// HTTP/2 streams that a client may reset, or on which it may break a rule so that the server resets them, at once,
    /// and in a second in the long run; the connection ends beyond.
    package var resetsMax: UInt64 = 2_000
    package var resetsPerSecond: UInt64 = 200
    /// HTTP/2 frames that bring nothing (PING, SETTINGS, empty DATA, malformed ones) that a client may send at once,
    /// and in a second in the long run; the connection ends beyond.
    package var idleFramesMax: UInt64 = 10_000
    package var idleFramesPerSecond: UInt64 = 1_000

    /// The proxies that may say for whom they forward requests.
    package var trustedProxies = TrustedProxies()

    /// Whether the `authorization` of requests is kept for the service to ask for; costs a copy of it for each.
    package var keepsAuthorization = false
    /// Tokens that a client of the native protocol may show on one connection at once, and in a second in the long
    /// run; the connection ends beyond.
    package var credentialsMax: UInt64 = 32
    package var credentialsPerSecond: UInt64 = 1

    /// First line and headers of an HTTP/1.1 request; past it 431, or 414. At most 32 KiB.
    package var http1HeadBytesMax = 16 << 10
    /// Header lines of an HTTP/1.1 request; past it 431.
    package var http1FieldsMax = 100

    /// Time for a new connection to say HELLO or SETTINGS, and for a request's head, a header list, a frame or a
    /// message to arrive, counted from its first byte whatever else arrives. A message has more by ``ArrivalTime``.
    package var headerMilliseconds: UInt64 = 10_000
    /// A connection without an open call is closed after so long without a frame; 0 = never.
    package var idleMilliseconds: UInt64 = 10 * 60_000
    /// Deadline of calls that bring none; 0 = none.
    package var defaultDeadlineMilliseconds: UInt32 = 0

    /// Unsent output beyond which a connection is paused: nothing more is read from it or produced for it.
    package var outputPauseBytes = 256 << 10
    /// Unsent output beyond which a connection is dropped: answers to calls already accepted can pass the mark above.
    package var outputBytesMax = 64 << 20
    /// A paused connection that takes nearly nothing for so long is dropped.
    package var slowReaderMilliseconds: UInt64 = 30_000
    /// A streaming reply whose client has shut its window for so long ends with DEADLINE_EXCEEDED; 0 = never. Longer
    /// than the time above: here the connection is alive, and its program may only be busy with what it has read.
    package var stalledReplyMilliseconds: UInt64 = 5 * 60_000

    /// TLS on the TCP port; nil = plain text. The socket in the file system has none.
    package var tls: ServerTLS?

    /// Receives the events that belong in a log; called on the loops' threads, must not block.
    package var onEvent: @Sendable (ServerEvent) -> Void = { _ in }

    package init() {}

    package var channel: ChannelLimits {
        ChannelLimits(
            highWaterBytes: outputPauseBytes, outputBytesMax: outputBytesMax, stallMilliseconds: slowReaderMilliseconds)
    }
}

/// TLS of a server.
package struct ServerTLS: Sendable {
    /// The context for new connections; thread-safe. A reload gives another one from then on.
    package var context: @Sendable () -> TLSContext
    /// Handshakes at once on all loops; a connection beyond is closed.
    package var handshakesMax = 256

    package init(context: @escaping @Sendable () -> TLSContext) { self.context = context }

    /// When the certificate for new connections expires, in seconds since 1970; nil if it does not.
    package var certificateExpires: Int64? { context().certificateExpires }
    /// When the first revocation list for new connections expires, in seconds since 1970; nil if none does.
    package var revocationListExpires: Int64? { context().revocationListExpires }
}

/// How connections reach the loops of a server.
package enum Acceptance: Sendable {
    /// Every loop listens on the same port, and the kernel spreads connections over them.
    case everyLoop
    /// The first loop accepts and hands connections to all in turn.
    case handedOver

    /// Only Linux spreads connections over sockets with SO_REUSEPORT.
    package static var systemDefault: Acceptance {
        #if os(Linux)
            .everyLoop
        #else
            .handedOver
        #endif
    }
}

/// Something that a server's operator may want to know.
package enum ServerEvent: Sendable {
    case connectionOpened(peer: String)
    case connectionClosed(peer: String, CloseReason)
    /// One more than `connectionsMax`.
    case connectionRefused(peer: String)
    /// The system could not accept a connection, for example for lack of file descriptors.
    case acceptFailed(String)
    /// The client of a new connection has shown what it is: the `user-agent` of its first call, at most 64 bytes, or
    /// `hearth` for the native protocol.
    case clientSeen(agent: String)
    /// A call was refused by the transport itself.
    case callRefused(peer: String, Refusal)
}
