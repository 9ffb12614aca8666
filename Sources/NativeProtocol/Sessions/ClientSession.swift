// The client's side of one connection's protocol, as a struct without I/O: frames go in, actions come out.

import Basics
import Calls
import Connections

/// A call of the client that is not over.
struct ClientStream<Attachment> {
    /// We send no more messages.
    var clientEnded: Bool
    /// What we may send.
    var sendWindow: FlowWindow
    /// What the server may send.
    var receiveWindow: FlowWindow
    /// Message bytes taken in and not yet permitted again.
    var uncredited = 0
    /// The caller asked for no more messages for now.
    var isPaused = false
    var assembly = MessageAssembly()
    /// What the connection keeps with the call.
    let attachment: Attachment
}

/// What the connection has to do about a frame.
enum ClientAction: Equatable {
    case nothing
    /// The server's HELLO was good: its limits are known.
    case opened
    /// A message, and whether the call ends with it, with status OK.
    case message(UInt32, MessageBytes, isLast: Bool)
    /// The call is over; the text is the frame's payload.
    case status(UInt32, StatusCode)
    /// The server permits more bytes.
    case windowOpened(UInt32)
    case pong(UInt64)
    case pongReceived(UInt64)
    /// No call beyond this stream will be served; the text is the frame's payload.
    case goAway(StatusCode, lastStream: UInt32)
    /// The server broke a limit of ours on one call: end it with this, and cancel it there.
    case refuse(UInt32, Refusal)
    /// The connection is beyond repair.
    case fail(ProtocolViolation)
}

struct ClientSession<Attachment> {
    /// What this side announces.
    let settings: Settings
    /// The server's settings; assumed ones until its HELLO.
    private(set) var peer = Settings.assumed
    private(set) var isOpen = false
    /// The last stream that the server promised to serve, once it is going away.
    private(set) var servedUntil: UInt32?
    var streams = StreamTable<ClientStream<Attachment>>()
    private(set) var lastStream: UInt32 = 0
    /// A message that came in parts and is complete, until the next frame.
    private(set) var assembled: [UInt8] = []

    init(settings: Settings) { self.settings = settings }

    /// Whether one more call may be opened now.
    var hasRoom: Bool { streams.count < Int(peer.streamsMax) }

    /// Whether this connection can still take calls at all.
    var takesCalls: Bool { servedUntil == nil && lastStream < .max }

    /// Opens a stream and returns its number; the caller has asked `hasRoom` and `takesCalls`.
    mutating func open(isComplete: Bool, _ attachment: Attachment) -> UInt32 {
        lastStream += 1
        streams.insert(
            lastStream,
            ClientStream(
                clientEnded: isComplete, sendWindow: FlowWindow(peer.initialWindowBytes),
                receiveWindow: FlowWindow(settings.initialWindowBytes), attachment: attachment))
        return lastStream
    }

    /// The call is over; nil when it was before.
    mutating func finish(_ stream: UInt32) -> Attachment? { streams.remove(stream)?.attachment }

    /// The bytes to permit the server on a stream now; nil when it is too soon or the caller holds the stream.
    mutating func creditDue(_ stream: UInt32) -> UInt32? {
        guard let position = streams.position(of: stream) else { return nil }
        let due = streams[position: position].uncredited
        guard !streams[position: position].isPaused, due > 0, due * 2 >= Int(settings.initialWindowBytes) else {
            return nil
        }
        streams[position: position].uncredited = 0
        _ = streams[position: position].receiveWindow.permit(UInt32(due))
        return UInt32(due)
    }

