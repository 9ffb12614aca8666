// A connection to a gRPC server: carries bytes between a channel and a session, and keeps calls, deadlines and the
// watch over the server.
//
//     start ──▶ session ──frames──▶ channel ──▶ server
//     handler ◀── session ◀──frames── channel ◀──┘
//
// Calls may be started before the connection is up; they leave with the handshake.

import Basics
package import Calls
package import EventLoops
import TLS

/// A connection to a gRPC server. Its methods may be called from any thread; handlers are called on the loop's.
package final class GRPCClientConnection: ChannelDriver, GRPCClientSessionDelegate, TimerTarget, @unchecked Sendable {
    // Sendable: all variables are touched on the loop's thread only.

    package let loop: EventLoop
    /// What it connects to, as `host:port`, IPv6 addresses in brackets.
    package let remote: String
    private let host: String
    private let configuration: GRPCClientConfiguration
    private var onEvent: ((GRPCClientEvent) -> Void)?
    private var session: GRPCClientSession!
    private var connector: Connector?
    private var channel: Channel?
    private var token: String
    /// Calls that were started before TCP was up.
    private var waiting: [GRPCClientCall] = []
    private var isLeaving = false
    private var isClosed = false
    private var heardAt: UInt64 = 0
    /// When the ping was sent that nothing has followed yet.
    private var pingedAt: UInt64?
    private var timer: EventLoop.Timer?

    private init(
        _ host: String, _ remote: String, _ loop: EventLoop, _ configuration: GRPCClientConfiguration,
        _ onEvent: @escaping (GRPCClientEvent) -> Void
    ) {
        self.host = host
        self.remote = remote
        self.loop = loop
        self.configuration = configuration
        self.onEvent = onEvent
        token = configuration.token
        session = GRPCClientSession(configuration, delegate: self)
    }

    /// Begins to connect, and returns at once. Calls may be started right away.
    ///
    /// - Parameter onEvent: called on the loop's thread; released after `closed`.
    package static func connect(
        to host: String, port: UInt16, on loop: EventLoop, _ configuration: GRPCClientConfiguration,
        onEvent: @escaping @Sendable (GRPCClientEvent) -> Void
    ) -> GRPCClientConnection {
        let remote = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        let connection = GRPCClientConnection(host, remote, loop, configuration, onEvent)
        connection.onLoop { $0.beginConnecting(port) }
        return connection
    }

    func onLoop(_ work: @escaping @Sendable (GRPCClientConnection) -> Void) {
        if loop.isCurrent { work(self) } else { loop.execute { work(self) } }
    }

    // MARK: Calls

    /// Starts a call.
    ///
    /// - Parameters:
    ///   - path: `/package.Service/Method`.
    ///   - request: the first message.
    ///   - isComplete: whether it is also the client's last.
    ///   - deadlineMilliseconds: the time that the call may take; nil = no limit.
    ///   - handler: released when the call has ended.
    package func start(
        _ path: String, _ request: [UInt8], isComplete: Bool, deadlineMilliseconds: UInt32?,
        handler: any StartedCallHandler & Sendable
    ) -> GRPCClientCall {
        let call = GRPCClientCall(
            self, path: path, request: request, isComplete: isComplete, deadlineMilliseconds: deadlineMilliseconds,
            handler: handler)
        onLoop { $0.start(call) }
        return call
    }

    /// Has calls that start from now on show another token.
    package func show(token: String) { onLoop { $0.token = token } }

    /// Closes now; open calls end with CANCELLED.
    package func close() {
        onLoop { $0.close(CallOutcome(.cancelled, "the connection to \($0.remote) was closed"), gracefully: true) }
    }

    private func start(_ call: GRPCClientCall) {
        guard !isClosed, !isLeaving else {
            return end(call, CallOutcome(.unavailable, "\(remote) accepts no more calls", isUnprocessed: true))
        }
        if let milliseconds = call.deadlineMilliseconds {
            call.deadlineTimer = loop.schedule(afterMilliseconds: UInt64(milliseconds)) { [weak self, weak call] in
                guard let self, let call else { return }
                call.deadlineTimer = nil
                end(call, CallOutcome(.deadlineExceeded, "the deadline of \(milliseconds) ms has passed"))
            }
        }
        if channel == nil { waiting.append(call) } else { open(call) }
    }

    private func open(_ call: GRPCClientCall) {
        guard call.handler != nil else { return }
        guard session.start(call, fields(of: call)) else {
            return end(call, CallOutcome(.unavailable, "\(remote) has no stream left", isUnprocessed: true))
        }
        channel?.needsSettling()
    }

    private func fields(of call: GRPCClientCall) -> [(name: String, value: [UInt8])] {
        var fields = [
            (":method", "POST"), (":scheme", configuration.tls == nil ? "http" : "https"), (":authority", remote),
            (":path", call.path), ("te", "trailers"), ("content-type", "application/grpc"),
            ("user-agent", "hearth"), ("grpc-accept-encoding", "identity,gzip,deflate"),
        ]
        if let milliseconds = call.deadlineMilliseconds {
            fields.append(("grpc-timeout", GRPCClientCall.timeout(milliseconds: milliseconds)))
        }
        if !token.isEmpty { fields.append(("authorization", "Bearer \(token)")) }
        fields += configuration.metadata
        return fields.map { ($0.0, Array($0.1.utf8)) }
    }

    func send(_ message: [UInt8], isLast: Bool, on call: GRPCClientCall) {
        guard call.handler != nil, !call.isSent else { return }
        call.append(message)
        call.isSent = isLast
        if call.stream == 0 { return }
        session.resumeSending(call)
        channel?.needsSettling()
    }

    func resume(_ call: GRPCClientCall) {
        call.isPaused = false
        guard call.handler != nil, call.stream != 0 else { return }
        session.credit(call)
        channel?.needsSettling()
    }

    /// Ends a call on this side, and at the server.
    func end(_ call: GRPCClientCall, _ outcome: CallOutcome) {
        guard call.handler != nil else { return }
        if call.stream != 0 { session.reset(call) } else { waiting.removeAll { $0 === call } }
        ended(call, outcome)
    }

    func ended(_ call: GRPCClientCall, _ outcome: CallOutcome) {
        if let timer = call.deadlineTimer.take() { loop.cancel(timer) }
        channel?.needsSettling()
        call.handler.take()?.finished(outcome)
    }

    // MARK: The connection

    private func beginConnecting(_ port: UInt16) {
        heardAt = loop.nowMilliseconds
        arm(afterMilliseconds: configuration.connectMilliseconds)
        let connector = Connector(host: host, port: port, loop: loop, limits: configuration.channel) {
            [weak self] result in
            self?.connected(result)
        }
        self.connector = connector
        connector.start()
    }

    private func connected(_ result: Result<Channel, SocketError>) {
        connector = nil
        switch result {
        case .failure(let error): close(CallOutcome(.unavailable, error.description, isUnprocessed: true))
        case .success(let channel):
            self.channel = channel
            channel.driver = self
            if let context = configuration.tls {
                do throws(TLSError) {
                    channel.secure(try TLSSession(client: context, serverName: host))
                } catch {
                    return close(insecure(error))
                }
            }
            let calls = waiting
            waiting = []
            for call in calls { open(call) }
            channel.needsSettling()
            channel.startReading()
        }
    }

    private func insecure(_ error: TLSError) -> CallOutcome {
        CallOutcome(.unavailable, "no secure connection to \(remote): \(error)", isUnprocessed: true)
    }

    package func received(_ bytes: RawSpan) -> ReceiveProgress {
        heardAt = loop.nowMilliseconds
        pingedAt = nil
        let failure = session.receive(bytes)
        channel?.needsSettling()
        if let failure {
            transfer()
            close(
                session.isOpen
                    ? CallOutcome(.unavailable, "the connection to \(remote) ended: \(failure)")
                    : CallOutcome(
                        .unavailable, "\(remote) does not speak HTTP/2: \(failure)", isUnprocessed: true),
                gracefully: true)
        }
        return ReceiveProgress(consumed: bytes.byteCount)
    }

    private func transfer() { channel?.transfer { session.send(into: &$0, upTo: $1) } }

    package func produce() {
        guard !isClosed else { return }
        transfer()
        if isLeaving, session.calls.isEmpty {
            close(CallOutcome(.unavailable, "\(remote) accepts no more calls", isUnprocessed: true), gracefully: true)
        }
    }

    package func channelClosed(_ reason: CloseReason) {
        if case .tls(let error) = reason, !session.isOpen { return close(insecure(error)) }
        close(
            session.isOpen
                ? CallOutcome(.unavailable, "the connection to \(remote) was lost")
                : CallOutcome(
                    .unavailable, "\(remote) closed the connection before it replied", isUnprocessed: true))
    }

    func opened() {
        arm(afterMilliseconds: configuration.keepAliveMilliseconds)
        onEvent?(.ready)
    }

    func goingAway(_ text: String) {
        guard !isLeaving else { return }
        isLeaving = true
        onEvent?(.goingAway(text.isEmpty ? "\(remote) accepts no more calls" : "\(remote) says: \(text)"))
        channel?.needsSettling()
    }

    private func close(_ outcome: CallOutcome, gracefully: Bool = false) {
        guard !isClosed else { return }
        isClosed = true
        if let timer = timer.take() { loop.cancel(timer) }
        connector?.cancel()
        connector = nil
        if let channel = channel.take() {
            if gracefully { channel.closeAfterFlush(.finished) } else { channel.close(.finished) }
        }
        let unsent = waiting
        waiting = []
        for call in unsent { ended(call, CallOutcome(outcome.code, outcome.message, isUnprocessed: true)) }
        for call in session.takeAll() { ended(call, outcome) }
        onEvent.take()?(.closed(outcome.message))
    }

    // MARK: Time

    private func arm(afterMilliseconds milliseconds: UInt64) {
        if let timer = timer.take() { loop.cancel(timer) }
        timer = loop.schedule(afterMilliseconds: milliseconds, Watch(of: self))
    }

    package func timerFired(_ token: UInt64) {
        timer = nil
        guard !isClosed else { return }
        guard session.isOpen else {
            return close(
                CallOutcome(
                    .unavailable, "no reply of \(remote) within \(configuration.connectMilliseconds) ms",
                    isUnprocessed: true))
        }
        let now = loop.nowMilliseconds
        if let since = pingedAt, now - since >= configuration.keepAliveTimeoutMilliseconds {
            return close(CallOutcome(.unavailable, "\(remote) stopped responding"))
        }
        if pingedAt == nil, !session.calls.isEmpty, now - heardAt >= configuration.keepAliveMilliseconds {
            pingedAt = now
            session.ping()
            channel?.needsSettling()
        }
        arm(
            afterMilliseconds: pingedAt == nil
                ? configuration.keepAliveMilliseconds : configuration.keepAliveTimeoutMilliseconds)
    }

    /// The timer of a connection that it does not keep alive.
    private final class Watch: TimerTarget {
        private weak var connection: GRPCClientConnection?
        init(of connection: GRPCClientConnection) { self.connection = connection }
        func timerFired(_ token: UInt64) { connection?.timerFired(token) }
    }
}
