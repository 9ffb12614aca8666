// What must hold for an HTTP/2 session, whatever bytes arrive. Called by tests and by the fuzzer.

import Basics
import Calls

#if canImport(HTTPProtocols)
    import ConnectionTestSupport

    @testable import HTTPProtocols
#endif

/// Plays the connection: calls complete at once, later, with a stream of messages, or not at all, by their number.
final class HTTP2SessionCheck: HTTP2SessionDelegate {
    private static let limits = HTTP2Limits(
        streamsMax: 8, messageBytesMax: 500, assemblyBytesMax: 900, frameBytesMax: 16_384, streamWindowBytes: 2_000,
        connectionWindowBytes: 70_000, metadataBytesMax: 600, resetsMax: 20, resetsPerSecond: 0, idleFramesMax: 50,
        idleFramesPerSecond: 0, pauseBytes: 1_000, keptBackBytesMax: 3_000, servesHTTP: true, httpFieldsMax: 12)

    private var session: HTTP2Session!
    private var open: Set<UInt32> = []
    private var later: [UInt32] = []
    private var violation: String?

    /// The broken property, or nil.
    static func violation(_ bytes: RawSpan) -> String? {
        let whole = HTTP2SessionCheck()
        if let broken = whole.play(bytes, chunk: .max) { return broken }
        let pieces = HTTP2SessionCheck()
        if let broken = pieces.play(bytes, chunk: 1 + bytes.byteCount % 13) { return "in pieces: \(broken)" }
        let lenient = HTTP2SessionCheck()
        if let broken = lenient.play(bytes, chunk: .max, checksFields: false) { return "fields unchecked: \(broken)" }
        return nil
    }

    private func play(_ bytes: RawSpan, chunk: Int, checksFields: Bool = true) -> String? {
        session = HTTP2Session(
            limits: Self.limits, rpcs: TestProcedures.table, delegate: self, checksFields: checksFields)
        var offset = 0
        var isOpen = true
        while isOpen, violation == nil, offset < bytes.byteCount {
            let end = offset + min(chunk, bytes.byteCount - offset)
            if case .failed = session.receive(bytes.extracting(offset..<end), now: 0) { isOpen = false }
            offset = end
            turnEnds()
        }
        // What was left open completes, or reaches its deadline while windows may be closed: all calls must come to
        // an end.
        for stream in later where session.isOpen(stream) && stream & 8 == 0 {
            if let exchange = session.exchange(stream) { reply(exchange) } else { answer(stream) }
        }
        turnEnds()
        for stream in session.openStreams {
            _ = session.endCall(stream)
            if let exchange = session.exchange(stream) {
                exchange.reply.hasBegun
                    ? session.abandonBody(stream) : session.submitHead(stream, .unavailable, [], hasBody: false)
                continue
            }
            session.submitStatus(stream, stream & 8 == 0 ? .unavailable : .deadlineExceeded, "the end")
        }
        turnEnds()
        // What the client does not take is dropped when it is seen a second time.
        for _ in 0..<2 {
            session.dropStalledAnswers()
            turnEnds()
        }
        if isOpen, !session.isFinished, session.unsentBytes != 0 {
            note("\(session.unsentBytes) bytes are unsent and kept")
        }
        if session.openCalls != 0 { note("\(session.openCalls) calls are left") }
        if session.assemblyBytes != 0 { note("\(session.assemblyBytes) bytes of messages are left") }
        return violation
    }

    private func turnEnds() {
        var output = ByteBuffer()
        var rounds = 0
        while session.send(into: &output, upTo: 100), rounds < 1_000 {
            output.reset()
            rounds += 1
        }
        while session.isInflating { session.inflatePiece() }
        session.beginWaiting()
        _ = session.send(into: &output, upTo: .max)
        if session.assemblyBytes < 0 || session.assemblyBytes > Self.limits.assemblyBytesMax {
            note("\(session.assemblyBytes) bytes of messages are kept")
        }
        if session.openCalls > Int(Self.limits.streamsMax) { note("\(session.openCalls) calls are open") }
        if session.openCalls != session.openStreams.count {
            note("\(session.openCalls) calls in \(session.openStreams.count) streams")
        }
        if session.unsentBytes < 0 { note("less than nothing is unsent") }
        // The mark, and what one call may add to it.
        if session.unsentBytes > Self.limits.keptBackBytesMax + 8 * 600 {
            note("\(session.unsentBytes) bytes are unsent")
        }
    }

    private func note(_ text: String) { violation = violation ?? text }

    private func answer(_ stream: UInt32) {
        guard session.isOpen(stream) else { return }
        var message = session.openMessage()
        message.append([UInt8](repeating: 1, count: Int(stream % 600)))
        session.endMessage(stream, message, isLast: true)
    }

