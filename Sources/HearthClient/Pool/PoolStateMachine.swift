/// Chooses connections for the calls of one event loop: a state machine without I/O and without a clock.
///
/// ``ConnectionPool`` passes it events with the time and carries out its actions. It is generic over the call, which it
/// does not inspect.
///
///              connect            connected
///       idle ----------> connecting ------> ready ----+--> (go-away) draining, the slot is idle again
///         ^                  | failed         | lost   |
///         +------------------+----------------+--------+     after a failure, no attempt before `retryAt`
///
/// A slot is a place for one connection. Slots open on demand: the first call opens slot 0, and another slot is opened
/// when every ready connection has `growthThreshold` calls in flight. Calls of the ordered lane always use slot 0, in
/// the order of their numbers, so a server that keeps the order of a connection keeps the order of a client's writes.
/// While one of them waits for another try, those after it wait (``holdOrdered(after:)``), and after a refusal few are
/// in flight (``OrderedFlight``). Without a connection calls wait; those that must not wait fail with the first failed
/// attempt.
struct PoolStateMachine<Call> {
    struct Configuration: Sendable {
        /// Slots; at least 1.
        var connectionsMax = 2
        /// Calls in flight on the least busy connection at which another connection is opened.
        var growthThreshold = 64
        /// Calls in flight on one connection, unless the server announces fewer.
        var streamsPerConnection = 4096
        /// Calls that may wait for a connection; further ones are rejected.
        var waitingMax = 100_000
        var backoff = BackoffPolicy.reconnect
    }

    /// Names one connection: its slot, and its number among the connections of that slot.
    struct ConnectionID: Hashable, Sendable {
        var slot: Int
        var generation: UInt32
    }

    /// The order in which a call is sent.
    enum Lane: Equatable, Sendable {
        /// On any connection.
        case any
        /// In the order of these numbers, which are unique and start anywhere.
        case ordered(UInt64)
    }

    /// The result of submitting a call.
    enum Placement: Equatable, Sendable {
        case send(ConnectionID)
        /// The machine keeps the call; a later action sends or fails it.
        case waiting
        case rejected(Rejection)
    }

    enum Rejection: Equatable, Sendable {
        /// There is no connection and the call must not wait, or the network is disabled.
        case notConnected
        case queueFull
        case shutDown
    }

    /// What the driver must do after an event. Rare; calls on a healthy pool need only `Placement`.
    enum Action {
        case connect(ConnectionID)
        case close(ConnectionID)
        case send(Call, ConnectionID)
        case fail(Call, Rejection)
        /// Call `timerFired(now:)` at this time.
        case wake(atNanoseconds: UInt64)
    }

    private enum State: Equatable {
        case idle
        case connecting
        case ready
    }

    private struct Slot {
        var state = State.idle
        var generation: UInt32 = 0
        var inFlight = 0
        var streamLimit: Int
        var isReady: Bool { state == .ready }
        var hasRoom: Bool { state == .ready && inFlight < streamLimit }
    }

    private struct WaitingCall {
        var call: Call
        var mayWait: Bool
    }

    let configuration: Configuration
    private var slots: [Slot]
    /// Calls in flight on connections that received GOAWAY.
    private var draining: [ConnectionID: Int] = [:]
    private var waiting = FIFOQueue<WaitingCall>()
    /// Sorted by number; all smaller numbers were sent on the current connection or have ended.
    private var orderedWaiting = FIFOQueue<(number: UInt64, waiting: WaitingCall)>()
    /// Ordered calls with greater numbers wait, although there is a connection.
    private var orderedNumberMax = UInt64.max
    private var orderedFlight = OrderedFlight<Call>()
    /// Consecutive failures: attempts to connect, and connections lost before their first reply.
    private(set) var consecutiveFailures = 0
    /// No attempt to connect starts before this time.
    private var retryAtNanoseconds: UInt64 = 0
    private var jitter: JitterGenerator
    private(set) var isNetworkEnabled = true
    private(set) var isShutDown = false

    /// The actions that the last event requires, in order. The driver empties it after each event.
    var actions: [Action] = []

    init(configuration: Configuration, jitterSeed: UInt64) {
        self.configuration = configuration
        slots = Array(
            repeating: Slot(streamLimit: configuration.streamsPerConnection),
            count: max(1, configuration.connectionsMax))
        jitter = JitterGenerator(seed: jitterSeed)
    }

    /// Calls that wait for a connection.
    var waitingCount: Int { waiting.count + orderedWaiting.count }
    /// Calls in flight on all connections.
    var inFlightCount: Int { slots.reduce(0) { $0 + $1.inFlight } + draining.values.reduce(0, +) }
    var readyCount: Int { slots.count { $0.isReady } }
}

// MARK: - Calls

