// A real server on a real socket, and clients of it, for the tests that need them.

package import Basics
package import Calls
package import Connections
package import EventLoops
package import NativeProtocol
package import Server
import TestSupport
import Testing

#if !THREAD_SANITIZER
    // See ThreadSanitizer.swift.
    package import Synchronization
#endif

/// A server of ``EchoService`` on a free port, ended with `stop`.
package final class LiveServer {
    package let group: EventLoopGroup
    package let server: SocketServer
    package let record = EchoService.Record()
    package let events = Mutex<[ServerEvent]>([])
    private let clientLoops = EventLoopGroup(count: 1, name: "test-client")

    package init(loops: Int = 1, _ configure: (inout ServerConfiguration) -> Void = { _ in }) throws {
        group = EventLoopGroup(count: loops, name: "test-server")
        var configuration = ServerConfiguration()
        configure(&configuration)
        let record = record
        server = try SocketServer.start(configuration, rpcs: TestProcedures.table, on: group) { _ in
            LoopServices(calls: EchoService(record: record))
        }
    }

    /// From now on Write asks its clients to stop after each message.
    package func holdWrites() { record.state.withLock { $0.holdsWrites = true } }

    package var clientLoop: EventLoop { clientLoops.loops[0] }

    package func connect(
        _ configuration: ClientConfiguration = ClientConfiguration(),
        onEvent: @escaping @Sendable (ClientConnectionEvent) -> Void = { _ in }
    ) -> ClientConnection {
        .connect(to: "127.0.0.1", port: server.port, on: clientLoop, configuration, onEvent: onEvent)
    }

    package func statistics() -> ServerStatistics {
        let promise = Promise<ServerStatistics>()
        server.statistics { promise.fulfil($0) }
        return promise.wait()!
    }

    /// Returns when every connection the server knows of is gone.
    package func drain(graceMilliseconds: UInt64 = 0) {
        let done = Promise<Bool>()
        server.drain(graceMilliseconds: graceMilliseconds) { done.fulfil(true) }
        expectEqual(done.wait(), true, "the server did not drain")
    }

    package func stop() {
        drain()
        stopAtOnce()
    }

    /// Cuts every connection.
    package func stopAtOnce() {
        clientLoops.stop()
        group.stop()
        // A call knows its connection, that its handler, and that the record: let go of the calls that tests have
        // answered.
        let answered = record.state.withLock { state in
            defer { state.pending = [] }
            return state.pending
        }
        withExtendedLifetime(answered) {}
    }
}

/// How a call ended, and the reply's bytes.
package struct Reply: Equatable, Sendable {
    package var outcome: CallOutcome
    package var bytes: [UInt8] = []

    package init(outcome: CallOutcome, bytes: [UInt8] = []) {
        self.outcome = outcome
        self.bytes = bytes
    }
}

extension ClientConnection {
    /// A unary call that blocks the test.
    package func callAndWait(_ rpc: RPC, _ payload: [UInt8], _ options: RequestOptions = RequestOptions()) -> Reply? {
        let promise = Promise<Reply>()
        unary(rpc, payload, options) { outcome, reply in
            promise.fulfil(Reply(outcome: outcome, bytes: [UInt8](copying: reply)))
        }
        return promise.wait()
    }
}

/// Collects a streaming reply.
package final class Collector: ClientCallHandler, Sendable {
    package struct State {
        package var messages: [[UInt8]] = []
        package var outcome: CallOutcome?
    }
    package let state = Mutex(State())
    package let changed = Signal()

    package init() {}

    package func received(_ message: RawSpan, on call: ClientCall) {
        let copy = [UInt8](copying: message)
        state.withLock { $0.messages.append(copy) }
        changed.notify()
    }

    package func finished(_ outcome: CallOutcome, on call: ClientCall) {
        state.withLock { $0.outcome = outcome }
        changed.notify()
    }

    package func waitForEnd() -> CallOutcome? {
        guard changed.wait(until: { state.withLock { $0.outcome != nil } }) else { return nil }
        return state.withLock { $0.outcome }
    }

    package func waitForMessages(_ count: Int) -> Bool {
        changed.wait { state.withLock { $0.messages.count >= count || $0.outcome != nil } }
            && state.withLock { $0.messages.count >= count }
    }

    package var messages: [[UInt8]] { state.withLock { $0.messages } }
}

package func littleEndianBytes(_ values: UInt32...) -> [UInt8] {
    values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
}
