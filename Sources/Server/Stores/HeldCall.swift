// A bidirectional call whose service is not chosen yet.
//
//     client ──► messages are kept ─ ─ the service is chosen ─ ─ ► they go to its stream, and so do those to come
//
// The connection needs a stream from the first message on. So this is one, and it is the carrier of the call for the
// service that is chosen.

internal import Basics
internal import Calls

/// Confined to its loop.
final class HeldCall: CallStream, CallCarrier, @unchecked Sendable {
    // Sendable: confined to the loop, as CallCarrier says.

    private let call: Call
    private let outer: any CallCarrier
    private var source: (any ResponseSource)?
    private var receiver: (any CallStream)?
    /// What the client has sent meanwhile.
    private var messages: [[UInt8]] = []
    private var isHalfClosed = false
    private var isOver = false
    private var end: (code: StatusCode, message: String)?

    /// Messages that are kept before the client is asked to hold on.
    private static let messagesMax = 32

    /// Connects a call.
    init(_ call: Call) {
        self.call = call
        outer = call.carrier
        call.open(self)
    }

    /// The call for the service that was chosen.
    var inner: Call { Call(carrier: self, stream: call.stream, head: call.head, begunAt: call.begunAt) }

    // MARK: The client

    func received(_ message: RawSpan) {
        if let receiver { return receiver.received(message) }
        guard end == nil else { return }
        messages.append([UInt8](copying: message))
        if messages.count == Self.messagesMax { call.pauseMessages() }
    }

    func halfClosed() {
        if let receiver { return receiver.halfClosed() }
        isHalfClosed = true
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        guard let source else {
            guard let end else { return .waiting }
            isOver = true
            return .failed(end.code, end.message)
        }
        let step = source.next(into: &output)
        switch step {
        case .message, .waiting: break
        case .lastMessage, .finished, .failed: release()
        }
        return step
    }

    /// The stream of the service has this call, and this call the stream.
    private func release() {
        isOver = true
        messages = []
        source = nil
        receiver = nil
    }

    var hasMessageReady: Bool { source?.hasMessageReady ?? false }
    var heldBytes: Int { source?.heldBytes ?? messages.reduce(0) { $0 + $1.count } }

    func cancelled() {
        let source = source
        release()
        source?.cancelled()
    }

    // MARK: The service

    func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        guard !isOver, end == nil else { return source.cancelled() }
        self.source = source
        self.receiver = receiver
        let kept = messages
        messages = []
        if kept.count >= Self.messagesMax { call.resumeMessages() }
        for message in kept { receiver?.received(message.byteSpan) }
        if isHalfClosed { receiver?.halfClosed() }
        call.resume()
    }

    func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard source == nil, end == nil else { return }
        end = (code, message)
        call.resume()
    }

    /// A bidirectional call has no reply beside its stream.
    func beginMessage(_ stream: UInt32) -> ByteBuffer? { nil }
    func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        outer.endMessage(stream, output, isLast: isLast)
    }
    func abandonMessage(_ output: consuming ByteBuffer) { outer.abandonMessage(output) }

    // MARK: The connection

    var loopThread: any LoopThread { outer.loopThread }
    var peerAddress: String { outer.peerAddress }
    var isLocal: Bool { outer.isLocal }
    var connectionContext: AnyObject? {
        get { outer.connectionContext }
        set { outer.connectionContext = newValue }
    }
    func isOpen(_ stream: UInt32) -> Bool { end == nil && outer.isOpen(stream) }
    func resume(_ stream: UInt32) { outer.resume(stream) }
    func hasRoom(_ stream: UInt32) -> Bool { outer.hasRoom(stream) }
    func setPaused(_ stream: UInt32, _ isPaused: Bool) { outer.setPaused(stream, isPaused) }
    func remainingMilliseconds(_ stream: UInt32) -> UInt64? { outer.remainingMilliseconds(stream) }
    var carriesCredentials: Bool { outer.carriesCredentials }
    func authorization(_ stream: UInt32) -> String? { outer.authorization(stream) }
    var certificateNames: [String] { outer.certificateNames }
    var isLoopback: Bool { outer.isLoopback }
    var isProxied: Bool { outer.isProxied }
    var address: NetworkAddress? { outer.address }
    func vouchedCaller(_ stream: UInt32) -> [UInt8]? { outer.vouchedCaller(stream) }
    var orderedConnection: AnyObject { outer.orderedConnection }
    func forwarding(_ stream: UInt32) -> Forwarding? { outer.forwarding(stream) }
    func noteRetry(_ stream: UInt32, afterSeconds seconds: Int) { outer.noteRetry(stream, afterSeconds: seconds) }
    func endConnection() { outer.endConnection() }
}
