// What comes back over a client's connection, and to which call it goes.

internal import Basics
import Calls
package import EventLoops

extension ClientConnection: ChannelDriver {
    package func received(_ bytes: RawSpan) -> ReceiveProgress {
        lastFrameAt = loop.nowMilliseconds
        keepAlivePingAt = nil
        if !session.isOpen, let foreign = ForeignServer(firstBytes: bytes) {
            handleForeignServer(foreign)
            return ReceiveProgress(consumed: bytes.byteCount)
        }
        let frameBytesMax = Int(session.settings.frameBytesMax)
        var offset = 0
        while phase == .connected {
            switch FrameDecoder.scan(bytes, at: offset, payloadBytesMax: frameBytesMax) {
            case .frame(let header):
                let start = offset + FrameHeader.byteCount
                offset = start + Int(header.length)
                take(header, bytes.extracting(start..<offset))
            case .incomplete(let needed): return ReceiveProgress(consumed: offset, bytesNeeded: needed)
            case .tooLarge(let header): fail(.frameTooLarge(length: header.length, max: frameBytesMax))
            }
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func take(_ header: FrameHeader, _ payload: RawSpan) {
        switch session.receive(header, payload) {
        case .nothing: break
        case .opened: opened()
        case .message(let stream, .inFrame, let isLast): message(stream, payload, isLast)
        case .message(let stream, .assembled, let isLast):
            let whole = session.assembled
            message(stream, unsafe whole.span.bytes, isLast)
        case .status(let stream, let code): if let call = call(on: stream) { status(call, code, payload) }
        case .windowOpened(let stream): if let call = call(on: stream) { sendOutgoing(call, stream) }
        case .pong(let opaque): channel?.write { $0.appendPing(.pong, opaque) }
        case .pongReceived(let opaque): pings.removeValue(forKey: opaque)?(true)
        case .goAway(let code, let last): goAway(code, String(repairingUTF8: payload), last)
        case .refuse(let stream, let refusal):
            if let call = call(on: stream) { cancel(call, CallOutcome(refusal.code, "from \(remote): \(refusal)")) }
        case .fail(let violation): fail(violation)
        }
    }

    private func opened() {
        if configuration.keepAliveMilliseconds > 0 {
            armTimer(afterMilliseconds: configuration.keepAliveMilliseconds)
        } else {
            cancelTimer()
        }
        onEvent?(.ready)
        for stream in session.streams.streams { if let call = call(on: stream) { sendOutgoing(call, stream) } }
        channel?.needsSettling()
    }

    private func message(_ stream: UInt32, _ payload: RawSpan, _ isLast: Bool) {
        guard let call = call(on: stream) else { return }
        switch call.receiver {
        case .unary where isLast: complete(call, .ok, payload)
        case .unary: call.reply = [UInt8](copying: payload)
        case .streaming(let handler):
            handler.received(payload, on: call)
            if isLast { complete(call, .ok) } else { permitMore(stream) }
        case .none: break
        }
    }

    private func status(_ call: ClientCall, _ code: StatusCode, _ text: RawSpan) {
        guard code == .ok, case .unary = call.receiver else {
            return complete(call, CallOutcome(code, String(repairingUTF8: text)))
        }
        guard let reply = call.reply else {
            return complete(call, CallOutcome(.internal, "the server ended the call with OK but sent no reply"))
        }
        complete(call, .ok, unsafe reply.span.bytes)
    }

    private func goAway(_ code: StatusCode, _ text: String, _ last: UInt32) {
        onEvent?(.goingAway(code, text))
        let reason = text.isEmpty ? "" : ": \(text)"
        let goodbye = "\(remote) accepts no more calls\(reason)"
        self.goodbye = goodbye
        let outcome = CallOutcome(.unavailable, goodbye, isUnprocessed: true)
        let neverSent = waiting
        waiting = []
        for call in neverSent { complete(call, outcome) }
        for stream in session.streams.streams where stream > last {
            if let call = call(on: stream) { complete(call, outcome) }
        }
        channel?.needsSettling()
    }

    private func fail(_ violation: ProtocolViolation) {
        channel?.write { $0.appendGoAway(violation.code, violation.description, lastStream: 0) }
        channel?.closeAfterFlush(.violation(violation.description))
        channel = nil
        let outcome =
            session.isOpen
            ? CallOutcome(.internal, "\(remote) violated the protocol: \(violation)")
            : CallOutcome(
                .unavailable, "\(remote) does not speak the Hearth protocol: \(violation)", isUnprocessed: true)
        close(.violation(violation.description), outcome)
    }

    private func handleForeignServer(_ server: ForeignServer) {
        let text = "\(remote) replied in \(server.rawValue): it is not a Hearth server"
        let outcome = CallOutcome(.unavailable, text, isUnprocessed: true)
        close(.violation(ProtocolViolation.helloExpected.description), outcome)
    }

    /// The turn ends: calls that ended may have made room for others.
    package func produce() {
        openWaiting()
        closeIfDone()
    }

    package func channelClosed(_ reason: CloseReason) { close(reason, outcome(of: reason)) }
}
