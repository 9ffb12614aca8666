// The server's side of one connection's protocol, as a struct without I/O: frames go in, actions come out.
//
// A call whose reply is made while its REQUEST is being handled is `current` and costs no table entry. A call that
// lasts longer is parked in `streams` and is found there by its number. The connection performs the actions and reports
// the session what it sent; the session knows limits, numbers, windows and half-closed sides.
//
//     REQUEST ──▶ current ──answered──▶ gone
//                   │ not answered yet, or streaming
//                   ▼
//                 parked ──status sent, CANCEL, deadline──▶ gone

import Basics
import Calls
import Connections

/// What a server session is allowed to take in.
package struct ServerSessionLimits: Sendable {
    /// What this side announces.
    package var settings: Settings
    /// Bytes of incomplete messages that one connection may make this side hold.
    package var assemblyBytesMax: Int
    /// Whether the tokens of the client are kept for the service.
    package var keepsAuthorization = false
    /// CREDENTIAL frames that the client may send at once, and in a second in the long run.
    package var credentialsMax: UInt64 = 32
    package var credentialsPerSecond: UInt64 = 1

    package init(settings: Settings, assemblyBytesMax: Int) {
        self.settings = settings
        self.assemblyBytesMax = assemblyBytesMax
    }
}

/// One call that outlived the handling of its REQUEST frame, or whose REQUEST is not complete yet.
struct ServerStream {
    var head: RequestHead
    /// False while the parts of the first message are still coming.
    var hasBegun: Bool
    /// The client sends no more messages.
    var clientEnded: Bool
    /// What we may send.
    var sendWindow: FlowWindow
    /// What the client may send.
    var receiveWindow: FlowWindow
    /// Message bytes taken in and not yet permitted again.
    var uncredited = 0
    /// The handler asked for no more messages for now.
    var isPaused = false
    var assembly = MessageAssembly()
    /// What the client had shown when the call began.
    let authorization: String?
}

/// What the connection has to do about a frame.
enum ServerAction: Equatable {
    case nothing
    /// The client's HELLO was good; the connection is open.
    case opened
    /// A new call and its first message.
    case begin(UInt32, RequestHead, MessageBytes)
    /// A further message of a call, and whether it is the client's last.
    case message(UInt32, MessageBytes, isLast: Bool)
    /// The client ends its side without a message.
    case halfClosed(UInt32)
    /// The client gave up; the stream is still in the table.
    case cancelled(UInt32)
    /// The client permits more bytes.
    case windowOpened(UInt32)
    case pong(UInt64)
    case pongReceived(UInt64)
    /// The call cannot be: answer with this status. A parked stream is still in the table.
    case refuse(UInt32, Refusal)
    /// The client will open no more streams.
    case clientLeaves
    /// The connection is beyond repair: GOAWAY and close.
    case fail(ProtocolViolation)
}

struct ServerSession {
    let limits: ServerSessionLimits
    /// The client's settings; assumed ones until its HELLO.
    private(set) var peer = Settings.assumed
    private(set) var isOpen = false
    /// The highest stream that the client has opened.
    private(set) var lastStream: UInt32 = 0
    /// Streams above this one are not taken any more; nil while the connection is not draining.
    private(set) var drainsAfter: UInt32?
    private(set) var clientLeaves = false
    /// Parked calls.
    var streams = StreamTable<ServerStream>()
    /// The call whose REQUEST is being handled, or zero.
    private(set) var current: UInt32 = 0
    private var currentHead = RequestHead.none
    /// A message that came in parts and is complete, until the next frame.
    private(set) var assembled: [UInt8] = []
    /// Bytes of incomplete messages.
    private(set) var assemblyBytes = 0
    /// What calls that begin now show, as HTTP's `authorization` has it; nil without a token, and where none is kept.
    private var authorization: String?
    private var credentials: TokenBucket
    /// When the frames that are shown now arrived, in monotonic milliseconds.
    var now: UInt64 = 0

    /// The procedures that are served.
    private let rpcs: RPCTable

