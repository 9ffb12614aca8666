// How long a pool lives that nobody owns any more.

import Basics
import ClientTestSupport
import EventLoops
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20)))
final class PoolLifetimeTests {
    private let loops = EventLoopGroup(count: 1, name: "test")
    private weak var pool: ConnectionPool?

    deinit { loops.stop() }

    /// Makes a call in its own pool, to which nothing of the test refers.
    private func call(
        _ address: String, _ kind: CallKind, timeoutMilliseconds: UInt64? = nil
    ) throws -> AsyncStream<StatusCode> {
        let pool = ConnectionPool(loop: loops.loops[0], configuration: try HearthClient.Configuration(address: address))
        self.pool = pool
        let (outcomes, continuation) = AsyncStream<StatusCode>.makeStream()
        let call = UnaryCall(
            .getDocument, request: [], kind: kind, options: .standard, timeoutMilliseconds: timeoutMilliseconds
        ) { result in
            if case .failure(let error) = result { continuation.yield(error.code) }
            continuation.finish()
        }
        call.home = pool
        expect(pool.enqueue(call))
        return outcomes
    }

    @Test
    func `It is there for its connection, and goes when that is closed`() async throws {
        let server = try FakeServer { _ in .hold }
        let outcomes = try call(server.address, .once)
        await server.waitForCalls(1)
        expect(pool != nil)
        server.cut()
        for await code in outcomes { expectEqual(code, .unavailable) }
        try await eventually("the pool has gone") { pool == nil }
    }

    @Test
    func `It finishes a call that waits for a server, whatever timers are running`() async throws {
        // Nothing listens on port 1: the pool dials again and again until the deadline.
        let outcomes = try call("127.0.0.1:1", .repeatable, timeoutMilliseconds: 300)
        for await code in outcomes { expectEqual(code, .deadlineExceeded) }
        try await eventually("the pool has gone") { pool == nil }
    }

    @Test
    func `A call that ended while it waited does not hide later ones from the limit of an outage`() async throws {
        var configuration = try HearthClient.Configuration(address: "127.0.0.1:1")
        configuration.outageMax = .milliseconds(50)
        let pool = ConnectionPool(loop: loops.loops[0], configuration: configuration)
        func call(_ options: HearthClient.CallOptions) -> (UnaryCall, AsyncStream<StatusCode>) {
            let (outcomes, continuation) = AsyncStream<StatusCode>.makeStream()
            let call = UnaryCall(
                .getDocument, request: [], kind: .repeatable, options: options, timeoutMilliseconds: 20_000
            ) { result in
                if case .failure(let error) = result { continuation.yield(error.code) }
                continuation.finish()
            }
            call.home = pool
            return (call, outcomes)
        }
        // Both wait for the first attempt to connect, and one ends before it fails.
        let (ended, endedCodes) = call(.failFast)
        let (failing, failingCodes) = call(.failFast)
        loops.loops[0].execute {
            expect(pool.enqueue([ended, failing]))
            pool.cancelFromAnyThread(ended)
        }
        for await code in endedCodes { expectEqual(code, .cancelled) }
        for await code in failingCodes { expectEqual(code, .unavailable) }
        // The limit for these two, which began before, has passed then.
        await withCheckedContinuation { continuation in
            loops.loops[0].execute { [loop = loops.loops[0]] in
                loop.schedule(afterMilliseconds: 100) { continuation.resume() }
            }
        }
        let (waiting, waitingCodes) = call(.standard)
        expect(pool.enqueue(waiting))
        for await code in waitingCodes { expectEqual(code, .unavailable) }
    }
}
