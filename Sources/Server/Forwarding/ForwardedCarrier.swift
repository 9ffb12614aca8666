// A call that a follower has forwarded, at the server that takes the writes.
//
// The service sees a call of the follower's client. Before each message of the reply is the version of the newest
// commit, so that the follower knows what it must have before its client gets the reply.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService

/// The client of a follower as the carrier of its calls. Confined to the loop.
///
/// Only the handler of `Admin/Forward` makes one, after it has admitted the follower as one that may administer this
/// server. So nothing that other callers send becomes a caller here.
final class ForwardedCarrier: CallCarrier, @unchecked Sendable {
    // Sendable: confined to the loop, as CallCarrier says.

    private let outer: any CallCarrier
    private let caller: [UInt8]
    private let approach: ForwardedApproach
    private let client: Int
    /// The store that the call is about, known before a reply is made.
    var store: DocumentStore
    /// The store of a cluster that the follower has called.
    let called: CalledStore
    let address: NetworkAddress?

    init(_ call: Call, _ view: borrowing ForwardRequestView, _ store: DocumentStore) {
        outer = call.carrier
        caller = [UInt8](copying: view.caller)
        approach = view.approach
        client = Int(view.client % UInt64(ForwardedContexts.clientsMax))
        address = NetworkAddress(bytes: view.address)
        called = view.store
        self.store = store
    }

    fileprivate var version: UInt64 { store.publishedVersion.microseconds }

    // MARK: The client

    var loopThread: any LoopThread { outer.loopThread }
    var peerAddress: String { address.map { "\($0)" } ?? outer.peerAddress }
    var isLoopback: Bool { approach.contains(.loopback) }
    var isProxied: Bool { approach.contains(.proxied) }
    func forwarding(_ stream: UInt32) -> Forwarding? {
        approach.contains(.trustedProxy) ? Forwarding(address: address) : nil
    }
    func vouchedCaller(_ stream: UInt32) -> [UInt8]? { caller }
    /// The follower sends commits of one client in their order.
    var orderedConnection: AnyObject { outer.orderedConnection }

    var connectionContext: AnyObject? {
        get { (outer.connectionContext as? ForwardedContexts)?.contexts[client] }
        set {
            let contexts = outer.connectionContext as? ForwardedContexts ?? ForwardedContexts()
            contexts.contexts[client] = newValue
            outer.connectionContext = contexts
        }
    }

    // MARK: The reply

    func beginMessage(_ stream: UInt32) -> ByteBuffer? {
        guard var output = outer.beginMessage(stream) else { return nil }
        ForwardedReply.append(version: version, to: &output)
        return output
    }

    func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        outer.endMessage(stream, output, isLast: isLast)
    }

    func abandonMessage(_ output: consuming ByteBuffer) { outer.abandonMessage(output) }

    func isOpen(_ stream: UInt32) -> Bool { outer.isOpen(stream) }
    func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) { outer.finish(stream, code, message) }
    func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        outer.stream(stream, VersionedSource(source, self), receiver: receiver)
    }
    func resume(_ stream: UInt32) { outer.resume(stream) }
    func hasRoom(_ stream: UInt32) -> Bool { outer.hasRoom(stream) }
    func setPaused(_ stream: UInt32, _ isPaused: Bool) { outer.setPaused(stream, isPaused) }
    func remainingMilliseconds(_ stream: UInt32) -> UInt64? { outer.remainingMilliseconds(stream) }
    func noteRetry(_ stream: UInt32, afterSeconds seconds: Int) { outer.noteRetry(stream, afterSeconds: seconds) }
}

/// What the service keeps for the clients of a follower. Many clients may share a place, and with it the bounds of one
/// connection.
private final class ForwardedContexts {
    static let clientsMax = 1_024
    var contexts: [Int: AnyObject] = [:]
}

/// Puts the version before each message of a source.
private final class VersionedSource: ResponseSource {
    private let source: any ResponseSource
    private let carrier: ForwardedCarrier

    init(_ source: any ResponseSource, _ carrier: ForwardedCarrier) {
        self.source = source
        self.carrier = carrier
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        let start = output.count
        ForwardedReply.append(version: carrier.version, to: &output)
        let step = source.next(into: &output)
        switch step {
        case .message, .lastMessage: break
        case .finished, .failed, .waiting: output.truncate(to: start)
        }
        return step
    }

    var hasMessageReady: Bool { source.hasMessageReady }
    var heldBytes: Int { source.heldBytes }
    func cancelled() { source.cancelled() }
}
