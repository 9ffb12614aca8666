// One connection of the native protocol on the client: opens calls, keeps them, ends them.
//
//     start ──▶ waiting ──connected, room for a stream──▶ open ──reply, status, deadline, cancel, loss──▶ over
//
// Calls may be started before the connection is up; they go out with the handshake, without waiting for the server's
// HELLO. `ClientConnection+Frames.swift` has what comes back.

package import Basics
package import Calls
package import EventLoops
import TLS

/// A connection to a server. `unary`, `stream`, `show`, `ping`, `drain` and `close` may be called from any thread;
/// completions and handlers are called on the loop's.
package final class ClientConnection: @unchecked Sendable {
    // Sendable: all `var`s are touched on the loop's thread only.

    package let loop: EventLoop
    /// What it connects to, as `host:port`, IPv6 addresses in brackets; or the path of a Unix socket.
    package let remote: String
    let configuration: ClientConfiguration
    /// The name that the server's certificate must have; nil for a unix socket.
    private let serverName: String?
    /// What the server said when it stopped taking calls.
    var goodbye: String?
    var onEvent: ((ClientConnectionEvent) -> Void)?

    var phase = Phase.connecting
    var channel: Channel?
    private var connector: Connector?
    var session: ClientSession<ClientCall>
    /// Calls that have no stream yet, oldest first.
    var waiting: [ClientCall] = []
    var pings: [UInt64: (Bool) -> Void] = [:]
    private var lastPing: UInt64 = 0
    var lastFrameAt: UInt64 = 0
    /// When the keep-alive ping was sent that nothing has followed yet.
    var keepAlivePingAt: UInt64?
    private var livenessTimer: EventLoop.Timer?
    private var isDraining = false
    /// What calls show that are sent now.
    private var credential: Credential

    enum Phase {
        case connecting
        /// TCP is up; calls go out. The server may not have said HELLO yet.
        case connected
        case closed
    }

    private init(
        remote: String, serverName: String?, loop: EventLoop, configuration: ClientConfiguration,
        onEvent: @escaping (ClientConnectionEvent) -> Void
    ) {
        self.remote = remote
        self.serverName = serverName
        self.loop = loop
        self.configuration = configuration
        self.onEvent = onEvent
        credential = configuration.credential
        session = ClientSession(settings: configuration.settings)
    }

    /// Begins to connect, and returns at once. Calls may be started right away.
    ///
    /// - Parameter onEvent: called with the connection's events on the loop's thread; released after `closed`.
    package static func connect(
        to host: String, port: UInt16, on loop: EventLoop, _ configuration: ClientConfiguration = ClientConfiguration(),
        onEvent: @escaping @Sendable (ClientConnectionEvent) -> Void = { _ in }
    ) -> ClientConnection {
        let remote = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        let connection = ClientConnection(
            remote: remote, serverName: host, loop: loop, configuration: configuration, onEvent: onEvent)
        connection.onLoop { $0.beginConnecting(host, port) }
        return connection
    }

    /// Connects to a unix socket, at once. Calls may be started right away.
    ///
    /// - Throws: when nothing listens there, or it may not be used.
    package static func connect(
        toSocketAt path: String, on loop: EventLoop, _ configuration: ClientConfiguration = ClientConfiguration(),
        onEvent: @escaping @Sendable (ClientConnectionEvent) -> Void = { _ in }
    ) throws(SocketError) -> ClientConnection {
        let descriptor = try LocalSocket.connect(to: path)
        let connection = ClientConnection(
            remote: path, serverName: nil, loop: loop, configuration: configuration, onEvent: onEvent)
        connection.onLoop { $0.adopt(descriptor, path) }
        return connection
    }

    /// Runs `work` on the loop: at once when that is where we are.
    func onLoop(_ work: @escaping @Sendable (ClientConnection) -> Void) {
        if loop.isCurrent { work(self) } else { loop.execute { work(self) } }
    }

    // MARK: Calls

    /// Starts a unary call.
    ///
    /// - Parameters:
    ///   - payload: the request message.
    ///   - completion: called once, on the loop's thread, with the outcome and, if it is OK, the reply, lent for the
    ///     call.
    @discardableResult
    package func unary(
        _ rpc: RPC, _ payload: [UInt8], _ options: RequestOptions = RequestOptions(),
        completion: @escaping @Sendable (CallOutcome, RawSpan) -> Void
    ) -> ClientCall {
        let call = ClientCall(
            rpc, options, payload: payload, isComplete: true, connection: self, receiver: .unary(completion))
        onLoop { $0.start(call) }
        return call
    }

    /// Starts a call with a streaming reply.
    ///
    /// - Parameters:
    ///   - payload: the first message.
    ///   - isComplete: whether it is also the last that the client sends.
    ///   - handler: used on the loop's thread, let go of when the call is over.
    @discardableResult
    package func stream(
        _ rpc: RPC, _ payload: [UInt8], isComplete: Bool = true, _ options: RequestOptions = RequestOptions(),
        handler: any ClientCallHandler & Sendable
    ) -> ClientCall {
        let call = ClientCall(
            rpc, options, payload: payload, isComplete: isComplete, connection: self, receiver: .streaming(handler))
        onLoop { $0.start(call) }
        return call
    }

    /// Has calls that are sent from now on show another token. Calls that are open keep theirs.
    package func show(_ credential: Credential) {
        onLoop { connection in
            guard connection.credential != credential else { return }
            connection.credential = credential
            if connection.phase == .connected { connection.channel?.write { $0.appendCredential(credential) } }
        }
    }

    /// Asks the server for a sign of life; `completion` gets false when the connection ended first.
    package func ping(_ completion: @escaping @Sendable (Bool) -> Void) {
        onLoop { connection in
            guard connection.phase == .connected else { return completion(false) }
            connection.lastPing += 1
            let opaque = connection.lastPing
            connection.pings[opaque] = completion
            connection.channel?.write { $0.appendPing(.ping, opaque) }
        }
    }

    /// Takes no new calls, and closes when those it has are over.
    package func drain() {
        onLoop { connection in
            connection.isDraining = true
            connection.closeIfDone()
        }
    }

    /// Closes now; open calls end with CANCELLED.
    package func close() {
        onLoop { $0.close(.finished, CallOutcome(.cancelled, "the connection was closed")) }
    }

    private func start(_ call: ClientCall) {
        guard phase != .closed, session.takesCalls, !isDraining else {
            return complete(
                call,
                CallOutcome(.unavailable, "the connection to \(remote) accepts no more calls", isUnprocessed: true))
        }
        if let milliseconds = call.options.deadlineMilliseconds {
            call.deadlineTimer = loop.schedule(afterMilliseconds: UInt64(milliseconds), Deadline(of: call))
        }
        if phase == .connected, waiting.isEmpty, session.hasRoom { open(call) } else { waiting.append(call) }
    }

    func openWaiting() {
        var opened = 0
        while phase == .connected, opened < waiting.count, session.hasRoom, session.takesCalls {
            opened += 1
            open(waiting[opened - 1])
        }
        waiting.removeFirst(opened)
    }

    private func open(_ call: ClientCall) {
        let first = call.outgoing.removeFirst()
        let limit = Int(session.peer.messageBytesMax)
        guard first.payload.count <= limit else {
            return completeLater(
                call,
                CallOutcome(
                    .invalidArgument,
                    "the request of \(first.payload.count) bytes exceeds the server's limit of \(limit)",
                    isUnprocessed: true))
        }
        let stream = session.open(isComplete: first.isLast, call)
        call.state = .open(stream: stream)
        if call.isPausedFromStart { setPaused(call, true) }
        var header = FrameHeader(length: 0, kind: .request, code: call.rpc.number, stream: stream)
        if first.isLast { header.flags.insert(.endStream) }
        let deadline = call.options.deadlineMilliseconds
        let requestID = call.options.requestID
        if deadline != nil { header.flags.insert(.deadline) }
        if requestID != nil { header.flags.insert(.requestID) }
        let after = session.peer.takesAfter ? requestID?.after : nil
        if after != nil { header.flags.insert(.after) }
        let frameBytesMax = Int(session.peer.frameBytesMax)
        channel?.write { output in
            let start = output.count
            output.append(header)
            if let deadline { output.append(littleEndian: deadline) }
            requestID?.append(to: &output)
            after?.append(to: &output)
            output.append(first.payload)
            output.finishMessage(at: start, header, frameBytesMax: frameBytesMax)
        }
        if !call.outgoing.isEmpty { sendOutgoing(call, stream) }
    }

    func send(_ call: ClientCall, _ payload: [UInt8], isLast: Bool) {
        if case .over = call.state { return }
        call.outgoing.append((payload, isLast))
        if case .open(let stream) = call.state { sendOutgoing(call, stream) }
    }

    func finishSending(_ call: ClientCall) {
        if case .over = call.state { return }
        if !call.outgoing.isEmpty {
            call.outgoing[call.outgoing.count - 1].isLast = true
        } else if case .open(let stream) = call.state, let position = session.streams.position(of: stream),
            !session.streams[position: position].clientEnded
        {
            session.streams[position: position].clientEnded = true
            channel?.write { $0.appendEnd(stream: stream) }
        }
    }

    /// Sends what the server's window allows of a call's further messages.
    func sendOutgoing(_ call: ClientCall, _ stream: UInt32) {
        let frameBytesMax = Int(session.peer.frameBytesMax)
        while let next = call.outgoing.first, let position = session.streams.position(of: stream),
            session.streams[position: position].sendWindow.isOpen, !session.streams[position: position].clientEnded
        {
            call.outgoing.removeFirst()
            session.streams[position: position].sendWindow.consume(next.payload.count)
            session.streams[position: position].clientEnded = next.isLast
            let header = FrameHeader(length: 0, kind: .message, flags: next.isLast ? .endStream : [], stream: stream)
            channel?.write { output in
                let start = output.count
                output.append(header)
                output.append(next.payload)
                output.finishMessage(at: start, header, frameBytesMax: frameBytesMax)
            }
        }
    }

    func setPaused(_ call: ClientCall, _ isPaused: Bool) {
        if case .waiting = call.state { call.isPausedFromStart = isPaused }
        guard case .open(let stream) = call.state, let position = session.streams.position(of: stream) else { return }
        session.streams[position: position].isPaused = isPaused
        if !isPaused { permitMore(stream) }
    }

    func permitMore(_ stream: UInt32) {
        guard let bytes = session.creditDue(stream) else { return }
        channel?.write { $0.appendWindow(bytes, stream: stream) }
    }

    /// Ends a call on this side and cancels it at the server, if the server knows it.
    func cancel(_ call: ClientCall, _ outcome: CallOutcome) {
        switch call.state {
        case .over: return
        case .waiting:
            waiting.removeAll { $0 === call }
            var outcome = outcome
            outcome.isUnprocessed = true
            complete(call, outcome)
        case .open(let stream):
            channel?.write { $0.appendCancel(outcome.code, stream: stream) }
            complete(call, outcome)
        }
    }

    fileprivate func deadlinePassed(_ call: ClientCall) {
        call.deadlineTimer = nil
        let limit = call.options.deadlineMilliseconds ?? 0
        cancel(call, CallOutcome(.deadlineExceeded, "the deadline of \(limit) ms has passed"))
    }

    /// The only place where a call ends.
    func complete(_ call: ClientCall, _ outcome: CallOutcome, _ reply: RawSpan = RawSpan()) {
        if case .over = call.state { return }
        if case .open(let stream) = call.state { _ = session.finish(stream) }
        call.state = .over
        if let timer = call.deadlineTimer.take() { loop.cancel(timer) }
        call.outgoing = []
        switch call.receiver.take() {
        case .unary(let completion): completion(outcome, reply)
        case .streaming(let handler): handler.finished(outcome, on: call)
        case .none: break
        }
        if !waiting.isEmpty || isDraining || session.servedUntil != nil { channel?.needsSettling() }
    }

    /// Ends a call whose opening failed, when nobody is in the middle of opening others.
    private func completeLater(_ call: ClientCall, _ outcome: CallOutcome) {
        loop.execute { self.complete(call, outcome) }
    }

    // MARK: The connection

    private func beginConnecting(_ host: String, _ port: UInt16) {
        lastFrameAt = loop.nowMilliseconds
        armTimer(afterMilliseconds: configuration.connectMilliseconds)
        let connector = Connector(host: host, port: port, loop: loop, limits: configuration.channel) {
            [weak self] result in
            self?.connected(result)
        }
        self.connector = connector
        connector.start()
    }

    /// Takes over a connected socket.
    private func adopt(_ descriptor: Int32, _ path: String) {
        lastFrameAt = loop.nowMilliseconds
        armTimer(afterMilliseconds: configuration.connectMilliseconds)
        let error = SocketError(attempt: "connect to \(path)", code: 0, reason: "the loop cannot watch the socket")
        connected(
            Channel(adopting: descriptor, loop: loop, limits: configuration.channel).map { .success($0) }
                ?? .failure(error))
    }

    private func connected(_ result: Result<Channel, SocketError>) {
        connector = nil
        switch result {
        case .failure(let error):
            close(.broken(error.description), CallOutcome(.unavailable, error.description, isUnprocessed: true))
        case .success(let channel):
            phase = .connected
            self.channel = channel
            channel.driver = self
            channel.gathersOutput = configuration.gathersRequests
            guard secure(channel) else { return }
            let settings = session.settings
            let credential = credential
            channel.write {
                $0.append(Preface.hearth)
                settings.appendHello(to: &$0)
                if credential != .none { $0.appendCredential(credential) }
            }
            channel.startReading()
        }
    }

    /// Has TLS begin, if it is configured; false if that fails, and then the connection is closed.
    private func secure(_ channel: Channel) -> Bool {
        guard let context = configuration.tls, let serverName else { return true }
        do throws(TLSError) {
            channel.secure(try TLSSession(client: context, serverName: serverName))
            return true
        } catch {
            close(.tls(error), insecure(error))
            return false
        }
    }

    private func insecure(_ error: TLSError) -> CallOutcome {
        CallOutcome(.unavailable, "no secure connection to \(remote): \(error)", isUnprocessed: true)
    }

    /// The outcome of open calls when the channel ends.
    func outcome(of reason: CloseReason) -> CallOutcome {
        if case .tls(let error) = reason, !session.isOpen { return insecure(error) }
        return session.isOpen ? lost : refused
    }

    /// The connection ended, whether calls were processed or not.
    var lost: CallOutcome { CallOutcome(.unavailable, goodbye ?? "the connection to \(remote) was lost") }

    /// The connection ended before a HELLO: no call was looked at.
    var refused: CallOutcome {
        CallOutcome(
            .unavailable,
            "\(remote) closed the connection before it replied: it is not a Hearth server, or it is stopping",
            isUnprocessed: true)
    }

    func closeIfDone() {
        guard isDraining || session.servedUntil != nil, phase == .connected, session.streams.isEmpty, waiting.isEmpty
        else {
            return
        }
        close(.finished, lost)
    }

    func close(_ reason: CloseReason, _ outcome: CallOutcome) {
        guard phase != .closed else { return }
        phase = .closed
        if let timer = livenessTimer.take() { loop.cancel(timer) }
        connector?.cancel()
        connector = nil
        if let channel = channel.take() {
            if reason == .finished { channel.closeAfterFlush(reason) } else { channel.close(reason) }
        }
        let unanswered = pings.values
        pings = [:]
        for completion in unanswered { completion(false) }
        completeAll(outcome)
        if let complete = onEvent.take() { complete(.closed(reason, outcome.message)) }
    }

    private func completeAll(_ outcome: CallOutcome) {
        var unsent = outcome
        unsent.isUnprocessed = true
        let neverSent = waiting
        waiting = []
        for call in neverSent { complete(call, unsent) }
        for call in session.streams.streams.compactMap(call(on:)) { complete(call, outcome) }
    }

    func call(on stream: UInt32) -> ClientCall? {
        session.streams.position(of: stream).map { session.streams[position: $0].attachment }
    }

    // MARK: Time

    /// Checks the server after this time, and not earlier.
    func armTimer(afterMilliseconds milliseconds: UInt64) {
        if let timer = livenessTimer.take() { loop.cancel(timer) }
        livenessTimer = loop.schedule(afterMilliseconds: milliseconds, LivenessTimer(of: self))
    }

    func cancelTimer() {
        if let timer = livenessTimer.take() { loop.cancel(timer) }
    }

    /// Closes the connection if the server is silent, and sends a ping to one that has been silent for a while.
    fileprivate func checkLiveness() {
        guard phase != .closed else { return }
        livenessTimer = nil
        guard session.isOpen else {
            let text =
                phase == .connecting
                ? "cannot connect to \(remote): no reply within \(configuration.connectMilliseconds) ms"
                : "\(remote) accepted the connection but did not reply within "
                    + "\(configuration.connectMilliseconds) ms: it is not a Hearth server, or it is overloaded"
            return close(.handshakeTimeout, CallOutcome(.unavailable, text))
        }
        let now = loop.nowMilliseconds
        if let since = keepAlivePingAt, now - since >= configuration.keepAliveTimeoutMilliseconds {
            return close(.idle, CallOutcome(.unavailable, "\(remote) stopped responding"))
        }
        let interval = configuration.keepAliveMilliseconds
        if keepAlivePingAt == nil, !session.streams.isEmpty, now - lastFrameAt >= interval {
            keepAlivePingAt = now
            channel?.write { $0.appendPing(.ping, 0) }
        }
        armTimer(afterMilliseconds: keepAlivePingAt == nil ? interval : configuration.keepAliveTimeoutMilliseconds)
    }
}

/// A call's deadline.
private final class Deadline: TimerTarget {
    private let call: ClientCall
    init(of call: ClientCall) { self.call = call }
    func timerFired(_ token: UInt64) { call.connection.deadlinePassed(call) }
}

/// The timer of a connection that it does not keep alive.
private final class LivenessTimer: TimerTarget {
    private weak var connection: ClientConnection?
    init(of connection: ClientConnection) { self.connection = connection }
    func timerFired(_ token: UInt64) { connection?.checkLiveness() }
}
