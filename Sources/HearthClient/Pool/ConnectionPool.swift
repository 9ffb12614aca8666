// The connections of one event loop and the calls on them. The pool carries out the decisions of `PoolStateMachine`,
// keeps deadlines, and repeats calls according to `RetryPolicy`.

import Basics
import Calls
import DocumentModel
import EventLoops
import NativeProtocol
import Synchronization

/// The pool of one loop. Everything except the part "From other threads" and the initializer is for the loop's thread.
///
/// A pool and its calls refer to each other until the calls have ended, a pool and its connections until they are
/// closed. So a pool without an owner ends when its work does. Its timers hold it weakly.
final class ConnectionPool: @unchecked Sendable {
    // Unchecked: the variables are confined to the loop's thread.

    typealias Machine = PoolStateMachine<PooledCall>
    typealias ConnectionID = Machine.ConnectionID

    let loop: EventLoop
    private let isOpen = Mutex(true)
    private let configuration: HearthClient.Configuration
    private var machine: Machine
    private var connections: [ConnectionID: any PooledConnection] = [:]
    /// The service that the calls go to if there is no server.
    private let service: (any StoreService)?
    private var isPerforming = false
    private var sequence = CommitSequence()
    private var nextOrderNumber: UInt64 = 1
    /// The numbers of the ordered calls that are to be sent again, sorted: calls after the first of them wait.
    private var returning: [UInt64] = []
    /// Calls that ended as unavailable in this iteration; the next one shows whether their connection ended too.
    private var orphans: [ObjectIdentifier: PooledCall] = [:]
    /// Gives the token of the calls; nil if they show none.
    private let tokens: TokenKeeper?
    /// What the connections show; nil before the first answer.
    private var token: ClientToken?
    /// The user of the first token; nil before it.
    private var firstUser: String?
    /// Writes of other users than that of the token.
    private var held: [ObjectIdentifier: PooledCall] = [:]
    /// Why the last attempt to connect got no token; nil if it got one.
    private var tokenFailure: RequestError?
    /// Calls whose token was refused, while there is no other.
    private var renewing: [ObjectIdentifier: PooledCall] = [:]
    /// Calls in backoff, so that the shutdown of the pool can end them.
    private var backingOff: [ObjectIdentifier: PooledCall] = [:]
    /// Ended calls in the machine's queue; they are removed when they are many.
    private var endedWaitingCalls = 0
    private var onShutDown: (() -> Void)?
    private var random = JitterGenerator(seed: .random(in: 0 ... .max))
    /// Why the last connection failed or ended, for messages; nil before that.
    private var lastConnectionFailure: String?
    private var lastOutageCause = OutageCause.other
    /// Decides when to report that calls wait for a server that cannot be reached.
    private var notice: OutageNotice?
    /// Ends the calls that wait when an outage has lasted too long; nil while no call waits for a connection.
    private var outageTimer: EventLoop.Timer?

    /// - Parameters:
    ///   - store: where the calls go; `nil` = to the server of the configuration.
    ///   - tokens: gives the token of the calls; `nil` = they show none.
    init(
        loop: EventLoop, configuration: HearthClient.Configuration, store: (any OpenStore)? = nil,
        tokens: TokenKeeper? = nil
    ) {
        self.loop = loop
        self.tokens = tokens
        service = store?.makeService(on: loop, log: configuration.log)
        self.configuration = configuration
        var pool = Machine.Configuration()
        pool.connectionsMax = configuration.connectionsPerLoop
        pool.growthThreshold = configuration.callsPerConnection
        pool.waitingMax = configuration.waitingCallsMax
        machine = Machine(configuration: pool, jitterSeed: .random(in: 0 ... .max))
        notice = configuration.outageNoticeAfter.map {
            OutageNotice(firstAfterMilliseconds: $0.nanoseconds / 1_000_000)
        }
        tokens?.observe { [weak self] token in
            guard let self else { return }
            loop.execute { self.show(token) }
        }
    }

    private var nowNanoseconds: UInt64 { loop.nowMilliseconds &* 1_000_000 }

    // MARK: From other threads

