package import Basics
import DocumentModel
import EventLoops
package import FirestoreMessages
import Synchronization

/// The targets of one client on one Listen stream: opens it, keeps it open, and passes events on.
///
///     add, remove (any thread) ──► loop: WatchState ──► requests ──► ListenCall ──► server
///     handler  ◀── steps ◀── WatchState ◀── messages ◀─────────────────────┘
///
/// A stream that ends is opened again after a wait that grows; targets continue from their last snapshots.
package final class WatchStream: @unchecked Sendable {
    // Unchecked: the variables are touched on the loop's thread only.

    /// What the stream reports.
    package enum Output: Sendable {
        /// Events of targets, which belong together.
        case step(WatchState.Step)
        /// The server has replied.
        case online
        /// The server could not be reached, has refused the stream, or has not replied for some time: why. Reported
        /// until it replies.
        case offline(RequestError)
    }

    private let loop: EventLoop
    private let log: ClientLog?
    private let start: @Sendable (PooledCall) -> Void
    private let handler: @Sendable (Output) -> Void

    private var state: WatchState
    private var call: ListenCall?
    /// Attempts without a reply.
    private var failures = 0
    private var retryTimer: EventLoop.Timer?
    private var silenceTimer: EventLoop.Timer?
    private var jitter = JitterGenerator(seed: .random(in: 0 ... .max))
    private var isOnline = false
    private var isClosed = false
    /// Time of an outage after which it is logged; nil = never.
    private let noticeAfterMilliseconds: UInt64?
    /// The loop's time of the first attempt without a reply; nil while the server replies.
    private var outageBegin: UInt64?
    private var hasWarned = false

    /// Time without a reply after which the server counts as not reachable.
    private static let silenceMilliseconds: UInt64 = 10_000

    /// - Parameters:
    ///   - loop: the loop of the call.
    ///   - noticeAfter: how long the server may be out of reach before this is logged; nil = it is not logged.
    ///   - start: starts a call on that loop.
    ///   - handler: called on the loop's thread; must not block.
    init(
        database: String, on loop: EventLoop, log: ClientLog?, noticeAfter: Duration?,
        start: @escaping @Sendable (PooledCall) -> Void, _ handler: @escaping @Sendable (Output) -> Void
    ) {
        noticeAfterMilliseconds = noticeAfter.map { $0.nanoseconds / 1_000_000 }
        self.loop = loop
        self.log = log
        self.start = start
        self.handler = handler
        state = WatchState(database: database)
    }

    // MARK: From any thread

    /// Adds a target. Ids are never used again.
    ///
    /// - Parameter resume: an earlier snapshot of the target.
    package func add(_ id: Int32, _ kind: ListenTarget.Kind, resume: WatchState.Resumption? = nil) {
        loop.execute { self.insert(id, kind, resume) }
    }

    /// Removes a target. Events that are on their way may still come.
    package func remove(_ id: Int32) { loop.execute { self.drop(id) } }

    /// Connections are allowed again: does not wait for the next attempt.
    package func networkEnabled() {
        loop.execute {
            guard let timer = self.retryTimer else { return }
            self.loop.cancel(timer)
            self.retryTimer = nil
            self.failures = 0
            self.open()
        }
    }

    /// Continues on a new stream, whose call shows the present token.
    package func restart() {
        loop.execute {
            guard self.call != nil else { return }
            self.endCall()
            self.open()
        }
    }

    /// Ends the stream for good.
    package func close() {
        loop.execute {
            self.isClosed = true
            self.endCall()
        }
    }

    // MARK: Targets

    private func insert(_ id: Int32, _ kind: ListenTarget.Kind, _ resume: WatchState.Resumption?) {
        if isClosed { return }
        let request = state.add(id, kind, resume: resume)
        if let call {
            call.send(request)
        } else if retryTimer == nil {
            open()
        }
    }

    private func drop(_ id: Int32) {
        guard let request = state.remove(id) else { return }
        if state.isEmpty { endCall() } else { call?.send(request) }
    }

    // MARK: The stream

    private func open() {
        if isClosed || call != nil { return }
        let requests = state.reconnect()
        guard let first = requests.first else { return }
        let call = ListenCall(first, log: log) { [weak self] call, event in self?.take(event, from: call) }
        for request in requests.dropFirst() { call.send(request) }
        self.call = call
        watchForSilence()
        start(call)
    }

    private func endCall() {
        if let retryTimer { loop.cancel(retryTimer) }
        retryTimer = nil
        stopWatchingForSilence()
        guard let call else { return }
        self.call = nil
        call.home?.cancelFromAnyThread(call)
    }

    private func take(_ event: ListenCall.Event, from call: ListenCall) {
        guard call === self.call else { return }
        switch event {
        case .message(let message): receive(message)
        case .ended(let error):
            self.call = nil
            stopWatchingForSilence()
            if !isOnline { noteOutage(error ?? RequestError(.unavailable, "The server has ended the stream.")) }
            retry()
        }
    }

    /// An attempt got no reply. Programs that only listen learn the reason from the log.
    private func noteOutage(_ reason: RequestError) {
        handler(.offline(reason))
        if reason == .networkDisabled { return outageBegin = nil }
        let begin = outageBegin ?? loop.nowMilliseconds
        outageBegin = begin
        guard let noticeAfterMilliseconds, !hasWarned, loop.nowMilliseconds - begin >= noticeAfterMilliseconds else {
            return
        }
        hasWarned = true
        log?(.warning) { "Listeners get nothing from the server, and try again: \(reason.message)" }
    }

    private func replied() {
        if !isOnline { handler(.online) }
        isOnline = true
        failures = 0
        outageBegin = nil
        if !hasWarned { return }
        hasWarned = false
        log?(.warning) { "Listeners get snapshots from the server again." }
    }

    private func receive(_ message: ListenResponse) {
        stopWatchingForSilence()
        replied()
        do {
            let step = try state.receive(message)
            for request in step.requests { call?.send(request) }
            if !step.events.isEmpty || step.isConsistent { handler(.step(step)) }
            if state.isEmpty { endCall() }
        } catch {
            // The server sent what no server should send: begin again.
            endCall()
            retry()
        }
    }

    private func retry() {
        isOnline = false
        if isClosed || state.isEmpty { return }
        let nanoseconds = BackoffPolicy.reconnect.delayNanoseconds(attempt: failures, unit: jitter.nextUnit())
        failures += 1
        retryTimer = loop.schedule(afterMilliseconds: max(1, nanoseconds / 1_000_000)) { [weak self] in
            self?.retryTimer = nil
            self?.open()
        }
    }

    private func watchForSilence() {
        stopWatchingForSilence()
        let begin = loop.nowMilliseconds
        silenceTimer = loop.schedule(afterMilliseconds: Self.silenceMilliseconds) { [weak self] in
            guard let self else { return }
            silenceTimer = nil
            outageBegin = outageBegin ?? begin
            noteOutage(
                RequestError(.unavailable, "It has not replied within \(Self.silenceMilliseconds / 1000) s."))
        }
    }

    private func stopWatchingForSilence() {
        if let silenceTimer { loop.cancel(silenceTimer) }
        silenceTimer = nil
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
    private let log: ClientLog?
    private let handler: (ListenCall, Event) -> Void

    init(_ first: ListenRequest, log: ClientLog?, handler: @escaping (ListenCall, Event) -> Void) {
        self.log = log
        self.handler = handler
        super.init(
            .listen, request: first.encodedBytes(), kind: .repeatable, options: .failFast,
            timeoutMilliseconds: nil)
    }

    override var isStreaming: Bool { true }
    override var isBidirectional: Bool { true }
    override var isRepeatable: Bool { false }

    /// Sends a further request; on the loop's thread.
    func send(_ request: ListenRequest) {
        log?(.debug) { "listen \(CallSubject.text(of: request)): sent" }
        waiting.append(request)
        sendWaiting()
    }

    private func sendWaiting() {
        guard case .inFlight(_, let started?) = phase else { return }
        for request in waiting { started.send(request.encodedBytes(), isLast: false) }
        waiting = []
    }

    override func received(_ message: RawSpan) {
        sendWaiting()
        // A message that cannot be read is of a later version.
        guard let response = try? ListenResponse(wire: message) else { return }
        handler(self, .message(response))
    }

    override func finished(_ error: RequestError?) { handler(self, .ended(error)) }
}