extension PoolStateMachine {
    /// A new call, or a retry.
    ///
    /// - Parameters:
    ///   - mayWait: `false` if the call fails instead of waiting for a server that cannot be reached.
    ///   - isNew: `false` for a call that was accepted before: it is not refused because of others that wait.
    mutating func submit(_ call: Call, lane: Lane, mayWait: Bool, isNew: Bool = true, now: UInt64) -> Placement {
        guard !isShutDown else { return .rejected(.shutDown) }
        guard isNetworkEnabled || mayWait else { return .rejected(.notConnected) }
        let target = slot(for: lane)
        if let target {
            slots[target].inFlight += 1
            if case .ordered(let number) = lane { orderedFlight.begin(call, number) }
            if lane == .any, slots[target].inFlight > configuration.growthThreshold { dialOneMore(now: now) }
            return .send(id(of: target))
        }
        guard !isNew || waitingCount < configuration.waitingMax else { return .rejected(.queueFull) }
        if !mayWait, isBackingOff(now: now) { return .rejected(.notConnected) }
        enqueue(WaitingCall(call: call, mayWait: mayWait), lane: lane)
        dialForWaiting(now: now)
        return .waiting
    }

    /// A call has ended on its connection, by a reply or by cancellation; not for calls lost with their connection.
    ///
    /// - Parameter answered: whether the server replied, which shows that the connection works.
    mutating func finished(on connection: ConnectionID, answered: Bool) {
        if slots[connection.slot].generation == connection.generation {
            if answered { consecutiveFailures = 0 }
            slots[connection.slot].inFlight -= 1
            if waitingCount > 0 { sendWaiting() }
        } else if let left = draining[connection] {
            draining[connection] = left == 1 ? nil : left - 1
            if left == 1 { actions.append(.close(connection)) }
        }
    }

    /// Has the ordered calls after one wait, which the server has refused for a time: it is sent before them.
    ///
    /// - Parameter number: nil if no call is to be sent again; those that have waited are sent now.
    mutating func holdOrdered(after number: UInt64?) {
        orderedNumberMax = number ?? .max
        if !orderedWaiting.isEmpty { sendWaiting() }
    }

    /// An ordered call is in flight no more. It is reported besides ``finished(on:answered:)``, and also if its
    /// connection was lost.
    mutating func orderedEnded(_ number: UInt64, _ end: OrderedFlight<Call>.End) {
        orderedFlight.end(number, end)
        if !orderedWaiting.isEmpty { sendWaiting() }
    }

    /// The last of some ordered calls in flight that is to be executed before the one with this number; nil if none is.
    func predecessor(of number: UInt64, where isMeant: (Call) -> Bool = { _ in true }) -> Call? {
        orderedFlight.predecessor(of: number, where: isMeant)
    }

    /// Removes waiting calls, for example those past their deadline. O(waiting).
    mutating func removeWaiting(where shouldRemove: (Call) -> Bool) -> [Call] {
        var removed = waiting.removeAll { shouldRemove($0.call) }.map(\.call)
        removed += orderedWaiting.removeAll { shouldRemove($0.waiting.call) }.map(\.waiting.call)
        return removed
    }

    private func id(of slot: Int) -> ConnectionID { ConnectionID(slot: slot, generation: slots[slot].generation) }

    private func leastBusySlot() -> Int? {
        var best: Int?
        for index in slots.indices where slots[index].hasRoom {
            if best == nil || slots[index].inFlight < slots[best!].inFlight { best = index }
        }
        return best
    }

    /// The slot of a call that may be sent now: for an ordered one slot 0, if no other call is before it.
    private func slot(for lane: Lane) -> Int? {
        guard case .ordered(let number) = lane else { return leastBusySlot() }
        let isNext = number <= orderedNumberMax && number < orderedWaiting.first?.number ?? .max
        return isNext && slots[0].hasRoom && orderedFlight.hasRoom ? 0 : nil
    }

    private mutating func enqueue(_ call: WaitingCall, lane: Lane) {
        switch lane {
        case .any:
            waiting.append(call)
        case .ordered(let number):
            // Nearly always at the end; a call that lost its connection returns to its position near the beginning.
            let isLast = number > orderedWaiting.last?.number ?? 0
            let place = isLast ? orderedWaiting.count : orderedWaiting.partitioningIndex { $0.number > number }
            orderedWaiting.insert((number, call), at: place)
        }
    }

    private mutating func sendWaiting() {
        while let next = orderedWaiting.first, next.number <= orderedNumberMax, slots[0].hasRoom, orderedFlight.hasRoom
        {
            _ = orderedWaiting.popFirst()
            slots[0].inFlight += 1
            orderedFlight.begin(next.waiting.call, next.number)
            actions.append(.send(next.waiting.call, id(of: 0)))
        }
        while !waiting.isEmpty, let target = leastBusySlot(), let next = waiting.popFirst() {
            slots[target].inFlight += 1
            actions.append(.send(next.call, id(of: target)))
        }
    }
}

// MARK: - Connections