    init(limits: ServerSessionLimits, rpcs: RPCTable) {
        self.limits = limits
        self.rpcs = rpcs
        credentials = TokenBucket(max: limits.credentialsMax, perSecond: limits.credentialsPerSecond, now: 0)
    }

    /// Calls that are not over.
    var openCalls: Int { streams.count + (current == 0 ? 0 : 1) }

    // MARK: Events of the connection

    /// From now on no new stream is taken; returns the last one that will be served.
    mutating func drain() -> UInt32 {
        let last = drainsAfter ?? lastStream
        drainsAfter = last
        return last
    }

    /// Calls of which a message in parts should have been complete by now.
    func lateStreams(now: UInt64, limit: UInt64) -> [UInt32] {
        streams.streams.filter { stream in
            streams.position(of: stream).map { streams[position: $0].assembly.isLate(now: now, limit: limit) } ?? false
        }
    }

    /// Whether the call still waits for (more of) its answer.
    func isOpen(_ stream: UInt32) -> Bool {
        stream == current && current != 0 || streams.contains(stream)
    }

    /// What the client had shown when the call began: `Bearer` and the token; nil without one.
    func authorization(of stream: UInt32) -> String? {
        if stream == current { return authorization }
        return streams.position(of: stream).flatMap { streams[position: $0].authorization }
    }

    /// The call whose REQUEST is being handled is over; false when `stream` is another one.
    mutating func finishCurrent(_ stream: UInt32) -> Bool {
        guard stream == current, current != 0 else { return false }
        current = 0
        return true
    }

    /// The call is over, by our answer or for another reason.
    ///
    /// - Returns: whether its first message was complete, so that the handler knows of it; nil when it was over
    ///   already.
    mutating func finish(_ stream: UInt32) -> Bool? {
        if finishCurrent(stream) { return true }
        guard let gone = streams.remove(stream) else { return nil }
        assemblyBytes -= gone.assembly.bytes.count
        return gone.hasBegun
    }

    /// Gives the call a place in the table, if it is open, and says where.
    mutating func park(_ stream: UInt32) -> Int? {
        guard stream == current, current != 0 else { return streams.position(of: stream) }
        current = 0
        return streams.insert(
            stream,
            ServerStream(
                head: currentHead, hasBegun: true, clientEnded: currentHead.isComplete,
                sendWindow: FlowWindow(peer.initialWindowBytes),
                receiveWindow: FlowWindow(limits.settings.initialWindowBytes), authorization: authorization))
    }

    /// The handler has returned: a call that is still current is parked.
    ///
    /// - Returns: whether one was.
    mutating func settleCurrent() -> Bool { current != 0 && park(current) != nil }

    /// The bytes to permit the client on a stream now; nil when it is too soon or the handler holds the stream.
    mutating func creditDue(_ stream: UInt32) -> UInt32? {
        guard let position = streams.position(of: stream) else { return nil }
        let due = streams[position: position].uncredited
        guard !streams[position: position].isPaused, !streams[position: position].clientEnded,
            due > 0, due * 2 >= Int(limits.settings.initialWindowBytes)
        else { return nil }
        streams[position: position].uncredited = 0
        _ = streams[position: position].receiveWindow.permit(UInt32(due))
        return UInt32(due)
    }

    // MARK: Messages of the client

    /// Takes one frame, header and payload, whole.
    mutating func receive(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        // Nearly every frame is a whole REQUEST; it passes without the general rules.
        if header.kind == FrameKind.request.rawValue, isOpen, header.stream != 0,
            FrameFlags.ofRequest.isSuperset(of: header.flags)
        {
            return receiveRequest(header, payload)
        }
        return receiveAny(header, payload)
    }

