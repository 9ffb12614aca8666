// A server on its own port, and a connection to it.

import Basics
import Calls
import ConnectionTestSupport
import Dispatch
import DocumentModel
import DocumentStore
import EventLoops
import FirestoreMessages
import FirestoreService
import NativeProtocol
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

/// Starts on a system-picked port with its own directory, which is removed after the test.
final class LiveDatabaseServer {
    let directory = TemporaryDirectory("gateway")
    let gateway: DatabaseServer
    let connection: ClientConnection
    private let group = EventLoopGroup(count: 1, name: "test-client")
    private var isStopped = false

    init(_ change: (inout DatabaseServerConfiguration) -> Void = { _ in }) throws {
        var configuration = DatabaseServerConfiguration(
            store: StoreConfiguration(directory: directory.path(of: "data")), log: Log(level: .error) { _ in })
        configuration.loops = 2
        change(&configuration)
        gateway = try DatabaseServer.start(configuration)
        connection = ClientConnection.connect(to: gateway.host, port: gateway.port, on: group.next())
    }

    deinit {
        connection.close()
        stop()
        group.stop()
    }

    func stop() {
        if !isStopped { gateway.stop() }
        isStopped = true
    }

    /// Another connection to the server; the caller closes it.
    func connect() -> ClientConnection {
        connect(to: gateway.port)
    }

    /// The same to another port of the server.
    func connect(to port: UInt16) -> ClientConnection {
        ClientConnection.connect(to: gateway.host, port: port, on: group.next())
    }

    /// Makes a unary call and waits for its reply.
    func call(
        _ method: FirestoreMessages.Method, _ request: [UInt8], on other: ClientConnection? = nil
    ) -> (outcome: CallOutcome, reply: [UInt8]) {
        let done = DispatchSemaphore(value: 0)
        let answer = Mutex<(CallOutcome, [UInt8])?>(nil)
        (other ?? connection).unary(method.rpc, request) { outcome, reply in
            let copy = [UInt8](copying: reply)
            answer.withLock { $0 = (outcome, copy) }
            done.signal()
        }
        do { try done.wait(until: "a call is complete") } catch { Issue.record(error) }
        return answer.withLock { $0 } ?? (CallOutcome(.unknown, "no answer"), [])
    }

    /// Makes a streaming call and waits for its end; gives it up after so many messages.
    func stream(
        _ method: FirestoreMessages.Method, _ request: [UInt8], messagesMax: Int = .max,
        on other: ClientConnection? = nil
    ) -> (outcome: CallOutcome, messages: [[UInt8]]) {
        let collector = Collector(messagesMax: messagesMax)
        (other ?? connection).stream(method.rpc, request, handler: collector)
        do { try collector.done.wait(until: "a stream has ended") } catch { Issue.record(error) }
        return collector.state.withLock { ($0.outcome, $0.messages) }
    }

    func set(_ path: String, _ fields: [UInt8]) throws -> CallOutcome {
        call(.commit, try Self.commitRequest(path, fields)).outcome
    }

    /// The request that sets one document.
    static func commitRequest(_ path: String, _ fields: [UInt8]) throws -> [UInt8] {
        var writes = WriteList(database: try DatabaseName(Harness.database))
        try Harness.name(path).withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request())
        return writer.copyBytes()
    }

    private final class Collector: ClientCallHandler, Sendable {
        let done = DispatchSemaphore(value: 0)
        let state = Mutex((outcome: CallOutcome(.unknown, ""), messages: [[UInt8]]()))
        private let messagesMax: Int

        init(messagesMax: Int) { self.messagesMax = messagesMax }

        func received(_ message: RawSpan, on call: ClientCall) {
            let copy = [UInt8](copying: message)
            let count = state.withLock { state in
                state.messages.append(copy)
                return state.messages.count
            }
            if count >= messagesMax { call.cancel() }
        }

        func finished(_ outcome: CallOutcome, on call: ClientCall) {
            state.withLock { $0.outcome = outcome }
            done.signal()
        }
    }
}

/// Collects what comes on one streaming call.
final class MessageListener: ClientCallHandler, Sendable {
    /// Signalled for each message.
    let came = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let state = Mutex((outcome: CallOutcome(.unknown, ""), messages: [[UInt8]]()))

    func received(_ message: RawSpan, on call: ClientCall) {
        let copy = [UInt8](copying: message)
        state.withLock { $0.messages.append(copy) }
        came.signal()
    }

    func finished(_ outcome: CallOutcome, on call: ClientCall) {
        state.withLock { $0.outcome = outcome }
        ended.signal()
    }
}