    /// Takes one frame, header and payload, whole.
    mutating func receive(_ header: FrameHeader, _ payload: RawSpan) -> ClientAction {
        guard let kind = FrameKind(rawValue: header.kind) else {
            return FrameRules.mayBeIgnored(header.kind) && isOpen ? .nothing : .fail(.unknownKind(header.kind))
        }
        if let violation = FrameRules.violation(of: header, kind) { return .fail(violation) }
        // A server that cannot take the connection at all may say so at once.
        guard isOpen || kind == .goAway else {
            return kind == .hello ? receiveHello(header, payload) : .fail(.helloExpected)
        }
        switch kind {
        case .message: return receiveMessage(header, payload)
        case .status: return receiveStatus(header)
        case .window: return receiveWindow(header, payload)
        case .ping: return .pong(UInt64(littleEndian: payload.loadInteger(at: 0)))
        case .pong: return .pongReceived(UInt64(littleEndian: payload.loadInteger(at: 0)))
        case .goAway: return receiveGoAway(header)
        case .hello: return .fail(.secondHello)
        case .request, .end, .cancel, .credential: return .fail(.kindFromWrongSide(kind))
        }
    }

    private mutating func receiveHello(_ header: FrameHeader, _ payload: RawSpan) -> ClientAction {
        guard header.code == Settings.protocolVersion else { return .fail(.unsupportedVersion(header.code)) }
        guard let settings = Settings(payload: payload) else { return .fail(.malformedSettings) }
        // What was sent on open streams before counts against the window that the server really has.
        let difference = Int(settings.initialWindowBytes) - Int(peer.initialWindowBytes)
        for stream in streams.streams {
            guard let position = streams.position(of: stream) else { continue }
            streams[position: position].sendWindow.consume(-difference)
        }
        peer = settings
        isOpen = true
        return .opened
    }

    private mutating func receiveMessage(_ header: FrameHeader, _ payload: RawSpan) -> ClientAction {
        let stream = header.stream
        guard stream <= lastStream else { return .fail(.streamNeverOpened(.message, stream)) }
        // Frames may be under way for a call that is over on our side.
        guard let position = streams.position(of: stream) else { return .nothing }
        let isPart = streams[position: position].assembly.isActive
        let size = streams[position: position].assembly.bytes.count + payload.byteCount
        guard size <= Int(settings.messageBytesMax) else {
            return .refuse(stream, .messageTooLarge(max: settings.messageBytesMax))
        }
        streams[position: position].receiveWindow.consume(payload.byteCount)
        streams[position: position].uncredited += payload.byteCount
        if isPart || header.flags.contains(.more) {
            streams[position: position].assembly.append(payload, at: 0)
            if header.flags.contains(.more) { return .nothing }
            assembled = streams[position: position].assembly.take()
        }
        return .message(
            stream, isPart ? .assembled : .inFrame(from: 0), isLast: header.flags.contains(.endStream))
    }

    private func receiveStatus(_ header: FrameHeader) -> ClientAction {
        guard header.stream <= lastStream else { return .fail(.streamNeverOpened(.status, header.stream)) }
        guard let code = Self.status(header) else { return .fail(.unknownStatus(header.code)) }
        return streams.contains(header.stream) ? .status(header.stream, code) : .nothing
    }

    private mutating func receiveWindow(_ header: FrameHeader, _ payload: RawSpan) -> ClientAction {
        guard header.stream <= lastStream else { return .fail(.streamNeverOpened(.window, header.stream)) }
        guard let position = streams.position(of: header.stream) else { return .nothing }
        let increment = UInt32(littleEndian: payload.loadInteger(at: 0))
        guard streams[position: position].sendWindow.permit(increment) else {
            return .refuse(header.stream, .windowTooLarge(max: FlowWindow.max))
        }
        return .windowOpened(header.stream)
    }

    private mutating func receiveGoAway(_ header: FrameHeader) -> ClientAction {
        guard let code = Self.status(header) else { return .fail(.unknownStatus(header.code)) }
        let last = min(header.stream, servedUntil ?? .max)
        servedUntil = last
        return .goAway(code, lastStream: last)
    }

    private static func status(_ header: FrameHeader) -> StatusCode? {
        UInt8(exactly: header.code).flatMap(StatusCode.init(rawValue:))
    }
}