    private mutating func receiveAny(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        guard let kind = FrameKind(rawValue: header.kind) else {
            return FrameRules.mayBeIgnored(header.kind) && isOpen ? .nothing : .fail(.unknownKind(header.kind))
        }
        if let violation = FrameRules.violation(of: header, kind) { return .fail(violation) }
        guard isOpen else { return kind == .hello ? receiveHello(header, payload) : .fail(.helloExpected) }
        switch kind {
        case .request: return receiveRequest(header, payload)
        case .message: return receiveMessage(header, payload)
        case .end: return receiveEnd(header)
        case .cancel: return receiveCancel(header)
        case .window: return receiveWindow(header, payload)
        case .ping: return .pong(UInt64(littleEndian: payload.loadInteger(at: 0)))
        case .pong: return .pongReceived(UInt64(littleEndian: payload.loadInteger(at: 0)))
        case .goAway:
            clientLeaves = true
            return .clientLeaves
        case .credential: return receiveCredential(payload)
        case .hello: return .fail(.secondHello)
        case .status: return .fail(.kindFromWrongSide(kind))
        }
    }

    private mutating func receiveHello(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        guard header.code == Settings.protocolVersion else { return .fail(.unsupportedVersion(header.code)) }
        guard let settings = Settings(payload: payload) else { return .fail(.malformedSettings) }
        peer = settings
        isOpen = true
        return .opened
    }

    private mutating func receiveCredential(_ payload: RawSpan) -> ServerAction {
        credentials.fill(now: now)
        guard credentials.take() else { return .fail(.tooManyCredentials) }
        guard Credential.isToken(payload) else { return .fail(.malformedCredential) }
        if limits.keepsAuthorization {
            authorization = payload.byteCount == 0 ? nil : "Bearer \(String(repairingUTF8: payload))"
        }
        return .nothing
    }

    private mutating func receiveRequest(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        guard header.stream > lastStream else { return .fail(.streamNotIncreasing(header.stream)) }
        lastStream = header.stream
        // The client learns from GOAWAY that these were not touched.
        if let drainsAfter, header.stream > drainsAfter { return .nothing }
        if header.flags.contains(.after), !header.flags.contains(.requestID) {
            return .fail(.unknownFlags(.request, FrameFlags.after.rawValue))
        }
        let extensions = RequestHead.extensionBytes(of: header.flags)
        guard payload.byteCount >= extensions else { return .fail(.wrongLength(.request, header.length)) }
        guard let rpc = rpcs.rpc(number: header.code) else {
            return .refuse(header.stream, .unknownMethod(header.code))
        }
        let head = readHead(rpc, header, payload)
        guard head.isComplete || header.flags.contains(.more) || rpc.shape == .bidirectional else {
            return .refuse(header.stream, .takesOneMessage(rpcs.name(of: rpc)))
        }
        guard streams.count < Int(limits.settings.streamsMax) else {
            return .refuse(header.stream, .tooManyStreams(max: limits.settings.streamsMax))
        }
        guard payload.byteCount - extensions <= Int(limits.settings.messageBytesMax) else {
            return .refuse(header.stream, tooLarge)
        }
        current = header.stream
        currentHead = head
        guard header.flags.contains(.more) else { return .begin(header.stream, head, .inFrame(from: extensions)) }
        return startAssembly(header.stream, payload.extracting(droppingFirst: extensions))
    }

    @inline(__always)
    private func readHead(_ rpc: RPC, _ header: FrameHeader, _ payload: RawSpan) -> RequestHead {
        var head = RequestHead(rpc: rpc, isComplete: header.flags.contains(.endStream))
        guard !header.flags.isDisjoint(with: [.deadline, .requestID]) else { return head }
        var offset = 0
        if header.flags.contains(.deadline) {
            head.deadlineMilliseconds = UInt32(littleEndian: payload.loadInteger(at: 0))
            offset = 4
        }
        if header.flags.contains(.requestID) {
            head.requestID = RequestID(payload, at: offset)
            if header.flags.contains(.after) {
                head.requestID?.after = CommitSequence.Ticket(payload, at: offset + RequestID.byteCount)
            }
        }
        return head
    }

    /// Parks a call whose first message has more parts to come.
    private mutating func startAssembly(_ stream: UInt32, _ part: RawSpan) -> ServerAction {
        guard let position = park(stream) else { return .nothing }
        streams[position: position].hasBegun = false
        return extendAssembly(position, stream, part) ?? .nothing
    }

