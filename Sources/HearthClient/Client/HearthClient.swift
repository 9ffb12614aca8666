package import Basics
package import Dispatch
import DocumentModel
package import EventLoops
import FirestoreMessages
import Synchronization

/// A client of one Hearth server over the native protocol, or of a store in this process, with connections, retries,
/// deadlines and request identifiers.
///
/// The SDK's surface, the loader, the tests and the benchmarks use it.
///
///     any thread                        the thread of an event loop
///     ----------                        ---------------------------
///     encode the request
///     loop.execute ------------------>  ConnectionPool: place the call on a connection, set its deadline
///                                       PooledConnection: one write for all calls of a loop iteration
///                                       ... replies: one read for many replies
///     continuation resumes  <---------  PooledCall.finished
///     decode the reply
///
/// A call costs one thread switch in each direction and a few allocations. The caller's thread decodes the reply.
/// Documents are passed on as the bytes of their fields.
///
/// ``RetryPolicy`` decides about retries. Commits carry a request identifier: if the reply is lost, the client sends
/// the commit again, and the server applies it once. A call past its deadline ends with DEADLINE_EXCEEDED; its commit
/// may have been applied.
///
/// Thread-safe. If a client is released without `close`, its calls and threads end.
package final class HearthClient: Sendable {
    package let configuration: HearthClient.Configuration
    private let loops: EventLoopGroup
    private let pools: [ConnectionPool]
    /// The token of the calls, if the configuration has a provider of it.
    private let tokens: TokenKeeper?
    /// The store in this process, if there is no server.
    private let store: (any OpenStore)?
    private let nextLoop = Atomic<Int>(0)
    private let isClosed = Atomic<Bool>(false)
    /// The Listen streams.
    let watchStreams = Mutex<[WatchStream]>([])

    /// Makes a client; connections are dialled when calls need them.
    ///
    /// - Throws: `.invalidArgument` for a configuration without loops or connections; if the configuration names a
    ///   store, `.unimplemented` without an opener, and what the opener throws.
    package init(_ configuration: HearthClient.Configuration) throws(RequestError) {
        guard configuration.eventLoops > 0, configuration.connectionsPerLoop > 0 else {
            throw .invalidArgument("A client needs at least one event loop and one connection.")
        }
        self.configuration = configuration
        let store = try configuration.store.map { (location) throws(RequestError) in try configuration.open(location) }
        self.store = store
        loops = EventLoopGroup(count: configuration.eventLoops, name: "hearth-client")
        let first = loops.loops[0]
        let tokens = store == nil ? configuration.tokenProvider.map { TokenKeeper($0, configuration, on: first) } : nil
        self.tokens = tokens
        pools = loops.loops.map { loop in
            ConnectionPool(loop: loop, configuration: configuration, store: store, tokens: tokens)
        }
    }

    /// Ends all calls with CANCELLED, closes all connections and ends the threads. Calling it again does nothing.
    package func close() async {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        for stream in watchStreams.withLock({ $0 }) { stream.close() }
        tokens?.close()
        await Self.end(pools, loops, store)
    }

    deinit {
        guard !isClosed.load(ordering: .relaxed) else { return }
        tokens?.close()
        // The task keeps the pools until nothing refers to them any more.
        Task { [pools, loops, store] in await Self.end(pools, loops, store) }
    }

    /// Ends a client of a store in this process and its use of the store, when the process ends.
    ///
    /// Blocks, not after the deadline as long as the loops are alive; not for the thread of a loop.
    package func closeStore(before deadline: DispatchTime) {
        guard let store, !isClosed.exchange(true, ordering: .relaxed) else { return }
        let closing = DispatchGroup()
        for pool in pools {
            closing.enter()
            pool.shutDownFromAnyThread { closing.leave() }
        }
        guard closing.wait(timeout: deadline) == .success else { return }
        loops.stop()
        store.release()
    }

    private static func end(_ pools: [ConnectionPool], _ loops: EventLoopGroup, _ store: (any OpenStore)?) async {
        for pool in pools {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                pool.shutDownFromAnyThread { continuation.resume() }
            }
        }
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            // Waiting for threads blocks; a separate thread may.
            SystemThread.runDetached(name: "client-close") {
                loops.stop()
                store?.release()
                continuation.resume()
            }
        }
        withExtendedLifetime(pools) {}
    }

    /// Closes the connections and lets calls wait or fail, or allows connections again. Returns at once; calls that
    /// begin later are affected.
    package func switchNetwork(_ isEnabled: Bool) {
        for pool in pools { pool.loop.execute { pool.setNetworkEnabled(isEnabled) } }
    }

    /// The user of the program has changed, or may have: the token provider is asked again. Returns at once.
    package func tokenMayHaveChanged() { tokens?.changed() }

    /// Returns when the network is as the last switch has it, or the client is closed.
    package func networkSwitched() async {
        for pool in pools {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                if !pool.enqueue({ continuation.resume() }) { continuation.resume() }
            }
        }
    }

    // MARK: Calls of any method

    /// Makes a call with one reply.
    ///
    /// - Parameter completion: called once, on the loop's thread: it must not block.
    @discardableResult
    func call(
        _ method: Method, _ request: [UInt8], kind: CallKind, isOrdered: Bool = false,
        options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) -> PooledCall {
        let timeout = kind == .queuedWrite ? nil : milliseconds(options.timeout ?? configuration.callTimeout)
        let call = UnaryCall(
            method, request: request, kind: kind, isOrdered: isOrdered, options: options,
            timeoutMilliseconds: timeout, completion: completion)
        start(call)
        return call
    }

    /// Makes a call with one reply and waits for it. Cancelling the task cancels the call.
    nonisolated(nonsending) func call(
        _ method: Method, _ request: [UInt8], kind: CallKind, options: HearthClient.CallOptions
    ) async throws(RequestError) -> [UInt8] {
        let result =
            await waiting { cancellation, completion in
                call(method, request, kind: kind, options: options.cancelled(by: cancellation), completion: completion)
            } as Result<[UInt8], RequestError>
        return try result.get()
    }

    /// Makes a call with a stream of replies, combined into one result.
    func collect<Collected: Sendable>(
        _ method: Method, _ request: [UInt8], options: HearthClient.CallOptions, into initial: Collected,
        add: @escaping @Sendable (inout Collected, RawSpan) throws -> Void,
        isEnough: @escaping @Sendable (Collected) -> Bool = { _ in false },
        completion: @escaping @Sendable (Result<Collected, RequestError>) -> Void
    ) {
        start(
            CollectingCall(
                method, request: request, options: options,
                timeoutMilliseconds: milliseconds(options.timeout ?? configuration.streamTimeout), into: initial,
                add: add, isEnough: isEnough, completion: completion))
    }

    /// Hands a call to a loop: ordered ones always to the first, others in turn.
    func start(_ call: PooledCall) {
        if call.cancellation?.isCancelled == true {
            return call.finished(RequestError(.cancelled, "The call was cancelled."))
        }
        let pool: ConnectionPool
        if pools.count == 1 || call.isOrdered {
            pool = pools[0]
        } else {
            let place = nextLoop.wrappingAdd(1, ordering: .relaxed).oldValue
            pool = pools[Int(UInt(bitPattern: place) % UInt(pools.count))]
        }
        guard start(call, on: pool) else { return }
        call.cancellation?.onCancel { [weak call] in
            if let call { pool.cancelFromAnyThread(call) }
        }
    }

    /// Hands calls to the first loop together, in their order.
    func startInOrder(_ calls: [PooledCall]) {
        let pool = pools[0]
        var started: [PooledCall] = []
        for call in calls {
            call.home = pool
            if call.cancellation?.isCancelled == true {
                call.finished(RequestError(.cancelled, "The call was cancelled."))
            } else {
                started.append(call)
            }
        }
        if started.isEmpty { return }
        guard pool.enqueue(started) else {
            for call in started { call.finished(RequestError(.cancelled, "The client is closed.")) }
            return
        }
        for call in started {
            call.cancellation?.onCancel { [weak call] in
                if let call { pool.cancelFromAnyThread(call) }
            }
        }
    }

    /// The loop of ordered calls.
    package var orderedLoop: EventLoop { pools[0].loop }

    /// The loop of the Listen streams.
    var watchLoop: EventLoop { pools[0].loop }

    /// Starts the call of a Listen stream on its loop.
    func startListening(_ call: PooledCall) { _ = start(call, on: pools[0]) }

    /// - Returns: false if the client is closed; the call has ended then.
    private func start(_ call: PooledCall, on pool: ConnectionPool) -> Bool {
        call.home = pool
        if pool.enqueue(call) { return true }
        call.finished(RequestError(.cancelled, "The client is closed."))
        return false
    }

    func milliseconds(_ timeout: Duration) -> UInt64 { max(1, timeout.nanoseconds / 1_000_000) }
}