    /// Submits a call, unless the pool is shutting down. Calls of one thread arrive in its order.
    ///
    /// - Returns: whether the pool accepted the call; only then will it finish the call.
    func enqueue(_ call: PooledCall) -> Bool { enqueue { self.submit(call) } }

    /// Submits calls in their order, unless the pool is shutting down.
    ///
    /// - Returns: whether the pool accepted the calls; only then will it finish them.
    func enqueue(_ calls: [PooledCall]) -> Bool { enqueue { for call in calls { self.submit(call) } } }

    /// Runs a job on the loop's thread, unless the pool is shutting down.
    ///
    /// - Returns: whether the job will run.
    func enqueue(_ job: @escaping @Sendable () -> Void) -> Bool {
        // Under the lock, so that no call arrives after the job that shuts down.
        isOpen.withLock { isOpen in
            if isOpen { loop.execute(job) }
            return isOpen
        }
    }

    /// Ends every call and closes every connection, then calls `completion` on the loop's thread. Once.
    func shutDownFromAnyThread(_ completion: @escaping @Sendable () -> Void) {
        isOpen.withLock { isOpen in
            isOpen = false
            loop.execute { self.shutDown(completion) }
        }
    }

    /// Ends a call with CANCELLED, unless it has ended.
    func cancelFromAnyThread(_ call: PooledCall) {
        loop.execute { self.end(call, RequestError(.cancelled, "The call was cancelled.")) }
    }

    // MARK: Calls

    private func submit(_ call: PooledCall) {
        if call.isOrdered {
            call.orderNumber = nextOrderNumber
            nextOrderNumber += 1
        }
        if call.kind.hasIdentifier, call.ticket == nil { call.ticket = sequence.begin() }
        call.submittedAtMilliseconds = loop.nowMilliseconds
        call.deadlineMilliseconds = call.timeoutMilliseconds.map { loop.nowMilliseconds + $0 }
        configuration.log?(.debug) { "\(call.title): started, request of \(call.request.count) bytes" }
        place(call)
    }

    /// Finds a connection for a new try.
    private func place(_ call: PooledCall) {
        let lane = call.isOrdered ? Machine.Lane.ordered(call.orderNumber) : .any
        let placement = machine.submit(
            call, lane: lane, mayWait: call.waitsForConnection, isNew: !call.wasAccepted, now: nowNanoseconds)
        switch placement {
        case .send(let connection):
            call.wasAccepted = true
            send(call, on: connection)
        case .waiting:
            call.wasAccepted = true
            call.phase = .waiting
            startDeadline(call)
            watchForOutage()
        case .rejected(let reason): end(call, error(for: reason))
        }
        releaseOrder(of: call)
        performActions()
    }

    /// A try of a call has failed: the ordered calls after it wait until it has its place again or has ended.
    private func holdOrder(for call: PooledCall) {
        guard call.isOrdered else { return }
        returning.insert(call.orderNumber, at: returning.partitioningIndex { $0 >= call.orderNumber })
        machine.holdOrdered(after: returning.first)
    }

    /// An ordered call has left its connection.
    private func endFlight(of call: PooledCall, _ end: OrderedFlight<PooledCall>.End) {
        if call.isOrdered { machine.orderedEnded(call.orderNumber, end) }
    }

    private func releaseOrder(of call: PooledCall) {
        guard !returning.isEmpty, call.isOrdered else { return }
        let index = returning.partitioningIndex { $0 >= call.orderNumber }
        guard index < returning.count, returning[index] == call.orderNumber else { return }
        returning.remove(at: index)
        guard index == 0 else { return }
        machine.holdOrdered(after: returning.first)
        performActions()
    }

