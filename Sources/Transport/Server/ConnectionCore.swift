import Basics

/// What every connection of a server owns, whichever protocol it uses. Confined to its loop's thread.
final class ConnectionCore {
    let channel: Channel
    let loop: EventLoop
    let handler: any ServiceHandler
    let configuration: ServerConfiguration
    let server: ServerLoop
    let peerAddress: String
    /// Whether the client came over the socket in the file system, which only the user of the server may use.
    let isLocal: Bool
    /// Loop time at which the connection was accepted.
    let openedAt: UInt64
    private let confined = Confined(State())

    struct State {
        /// The connection has ended or is about to; nothing is served on it any more.
        var isOver = false
        var calls = CallTable()
        /// Calls that came over this connection.
        var callsBegun: UInt64 = 0
        var connectionContext: AnyObject?
        /// Loop time before which the client is not treated as too slow.
        var readsAgainAt: UInt64 = 0
        /// What the server's sum of incomplete messages includes of ours.
        var assemblyBytesCounted = 0
        var livenessTimer: EventLoop.Timer?
    }

    init(
        channel: Channel, handler: any ServiceHandler, server: ServerLoop, peerAddress: String, isLocal: Bool,
        openedAt: UInt64
    ) {
        self.channel = channel
        loop = channel.loop
        self.handler = handler
        self.server = server
        configuration = server.configuration
        self.peerAddress = peerAddress
        self.isLocal = isLocal
        self.openedAt = openedAt
    }

    var state: State {
        @inline(__always) _read { yield confined.state }
        @inline(__always) _modify { yield &confined.state }
    }
}
