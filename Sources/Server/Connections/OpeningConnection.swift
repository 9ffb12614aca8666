// A connection whose first bytes have not shown yet which protocol it speaks.

import Basics
import Calls
import EventLoops
import NativeProtocol

/// Waits for the first bytes, then puts the right driver in its place: one case of ``WireProtocol``, one driver.
final class OpeningConnection: ChannelDriver, TimerTarget {
    let channel: Channel
    private let peerAddress: String
    private let server: ServerLoop
    private let isLocal: Bool
    private let rpcs: RPCTable
    private let openedAt: UInt64
    private var timer: EventLoop.Timer?

    init(channel: Channel, server: ServerLoop, peerAddress: String, isLocal: Bool, rpcs: RPCTable) {
        self.isLocal = isLocal
        self.rpcs = rpcs
        self.channel = channel
        self.server = server
        self.peerAddress = peerAddress
        openedAt = channel.loop.nowMilliseconds
        timer = channel.loop.schedule(afterMilliseconds: server.configuration.headerMilliseconds, self)
    }

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        guard let detected = WireProtocol.of(bytes) else {
            return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1)
        }
        stopTimer()
        let isServed = server.install(
            detected, on: channel, rpcs: rpcs, peerAddress: peerAddress, isLocal: isLocal, openedAt: openedAt,
            insteadOf: self)
        if isServed {
            // The other protocols have their first bytes for themselves.
            return ReceiveProgress(consumed: detected == .hearth ? Preface.hearth.count : 0)
        }
        if detected == .http1 { channel.write { $0.append(utf8: Self.refusalOfHTTP1) } }
        channel.closeAfterFlush(.protocolNotServed("\(detected)"))
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    func produce() {}

    func timerFired(_ token: UInt64) {
        timer = nil
        channel.close(.handshakeTimeout)
    }

    func channelClosed(_ reason: CloseReason) {
        stopTimer()
        server.openingEnded(self, peerAddress: peerAddress, reason)
    }

    /// The server drains: connections whose protocol is not known yet are closed.
    func end() { channel.close(.finished) }

    private func stopTimer() {
        if let timer { channel.loop.cancel(timer) }
        timer = nil
    }

    private static let refusalText = "HTTP/1.1 is not supported on this port, which speaks Hearth's protocol.\n"

    private static let refusalOfHTTP1 = """
        HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain; charset=utf-8\r\n\
        Content-Length: \(refusalText.utf8.count)\r\nConnection: close\r\n\r\n\(refusalText)
        """
}
