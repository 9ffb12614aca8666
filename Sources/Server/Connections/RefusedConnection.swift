// A connection beyond the limit: it gets its refusal in the protocol that it speaks, which its first bytes show.

import Basics
import Connections
import EventLoops
import HTTPProtocols
import NativeProtocol

/// Waits for the first bytes of a connection, over HTTP/2 for the first request, at most `refusalMilliseconds`, and
/// answers them with a refusal. Confined to its loop's thread.
///
/// It holds no more than the opening bytes of a protocol, or a frame's header. `ServerShared` counts it until its
/// socket is closed.
final class RefusedConnection: ChannelDriver, TimerTarget {
    private let channel: Channel
    private let shared: ServerShared
    private let text: String
    private var http2: RefusedHTTP2?
    private var timer: EventLoop.Timer?

    init(channel: Channel, configuration: ServerConfiguration, shared: ServerShared) {
        self.channel = channel
        self.shared = shared
        text = "more than \(configuration.connectionsMax) connections"
        timer = channel.loop.schedule(afterMilliseconds: configuration.refusalMilliseconds, self)
    }

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        if http2 != nil { return receivedHTTP2(bytes) }
        guard let detected = WireProtocol.of(bytes) else {
            return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1)
        }
        switch detected {
        case .hearth: channel.write { $0.appendGoAway(.resourceExhausted, text, lastStream: 0) }
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
            $0.append(RefusedHTTP2.answer(stream, text))
            $0.append(RefusedHTTP2.goAway(lastStream: stream, text))
        }
        end()
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func end() {
        stopTimer()
        channel.closeAfterFlush(.tooManyConnections)
    }

    func produce() {}

    func timerFired(_ token: UInt64) {
        timer = nil
        guard http2 != nil else { return channel.close(.handshakeTimeout) }
        channel.write { $0.append(RefusedHTTP2.goAway(lastStream: 0, text)) }
        channel.closeAfterFlush(.tooManyConnections)
    }

    func channelClosed(_ reason: CloseReason) {
        stopTimer()
        shared.closeRefusal()
    }

    private func stopTimer() {
        if let timer { channel.loop.cancel(timer) }
        timer = nil
    }

    /// The error in the form of Google's REST APIs.
    private var http1Refusal: String {
        let status = HTTPStatus.unavailable
        let body = """
            {"error": {"code": \(status.code), "message": "This server has \(text).", "status": "UNAVAILABLE"}}\n
            """
        return "HTTP/1.1 \(status.code) \(status.phrase)\r\nContent-Type: application/json; charset=utf-8\r\n"
            + "Content-Length: \(body.utf8.count)\r\nRetry-After: 1\r\nConnection: close\r\n\r\n\(body)"
    }
}
