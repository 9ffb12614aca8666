// A server in the test's process: real sockets and frames, and a script with the reply to each call.

package import Basics
package import Calls
import Connections
import DocumentModel
import EventLoops
package import FirestoreMessages
import Server
import Synchronization
import TestSupport
import Testing

/// What the script does with a call.
package enum Reaction: Sendable {
    case respond([UInt8])
    case fail(StatusCode, String)
    /// The call stays open until the server is cut or drained.
    case hold
    /// A stream of messages, ended with OK.
    case stream([[UInt8]])
    /// The same, but it stays open.
    case openStream([[UInt8]])
    /// A stream of `count` messages of `byteCount` bytes, produced as fast as the client takes them.
    case longStream(count: Int, byteCount: Int)
}

/// One call as the script sees it.
package struct ScriptedCall: Sendable {
    package var method: FirestoreMessages.Method
    package var requestID: RequestID?
    package var deadlineMilliseconds: UInt32?
    package var payload: [UInt8]
    /// What the client showed; nil without a token.
    package var authorization: String?
}

/// Serves a script on 127.0.0.1.
package final class FakeServer: Sendable {
    package typealias Script = @Sendable (ScriptedCall) -> Reaction

    package let port: UInt16
    package var address: String { "127.0.0.1:\(port)" }
    private let group: EventLoopGroup
    private let server: SocketServer
    private let record: Record
    private let isRunning = Atomic<Bool>(true)

    private final class Record: Sendable {
        struct State {
            var calls: [ScriptedCall] = []
            var cancelled = 0
            var produced = 0
        }
        private let state = Mutex(State())

        func read<Result: Sendable>(_ body: (State) -> Result) -> Result { state.withLock { body($0) } }

        func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

        /// Waits until the state is as `condition` says; the test fails when it never is.
        func wait(until what: String, _ condition: (State) -> Bool) async {
            do { try await eventually(what) { read(condition) } } catch { Issue.record(error) }
        }
    }

    private static let rpcs = RPCTable(
        FirestoreMessages.Method.allCases.map { RPCTable.Entry($0.rpc, name: $0.name, paths: $0.paths) })

    /// - Parameter port: nil for one that is reserved for it, so that another server can take its place.
    package init(port: UInt16? = nil, loops: Int = 1, script: @escaping Script) throws {
        var configuration = ServerConfiguration()
        configuration.port = try port ?? UInt16(LoopbackSocket.reservePort())
        group = EventLoopGroup(count: loops, name: "fake")
        let record = Record()
        self.record = record
        configuration.keepsAuthorization = true
        do {
            server = try SocketServer.start(configuration, rpcs: Self.rpcs, on: group) { _ in
                LoopServices(calls: Handler(script: script, record: record))
            }
        } catch {
            group.stop()
            throw error
        }
        self.port = server.port
    }

    deinit { cut() }

    /// The calls so far, in the order of their arrival.
    package var calls: [ScriptedCall] { record.read { $0.calls } }
    /// Calls that the client gave up.
    package var cancelledCount: Int { record.read { $0.cancelled } }
    /// Messages of long streams produced so far.
    package var producedCount: Int { record.read { $0.produced } }

    /// Waits until so many calls have arrived.
    package func waitForCalls(_ count: Int) async {
        await record.wait(until: "\(count) calls have arrived") { $0.calls.count >= count }
    }

    /// Waits until the client has given up so many calls.
    package func waitForCancellations(_ count: Int) async {
        await record.wait(until: "\(count) calls are cancelled") { $0.cancelled >= count }
    }

    /// Cuts every connection at once and stops listening; open calls are never answered.
    package func cut() {
        if isRunning.exchange(false, ordering: .relaxed) { group.stop() }
    }

    /// Says go-away to every client, finishes what was accepted, then closes.
    package func drain(graceMilliseconds: UInt64 = 10_000) async {
        await withCheckedContinuation { continuation in
            server.drain(graceMilliseconds: graceMilliseconds) { continuation.resume() }
        }
    }

    private final class Handler: ServiceHandler {
        private let script: Script
        private let record: Record

        init(script: @escaping Script, record: Record) {
            self.script = script
            self.record = record
        }

        func begin(_ call: Call, payload: RawSpan) {
            guard let method = FirestoreMessages.Method(rawValue: call.rpc.number) else { return }
            let scripted = ScriptedCall(
                method: method, requestID: call.head.requestID, deadlineMilliseconds: call.head.deadlineMilliseconds,
                payload: [UInt8](copying: payload), authorization: call.authorization)
            let reaction = script(scripted)
            record.change { $0.calls.append(scripted) }
            switch reaction {
            case .respond(let bytes): call.respond { $0.append(bytes) }
            case .fail(let code, let message): call.fail(code, message)
            case .hold: break
            case .stream(let messages):
                call.stream(ListedMessages(messages, then: .finished))
            case .openStream(let messages):
                call.stream(ListedMessages(messages, then: .waiting))
            case .longStream(let count, let byteCount):
                call.stream(LongStream(count: count, byteCount: byteCount, record: record))
            }
        }

        func abandoned(_ reason: CancellationReason) {
            guard reason == .client else { return }
            record.change { $0.cancelled += 1 }
        }
    }

    private final class ListedMessages: ResponseSource {
        private var messages: ArraySlice<[UInt8]>
        private let end: SourceStep

        init(_ messages: [[UInt8]], then end: SourceStep) { (self.messages, self.end) = (messages[...], end) }

        func next(into output: inout ByteBuffer) -> SourceStep {
            guard let message = messages.popFirst() else { return end }
            output.append(message)
            return .message
        }

        func cancelled() {}
    }

    private final class LongStream: ResponseSource {
        private var left: Int
        private let byteCount: Int
        private let record: Record

        init(count: Int, byteCount: Int, record: Record) {
            left = count
            self.byteCount = byteCount
            self.record = record
        }

        func next(into output: inout ByteBuffer) -> SourceStep {
            guard left > 0 else { return .finished }
            left -= 1
            output.append([UInt8](repeating: UInt8(truncatingIfNeeded: left), count: byteCount))
            record.change { $0.produced += 1 }
            return .message
        }

        func cancelled() { record.change { $0.cancelled += 1 } }
    }
}