    private mutating func extendAssembly(_ position: Int, _ stream: UInt32, _ part: RawSpan) -> ServerAction? {
        let size = streams[position: position].assembly.bytes.count + part.byteCount
        guard size <= Int(limits.settings.messageBytesMax) else { return .refuse(stream, tooLarge) }
        guard assemblyBytes + part.byteCount <= limits.assemblyBytesMax else {
            return .refuse(stream, .incompleteMessagesTooLarge(max: limits.assemblyBytesMax))
        }
        assemblyBytes += part.byteCount
        streams[position: position].assembly.append(part, at: now)
        return nil
    }

    private mutating func receiveMessage(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        let stream = header.stream
        guard stream <= lastStream else { return .fail(.streamNeverOpened(.message, stream)) }
        // Frames may be under way to a call that is over on our side.
        guard let position = streams.position(of: stream) else { return .nothing }
        guard !streams[position: position].clientEnded else { return .fail(.messageAfterEnd(stream)) }
        let isFirstMessage = !streams[position: position].hasBegun
        let isPart = streams[position: position].assembly.isActive
        if !isFirstMessage {
            if !isPart, !streams[position: position].receiveWindow.isOpen {
                return .refuse(stream, .noWindow)
            }
            streams[position: position].receiveWindow.consume(payload.byteCount)
            streams[position: position].uncredited += payload.byteCount
        }
        if isPart || header.flags.contains(.more) {
            if let refusal = extendAssembly(position, stream, payload) { return refusal }
            if header.flags.contains(.more) { return .nothing }
            assemblyBytes -= streams[position: position].assembly.bytes.count
            assembled = streams[position: position].assembly.take()
        } else if payload.byteCount > Int(limits.settings.messageBytesMax) {
            return .refuse(stream, tooLarge)
        }
        return deliver(position, stream, isPart ? .assembled : .inFrame(from: 0), header.flags.contains(.endStream))
    }

    private mutating func deliver(_ position: Int, _ stream: UInt32, _ bytes: MessageBytes, _ isLast: Bool)
        -> ServerAction
    {
        streams[position: position].clientEnded = isLast
        guard !streams[position: position].hasBegun else { return .message(stream, bytes, isLast: isLast) }
        streams[position: position].hasBegun = true
        streams[position: position].head.isComplete = isLast
        let head = streams[position: position].head
        guard isLast || head.rpc.shape == .bidirectional else {
            return .refuse(stream, .takesOneMessage(rpcs.name(of: head.rpc)))
        }
        return .begin(stream, head, bytes)
    }

    private mutating func receiveEnd(_ header: FrameHeader) -> ServerAction {
        guard header.stream <= lastStream else { return .fail(.streamNeverOpened(.end, header.stream)) }
        guard let position = streams.position(of: header.stream) else { return .nothing }
        guard !streams[position: position].clientEnded else { return .fail(.messageAfterEnd(header.stream)) }
        streams[position: position].clientEnded = true
        guard streams[position: position].hasBegun, !streams[position: position].assembly.isActive else {
            return .refuse(header.stream, .endedInsideMessage)
        }
        return .halfClosed(header.stream)
    }

    private func receiveCancel(_ header: FrameHeader) -> ServerAction {
        guard header.stream <= lastStream else { return .fail(.streamNeverOpened(.cancel, header.stream)) }
        return streams.contains(header.stream) ? .cancelled(header.stream) : .nothing
    }

    private mutating func receiveWindow(_ header: FrameHeader, _ payload: RawSpan) -> ServerAction {
        guard header.stream <= lastStream else { return .fail(.streamNeverOpened(.window, header.stream)) }
        guard let position = streams.position(of: header.stream) else { return .nothing }
        let increment = UInt32(littleEndian: payload.loadInteger(at: 0))
        guard streams[position: position].sendWindow.permit(increment) else {
            return .refuse(header.stream, .windowTooLarge(max: FlowWindow.max))
        }
        return .windowOpened(header.stream)
    }

    private var tooLarge: Refusal { .messageTooLarge(max: limits.settings.messageBytesMax) }
}