    private func send(_ call: PooledCall, on id: ConnectionID) {
        if call.isOver {
            endedCallsLeftQueue(1)
            endFlight(of: call, .unknown)
            return machine.finished(on: id, answered: false)
        }
        if isOfOtherUser(call) { return hold(call, on: id) }
        guard let connection = connections[id] else {
            preconditionFailure("the pool chose a connection that does not exist")
        }
        stopDeadline(call)
        let deadline = call.deadlineMilliseconds.map {
            UInt32(clamping: max(1, Int64($0) - Int64(loop.nowMilliseconds)))
        }
        let predecessor = call.isOrdered ? predecessor(of: call) : nil
        call.isAfterAnother = predecessor != nil
        let requestID = call.ticket.map {
            RequestID(
                $0, oldestPending: call.numbers?.oldestPending(of: $0) ?? sequence.oldestPending(of: $0),
                after: predecessor)
        }
        // A connection that is closing ends the call before `start` returns.
        call.sending()
        call.phase = .inFlight(id, nil)
        call.tokenGeneration = token?.generation ?? 0
        let started = connection.start(call, deadlineMilliseconds: deadline, requestID: requestID)
        guard case .inFlight(id, nil) = call.phase else { return }
        call.phase = .inFlight(id, started)
        if let started { call.started(started) }
    }

    /// A try ended.
    ///
    /// - Parameter isClosing: whether this side is closing the connection, which ends all calls on it.
    func ended(_ call: PooledCall, on id: ConnectionID, _ outcome: CallOutcome, isClosing: Bool) {
        guard case .inFlight(id, _) = call.phase else { return }
        call.phase = .idle
        if outcome.code == .ok {
            endFlight(of: call, .applied)
            machine.finished(on: id, answered: true)
            end(call, nil)
            return performActions()
        }
        holdOrder(for: call)
        endFlight(of: call, isClosing || outcome.code == .unavailable ? .unknown : .refused)
        guard isClosing || outcome.code == .unavailable else {
            machine.finished(on: id, answered: true)
            performActions()
            return answered(call, outcome)
        }
        // Either the server is unavailable or the connection is closed; then `closed` comes before the next iteration.
        startDeadline(call)
        orphans[ObjectIdentifier(call)] = call
        loop.execute { self.settleOrphan(call, on: id, outcome) }
        performActions()
    }

    private func settleOrphan(_ call: PooledCall, on id: ConnectionID, _ outcome: CallOutcome) {
        orphans[ObjectIdentifier(call)] = nil
        if connections[id] == nil {
            let failure = outcome.isUnprocessed ? CallFailure.notProcessed : .connectionLost
            tryAgain(
                call, failure,
                RequestError(.unavailable, "The connection to the server was lost: \(outcome.message)"))
        } else {
            machine.finished(on: id, answered: true)
            performActions()
            answered(call, outcome)
        }
    }

    private func answered(_ call: PooledCall, _ outcome: CallOutcome) {
        let error = RequestError(outcome.code, outcome.message)
        // Refused because of the call before it: it is sent again when that one has its reply.
        if error.code == .aborted, call.isAfterAnother { return tryAgain(call, .notProcessed, error) }
        call.answeredTries += 1
        if error.code == .unauthenticated, let tokens { return renewToken(of: call, tokens, error) }
        // A server that sends GOAWAY did not process these calls.
        let isUnprocessed = outcome.isUnprocessed && outcome.code == .unavailable
        tryAgain(call, isUnprocessed ? .notProcessed : .status(outcome.code), error)
    }

    private func tryAgain(_ call: PooledCall, _ failure: CallFailure, _ error: RequestError) {
        guard !call.isOver else { return }
        guard call.isRepeatable else { return end(call, error) }
        switch RetryPolicy.decide(call.kind, failure, answeredTries: call.answeredTries) {
        case .giveUp:
            end(call, error)
        case .now:
            call.restart()
            place(call)
        case .afterBackoff: backOff(call)
        }
    }

    private func backOff(_ call: PooledCall) {
        call.restart()
        startDeadline(call)
        let wait = BackoffPolicy.reconnect.delayNanoseconds(attempt: call.answeredTries - 1, unit: random.nextUnit())
        let timer = loop.schedule(afterMilliseconds: wait / 1_000_000) { [weak self] in self?.backoffEnded(call) }
        call.phase = .backingOff(timer)
        backingOff[ObjectIdentifier(call)] = call
    }

    private func backoffEnded(_ call: PooledCall) {
        backingOff[ObjectIdentifier(call)] = nil
        call.phase = .idle
        place(call)
    }

    private func startDeadline(_ call: PooledCall) {
        guard call.deadlineTimer == nil, let deadline = call.deadlineMilliseconds else { return }
        let now = loop.nowMilliseconds
        call.deadlineTimer = loop.schedule(afterMilliseconds: deadline > now ? deadline - now : 0, call)
    }

