// One Listen stream, as a state machine: requests and changes in, messages out. It knows no transport.
//
//     receive(request) ──► commands          changes ──► pending
//                             │                             │
//     next(into:)   one of    ├─ load a target:  ADD, documents, CURRENT
//                             └─ a snapshot at the hub's position: changes of all targets, then a global NO_CHANGE
//
// Loads and snapshots follow one another and are never mixed. While a target is loaded at version R, changes above R
// are noted for it as for all others; the snapshot after it covers them, so a global NO_CHANGE at version S always
// means that every target of the stream is as of S. docs/listen.md has the guarantees.
//
// Each target is in one of these states:
//
//     waiting ──► loading ──► current ──► removed
//
// A session holds the names of what has changed, bounded; documents are read when they are sent. When it would hold too
// much, or the feed has lost changes, it forgets them and compares two states of the store (`TargetReading`).
//
// With a judge, nothing of a target is sent before the target is judged (`ListenSession+Judgement.swift`).

package import Basics
package import DocumentModel
internal import DocumentStore
package import FirestoreMessages
internal import Storage

/// What a session did when it was asked for its next message.
package enum ListenStep: Sendable {
    /// It appended one message.
    case message
    /// It has worked long enough without a message; ask again after others had their turn.
    case yielding
    /// It has nothing to send, or must wait for what it reads; ask again after its wake-up.
    case waiting
    /// The stream cannot be served: it ends with the error.
    case failed(RequestError)
}

