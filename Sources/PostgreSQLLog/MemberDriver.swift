// Drives a member of a store: the statements of its state machine over two connections, on a separate thread.
//
//     commit thread ── append ─────────────────►┐
//                   ◄─ completion ──────────────┤
//                                               ▼
//     StoreMember (pure) ──► actions ──► driver thread ──► connection for the lease   ──► PostgreSQL
//                        ◄── replies ──                ──► connection for the groups  ──►
//                                               │
//     MemberHost ◄── apply, lead, restart ──────┘
//
// Actions about the lease are done at once. Those about the groups are done in their order, and wait while groups are
// being applied.

internal import Basics
internal import CLinux
internal import Glibc
package import Replication
package import Storage
internal import Synchronization

/// How a member reaches its store.
package struct MemberSettings: Sendable {
    /// Of the database: `postgresql://...`.
    package let database: String
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

    package init(
        database: String, tables: StoreTables, timing: LeaseTiming, store: StoreIdentity, place: LogPlace,
        timeline: UInt64? = nil, levelMax: UInt64 = StoreTables.level
    ) {
        self.database = database
        self.tables = tables
        self.timing = timing
        self.store = store
        self.place = place
        self.timeline = timeline
        self.levelMax = levelMax
    }

    /// The times of a lease in production: another server leads within five seconds.
    package static let timing = LeaseTiming(
        leaseMilliseconds: 2_000, intervalMilliseconds: 500, marginMilliseconds: 200,
        ceilingMicroseconds: 5_000_000, readMilliseconds: 10, streamMilliseconds: 1_000)
}

