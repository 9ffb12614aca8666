// A connection whose first bytes have not shown yet which protocol it speaks.

import Basics
import Calls
import Connections
import EventLoops
import NativeProtocol
import TLS

/// Waits for the first bytes, then puts the right driver in its place: one case of ``WireProtocol``, one driver. With
/// TLS, the first bytes are those after the handshake. A trusted proxy may send a ``ProxyHeader`` before all of them.
final class OpeningConnection: ChannelDriver, TimerTarget {
    let channel: Channel
    private let peerAddress: String
    private let server: ServerLoop
    let socket: SocketKind
    private let rpcs: RPCTable
    /// Loop time at which the connection was accepted.
    let openedAt: UInt64
    private var timer: EventLoop.Timer?
    private var isSecured = false
    /// What a trusted proxy has sent before the first byte.
    private(set) var proxyHeader: ProxyHeader?
    /// Whether the next bytes may be a header of a proxy.
    private var mayHaveHeader: Bool
    /// Whether `ServerShared` counts a handshake of this connection.
    private(set) var isShakingHands = false

    init(channel: Channel, server: ServerLoop, peerAddress: String, socket: SocketKind, rpcs: RPCTable) {
        self.socket = socket
        mayHaveHeader = !socket.isUnix
        self.rpcs = rpcs
        self.channel = channel
        self.server = server
        self.peerAddress = peerAddress
        openedAt = channel.loop.nowMilliseconds
        timer = channel.loop.schedule(afterMilliseconds: server.configuration.headerMilliseconds, self)
    }

    func received(_ bytes: RawSpan) -> ReceiveProgress {
        if mayHaveHeader, let progress = receivedHeader(bytes) { return progress }
        if let tls = server.configuration.tls, !socket.isUnix, !isSecured { return begin(tls, bytes) }
        endHandshake()
        guard let detected = WireProtocol.of(bytes) else {
            return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1)
        }
        guard detected.isAllowed(by: channel.handshake) else {
            channel.closeAfterFlush(.protocolNotServed("\(detected), which is not what ALPN agreed on"))
            return ReceiveProgress(consumed: bytes.byteCount)
        }
        stopTimer()
        let isServed = server.install(
            detected, on: channel, rpcs: rpcs, peerAddress: peerAddress, openedAt: openedAt, insteadOf: self)
        if isServed {
            // The other protocols have their first bytes for themselves.
            return ReceiveProgress(consumed: detected == .hearth ? Preface.hearth.count : 0)
        }
        if detected == .http1 { channel.write { $0.append(utf8: Self.refusalOfHTTP1) } }
        channel.closeAfterFlush(.protocolNotServed("\(detected)"))
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    // MARK: A header of a proxy

    /// Takes the header of a proxy.
    ///
    /// - Returns: nil if the bytes are the client's.
    private func receivedHeader(_ bytes: RawSpan) -> ReceiveProgress? {
        if ProxyHeader.mayBegin(bytes), !server.trusts(peerAddress) {
            return closed(.protocolNotServed("PROXY, from an address that is not a trusted proxy's"), bytes)
        }
        switch ProxyHeader.beginning(of: bytes) {
        case .incomplete(let needed): return ReceiveProgress(consumed: 0, bytesNeeded: needed)
        case .header(let header, let count):
            mayHaveHeader = false
            take(header)
            return ReceiveProgress(consumed: count)
        case .violation(let text): return closed(.violation("PROXY: \(text)"), bytes)
        case .version1:
            refuse(.proxyVersion1)
            return ReceiveProgress(consumed: 0)
        case .none:
            mayHaveHeader = false
            return nil
        }
    }

    private func closed(_ reason: CloseReason, _ bytes: RawSpan) -> ReceiveProgress {
        channel.close(reason)
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func take(_ header: ProxyHeader) {
        if server.enter(header) {
            proxyHeader = header
        } else {
            refuse(.tooManyOfNetwork(server.configuration.networkConnectionsMax))
        }
    }

    private func refuse(_ refusal: ConnectionRefusal) {
        stopTimer()
        server.refuse(self, refusal, peerAddress: peerAddress)
    }

    // MARK: TLS

    /// The first bytes of a connection with TLS.
    private func begin(_ tls: ServerTLS, _ bytes: RawSpan) -> ReceiveProgress {
        switch FirstBytes.of(bytes) {
        case nil: return ReceiveProgress(consumed: 0, bytesNeeded: bytes.byteCount + 1)
        case .tls: beginHandshake(tls)
        case .plainHTTP, .other: refuse(.plainText)
        }
        return ReceiveProgress(consumed: 0)
    }

    private func beginHandshake(_ tls: ServerTLS) {
        let (shared, max) = (server.shared, tls.handshakesMax)
        // Else a few clients that never end theirs would keep all others out.
        let hasRoom = shared.beginHandshake(max: max) || server.endLongestHandshake() && shared.beginHandshake(max: max)
        guard hasRoom else { return tooManyHandshakes() }
        isShakingHands = true
        do throws(TLSError) {
            channel.secure(try TLSSession(server: tls.context()))
            isSecured = true
        } catch {
            channel.close(.tls(error))
        }
    }

    /// Ends the connection: there are too many handshakes.
    func tooManyHandshakes() {
        let max = server.configuration.tls?.handshakesMax ?? 0
        channel.close(.tls(TLSError(.limit, "more than \(max) handshakes at once")))
    }

    private func endHandshake() {
        if isShakingHands { server.shared.endHandshake() }
        isShakingHands = false
    }

    // MARK: Time limits and ending

    func produce() { if channel.handshake != nil { endHandshake() } }

    func timerFired(_ token: UInt64) {
        timer = nil
        channel.close(.handshakeTimeout)
    }

    func channelClosed(_ reason: CloseReason) {
        endHandshake()
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
