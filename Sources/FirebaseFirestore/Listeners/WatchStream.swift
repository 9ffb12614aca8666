import Basics
import DocumentModel
import FirestoreMessages
import Synchronization
import Transport

/// All listeners of one client on one Listen stream: opens it, keeps it open, and passes events on.
///
///     add, remove (any thread) ──► loop: WatchState ──► requests ──► ListenCall ──► server
///     listeners  ◀── events ◀── WatchState ◀── messages ◀────────────────┘
///
/// A stream that ends is opened again after a wait that grows; targets continue from their last snapshots.
final class WatchStream: @unchecked Sendable {
    // Unchecked: the variables are touched on the loop's thread only.

    /// Called on the loop's thread; must not block.
    typealias Handler = @Sendable (WatchEvent) -> Void

    private let loop: EventLoop
    private let start: @Sendable (PooledCall) -> Void
    private let lastID = Atomic<Int32>(0)

    private var state: WatchState
    private var handlers: [Int32: Handler] = [:]
    private var syncHandlers: [Int32: @Sendable () -> Void] = [:]
    private var call: ListenCall?
    private var failures = 0
    private var retryTimer: EventLoop.Timer?
    private var offlineTimer: EventLoop.Timer?
    private var offlineHandlers: [Int32: @Sendable () -> Void] = [:]
    private var jitter = JitterGenerator(seed: .random(in: 0 ... .max))
    private var isClosed = false

    /// Time without a server after which listeners without a snapshot get an empty one.
    private static let offlineMilliseconds: UInt64 = 10_000

    /// - Parameters:
    ///   - loop: the loop of the call.
    ///   - start: starts a call on that loop.
    init(database: String, on loop: EventLoop, start: @escaping @Sendable (PooledCall) -> Void) {
        self.loop = loop
        self.start = start
        state = WatchState(database: database)
    }

    // MARK: From any thread

    /// Adds a target.
    ///
    /// - Parameter offline: called on the loop's thread if no server can be reached for some time.
    /// - Returns: a number for `remove(_:)`.
    func add(
        _ kind: ListenTarget.Kind, offline: @escaping @Sendable () -> Void, _ handler: @escaping Handler
    ) -> Int32 {
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        loop.execute { self.insert(id, kind, offline, handler) }
        return id
    }

    /// Removes a target or a handler of consistent snapshots. Events that are on their way may still come.
    func remove(_ id: Int32) { loop.execute { self.drop(id) } }

    /// Calls `handler` on the loop's thread now and after each consistent snapshot.
    func addSyncHandler(_ handler: @escaping @Sendable () -> Void) -> Int32 {
        let id = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        loop.execute {
            self.syncHandlers[id] = handler
            handler()
        }
        return id
    }

    /// Ends the stream for good.
    func close() {
        loop.execute {
            self.isClosed = true
            self.handlers = [:]
            self.syncHandlers = [:]
            self.offlineHandlers = [:]
            self.endCall()
        }
    }

    // MARK: Targets

    private func insert(
        _ id: Int32, _ kind: ListenTarget.Kind, _ offline: @escaping @Sendable () -> Void, _ handler: @escaping Handler
    ) {
        if isClosed { return }
        handlers[id] = handler
        offlineHandlers[id] = offline
        let request = state.add(id, kind)
        if let call {
            call.send(request)
        } else if retryTimer == nil {
            open()
        }
        watchForOutage()
    }

    private func drop(_ id: Int32) {
        handlers[id] = nil
        syncHandlers[id] = nil
        offlineHandlers[id] = nil
        guard let request = state.remove(id) else { return }
        if state.isEmpty { endCall() } else { call?.send(request) }
    }

    // MARK: The stream

    private func open() {
        if isClosed || call != nil { return }
        let requests = state.reconnect()
        guard let first = requests.first else { return }
        let call = ListenCall(first) { [weak self] call, event in self?.take(event, from: call) }
        for request in requests.dropFirst() { call.send(request) }
        self.call = call
        start(call)
    }

    private func endCall() {
        if let retryTimer { loop.cancel(retryTimer) }
        if let offlineTimer { loop.cancel(offlineTimer) }
        retryTimer = nil
        offlineTimer = nil
        guard let call else { return }
        self.call = nil
        call.home?.cancelFromAnywhere(call)
    }

    private func take(_ event: ListenCall.Event, from call: ListenCall) {
        guard call === self.call else { return }
        switch event {
        case .message(let message): receive(message)
        case .ended:
            self.call = nil
            retry()
        }
    }

    private func receive(_ message: ListenResponse) {
        failures = 0
        do {
            let step = try state.receive(message)
            for request in step.requests { call?.send(request) }
            for (id, event) in step.events { deliver(event, to: id) }
            if step.isConsistent { for handler in syncHandlers.values { handler() } }
        } catch {
            // The server sent what no server should send: begin again.
            endCall()
            retry()
        }
    }

    private func deliver(_ event: WatchEvent, to id: Int32) {
        offlineHandlers[id] = nil
        let handler = handlers[id]
        if case .failure = event { handlers[id] = nil }
        handler?(event)
        if state.isEmpty { endCall() }
    }

    private func retry() {
        if isClosed || state.isEmpty { return }
        let nanoseconds = BackoffPolicy.reconnect.delayNanoseconds(attempt: failures, unit: jitter.nextUnit())
        failures += 1
        retryTimer = loop.schedule(afterMilliseconds: max(1, nanoseconds / 1_000_000)) { [weak self] in
            self?.retryTimer = nil
            self?.open()
        }
    }

    private func watchForOutage() {
        guard offlineTimer == nil, !offlineHandlers.isEmpty else { return }
        offlineTimer = loop.schedule(afterMilliseconds: Self.offlineMilliseconds) { [weak self] in
            guard let self else { return }
            offlineTimer = nil
            for handler in offlineHandlers.values { handler() }
            offlineHandlers = [:]
        }
    }
}

/// The call of a Listen stream. It is not repeated: the stream makes a new one.
final class ListenCall: PooledCall, @unchecked Sendable {
    enum Event {
        case message(ListenResponse)
        case ended(RequestError?)
    }

    /// Requests that wait until the call is on a connection.
    private var waiting: [ListenRequest] = []
    /// Requests that were sent before the server's first message; nil after it.
    private var unconfirmed: [ListenRequest]? = []
    private let handler: (ListenCall, Event) -> Void

    init(_ first: ListenRequest, handler: @escaping (ListenCall, Event) -> Void) {
        self.handler = handler
        super.init(
            .listen, request: first.encodedBytes(), kind: .repeatable, options: .standard, timeoutMilliseconds: nil)
    }

    override var isStreaming: Bool { true }
    override var isBidirectional: Bool { true }
    override var isRepeatable: Bool { false }

    /// Sends a further request; on the loop's thread.
    func send(_ request: ListenRequest) {
        waiting.append(request)
        sendWaiting()
    }

    private func sendWaiting() {
        guard case .inFlight(_, let started?) = phase else { return }
        for request in waiting { started.send(request.encodedBytes(), isLast: false) }
        unconfirmed?.append(contentsOf: waiting)
        waiting = []
    }

    /// The server did not take the call: everything is sent again.
    override func restart() {
        waiting = (unconfirmed ?? []) + waiting
        unconfirmed = []
    }

    override func received(_ message: RawSpan) {
        sendWaiting()
        unconfirmed = nil
        // What cannot be read is none of this version's messages.
        guard let response = try? ListenResponse(wire: message) else { return }
        handler(self, .message(response))
    }

    override func finished(_ error: RequestError?) { handler(self, .ended(error)) }
}
