// Drives a member of a store: the statements of its state machine, on the thread of a MemberLoop. One that leads, or is
// about to, has two connections; one that follows shares those of the loop (FollowerChannels).
//
//     commit thread ── append ─────────────────►┐
//                   ◄─ completion ──────────────┤
//                                               ▼
//     StoreMember (pure) ──► actions ──► MemberLoop ──► connection for the lease   ──► PostgreSQL
//                        ◄── replies ──             ──► connection for the groups  ──►
//                                               │
//     MemberHost ◄── apply, lead, restart ──────┘
//
// Actions about the lease are done at once. Those about the groups are done in their order, and wait while groups are
// being applied.

internal import Basics
package import Replication
package import Storage
internal import Synchronization

/// How a member reaches its store.
package struct MemberSettings: Sendable {
    /// Drives the members of the database.
    package let loop: MemberLoop
    package let tables: StoreTables
    package let timing: LeaseTiming
    /// The store, which is in the database already.
    package let store: StoreIdentity
    /// What the directory of this server has.
    package let place: LogPlace
    /// Where the history of the store begins for this server, in microseconds; nil if that does not matter.
    package let timeline: UInt64?
    /// The highest level of the store that this server can serve.
    package let levelMax: UInt64
    /// The machine's clock, in microseconds since 1970. Any thread.
    let wallClock: @Sendable () -> UInt64

    package init(
        loop: MemberLoop, tables: StoreTables, timing: LeaseTiming, store: StoreIdentity, place: LogPlace,
        timeline: UInt64? = nil, levelMax: UInt64 = StoreTables.level,
        wallClock: @escaping @Sendable () -> UInt64 = { SystemClock.microseconds() }
    ) {
        self.loop = loop
        self.tables = tables
        self.timing = timing
        self.store = store
        self.place = place
        self.timeline = timeline
        self.levelMax = levelMax
        self.wallClock = wallClock
    }

    /// The times of a lease in production: another server leads within five seconds.
    package static let timing = LeaseTiming(
        leaseMilliseconds: 2_000, intervalMilliseconds: 500, marginMilliseconds: 200,
        ceilingMicroseconds: 5_000_000, readMilliseconds: 10, streamMilliseconds: 1_000)
}