    private func stopDeadline(_ call: PooledCall) {
        guard let timer = call.deadlineTimer else { return }
        loop.cancel(timer)
        call.deadlineTimer = nil
    }

    func deadlinePassed(_ call: PooledCall) {
        call.deadlineTimer = nil
        let detail: String
        if case .waiting = call.phase {
            detail = " while waiting for a connection (\(connectionFailure))"
        } else {
            detail = ""
        }
        end(call, RequestError(.deadlineExceeded, "The deadline passed\(detail)."))
    }

    /// Ends a call in any state; `nil` after success. It has no effect if the call has ended.
    private func end(_ call: PooledCall, _ error: RequestError?) {
        guard !call.isOver else { return }
        call.isOver = true
        stopDeadline(call)
        if !held.isEmpty { held[ObjectIdentifier(call)] = nil }
        if let ticket = call.ticket, call.numbers == nil { sequence.finish(ticket) }
        switch call.phase {
        case .idle: break
        case .waiting: removeEndedWaitingCalls()
        case .backingOff(let timer):
            loop.cancel(timer)
            backingOff[ObjectIdentifier(call)] = nil
        case .inFlight(let id, let started):
            call.phase = .idle
            started?.cancel()
            endFlight(of: call, .unknown)
            machine.finished(on: id, answered: false)
            performActions()
        }
        call.phase = .idle
        releaseOrder(of: call)
        configuration.log?(.debug) { describeEnd(of: call, error) }
        call.finished(error)
    }

    private func describeEnd(of call: PooledCall, _ error: RequestError?) -> String {
        let outcome = error.map { "\($0.code): \($0.message)" } ?? "OK"
        return "\(call.title): \(outcome) after \(loop.nowMilliseconds - call.submittedAtMilliseconds) ms"
    }

    /// One more call in the queue has ended. Removing them when they are half of it keeps the cost of each constant.
    private func removeEndedWaitingCalls() {
        endedWaitingCalls += 1
        guard endedWaitingCalls * 2 > machine.waitingCount else { return }
        _ = machine.removeWaiting(where: \.isOver)
        endedWaitingCalls = 0
    }

    /// Calls that had ended in the machine's queue are in it no more.
    private func endedCallsLeftQueue(_ count: Int) { endedWaitingCalls = max(0, endedWaitingCalls - count) }

    private func error(for rejection: Machine.Rejection) -> RequestError {
        switch rejection {
        case .notConnected:
            machine.isNetworkEnabled
                ? tokenFailure ?? RequestError(.unavailable, unreachable)
                : .networkDisabled
        case .queueFull:
            RequestError(.resourceExhausted, "\(configuration.waitingCallsMax) calls already wait for the server.")
        case .shutDown:
            RequestError(.cancelled, "The client is closed.")
        }
    }

    // MARK: Messages for users

    private var connectionFailure: String { lastConnectionFailure ?? "it has not replied yet" }

    private var unreachable: String {
        let sentence = "The server \(configuration.address) cannot be reached: \(connectionFailure)."
        return configuration.remedy.map { "\(sentence) \($0(lastOutageCause))" } ?? sentence
    }

    /// Calls that wait for a connection and have not ended.
    private var liveWaitingCalls: Int {
        machine.isNetworkEnabled && machine.readyCount == 0 ? max(0, machine.waitingCount - endedWaitingCalls) : 0
    }

    private func watchForOutage() {
        guard liveWaitingCalls > 0 else { return }
        if let timer = notice?.callWaits() { start(timer) }
        guard outageTimer == nil, let limit = configuration.outageMax else { return }
        outageTimer = loop.schedule(afterMilliseconds: limit.nanoseconds / 1_000_000) { [weak self] in
            self?.outageLasts()
        }
    }

    private func outageLasts() {
        outageTimer = nil
        guard machine.readyCount == 0 else { return }
        machine.failWaitingCalls()
        performActions()
    }

    private func start(_ timer: OutageNotice.Timer) {
        loop.schedule(afterMilliseconds: timer.afterMilliseconds) { [weak self] in self?.timerFired(timer) }
    }

