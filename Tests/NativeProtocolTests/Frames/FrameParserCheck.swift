// What must hold for the frame decoder and both sessions, whatever bytes arrive. Called by tests and by the fuzzer.

import Basics
import Calls

#if canImport(NativeProtocol)
    import ConnectionTestSupport

    @testable import NativeProtocol
#endif

enum FrameParserCheck {
    private static let messageBytesMax: UInt32 = 300
    private static let streamsMax: UInt32 = 3
    private static let assemblyBytesMax = 400
    private static let frameBytesMax = 256

    /// The broken property, or nil.
    static func violation(_ bytes: RawSpan) -> String? {
        var whole: [String] = []
        if let broken = serve(bytes, chunk: .max, log: &whole) { return "server: \(broken)" }
        var pieces: [String] = []
        if let broken = serve(bytes, chunk: 1 + bytes.byteCount % 13, log: &pieces) {
            return "server, in pieces: \(broken)"
        }
        if whole != pieces { return "the server understood \(whole) whole and \(pieces) in pieces" }
        return receive(bytes).map { "client: \($0)" }
    }

    /// Plays a connection of the server: bytes arrive in chunks, calls complete at once or are kept, by their number.
    private static func serve(_ bytes: RawSpan, chunk: Int, log: inout [String]) -> String? {
        var limits = ServerSessionLimits(
            settings: Settings(messageBytesMax: messageBytesMax, streamsMax: streamsMax, initialWindowBytes: 64),
            assemblyBytesMax: assemblyBytesMax)
        limits.keepsAuthorization = true
        var session = ServerSession(limits: limits, rpcs: TestProcedures.table)
        var available = 0
        var offset = 0
        var highest: UInt32 = 0
        while available < bytes.byteCount {
            available += min(chunk, bytes.byteCount - available)
            scanning: while true {
                switch FrameDecoder.scan(bytes.extracting(first: available), at: offset, payloadBytesMax: frameBytesMax)
                {
                case .tooLarge: return nil
                case .incomplete(let needed):
                    if needed <= available - offset { return "asks for \(needed) bytes and has \(available - offset)" }
                    break scanning
                case .frame(let header):
                    let start = offset + FrameHeader.byteCount
                    offset = start + Int(header.length)
                    if offset > available { return "a frame beyond its bytes" }
                    let payload = bytes.extracting(start..<offset)
                    let action = session.receive(header, payload)
                    log.append("\(action)")
                    if case .fail = action { return nil }
                    if let broken = perform(action, payload, &session, &highest) { return broken }
                }
            }
        }
        return nil
    }

    private static func perform(
        _ action: ServerAction, _ payload: RawSpan, _ session: inout ServerSession, _ highest: inout UInt32
    ) -> String? {
        switch action {
        case .begin(let stream, _, let place):
            if stream == 0 || !session.isOpen(stream) { return "a call began on stream \(stream), which is not open" }
            if case .inFrame = place, stream <= highest { return "stream \(stream) after \(highest)" }
            highest = max(highest, stream)
            if let shown = session.authorization(of: stream), !isBearer(shown) { return "a token that is none" }
            if let broken = check(place, payload, session) { return broken }
            // Every other call completes at once.
            if stream.isMultiple(of: 2) { _ = session.finish(stream) } else { _ = session.settleCurrent() }
        case .message(let stream, let place, _):
            if !session.streams.contains(stream) { return "a message on stream \(stream), which is not open" }
            if let broken = check(place, payload, session) { return broken }
            _ = session.creditDue(stream)
        case .refuse(let stream, _), .cancelled(let stream): _ = session.finish(stream)
        case .halfClosed(let stream): if !session.streams.contains(stream) { return "the end of no call" }
        default: break
        }
        if session.current != 0 { return "a call is left current" }
        return session.openCalls > Int(streamsMax) ? "\(session.openCalls) calls are open" : nil
    }

    private static func isBearer(_ text: String) -> Bool {
        let token = text.utf8.dropFirst("Bearer ".utf8.count)
        return text.hasPrefix("Bearer ") && (1...frameBytesMax).contains(token.count)
            && token.allSatisfy { 0x21...0x7E ~= $0 }
    }

    private static func check(_ place: MessageBytes, _ payload: RawSpan, _ session: ServerSession) -> String? {
        switch place {
        case .inFrame(let offset): offset <= payload.byteCount ? nil : "a message beyond its frame"
        case .assembled: session.assembled.count <= Int(messageBytesMax) ? nil : "a message above the limit"
        }
    }

    /// Plays a connection of the client with three calls open.
    private static func receive(_ bytes: RawSpan) -> String? {
        var session = ClientSession<UInt32>(
            settings: Settings(messageBytesMax: messageBytesMax, initialWindowBytes: 64))
        for number in 1...3 as ClosedRange<UInt32> { _ = session.open(isComplete: number != 3, number) }
        var offset = 0
        while case .frame(let header) = FrameDecoder.scan(bytes, at: offset, payloadBytesMax: frameBytesMax) {
            let start = offset + FrameHeader.byteCount
            offset = start + Int(header.length)
            switch session.receive(header, bytes.extracting(start..<offset)) {
            case .message(let stream, let place, let isLast):
                if !session.streams.contains(stream) { return "a message for no call" }
                if place == .assembled, session.assembled.count > Int(messageBytesMax) {
                    return "a message above the limit"
                }
                _ = session.creditDue(stream)
                if isLast, session.finish(stream) != stream { return "the end of another call" }
            case .status(let stream, _), .refuse(let stream, _):
                if session.finish(stream) != stream { return "the end of another call" }
            case .windowOpened(let stream): if !session.streams.contains(stream) { return "a window for no call" }
            case .goAway: if session.takesCalls { return "calls after GOAWAY" }
            case .fail: return nil
            default: break
            }
        }
        return nil
    }
}
