// What a client connection tolerates and how it watches over its server.

package import Basics
package import EventLoops
package import TLS

package struct ClientConfiguration: Sendable {
    /// Time for name resolution, TCP and the server's HELLO.
    package var connectMilliseconds: UInt64 = 10_000
    /// With calls open and nothing heard for so long, the server is pinged; 0 = never.
    package var keepAliveMilliseconds: UInt64 = 20_000
    /// A ping without any answer for so long ends the connection.
    package var keepAliveTimeoutMilliseconds: UInt64 = 10_000
    /// TLS with servers on TCP, whose certificate must have the host's name; nil = plain text. The context should offer
    /// ``Preface/protocolName``.
    package var tls: TLSContext?
    /// The token that calls show until there is another one.
    package var credential = Credential.none
    /// Largest frame payload accepted.
    package var frameBytesMax: UInt32 = 256 << 10
    /// Largest message accepted. Replies can exceed the request limit: a page of documents, each up to 1 MiB.
    package var messageBytesMax: UInt32 = 64 << 20
    /// Message bytes that the server may send on a streaming call before they are taken.
    package var initialWindowBytes: UInt32 = 1 << 20
    /// Unsent bytes and slow servers.
    package var channel = ChannelLimits(highWaterBytes: 1 << 20, outputBytesMax: 1 << 30, stallMilliseconds: 60_000)

    /// Whether the requests of an iteration of the loop leave in one write: for a connection that forwards what many
    /// others bring.
    package var gathersRequests = false

    package init() {}

    var settings: Settings {
        Settings(
            frameBytesMax: max(frameBytesMax, Settings.frameBytesFloor), messageBytesMax: messageBytesMax,
            streamsMax: 0,
            initialWindowBytes: min(initialWindowBytes, FlowWindow.max))
    }
}

/// An event of a connection, delivered to its owner on the loop's thread.
package enum ClientConnectionEvent: Sendable {
    /// TCP is up and the server has said HELLO.
    case ready
    /// The server takes no more calls here; open ones continue. New ones belong on another connection.
    case goingAway(StatusCode, String)
    /// The end, and what happened in words that name the address; comes once, after every call was completed.
    case closed(CloseReason, String)
}