/// The member of this server. ``append(_:version:completion:)`` may be called on any thread; the rest belongs to the
/// driver's thread.
package final class MemberDriver: SharedLog, @unchecked Sendable {
    // Sendable: `inbox`, `state` and `places` are; everything else is used by the driver's thread alone.

    /// What other threads ask for.
    struct Inbox {
        var append: PendingAppend?
        var applied: ApplyOutcome?
        /// What came over the leader's stream, in order.
        var streamed: [StreamedGroups] = []
        var hasStreamEnded = false
        /// Groups are being applied: what comes over the stream is looked at when that has ended.
        var isApplying = false
        var isStopping = false
        /// Appends have failed for good.
        var isClosed = false
        /// When waiting appends fail, in milliseconds; nil: they wait as long as it takes.
        var deadline: UInt64?
    }

    /// A group of this server that waits to be appended.
    struct PendingAppend {
        let records: [UInt8]
        let version: UInt64
        let completion: @Sendable (Result<Void, StorageError>) -> Void
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
    /// Written to wake the thread.
    private let wakeDescriptor: Int32
    private let thread = Monitor<SystemThread?>(nil)

    var member: StoreMember
    let lease: MemberChannel
    let log: MemberChannel
    /// The statement about the lease that waits for its connection, or its reply.
    var leaseStatement: LeaseStatement?
    /// Actions about the groups that wait for those before them.
    var logActions: [MemberAction] = []
    var logStatement: LogStatement?
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
    var hasEnded = false
    var isAway = false
    /// By how much the machine's clock is ahead of the database's, in microseconds.
    var clockAhead: Int64 = 0
    /// Since when the lease is kept for another server, in milliseconds; nil if it is not.
    var keptSince: UInt64?
    /// The closed time that comes with the groups that are being applied; 0 for none.
    var closedRead: UInt64 = 0
    /// What came over the stream and is being applied.
    var streamedApplying: [StreamedGroups] = []

    /// How far a clock may be from the database's for a server to lead, in microseconds.
    static let clockDifferenceMax: Int64 = 10_000_000
    /// How long a lease that was given up is kept for the server that shall have it, in milliseconds.
    static let keptMilliseconds: UInt64 = 8_000
    /// After this time without an answer calls are refused, in milliseconds.
    package static let awayMilliseconds: UInt64 = 5_000

    package init(_ settings: MemberSettings, places: LogPlaces, host: any MemberHost) {
        self.settings = settings
        self.places = places
        recent = RecentGroups(after: settings.place)
        history = LogHistory(database: settings.database, tables: settings.tables, store: settings.store)
        self.host = host
        wakeDescriptor = eventfd(0, Int32(HEARTH_EVENT_FLAGS))
        member = StoreMember(
            server: ServerIdentity(high: .random(in: .min ... .max), low: .random(in: .min ... .max)),
            timing: settings.timing, proposed: settings.store, store: settings.store, place: settings.place)
        readVersion.store(settings.place.version, ordering: .relaxed)
        state.update(member)
        // A lock that an append holds, or a backend that hangs, must not collect sessions of this server.
        let brief = PostgreSQLSession.settings + "; SET lock_timeout = 1000; SET statement_timeout = 2000"
        lease = MemberChannel("lease", address: settings.database, settings: brief, silenceMax: 2_500)
        log = MemberChannel(
            "log", address: settings.database, settings: PostgreSQLSession.settings, silenceMax: 10_000)
        state.noteContact()
    }

    deinit { _ = Glibc.close(wakeDescriptor) }

    /// Begins to drive.
    package func start() throws {
        let started = try SystemThread.start("cluster") { [self] in run() }
        thread.update { $0 = started }
    }

    /// From now on an append that waits fails after some seconds: the server is ending.
    package func beginStopping(withinMilliseconds milliseconds: UInt64) {
        inbox.withLock { $0.deadline = BootClock.milliseconds() + milliseconds }
        wake()
    }

    /// Ends the thread. Appends fail.
    package func stop() {
        inbox.withLock { $0.isStopping = true }
        wake()
        thread.withLock { $0.take() }?.join()
    }

    func wake() {
        var one: UInt64 = 1
        _ = unsafe write(wakeDescriptor, &one, 8)
    }

    // MARK: The engine's side

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

    private func run() {
        while !inbox.withLock({ $0.isStopping }) {
            turn()
            state.update(member)
            wait()
        }
        closeAppends()
        dropStreamed()
        lease.connection.close()
        log.connection.close()
    }

    /// Does everything that is due.
    private func turn() {
        let now = BootClock.milliseconds()
        takeApplied()
        hasEnded ? dropStreamed() : takeStreamed()
        if !hasEnded {
            perform(member.tick(now: now, wallMicroseconds: wallMicroseconds))
            appendIfPossible()
        }
        lease.tick(now) { sendLease() }
        log.tick(now) { sendLog() }
        checkSilence(lease, now)
        checkSilence(log, now)
        noteAway()
        let isOverdue = inbox.withLock { $0.deadline.map { now >= $0 } ?? false }
        if isOverdue { closeAppends() }
    }

    /// The time for ceilings: never far from that of the database.
    private var wallMicroseconds: UInt64 {
        let wall = SystemClock.microseconds()
        let excess = clockAhead - Self.clockDifferenceMax
        return excess > 0 && UInt64(excess) < wall ? wall - UInt64(excess) : wall
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

    /// Waits for a connection, for another thread, or for what is due next.
    private func wait() {
        let now = BootClock.milliseconds()
        var waiting = [pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)]
        let channels = [lease, log].filter { $0.connection.interest != nil }
        for channel in channels {
            guard let interest = channel.connection.interest else { continue }
            waiting.append(pollfd(fd: interest.descriptor, events: interest.events, revents: 0))
        }
        let isWorking =
            leaseStatement == nil && (member.isLeader || logStatement == nil && member.isStreaming(now: now))
        let milliseconds = isWorking ? min(50, max(member.nextDue > now ? member.nextDue - now : 1, 1)) : 10
        _ = unsafe poll(&waiting, nfds_t(waiting.count), Int32(milliseconds))
        if waiting[0].revents != 0 {
            var count: UInt64 = 0
            _ = unsafe read(wakeDescriptor, &count, 8)
        }
        for (channel, entry) in zip(channels, waiting.dropFirst()) where entry.revents != 0 {
            if let event = channel.connection.advance() { handle(event, of: channel) }
        }
    }

    func handle(_ event: PostgreSQLConnection.Event, of channel: MemberChannel) {
        switch event {
        case .opened:
            channel.noteOpened()
            host.note(.connected(channel.name))
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
        let wasSent = channel.noteEnd(BootClock.milliseconds())
        host.note(.connectionLost(channel.name, reason: reason))
        return wasSent && !hasEnded
    }

    /// Gives up a connection that does not answer: the outcome of its statement is unknown.
    private func checkSilence(_ channel: MemberChannel, _ now: UInt64) {
        guard channel.isSilent(now) else { return }
        channel.connection.close()
        handle(.ended("the database does not answer"), of: channel)
    }

    private func noteAway() {
        let isAway = state.silenceMilliseconds > Self.awayMilliseconds
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
        host.restart(reason)
    }
}

/// One connection of a driver: it is opened again after each end, and one that is silent is given up.
final class MemberChannel {
    let name: String
    let connection: PostgreSQLConnection
    private let silenceMax: UInt64
    /// When the statement without a reply was sent, or the attempt to connect began.
    private var since: UInt64?
    private var isSent = false
    private var pause: UInt64 = 0
    private var retryAt: UInt64 = 0

    private static let pauseMin: UInt64 = 50
    private static let pauseMax: UInt64 = 1_000
    private static let connectMax: UInt64 = 5_000

    /// - Parameter silenceMax: how long a reply may take, in milliseconds.
    init(_ name: String, address: String, settings: String, silenceMax: UInt64) {
        self.name = name
        connection = PostgreSQLConnection(address: address, settings: settings)
        self.silenceMax = silenceMax
    }

    /// Opens the connection if that is due, and has an idle one send what waits.
    func tick(_ now: UInt64, send: () -> Void) {
        if connection.isClosed, now >= retryAt {
            since = now
            if connection.open() != nil { retryAt = now + Self.pauseMax }
        }
        if connection.isIdle { send() }
    }

    func noteSent() {
        isSent = true
        since = BootClock.milliseconds()
    }

    func noteReply() {
        isSent = false
        since = nil
    }

    func noteOpened() {
        pause = 0
        since = nil
    }

    /// - Returns: whether a statement was sent whose outcome is unknown now.
    func noteEnd(_ now: UInt64) -> Bool {
        defer { isSent = false }
        since = nil
        pause = min(max(pause * 2, Self.pauseMin), Self.pauseMax)
        retryAt = now + pause
        return isSent
    }

    func isSilent(_ now: UInt64) -> Bool {
        guard let since, !connection.isClosed else { return false }
        return now > since + (isSent ? silenceMax : Self.connectMax)
    }
}