    /// A reply of several parts, which may wait for a closed window.
    private func reply(_ exchange: HTTP2Exchange) {
        let stream = exchange.reply.number
        _ = session.endCall(stream)
        let hasBody = !exchange.reply.isHead
        if !exchange.reply.hasBegun {
            session.submitHead(stream, .ok, [HTTPField("X-Test", "\(stream)")], hasBody: hasBody)
        }
        exchange.reply.hasBegun = true
        let part = [UInt8](repeating: 3, count: Int(stream % 300))
        if hasBody {
            session.appendBody(stream, part.span.bytes)
            session.appendBody(stream, part.span.bytes)
            session.endBody(stream)
        }
    }

    // MARK: HTTP2SessionDelegate

    func request(_ exchange: HTTP2Exchange, _ body: RawSpan) {
        let stream = exchange.reply.number
        if !session.isOpen(stream) { note("a request on stream \(stream), which is not open") }
        if !open.insert(stream).inserted { note("stream \(stream) began twice") }
        if body.byteCount > Self.limits.messageBytesMax { note("a body above the limit") }
        let head = exchange.head
        if head.fieldCount > Self.limits.httpFieldsMax { note("too many headers") }
        if head.pathBytes.byteCount == 0 { note("a request without a path") }
        switch stream >> 1 & 3 {
        case 0: reply(exchange)
        case 1: later.append(stream)
        case 2:
            exchange.reply.hasBegun = true
            session.submitHead(stream, .ok, [], hasBody: !exchange.reply.isHead)
            let part = [UInt8](repeating: 4, count: 50)
            if !exchange.reply.isHead { session.appendBody(stream, part.span.bytes) }
            later.append(stream)
        default:
            _ = session.endCall(stream)
            session.submitHead(stream, .noContent, [], hasBody: false)
        }
    }

    func refused(_ exchange: HTTP2Exchange, _ refusal: HTTPRefusal) {
        let stream = exchange.reply.number
        if open.contains(stream) { note("stream \(stream) was refused after its beginning") }
        if session.endCall(stream) == nil { note("stream \(stream) was refused after its end") }
        session.submitHead(stream, refusal.status, [], hasBody: true)
        let text = Array(refusal.text.utf8)
        session.appendBody(stream, text.span.bytes)
        session.endBody(stream)
    }

    func begin(_ stream: UInt32, _ head: RequestHead, _ payload: RawSpan) {
        if !session.isOpen(stream) { note("a call began on stream \(stream), which is not open") }
        if !open.insert(stream).inserted { note("stream \(stream) began twice") }
        if payload.byteCount > Self.limits.messageBytesMax { note("a message above the limit") }
        if head.rpc.shape != .bidirectional, !head.isComplete { note("a call began before its end") }
        switch stream >> 1 & 3 {
        case 0: answer(stream)
        case 1: later.append(stream)
        case 2:
            var message = session.openMessage()
            message.append([UInt8](repeating: 2, count: 50))
            session.endMessage(stream, message, isLast: false)
            session.setPaused(stream, true)
            later.append(stream)
        default:
            _ = session.endCall(stream)
            session.submitStatus(stream, .notFound, "nicht da: \u{e9}")
        }
    }

    func message(_ stream: UInt32, _ payload: RawSpan, isLast: Bool) {
        if !open.contains(stream) { note("a message of stream \(stream), which did not begin") }
        if payload.byteCount > Self.limits.messageBytesMax { note("a message above the limit") }
        session.setPaused(stream, payload.byteCount % 2 == 0)
    }

    func halfClosed(_ stream: UInt32) {
        if !session.isOpen(stream) { note("the end of stream \(stream), which is not open") }
    }

    func waits(_ stream: UInt32, _ head: RequestHead) {
        if open.contains(stream) { note("stream \(stream) waits and has begun") }
    }

    func cancelled(_ stream: UInt32) {
        if session.endCall(stream) == nil { note("stream \(stream) was cancelled after its end") }
    }

    func endedEmpty(_ stream: UInt32) {
        if session.endCall(stream) != false { note("stream \(stream) ended empty after it began, or twice") }
        session.submitStatus(stream, .ok, "")
    }

    func refused(_ stream: UInt32, _ refusal: Refusal) {
        if session.endCall(stream) == nil { note("stream \(stream) was refused after its end") }
        if session.exchange(stream) != nil { return session.submitHead(stream, .contentTooLarge, [], hasBody: false) }
        session.submitStatus(stream, refusal.code, refusal.description)
    }

    func windowOpened(_ stream: UInt32?) {
        if let stream { _ = session.hasWindow(stream) }
    }

    func pingAcknowledged() {}
    func takeBuffer() -> ByteBuffer { ByteBuffer() }
    func recycle(_ writer: consuming ByteBuffer) {}
}