    private func timerFired(_ timer: OutageNotice.Timer) {
        let count = liveWaitingCalls
        // A person who waits for a command needs the notice in time, with or without the reason.
        let isReasonKnown = lastConnectionFailure != nil || configuration.outageNotice != nil
        guard let step = notice?.timerFired(timer, isOutage: count > 0, isReasonKnown: isReasonKnown) else { return }
        if step.speaks, let report = configuration.outageNotice {
            report(connectionFailure)
        } else if step.speaks {
            let calls = count == 1 ? "1 call waits" : "\(count) calls wait"
            configuration.log?(.warning) { "\(unreachable) \(calls) and will be sent when the server is reachable." }
        }
        if let next = step.next { start(next) }
    }

    // MARK: Connections

    private func performActions() {
        // A call in this process may end while it is sent; what follows from that comes after the actions before it.
        if isPerforming { return }
        isPerforming = true
        defer { isPerforming = false }
        while !machine.actions.isEmpty {
            let actions = machine.actions
            machine.actions.removeAll(keepingCapacity: true)
            for action in actions { perform(action) }
        }
    }

    private func perform(_ action: Machine.Action) {
        switch action {
        case .connect(let id):
            let connection: any PooledConnection =
                if let service {
                    HandlerConnection(id, pool: self, to: service)
                } else if let transport = configuration.transport {
                    ForeignConnection(id, pool: self, over: transport)
                } else {
                    SocketConnection(id, pool: self)
                }
            connections[id] = connection
            if let tokens { awaitToken(tokens, for: id) } else { dial(connection, .none) }
        case .close(let id):
            connections[id]?.close()
        case .send(let call, let id):
            send(call, on: id)
        case .fail(let call, let reason):
            if call.isOver { return endedCallsLeftQueue(1) }
            call.phase = .idle
            end(call, error(for: reason))
        case .wake(let time):
            let now = nowNanoseconds
            let wait = time > now ? (time - now + 999_999) / 1_000_000 : 0
            loop.schedule(afterMilliseconds: wait) { [weak self] in self?.wake() }
        }
    }

    // MARK: Tokens

    /// Asks for a token, and opens a connection when it is there.
    private func awaitToken(_ tokens: TokenKeeper, for id: ConnectionID) {
        tokens.token { answer in self.loop.execute { self.dial(id, answer) } }
    }

    private func dial(_ id: ConnectionID, _ answer: TokenAnswer) {
        // The pool may have closed the connection meanwhile.
        guard let connection = connections[id] else { return }
        if case .failure(let error) = answer { return cannotDial(id, error) }
        if case .token(let token) = answer { show(token) }
        tokenFailure = nil
        dial(connection, token?.credential ?? .none)
    }

    private func dial(_ connection: any PooledConnection, _ credential: Credential) {
        configuration.log?(.debug) { "connecting to \(configuration.address)" }
        connection.dial(configuration, credential)
    }

    /// There is no token: calls that wait for the connection end, except the writes that wait as long as it takes.
    private func cannotDial(_ id: ConnectionID, _ error: RequestError) {
        tokenFailure = error
        lastConnectionFailure = error.message
        lastOutageCause = .other
        connections[id] = nil
        if machine.readyCount == 0 {
            let refused = machine.removeWaiting { $0.kind != .queuedWrite }
            endedCallsLeftQueue(refused.count(where: \.isOver))
            for call in refused where !call.isOver {
                call.phase = .idle
                end(call, error)
            }
        }
        machine.lost(id, now: nowNanoseconds)
        performActions()
        reportShutDown()
        watchForOutage()
    }

    /// Has all connections show a token, if it is newer than the one that they show.
    private func show(_ token: ClientToken) {
        if let shown = self.token, shown.generation >= token.generation { return }
        let isNew = token.credential != self.token?.credential
        self.token = token
        if firstUser == nil { firstUser = token.user }
        if isNew { for connection in connections.values { connection.show(token.credential) } }
        if !held.isEmpty { releaseHeld() }
    }

    private func owner(of call: PooledCall) -> String? { call.owner ?? firstUser }

