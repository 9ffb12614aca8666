// A connection to a server: translates between the pool's calls and the transport's.

import Calls
import DocumentModel
import EventLoops
import FirestoreMessages
import NativeProtocol
import TLS

/// A connection to a server that is opening, open or closing. For the thread of the pool's loop.
final class SocketConnection: PooledConnection, @unchecked Sendable {
    // Unchecked: everything runs on the thread of the pool's loop, where the transport calls back, too.

    let id: ConnectionPool.ConnectionID
    let pool: ConnectionPool
    private var connection: ClientConnection?
    private var isDialled = false
    private(set) var isClosing = false
    /// The server has refused the connection since it is not one with TLS.
    private var tlsIsRequired = false

    init(_ id: ConnectionPool.ConnectionID, pool: ConnectionPool) {
        self.id = id
        self.pool = pool
    }

    func dial(_ configuration: HearthClient.Configuration, _ credential: Credential) {
        isDialled = true
        var transport = ClientConfiguration()
        transport.connectMilliseconds = max(1, configuration.connectTimeout.nanoseconds / 1_000_000)
        transport.messageBytesMax = UInt32(clamping: configuration.messageBytesMax)
        transport.tls = configuration.tls
        transport.credential = credential
        guard let path = configuration.socketPath else {
            connection = ClientConnection.connect(
                to: configuration.host, port: configuration.port, on: pool.loop, transport, onEvent: happened)
            return
        }
        do throws(SocketError) {
            connection = try ClientConnection.connect(
                toSocketAt: path, on: pool.loop, transport, onEvent: happened)
        } catch {
            // As over a network: the pool learns of the outcome after this call.
            let description = error.description
            pool.loop.execute { self.pool.closed(self.id, description) }
        }
    }

    @Sendable private func happened(_ event: ClientConnectionEvent) {
        switch event {
        case .ready: pool.connected(id)
        case .goingAway(let code, _):
            if code == .failedPrecondition { tlsIsRequired = true }
            pool.goingAway(id)
        case .closed(let reason, let description):
            connection = nil
            pool.closed(id, description, cause(of: reason))
        }
    }

    private func cause(of reason: CloseReason) -> OutageCause {
        if case .tls(let error) = reason, error.kind == .untrustedPeer { return .certificateIsUntrusted }
        return tlsIsRequired ? .tlsIsRequired : .other
    }

    func show(_ credential: Credential) { connection?.show(credential) }

    func start(_ call: PooledCall, deadlineMilliseconds: UInt32?, requestID: RequestID?) -> (any StartedCall)? {
        guard let connection else {
            ended(call, CallOutcome(.unavailable, "the connection is closed", isUnprocessed: true))
            return nil
        }
        let options = RequestOptions(deadlineMilliseconds: deadlineMilliseconds, requestID: requestID)
        if call.isStreaming {
            return connection.stream(
                call.method.rpc, call.request, isComplete: !call.isBidirectional, options,
                handler: MessageReceiver(call: call, connection: self))
        }
        return connection.unary(call.method.rpc, call.request, options) { outcome, reply in
            if outcome.code == .ok { call.received(reply) }
            self.ended(call, outcome)
        }
    }

    func close() {
        guard !isClosing else { return }
        isClosing = true
        if isDialled { connection?.close() } else { pool.closed(id, "the connection was closed before it was opened") }
    }
}

/// Receives the messages of a streaming call.
private final class MessageReceiver: ClientCallHandler, Sendable {
    private let call: PooledCall
    private let connection: SocketConnection

    init(call: PooledCall, connection: SocketConnection) {
        self.call = call
        self.connection = connection
    }

    func received(_ message: RawSpan, on transportCall: ClientCall) { call.received(message) }
    func finished(_ outcome: CallOutcome, on transportCall: ClientCall) { connection.ended(call, outcome) }
}
