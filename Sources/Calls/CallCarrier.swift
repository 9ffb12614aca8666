package import Basics

/// A connection, or a test's stand-in for one, as the calls on it use it: the seam between services and wire protocols.
///
/// May be passed between threads; all members except `loopThread` and `peerAddress` are for the loop's thread.
package protocol CallCarrier: AnyObject, Sendable {
    var loopThread: any LoopThread { get }
    /// The client's address, for logs.
    var peerAddress: String { get }
    /// Whether the client came over the socket in the file system, which only the user of the server may use. Never
    /// changes.
    var isLocal: Bool { get }
    /// Something that the service keeps for as long as the connection is open.
    var connectionContext: AnyObject? { get set }

    /// Lends the connection's output, prepared for a message; nil when the call is over. One of the next two must
    /// follow.
    func beginMessage(_ stream: UInt32) -> ByteBuffer?
    /// Takes the output back with the message appended.
    func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool)
    /// Takes the output back and drops what was appended.
    func abandonMessage(_ output: consuming ByteBuffer)

    func isOpen(_ stream: UInt32) -> Bool
    func finish(_ stream: UInt32, _ code: StatusCode, _ message: String)
    /// - Parameter receiver: takes the client's further messages; nil for a call of one.
    func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?)
    func resume(_ stream: UInt32)
    func hasRoom(_ stream: UInt32) -> Bool
    func setPaused(_ stream: UInt32, _ isPaused: Bool)
    func remainingMilliseconds(_ stream: UInt32) -> UInt64?

    /// Whether the protocol has a place for credentials.
    var carriesCredentials: Bool { get }
    /// The `authorization` that came with the call; nil without one, and where they are not kept.
    func authorization(_ stream: UInt32) -> String?
    /// The names of the client's verified certificate, each with its kind: `URI:spiffe://a/b`, `DNS:job.example`. Empty
    /// without one. Never change.
    var certificateNames: [String] { get }
    /// Whether the connection came to a loopback address of this machine, or over no network. Never changes.
    var isLoopback: Bool { get }
    /// Whether the connection, or a request that came over it, had a header of a proxy (the PROXY protocol's,
    /// `Forwarded`, `X-Forwarded-For`, `Via`): the client is another than the one that the address names. Once true, it
    /// stays so.
    var isProxied: Bool { get }
    /// The address of the other end; nil over no network. Never changes.
    var address: NetworkAddress? { get }
    /// Who calls, as another server has verified it and vouches for it; nil for calls that clients make here. Bytes of
    /// the access control. Never what a client sends.
    func vouchedCaller(_ stream: UInt32) -> [UInt8]?
    /// The connection whose calls keep their order with each other.
    var orderedConnection: AnyObject { get }
    /// What the other end says about the client of a call, if it is a trusted proxy; nil if it is not.
    func forwarding(_ stream: UInt32) -> Forwarding?
    /// Adds to the answer of a call when its client may come again, where the protocol has a place for it.
    func noteRetry(_ stream: UInt32, afterSeconds seconds: Int)
    /// Ends the connection after the calls that are open.
    func endConnection()
}

extension CallCarrier {
    package var isLocal: Bool { false }
    package var carriesCredentials: Bool { false }
    package func authorization(_ stream: UInt32) -> String? { nil }
    package var certificateNames: [String] { [] }
    package var isLoopback: Bool { true }
    package var isProxied: Bool { false }
    package var address: NetworkAddress? { nil }
    package func vouchedCaller(_ stream: UInt32) -> [UInt8]? { nil }
    package var orderedConnection: AnyObject { self }
    package func forwarding(_ stream: UInt32) -> Forwarding? { nil }
    package func noteRetry(_ stream: UInt32, afterSeconds seconds: Int) {}
    package func endConnection() {}
}