    /// The write in flight that is to be applied before another one of its user. Those of other users may be sent later
    /// than ones with greater numbers.
    private func predecessor(of call: PooledCall) -> CommitSequence.Ticket? {
        let user = owner(of: call) ?? ""
        return machine.predecessor(of: call.orderNumber) { (owner(of: $0) ?? "").hasSameUTF8(as: user) }?.ticket
    }

    /// Whether a call is a write of another user than that of the token: it waits until that one is back.
    private func isOfOtherUser(_ call: PooledCall) -> Bool {
        guard call.kind == .queuedWrite, let token, let owner = owner(of: call) else { return false }
        return !owner.hasSameUTF8(as: token.user)
    }

    private func hold(_ call: PooledCall, on id: ConnectionID) {
        endFlight(of: call, .unknown)
        machine.finished(on: id, answered: false)
        call.phase = .idle
        held[ObjectIdentifier(call)] = call
    }

    private func releaseHeld() {
        let calls = held.values.filter { !isOfOtherUser($0) }.sorted { $0.orderNumber < $1.orderNumber }
        for call in calls { held[ObjectIdentifier(call)] = nil }
        for call in calls { place(call) }
    }

    /// The server has refused the token of a call.
    private func renewToken(of call: PooledCall, _ tokens: TokenKeeper, _ error: RequestError) {
        startDeadline(call)
        renewing[ObjectIdentifier(call)] = call
        tokens.renew(after: call.tokenGeneration) { answer in
            self.loop.execute { self.renewed(call, answer, error) }
        }
    }

    /// Makes a call again with a new token, once. A write of the SDK is made again until the server takes its token.
    private func renewed(_ call: PooledCall, _ answer: TokenAnswer, _ refusal: RequestError) {
        renewing[ObjectIdentifier(call)] = nil
        if case .token(let token) = answer { show(token) }
        guard !call.isOver else { return }
        if case .token = answer, call.isRepeatable, !call.hasRenewedToken {
            call.hasRenewedToken = true
            call.restart()
            return place(call)
        }
        if call.kind == .queuedWrite { return backOff(call) }
        if case .failure(let error) = answer { end(call, error) } else { end(call, refusal) }
    }

    private func wake() {
        machine.timerFired(now: nowNanoseconds)
        performActions()
    }

    func connected(_ id: ConnectionID) {
        configuration.log?(.debug) { "connected to \(configuration.address)" }
        if let timer = outageTimer.take() { loop.cancel(timer) }
        if notice?.connected() == true, configuration.outageNotice == nil {
            configuration.log?(.warning) { "The server \(configuration.address) can be reached again." }
        }
        machine.connected(id, streamLimit: nil)
        performActions()
    }

    func goingAway(_ id: ConnectionID) {
        machine.goingAway(id, now: nowNanoseconds)
        performActions()
    }

    /// An attempt to connect failed, or a connection ended. Called once for each connection.
    ///
    /// - Parameters:
    ///   - description: the reason, with the address.
    ///   - cause: the same for the remedy.
    func closed(_ id: ConnectionID, _ description: String, _ cause: OutageCause = .other) {
        configuration.log?(.debug) { "connection closed: \(description)" }
        lastConnectionFailure = description
        lastOutageCause = cause
        connections[id] = nil
        machine.lost(id, now: nowNanoseconds)
        performActions()
        reportShutDown()
        watchForOutage()
    }

    func setNetworkEnabled(_ isEnabled: Bool) {
        machine.setNetworkEnabled(isEnabled, now: nowNanoseconds)
        performActions()
    }

    private func shutDown(_ completion: @escaping () -> Void) {
        onShutDown = completion
        machine.shutDown()
        performActions()
        for call in Array(backingOff.values) + Array(orphans.values) + Array(renewing.values)
            + Array(held.values)
        {
            end(call, error(for: .shutDown))
        }
        reportShutDown()
    }

    private func reportShutDown() {
        guard machine.isShutDown, connections.isEmpty, let completion = onShutDown else { return }
        onShutDown = nil
        service?.close()
        completion()
    }
}

extension RequestError {
    /// Why calls fail that do not wait for the network, which the program has switched off.
    static let networkDisabled = RequestError(.unavailable, "The network is disabled.")
}