/// The member of this server. ``append(_:version:completion:)`` may be called on any thread; the rest belongs to the
/// thread of the loop.
package final class MemberDriver: SharedLog, @unchecked Sendable {
    // Sendable: `inbox`, `state` and `places` are; everything else is used by the thread of the loop alone.

    /// What other threads ask for.
    struct Inbox {
        var append: PendingAppend?
        var applied: ApplyOutcome?
        /// What came over the leader's stream, in order.
        var streamed: [StreamedGroups] = []
        var hasStreamEnded = false
        /// Groups are being applied: what comes over the stream is looked at when that has ended.
        var isApplying = false
        /// The loop drives the member, until that has ended.
        var hasJoined = false
        var hasLeft = false
        /// Appends have failed for good.
        var isClosed = false
        /// When waiting appends fail, in milliseconds; nil: they wait as long as it takes.
        var deadline: UInt64?
        /// A time that is to be given out, in microseconds; nil if none is.
        var wantedTime: UInt64?
    }

    /// A group of this server that waits to be appended.
    struct PendingAppend {
        let records: [UInt8]
        let version: UInt64
        let completion: @Sendable (Result<Void, StorageError>) -> Void
        /// Since when it waits, in milliseconds.
        let since = BootClock.milliseconds()
        /// See ``LoggedGroup/derived``.
        var derived: [UInt8] = []
    }

    package let settings: MemberSettings
    package let state = MemberState()
    package let places: LogPlaces
    /// For the streams to other servers.
    let recent: RecentGroups
    /// For replicas and archives that lack earlier groups.
    let history: LogHistory
    let host: any MemberHost
    let inbox = Monitor(Inbox())
    /// Groups with versions up to here came from the log.
    let readVersion = Atomic<UInt64>(0)
    /// The loop knows that the member is to take a turn.
    let isWoken = Atomic(false)
    /// When the next turn is due, in milliseconds.
    var dueAt: UInt64 = 0

    var member: StoreMember
    let lease: MemberChannel
    let log: MemberChannel
    /// The statement about the lease that waits for its connection, or its reply.
    var leaseStatement: LeaseStatement?
    /// Actions about the groups that wait for those before them.
    var logActions: [MemberAction] = []
    var logStatement: LogStatement?
    /// It is sent over a connection that is shared with other members.
    var readsShared = false
    var reading: LogReading?
    /// Records of groups that were read and not handed on.
    var readGroups: [UInt64: LoggedGroup] = [:]
    var isApplying = false {
        didSet { inbox.withLock { [isApplying] in $0.isApplying = isApplying } }
    }
    /// The group that is being appended, or whose outcome is looked up.
    var appending: PendingAppend?
    var appendStarted: UInt64 = 0
    var appendText = AppendText()
    /// The append goes to a table that does not exist yet.
    var mustCreateTable = false
    /// The table was made for the append.
    var hasCreatedTable = false
    var hasEnded = false
    var isAway = false
    /// The append whose unknown outcome was reported last.
    var unknownReport = RepeatedReport()
    /// The clock of the database, as it was seen last; nil before.
    var databaseClock: DatabaseClock?
    /// The machine's clock is near the database's.
    var clockIsRight = true
    /// The lease of another server under this address, as it was seen last; nil if there was none.
    var namesake: LeaseRow?
    /// How often it was renewed since it was seen first.
    var namesakeRenewals = 0
    var isAddressReported = false
    /// Since when the lease is kept for another server, in milliseconds; nil if it is not.
    var keptSince: UInt64?
    /// Since when a lease is claimed, and connections are being opened, in milliseconds; nil if they are open.
    var settlingSince: UInt64?
    /// Since when reads of the log have failed, in milliseconds; nil if the last one has not.
    var unreadableSince: UInt64?
    /// Why, as it was reported last.
    var unreadableReason = ""
    /// No lease is claimed before, in milliseconds.
    var claimsAfter: UInt64 = 0
    /// The closed time that comes with the groups that are being applied; 0 for none.
    var closedRead: UInt64 = 0
    /// What came over the stream and is being applied.
    var streamedApplying: [StreamedGroups] = []

    /// How long a lease that was given up is kept for the server that shall have it, in milliseconds.
    static let keptMilliseconds: UInt64 = 8_000
    /// After this time without an answer, or with an append that is not made, calls are refused; in milliseconds.
    package static let awayMilliseconds: UInt64 = 5_000

    package init(_ settings: MemberSettings, places: LogPlaces, host: any MemberHost) {
        self.settings = settings
        self.places = places
        recent = RecentGroups(after: settings.place)
        history = LogHistory(database: settings.loop.database, tables: settings.tables, store: settings.store)
        self.host = host
        member = StoreMember(
            server: ServerIdentity(high: .random(in: .min ... .max), low: .random(in: .min ... .max)),
            timing: settings.timing, proposed: settings.store, store: settings.store, place: settings.place)
        readVersion.store(settings.place.version, ordering: .relaxed)
        state.update(member)
        // A lock that an append holds, or a backend that hangs, must not collect sessions of this server.
        let brief = PostgreSQLSession.settings + "; SET lock_timeout = 1000; SET statement_timeout = 2000"
        let (loop, waker) = (settings.loop, Waker())
        func channel(_ name: String, _ settings: String, silenceMax: UInt64) -> MemberChannel {
            MemberChannel(
                name, address: loop.database, settings: settings, silenceMax: silenceMax, opener: loop.opener
            ) { waker.wake() }
        }
        lease = channel("lease", brief, silenceMax: 2_500)
        log = channel("log", PostgreSQLSession.settings, silenceMax: 10_000)
        state.noteContact()
        waker.driver.update { $0.driver = self }
    }

    /// Wakes a driver that may have gone.
    private final class Waker: Sendable {
        let driver = Monitor<Weak>(Weak())

        struct Weak {
            weak var driver: MemberDriver?
        }

        func wake() { driver.withLock { $0.driver }?.wake() }
    }

    /// Begins to drive.
    package func start() throws {
        inbox.update { $0.hasJoined = true }
        do {
            try settings.loop.join(self)
        } catch {
            inbox.update { $0.hasJoined = false }
            throw error
        }
    }

    /// From now on an append that waits fails after some seconds: the server is ending.
    package func beginStopping(withinMilliseconds milliseconds: UInt64) {
        inbox.withLock { $0.deadline = BootClock.milliseconds() + milliseconds }
        wake()
    }

    /// Ends the member. Appends fail. Waits until its last turn is over.
    package func stop() {
        let isDriven = inbox.withLock { inbox in
            defer { inbox.hasJoined = false }
            return inbox.hasJoined
        }
        if isDriven { settings.loop.leave(self) }
    }

    /// Waits until the loop has ended the member.
    func waitForEnd() { inbox.wait { $0.hasLeft ? () : nil } }

    func wake() { settings.loop.wake(self) }

    // MARK: The engine's side

    package var store: StoreIdentity { settings.store }

    package func append(
        _ records: RawSpan, version: CommitVersion,
        completion: @escaping @Sendable (Result<Void, StorageError>) -> Void
    ) {
        if version.microseconds <= readVersion.load(ordering: .acquiring) { return completion(.success(())) }
        let pending = PendingAppend(
            records: [UInt8](copying: records), version: version.microseconds, completion: completion)
        let isTaken = inbox.withLock { inbox in
            if inbox.isClosed { return false }
            inbox.append = pending
            return true
        }
        isTaken ? wake() : completion(.failure(Self.closed))
    }

    /// Whether times up to one may be given out at a leader, in microseconds. Otherwise the next renewal of the lease
    /// raises the ceiling above it. Any thread.
    package func admits(_ time: UInt64) -> Bool {
        if time < state.clockMax { return true }
        inbox.withLock { $0.wantedTime = max($0.wantedTime ?? 0, time) }
        wake()
        return false
    }

    package func willCheckpoint(_ version: CommitVersion) throws(StorageError) {
        try places.write(checkpoint: version)
    }

    static let closed = StorageError(
        .failed, "this server does not lead the store any more; the outcome of the commit is unknown")

    /// Ends the append that waits, if there is one.
    func finishAppend(_ outcome: Result<Void, StorageError>) {
        appending = nil
        inbox.withLock { $0.append.take() }?.completion(outcome)
    }

    /// Fails the append that waits, and all to come.
    func closeAppends() {
        inbox.withLock { $0.isClosed = true }
        finishAppend(.failure(Self.closed))
    }

    // MARK: The thread

    /// Does everything that is due.
    func turn(_ now: UInt64) {
        takeApplied()
        hasEnded ? dropStreamed() : takeStreamed()
        if !hasEnded {
            if let time = inbox.withLock({ $0.wantedTime.take() }), state.isLeading { member.noteIssued(time) }
            perform(member.tick(now: now, wallMicroseconds: wallMicroseconds))
            appendIfPossible()
        }
        if !hasEnded {
            keepConnections(now)
            if lease.isIdle { sendLease() }
            if log.isIdle { sendLog() }
            noteAway()
        }
        closeOverdue(now)
        state.update(member)
        dueAt = nextDue()
    }

    func tick(_ channel: MemberChannel, _ now: UInt64) {
        if let event = channel.tick(now) { handle(event, of: channel) }
    }

    private func closeOverdue(_ now: UInt64) {
        let isOverdue = inbox.withLock { inbox in
            guard let deadline = inbox.deadline, now >= deadline else { return false }
            inbox.deadline = nil
            return true
        }
        if isOverdue { closeAppends() }
    }

    /// When something has to be done although nothing happens, in milliseconds.
    private func nextDue() -> UInt64 {
        let deadline = inbox.withLock { $0.deadline } ?? .max
        if hasEnded { return deadline }
        let away = isAway ? .max : unusableSince + Self.awayMilliseconds + 1
        let own = ownsConnections ? min(lease.dueAt, log.dueAt) : .max
        return min(member.nextTick ?? .max, deadline, away, own, settlingEnd, readingEnd)
    }

    /// The last turn.
    func end() {
        closeAppends()
        dropStreamed()
        closeChannels()
        inbox.update { $0.hasLeft = true }
    }

    func closeChannels() {
        lease.close()
        log.close()
    }

    /// The time for ceilings: never far ahead of that of the database, also when the machine's clock has just jumped.
    private var wallMicroseconds: UInt64 {
        let wall = settings.wallClock()
        return min(wall, databaseClock?.latestTime(at: BootClock.milliseconds()) ?? wall)
    }

    private func takeApplied() {
        let applied = inbox.withLock { $0.applied.take() }
        guard let applied, !hasEnded else { return }
        isApplying = false
        switch applied {
        case .applied: break
        case .impossible: return end(.refused("a group of the log cannot be applied"))
        case .differs(let keySpace, let sequence): return end(.differs(keySpace: keySpace, sequence: sequence))
        }
        if closedRead > 0 { host.close(through: closedRead) }
        closedRead = 0
        let streamed = streamedApplying
        streamedApplying = []
        streamed.complete(true)
        pump()
    }

    func handle(_ event: PostgreSQLConnection.Event, of channel: MemberChannel) {
        switch event {
        case .opened:
            host.note(.connected(channel.name))
            member.connectionOpened(now: BootClock.milliseconds())
        case .finished(let outcome):
            state.noteContact()
            channel.noteReply()
            if hasEnded { return }
            channel === lease ? takeLease(outcome) : takeLog(outcome)
        case .ended(let reason):
            if noteEnd(of: channel, reason) { channel === lease ? loseLease() : loseLog() }
        }
    }

    /// - Returns: whether the end leaves a statement without a reply that still matters.
    @discardableResult
    func noteEnd(of channel: MemberChannel, _ reason: String) -> Bool {
        let now = BootClock.milliseconds()
        if channel.losses.isDue(reason, at: now) { host.note(.connectionLost(channel.name, reason: reason)) }
        return channel.noteEnd(now) && !hasEnded
    }

    /// Reports why the database refuses a statement.
    func noteRefusal(_ reason: String, of channel: MemberChannel) {
        if channel.refusals.isDue(reason, at: BootClock.milliseconds()) { host.note(.statementRefused(reason)) }
    }

    /// Since when commits may not become durable, in milliseconds: a database that answers may refuse them.
    private var unusableSince: UInt64 {
        min(state.lastContactMilliseconds, inbox.withLock { $0.append?.since } ?? .max)
    }

    private func noteAway() {
        let isAway = BootClock.milliseconds() > unusableSince + Self.awayMilliseconds
        if isAway == self.isAway { return }
        self.isAway = isAway
        host.noteDatabase(isAway: isAway)
    }

    /// Nothing is done any more; the server restarts.
    func end(_ reason: RestartReason) {
        if hasEnded { return }
        hasEnded = true
        state.set(leads: false)
        closeAppends()
        logActions.removeAll()
        settings.loop.followers.forget(self)
        closeChannels()
        host.restart(reason)
    }
}
