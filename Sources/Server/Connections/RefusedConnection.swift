// A connection that is not served: it gets its refusal in the protocol that it speaks, which its first bytes show.

import Basics
import Connections
import EventLoops
import HTTPProtocols
import NativeProtocol

/// Why a connection is not served.
struct ConnectionRefusal {
    /// UNAVAILABLE or RESOURCE_EXHAUSTED, if another attempt may succeed later, or FAILED_PRECONDITION.
    let code: StatusCode
    /// The code of the native protocol's GOAWAY.
    let goAwayCode: StatusCode
    /// ASCII without `%`, below 100 bytes.
    let text: String
    let reason: CloseReason

    /// There are `connectionsMax` connections.
    static func tooMany(_ connectionsMax: Int) -> ConnectionRefusal {
        ConnectionRefusal(
            code: .unavailable, goAwayCode: .resourceExhausted,
            text: "this server has more than \(connectionsMax) connections",
            reason: .tooManyConnections)
    }

    /// The client's network has `max` connections.
    static func tooManyOfNetwork(_ max: Int) -> ConnectionRefusal {
        ConnectionRefusal(
            code: .resourceExhausted, goAwayCode: .resourceExhausted,
            text: "your address has more than \(max) connections", reason: .tooManyConnections)
    }

    /// A client speaks plain text on a port for TLS.
    static let plainText = ConnectionRefusal(
        code: .failedPrecondition, goAwayCode: .failedPrecondition, text: "this port requires TLS",
        reason: .protocolNotServed("plain text"))

    /// A proxy names its client by the first version of the PROXY protocol.
    static let proxyVersion1 = ConnectionRefusal(
        code: .failedPrecondition, goAwayCode: .invalidArgument,
        text: "the PROXY protocol is served in version 2 alone, not in version 1",
        reason: .protocolNotServed("PROXY version 1"))
}

/// Waits for the first bytes of a connection, over HTTP/2 for the first request, at most `refusalMilliseconds`, and
/// answers them with a refusal. Confined to its loop's thread.
///
/// It holds no more than the opening bytes of a protocol, or a frame's header.
final class RefusedConnection: ChannelDriver, TimerTarget {
    private let channel: Channel
    private let refusal: ConnectionRefusal
    private let ended: (CloseReason) -> Void
    private var http2: RefusedHTTP2?
    private var timer: EventLoop.Timer?

    /// - Parameter ended: called when the socket is closed.
    init(
        channel: Channel, _ refusal: ConnectionRefusal, afterMilliseconds: UInt64,
        ended: @escaping (CloseReason) -> Void
    ) {
        self.channel = channel
        self.refusal = refusal
        self.ended = ended
        timer = channel.loop.schedule(afterMilliseconds: afterMilliseconds, self)
    }

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        if http2 != nil { return receivedHTTP2(bytes) }
        guard let detected = WireProtocol.of(bytes) else {
            return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1)
        }
        switch detected {
        case .hearth: channel.write { $0.appendGoAway(refusal.goAwayCode, refusal.text, lastStream: 0) }
        case .http1: channel.write { $0.append(utf8: http1Refusal) }
        case .http2:
            http2 = RefusedHTTP2()
            channel.write { $0.append(RefusedHTTP2.settings) }
            return receivedHTTP2(bytes)
        case .unknown: break
        }
        end()
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func receivedHTTP2(_ bytes: RawSpan) -> ReceiveProgress {
        var consumed = 0
        guard let stream = http2?.firstRequest(bytes, consumed: &consumed) else {
            return ReceiveProgress(consumed: consumed)
        }
        channel.write {
            $0.append(RefusedHTTP2.answer(stream, refusal))
            $0.append(RefusedHTTP2.goAway(lastStream: stream, refusal.text))
        }
        end()
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func end() {
        stopTimer()
        channel.closeAfterFlush(refusal.reason)
    }

    func produce() {}

    func timerFired(_ token: UInt64) {
        timer = nil
        guard http2 != nil else { return channel.close(.handshakeTimeout) }
        channel.write { $0.append(RefusedHTTP2.goAway(lastStream: 0, refusal.text)) }
        channel.closeAfterFlush(refusal.reason)
    }

    func channelClosed(_ reason: CloseReason) {
        stopTimer()
        ended(reason)
    }

    private func stopTimer() {
        if let timer { channel.loop.cancel(timer) }
        timer = nil
    }

    /// The error in the form of Google's REST APIs.
    private var http1Refusal: String {
        let status = HTTPStatus(refusal.code)
        let message = "\(refusal.text.prefix(1).uppercased())\(refusal.text.dropFirst())."
        let body = """
            {"error": {"code": \(status.code), "message": "\(message)", "status": "\(refusal.code)"}}\n
            """
        let retry = [.unavailable, .resourceExhausted].contains(refusal.code) ? "Retry-After: 1\r\n" : ""
        return "HTTP/1.1 \(status.code) \(status.phrase)\r\nContent-Type: application/json; charset=utf-8\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\(retry)Connection: close\r\n\r\n\(body)"
    }
}