/// The server's side of one Listen stream. Confined to the thread of its hub.
package final class ListenSession {
    private enum Command {
        case add(Target)
        /// A target that was removed before its turn.
        case addRemoved(Int32)
        case remove(Int32)
        /// The client has removed a target that is not there any more.
        case removeUnknown(Int32)
        case refuse(Int32, RequestError)
    }

    let hub: ListenHub
    let database: DatabaseName
    private(set) var reader: DatabaseReader
    /// Decides what the client may see; nil if it may see everything.
    let judge: (any TargetJudge)?
    private let wake: () -> Void
    private let whenNewest: WhenNewest?
    private var isOpen = true
    /// Why the stream cannot be served any more.
    private var failure: RequestError?
    /// The newest of the tokens that were not visible here when they came; 0 if there was none.
    private var newestToken: UInt64 = 0

    /// Active targets by their ids, those that wait included.
    var targets: [Int32: Target] = [:]
    private var ids = TargetIDs()
    private var commands: [Command] = []
    /// Memory of the refusals among them, which the hub counts too.
    private var refusalBytes = 0

    /// Parts of targets that wait to be judged; empty without a judge.
    var dueParts: [TargetPart] = []

    var queue: MessageQueue
    private var load: TargetReading?
    var snapshot: Snapshot?

    var pending = PendingChanges()
    /// The client's version, if changes above it were forgotten; nil if all are known.
    var staleBase: UInt64?
    /// Windows that may have changed.
    var dirtyWindows: [Target] = []
    /// The next snapshot is sent even if nothing has changed.
    var mustSendSnapshot = false
    /// Whether the hub has advanced for the snapshot that must be sent.
    var hasAdvanced = false
    private var isTouched = false
    /// Changes counted in the hub's `heldChanges`.
    private var heldChanges = 0
    /// Whether a load or snapshot waits for what it reads.
    private(set) var isWaitingForStorage = false
    /// Why what was waited for cannot be read.
    private var storageFailure: RequestError?
    /// Ticks since the last message.
    private var ticksSinceMessage = 0

    /// Ticks of silence after which a heartbeat is sent: 45 s.
    private static let ticksWithoutMessageMax = 9

    /// Opens a session.
    ///
    /// - Parameters:
    ///   - database: the database of the stream's first request.
    ///   - judge: decides what the client may see; nil if it may see everything.
    ///   - whenNewest: nil if this server always shows the newest state.
    ///   - wake: has ``next(into:)`` called again.
    package init(
        _ hub: ListenHub, database: DatabaseName, judge: (any TargetJudge)?, whenNewest: WhenNewest? = nil,
        wake: @escaping () -> Void
    ) {
        self.hub = hub
        self.database = database
        self.judge = judge
        self.wake = wake
        self.whenNewest = whenNewest
        reader = hub.reader(of: database)
        reader.tally = ReadTally()
        queue = MessageQueue(namePrefix: reader.namePrefix)
        hub.open(self)
    }

    /// Ends the session: it receives no more changes. Closing it twice is harmless.
    package func close() {
        guard isOpen else { return }
        isOpen = false
        for target in targets.values { retire(target) }
        targets = [:]
        countRefusals(-refusalBytes)
        commands = []
        dueParts = []
        release(heldChanges)
        load = nil
        snapshot = nil
        hub.close(self)
    }

    /// Steps of reading and judging that ``next(into:)`` has done so far; each may have looked at thousands of
    /// documents.
    package private(set) var steps = 0

    /// Documents that were looked at for the stream. One that another stream's session has just read is not counted.
    package var documentsRead: UInt64 { reader.tally.documents }

    /// Its first targets as texts for people: paths of documents, or a query with its conditions.
    package var targetTexts: [String] {
        targets.values.sorted { $0.id < $1.id }.prefix(100).map(\.text)
    }

    /// Commands that wait; a transport stops reading when there are many.
    package var waitingCommands: Int { commands.count }

    // MARK: Requests

    /// Takes a request of the client.
    ///
    /// - Parameter condition: what the documents of a target with a query must meet besides it.
    /// - Throws: an error that ends the stream: a malformed request, another database, an id that is in use. A target
    ///   that is refused is removed with its error, and the stream continues.
    package func receive(_ request: ListenRequest, _ condition: TargetCondition? = nil) throws(RequestError) {
        guard request.database.isEmpty || request.database.utf8.elementsEqual(database.utf8) else {
            throw .invalidArgument(
                "The requests of a stream must be for one database: \(database), not \(request.database).")
        }
        switch request.change {
        case nil: throw .invalidArgument("A listen request must add a target or remove one.")
        case .remove(let id): remove(id)
        case .add(let target): try add(target, condition)
        }
    }

    private func add(_ wanted: ListenTarget, _ condition: TargetCondition?) throws(RequestError) {
        try checkUnused(wanted.id)
        var id = wanted.id
        do throws(RequestError) {
            id = try ids.take(wanted.id)
        } catch {
            return refuse(id, error)
        }
        try checkUnused(id)
        do throws(RequestError) {
            if targets.count >= hub.limits.targets {
                throw RequestError(
                    .resourceExhausted, "A stream may have at most \(hub.limits.targets) targets. Open another stream.")
            }
            let target = try makeTarget(wanted, condition, id: id)
            let byteCount = target.byteCount
            if hub.targetBytes + byteCount > hub.limits.targetBytes {
                throw RequestError.noMemoryForListeners
            }
            try open(target)
            hub.targetBytes += byteCount
            targets[id] = target
            commands.append(.add(target))
            awaitNewest(for: target)
        } catch {
            refuse(id, error)
        }
    }

    /// Refusals that a stream may have waiting however much memory all listeners take, in bytes.
    private static let freeRefusalBytes = 64 << 10

    /// Has a target removed with an error. The refusals of a client that does not read wait here, so they have a limit,
    /// beyond which the stream ends.
    private func refuse(_ id: Int32, _ error: RequestError) {
        append(.refuse(id, error), Self.byteCount(of: error))
    }

    /// Answers the removal of a target that is not there: the server's REMOVE has crossed it. Clients count the answers
    /// to their requests, and ignore a target until it has all of them.
    private func answerRemoval(of id: Int32) {
        if id > 0 { append(.removeUnknown(id), Self.answerBytes) }
    }

    private func append(_ refusal: Command, _ byteCount: Int) {
        if refusalBytes + byteCount > Self.freeRefusalBytes, hub.targetBytes + byteCount > hub.limits.targetBytes {
            return end(.noMemoryForListeners)
        }
        countRefusals(byteCount)
        commands.append(refusal)
    }

    private func countRefusals(_ byteCount: Int) {
        refusalBytes += byteCount
        hub.targetBytes += byteCount
    }

    /// Memory of the answer to a removal; an estimate.
    private static let answerBytes = 64

    /// Memory of a refusal; an estimate.
    private static func byteCount(of error: RequestError) -> Int { 128 + error.message.utf8.count }

    /// Counts a target for the client and for the hub.
    private func open(_ target: Target) throws(RequestError) {
        try judge?.openTarget()
        do throws(RequestError) {
            try hub.offsets.add(target, limit: hub.limits.offsets)
        } catch {
            judge?.closeTarget()
            throw error
        }
    }

    /// A refusal would remove the active target with the id from the client, so the stream ends instead.
    private func checkUnused(_ id: Int32) throws(RequestError) {
        if targets[id] != nil { throw .invalidArgument("The target id \(id) is in use.") }
    }

    private func remove(_ id: Int32) {
        guard let target = targets.removeValue(forKey: id) else { return answerRemoval(of: id) }
        retire(target)
        // One that waits is not counted any more, and must not be held.
        let waiting = commands.lastIndex { if case .add(let added) = $0 { added === target } else { false } }
        if let waiting { commands[waiting] = .addRemoved(id) }
        commands.append(.remove(id))
    }

    /// Nothing of a target is sent any more.
    func retire(_ target: Target) {
        target.isActive = false
        judge?.closeTarget()
        hub.targetBytes -= target.byteCount
        hub.offsets.remove(target)
        removeJudgement(of: target)
        hub.remove(target, of: database)
        if load?.target === target { load = nil }
    }

    // MARK: Waiting for the state of a target

    /// Calls back on the session's thread when everything is visible here that was acknowledged before it was called.
    package typealias WhenNewest = (@escaping (Result<Void, RequestError>) -> Void) -> Void

    /// The first snapshot of a target shows everything that was acknowledged before it was added.
    private func awaitNewest(for target: Target) {
        if let version = target.resumption?.version, hub.store.isBehind(version) {
            newestToken = max(newestToken, version)
        }
        guard let whenNewest else { return awaitToken(of: target) }
        target.isAwaited = true
        whenNewest { [weak self] outcome in
            self?.waited(for: target, outcome) { $0.awaitToken(of: target) }
        }
    }

    /// A client that comes from another server is shown no state before the one that it has seen there, also of targets
    /// that it resumes without a token.
    private func awaitToken(of target: Target) {
        target.isAwaited = hub.store.isBehind(newestToken)
        guard target.isAwaited else { return }
        hub.whenVisible(newestToken) { [weak self] outcome in
            self?.waited(for: target, outcome) { _ in target.isAwaited = false }
        }
    }

    private func waited(
        for target: Target, _ outcome: Result<Void, RequestError>, _ proceed: (ListenSession) -> Void
    ) {
        guard isOpen, target.isActive else { return }
        switch outcome {
        case .success: proceed(self)
        case .failure(let error): failure = error
        }
        wake()
    }

    // MARK: Changes

    /// Notes a change that concerns a target of this session.
    func note(_ document: ChangedDocument, _ target: Target, version: UInt64, matches: Bool) {
        if let query = target.windowQuery {
            guard target.windowBase == nil, isAffected(target, query) else { return }
            target.windowBase = version - 1
            dirtyWindows.append(target)
        } else {
            if staleBase != nil { return }
            let count = pending.entries.count
            pending.note(document, target, version: version, matches: matches)
            hold(pending.entries.count - count)
            if count >= hub.limits.changes || hub.heldChanges > hub.limits.allChanges { forgetPending() }
        }
        touch()
    }

    /// Whether the change that is routed can change the results that a target's offset and limit leave.
    private func isAffected(_ target: Target, _ query: TargetQuery) -> Bool {
        // While the window is read, its bounds are not known.
        if !target.isCurrent || target.isBeingRead { return true }
        let isAffected = { (key: [UInt8]) in target.window.isAffected(by: key, limit: query.plan.limit) }
        return query.changedKeys.before.map(isAffected) ?? false || query.changedKeys.after.map(isAffected) ?? false
    }

    /// The feed has lost changes above a version.
    func handleLostChanges(after position: UInt64) {
        forgetPending()
        if staleBase == nil { staleBase = position }
        makeAllDue()
        touch()
    }

    /// Forgets the noted changes: the next snapshot compares two states.
    func forgetPending() {
        if staleBase == nil { staleBase = pending.base }
        release(pending.entries.count)
        pending = PendingChanges()
    }

    func hold(_ count: Int) {
        heldChanges += count
        hub.heldChanges += count
    }

    func release(_ count: Int) { hold(-count) }

    func touch() {
        if isTouched { return }
        isTouched = true
        hub.touch(self)
    }

    func wakeIfTouched() {
        guard isTouched else { return }
        isTouched = false
        if isOpen { wake() }
    }

    func tick() {
        ticksSinceMessage += 1
        if ticksSinceMessage >= Self.ticksWithoutMessageMax, targets.values.contains(where: \.isCurrent) {
            mustSendSnapshot = true
            touch()
        }
    }

    // MARK: Reads that have to wait

    /// Has a step made again when what it lacked is in memory.
    ///
    /// - Returns: false for an error other than `pending`.
    func waitsForStorage(after error: RequestError) -> Bool {
        if !error.isPending { return false }
        waitForStorage()
        return true
    }

    /// Has ``storageIsReady(_:)`` called when what the last reads lacked is in memory.
    func waitForStorage() {
        isWaitingForStorage = true
        hub.waitForStorage(self)
    }

    /// What a step lacked is in memory, or cannot be read. If too many reads wait, the step is made with reads that
    /// wait.
    func storageIsReady(_ outcome: Result<Void, RequestError>) {
        isWaitingForStorage = false
        if case .failure(let error) = outcome {
            if error.code == .dataLoss { storageFailure = error } else { reader.cold = .waits }
        }
        if isOpen { wake() }
    }

    /// - Throws: why the step before this one could not be made.
    func checkStorage() throws(RequestError) { if let error = storageFailure.take() { throw error } }

    /// What the judge of the next step does if it must read what is not in memory. After a wait that has failed, it
    /// waits: it meets what cannot be read again, and has the part denied with the reason.
    func takeColdRead() -> ColdRead {
        defer { reader.cold = .pends }
        return storageFailure.take() == nil ? reader.cold : .waits
    }

    // MARK: Messages

    /// Whether the next message was made already.
    package var hasMessageReady: Bool { !queue.isEmpty && !mustJudge }

    /// Memory of the messages that were made and not sent, in bytes.
    package var heldBytes: Int { queue.byteCount }

    /// Appends the next message, if there is one.
    package func next(into output: inout ByteBuffer) -> ListenStep {
        while isOpen {
            if let failure { return .failed(failure) }
            if mustJudge {
                if isWaitingForStorage { return .waiting }
                steps += 1
                stepJudgement()
                if mustJudge { return isWaitingForStorage ? .waiting : .yielding }
            }
            if queue.pop(into: &output) {
                ticksSinceMessage = 0
                return .message
            }
            if isWaitingForStorage { return .waiting }
            if load != nil || snapshot != nil {
                steps += 1
                stepReading()
                if load != nil || snapshot != nil, queue.isEmpty, !isWaitingForStorage { return .yielding }
            } else if let command = commands.first, !isAwaited(command) {
                commands.removeFirst()
                perform(command)
            } else if !beginSnapshot() {
                return .waiting
            }
        }
        return .waiting
    }

    private func stepReading() {
        defer { reader.cold = .pends }
        if load != nil { stepLoad() } else { stepSnapshot() }
    }

    /// Commands after one that waits wait too, so that targets are added in the order of their requests.
    private func isAwaited(_ command: Command) -> Bool {
        if case .add(let target) = command { target.isActive && target.isAwaited } else { false }
    }

    private func perform(_ command: Command) {
        switch command {
        case .add(let target):
            queue.append(.add, [target.id])
            if target.isActive { beginLoad(target) }
        case .addRemoved(let id): queue.append(.add, [id])
        case .remove(let id): queue.append(.remove, [id])
        case .removeUnknown(let id):
            countRefusals(-Self.answerBytes)
            queue.append(.remove, [id])
        case .refuse(let id, let error):
            countRefusals(-Self.byteCount(of: error))
            queue.append(.add, [id])
            queue.append(.remove, [id], cause: error)
        }
    }

    // MARK: Loading a target

    private func beginLoad(_ target: Target) {
        // Everything that was acknowledged before is part of the first snapshot.
        hub.advance()
        guard target.isActive else { return }
        target.since = hub.position
        failure = hub.store.strictReadRefusal ?? hub.store.moveRefusal(of: database, at: target.since)
        if failure != nil { return }
        hub.insert(target, of: database)
        guard let resumption = target.resumption else { return load(target, from: nil) }
        if let version = resumption.version, version >= hub.store.oldestResumeTime(of: database),
            version <= target.since
        {
            return load(target, from: version)
        }
        queue.append(.reset, [target.id])
        load(target, from: nil)
    }

    private func load(_ target: Target, from base: UInt64?) {
        storageFailure = nil
        load = TargetReading(
            target, from: base, expectedCount: target.resumption?.expectedCount, to: target.since)
        judgeFirst(target)
    }

    private func stepLoad() {
        guard let reading = load else { return }
        let target = reading.target
        do throws(RequestError) {
            try checkStorage()
            try reading.step(reader, into: &queue)
        } catch {
            if waitsForStorage(after: error) { return }
            load = nil
            if !loadAgain(target, from: reading.base, after: error) { fail(target, error) }
            return
        }
        if !reading.isFinished { return }
        load = nil
        target.window = reading.window
        target.isCurrent = true
        queue.append(.current, [target.id], at: target.since)
        mustSendSnapshot = true
    }

    /// Loads a target from the start, if it was loaded or judged until a version that is read left the retention.
    ///
    /// - Parameter base: the version of what the client has, if that is read.
    func loadAgain(_ target: Target, from base: UInt64? = nil, after error: RequestError) -> Bool {
        guard error.code == .failedPrecondition, base ?? target.since < hub.store.oldestReadTime else { return false }
        hub.remove(target, of: database)
        hub.advance()
        guard target.isActive else { return true }
        target.since = hub.position
        target.windowBase = nil
        // The results at the new version have what was noted before it, and what came since then was not noted.
        let count = pending.entries.count
        pending.forget(target)
        hold(pending.entries.count - count)
        hub.insert(target, of: database)
        queue.append(.reset, [target.id])
        load(target, from: nil)
        return true
    }

    /// Ends the stream with an error, before anything else is sent.
    func end(_ error: RequestError) {
        failure = error
        touch()
    }

    /// Removes all targets with an error; the stream continues.
    func failAll(_ error: RequestError) {
        // Of those that wait the client has to hear that they are there before it hears that they are not.
        for index in commands.indices {
            guard case .add(let target) = commands[index], target.isActive else { continue }
            commands[index] = .refuse(target.id, error)
            countRefusals(Self.byteCount(of: error))
            targets[target.id] = nil
            retire(target)
        }
        for target in Array(targets.values) { fail(target, error) }
        if let unfinished = snapshot.take() { release(unfinished.entries.count) }
        forgetPending()
        staleBase = nil
        dirtyWindows = []
        touch()
    }

    /// Removes a target with an error; the stream continues.
    func fail(_ target: Target, _ error: RequestError) {
        targets[target.id] = nil
        retire(target)
        queue.append(.remove, [target.id], cause: error)
    }
}