extension PoolStateMachine {
    /// An attempt to connect succeeded.
    ///
    /// - Parameter streamLimit: the number of calls that the server allows on the connection, if it announced one.
    mutating func connected(_ connection: ConnectionID, streamLimit: Int?) {
        guard isCurrent(connection), slots[connection.slot].state == .connecting else {
            return actions.append(.close(connection))
        }
        slots[connection.slot].state = .ready
        slots[connection.slot].streamLimit = min(
            configuration.streamsPerConnection, max(1, streamLimit ?? .max))
        sendWaiting()
    }

    /// An attempt to connect failed, or a connection ended. Its calls are lost and return through `submit` if they are
    /// retried.
    mutating func lost(_ connection: ConnectionID, now: UInt64) {
        guard isCurrent(connection) else {
            draining[connection] = nil
            return
        }
        let wasReady = slots[connection.slot].isReady
        vacate(connection.slot)
        consecutiveFailures += 1
        // A connection that worked is replaced immediately; only repeated failures wait.
        if !wasReady || consecutiveFailures > 1 {
            let wait = configuration.backoff.delayNanoseconds(
                attempt: consecutiveFailures - 1, unit: jitter.nextUnit())
            retryAtNanoseconds = now + wait
        }
        if readyCount == 0, !wasReady { endFailFastCalls() }
        dialForWaiting(now: now)
    }

    /// The server accepts no new calls on the connection; those in flight still get their replies.
    mutating func goingAway(_ connection: ConnectionID, now: UInt64) {
        guard isCurrent(connection), slots[connection.slot].isReady else { return }
        let inFlight = slots[connection.slot].inFlight
        vacate(connection.slot)
        if inFlight == 0 { actions.append(.close(connection)) } else { draining[connection] = inFlight }
        dialForWaiting(now: now)
    }

    /// The time of a `wake` action has come.
    mutating func timerFired(now: UInt64) { dialForWaiting(now: now) }

    /// Disables the network (connections close, calls wait or fail) or enables it again.
    mutating func setNetworkEnabled(_ isEnabled: Bool, now: UInt64) {
        guard isEnabled != isNetworkEnabled, !isShutDown else { return }
        isNetworkEnabled = isEnabled
        if isEnabled {
            consecutiveFailures = 0
            retryAtNanoseconds = 0
            dialForWaiting(now: now)
        } else {
            closeAll()
            endFailFastCalls()
        }
    }

    /// Ends the pool: every waiting call fails, every connection closes. The calls in flight are lost with them.
    mutating func shutDown() {
        guard !isShutDown else { return }
        isShutDown = true
        for call in removeWaiting(where: { _ in true }) { actions.append(.fail(call, .shutDown)) }
        closeAll()
    }

    /// Nothing has been connected for too long: every waiting call fails.
    mutating func failWaitingCalls() {
        for call in removeWaiting(where: { _ in true }) { actions.append(.fail(call, .notConnected)) }
    }

    private func isCurrent(_ connection: ConnectionID) -> Bool {
        slots[connection.slot].generation == connection.generation && slots[connection.slot].state != .idle
    }

    private func isBackingOff(now: UInt64) -> Bool {
        readyCount == 0 && consecutiveFailures > 0 && now < retryAtNanoseconds
    }

    private mutating func vacate(_ slot: Int) {
        slots[slot].state = .idle
        slots[slot].inFlight = 0
        slots[slot].generation &+= 1
    }

    private mutating func closeAll() {
        for slot in slots.indices where slots[slot].state != .idle {
            actions.append(.close(id(of: slot)))
            vacate(slot)
        }
        for connection in draining.keys { actions.append(.close(connection)) }
        draining = [:]
    }

    private mutating func endFailFastCalls() {
        for call in waiting.removeAll(where: { !$0.mayWait }) { actions.append(.fail(call.call, .notConnected)) }
        for entry in orderedWaiting.removeAll(where: { !$0.waiting.mayWait }) {
            actions.append(.fail(entry.waiting.call, .notConnected))
        }
    }

    /// Opens the connections that the waiting calls need, now or when the backoff ends.
    private mutating func dialForWaiting(now: UInt64) {
        guard isNetworkEnabled, !isShutDown else { return }
        let needsOrdered = !orderedWaiting.isEmpty && slots[0].state == .idle
        let needsAny = !waiting.isEmpty && slots.allSatisfy { $0.state == .idle }
        guard needsOrdered || needsAny else { return }
        guard now >= retryAtNanoseconds else {
            return actions.append(.wake(atNanoseconds: retryAtNanoseconds))
        }
        dial(0)
    }

    private mutating func dialOneMore(now: UInt64) {
        guard now >= retryAtNanoseconds, !slots.contains(where: { $0.state == .connecting }),
            let slot = slots.firstIndex(where: { $0.state == .idle })
        else { return }
        dial(slot)
    }

    private mutating func dial(_ slot: Int) {
        slots[slot].state = .connecting
        actions.append(.connect(id(of: slot)))
    }
}
