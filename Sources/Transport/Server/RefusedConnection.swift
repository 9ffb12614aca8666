// A connection beyond the limit: it gets its refusal in the protocol that it speaks, which its first bytes show.

import DocumentModel

/// Waits for the first bytes of a connection, at most `refusalMilliseconds`, and answers them with a refusal. Confined to its loop's thread.
///
/// It holds no more than the opening bytes of a protocol. `ServerShared` counts it until its socket is closed.
final class RefusedConnection: ChannelDriver, TimerTarget {
    private let channel: Channel
    private let shared: ServerShared
    private let text: String
    private var timer: EventLoop.Timer?

    init(channel: Channel, configuration: ServerConfiguration, shared: ServerShared) {
        self.channel = channel
        self.shared = shared
        text = "more than \(configuration.connectionsMax) connections"
        timer = channel.loop.schedule(afterMilliseconds: configuration.refusalMilliseconds, self)
    }

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        guard let tongue = Tongue.of(bytes) else { return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1) }
        stopTimer()
        switch tongue {
        case .hearth: channel.write { $0.appendGoAway(.resourceExhausted, text, lastStream: 0) }
        case .http1: channel.write { $0.append(utf8: http1Refusal) }
        case .http2: channel.write { $0.append(http2Refusal) }
        case .unknown: break
        }
        channel.closeAfterFlush(.tooManyConnections)
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    func produce() {}

    func timerFired(_ token: UInt64) {
        timer = nil
        channel.close(.tooSlowToSpeak)
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

    /// SETTINGS, which must come first, and GOAWAY: no stream was processed, so clients may try each call again elsewhere.
    private var http2Refusal: [UInt8] {
        let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
        let enhanceYourCalm: [UInt8] = [0, 0, 0, 11]
        let goAway: [UInt8] = [0, 0, UInt8(8 + text.utf8.count), 7, 0, 0, 0, 0, 0]
        return settings + goAway + [0, 0, 0, 0] + enhanceYourCalm + text.utf8
    }
}
