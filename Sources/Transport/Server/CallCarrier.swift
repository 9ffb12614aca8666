// What a connection must do for the calls on it, whichever protocol it speaks: the seam between the service and the wire.

internal import Basics
internal import DocumentModel

/// A connection that carries calls, with a subclass for each protocol; services know none of them.
package class CallCarrier: @unchecked Sendable {
    // Sendable: it may be passed around, but all but `loop` and `peerAddress` are for the loop's thread.

    package let loop: EventLoop
    /// The client's address, for logs.
    package let peerAddress: String
    /// Something that the service keeps for as long as the connection is open.
    package final var connectionContext: AnyObject?

    init(loop: EventLoop, peerAddress: String) {
        self.loop = loop
        self.peerAddress = peerAddress
    }

    /// Lends the connection's output, prepared for a message; nil when the call is over. Must be followed by one of
    /// the next two.
    func beginMessage(_ stream: UInt32) -> WireWriter? { mustOverride() }

    /// Takes the output back with the message appended.
    func endMessage(_ stream: UInt32, _ output: consuming WireWriter, isLast: Bool) { mustOverride() }

    /// Takes the output back and drops what was appended.
    func abandonMessage(_ output: consuming WireWriter) { mustOverride() }

    func isOpen(_ stream: UInt32) -> Bool { mustOverride() }
    func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) { mustOverride() }
    func stream(_ stream: UInt32, _ source: any ResponseSource) { mustOverride() }
    func resume(_ stream: UInt32) { mustOverride() }
    func context(_ stream: UInt32) -> AnyObject? { mustOverride() }
    func setContext(_ stream: UInt32, _ context: AnyObject?) { mustOverride() }
    func setHeld(_ stream: UInt32, _ isHeld: Bool) { mustOverride() }
    func remainingMilliseconds(_ stream: UInt32) -> UInt64? { mustOverride() }

    /// Whether clients can say who they are in this protocol.
    var carriesCredentials: Bool { false }
    /// The `authorization` that came with the call; nil without one, and where they are not kept.
    func authorization(_ stream: UInt32) -> String? { nil }

    final func mustOverride(_ function: StaticString = #function) -> Never {
        fatalError("\(function) is for a subclass to implement")
    }
}
