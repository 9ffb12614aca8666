// The listeners of one thread, and where changes come to them.
//
//     store ──► wake-up ──► hub.advance     read time R; the feed's batches up to R ──► router ──► sessions
//     transport ──► session.next(into:)     begins a snapshot at the hub's position, message by message
//
// Each event loop has its own hub, so nothing here is locked. For listeners the commit thread only collects what a
// commit changed and wakes the loops.

internal import Basics
internal import DocumentModel
package import DocumentStore
internal import Synchronization

/// Bounds of the listeners of one thread.
package struct ListenLimits: Sendable {
    /// Targets that one stream may have.
    package var targets = 1_000
    /// Documents that one target may name.
    package var documents = 10_000
    /// Memory of all targets together, in bytes; a further target is refused with `RESOURCE_EXHAUSTED`. Refusals that
    /// clients have not read count too; a stream that has more than 64 KiB of them ends then.
    package var targetBytes = 512 << 20
    /// Results that the queries of all targets together may skip with their offsets; a further target is refused with
    /// `RESOURCE_EXHAUSTED`. A change that affects a query skips them twice: before and after it.
    package var offsets = 250_000
    /// Changed documents that one session may hold before they are sent. One that would hold more compares two states
    /// of the store instead.
    package var changes = 1_000
    /// The same for all sessions together.
    package var allChanges = 1_000_000
    /// What targets and changes may take, in bytes.
    package var heldBytesMax: Int { targetBytes + allChanges * ListenHub.changeBytes }
    /// How long a session judges targets before others have their turn, about, in nanoseconds.
    package var judgementNanoseconds: UInt64 = 1_000_000

    package init() {}
}

/// The listeners of one thread. Confined to that thread.
package final class ListenHub {
    let store: DocumentStore
    private let reader: StoreReader
    private var lastReader: DatabaseReader?
    private let wakeUp: @Sendable () -> Void
    private var subscription: ChangeSubscription?
    /// Everything committed up to this version has been handed to the sessions, and nothing after it.
    private(set) var position: UInt64 = 0
    private var databases: [DatabaseName: DatabaseTargets] = [:]
    private var numbers: [UInt32: DatabaseTargets] = [:]
    private var sessions: [ObjectIdentifier: ListenSession] = [:]
    /// Sessions that have something to send since they were woken last.
    private var touched: [ListenSession] = []
    /// What waits for the storage, by the numbers of the waits.
    private var waiting: [UInt64: (Result<Void, RequestError>) -> Void] = [:]
    private var waits: UInt64 = 0
    private let endedWaits = EndedWaits()
    private var versionWaits = VersionWaits()
    var shared = SharedReads()
    /// Memory of the targets and waiting refusals of all sessions, for ``ListenLimits/targetBytes``.
    package internal(set) var targetBytes = 0
    /// Bytes of a change that a session holds, about: its entry and the key of its document.
    package static let changeBytes = 256
    /// Memory of the targets, and of the changes that sessions hold, in bytes.
    package var heldBytes: Int { targetBytes + heldChanges * Self.changeBytes }

    /// Offsets of the targets of all sessions, for ``ListenLimits/offsets``.
    var offsets = ListenOffsets()
    /// Changes that sessions hold, for ``ListenLimits/allChanges``.
    package internal(set) var heldChanges = 0

    let limits: ListenLimits

    /// The targets of one database.
    private final class DatabaseTargets {
        /// By which `numbers` has them; nil before the first change of the database.
        var number: UInt32?
        var router = TargetRouter()
        var judged = VerdictDocuments()
    }

    /// Waits that have ended, with what came of them. Thread-safe.
    private final class EndedWaits: Sendable {
        typealias Wait = (number: UInt64, outcome: Result<Void, RequestError>)

        private let waits = Mutex<[Wait]>([])

        func add(_ wait: Wait) { waits.withLock { $0.append(wait) } }

        func takeAll() -> [Wait] {
            waits.withLock { waits in
                defer { waits = [] }
                return waits
            }
        }
    }

    /// - Parameters:
    ///   - limits: bounds of each session.
    ///   - reader: a reader of this thread.
    ///   - wakeUp: called on a thread of the store when there are changes, or something that was waited for; has
    ///     ``advance()`` called on this thread.
    package init(
        _ store: DocumentStore, limits: ListenLimits = ListenLimits(), reader: StoreReader,
        wakeUp: @escaping @Sendable () -> Void
    ) {
        self.limits = limits
        self.store = store
        self.reader = reader
        self.wakeUp = wakeUp
    }

    /// The number of open sessions.
    package var sessionCount: Int { sessions.count }

    // MARK: Sessions

    func open(_ session: ListenSession) {
        if subscription == nil {
            subscription = store.subscribeToChanges(wakeUp)
            position = store.currentReadTime
        }
        sessions[ObjectIdentifier(session)] = session
    }

    func close(_ session: ListenSession) {
        sessions[ObjectIdentifier(session)] = nil
        if sessions.isEmpty { subscription = nil }
    }

    /// To be called every ``tickMilliseconds``: has sessions send a heartbeat that have been silent for long.
    package func tick() {
        shared.removeAll()
        for session in sessions.values { session.tick() }
        wakeTouched()
    }

    /// Time between two calls of ``tick()``.
    package static let tickMilliseconds: UInt64 = 5_000

    // MARK: Targets

    /// A reader of a database; sessions of one database share the start of its names.
    func reader(of database: DatabaseName) -> DatabaseReader {
        if let lastReader, lastReader.database == database { return lastReader }
        let reader = DatabaseReader(self.reader, database)
        lastReader = reader
        return reader
    }

    /// From now on a target receives the changes above `position`.
    func insert(_ target: Target, of database: DatabaseName) {
        if let targets = databases[database] { return targets.router.insert(target) }
        let targets = DatabaseTargets()
        targets.router.insert(target)
        databases[database] = targets
    }

    func remove(_ target: Target, of database: DatabaseName) {
        guard let targets = databases[database] else { return }
        targets.router.remove(target)
        guard targets.router.isEmpty, targets.judged.isEmpty else { return }
        forget(database)
    }

    /// The database has no targets any more.
    private func forget(_ database: DatabaseName) {
        guard let targets = databases.removeValue(forKey: database) else { return }
        if let number = targets.number { numbers[number] = nil }
    }

    /// The verdict of a part of a target rests on other documents from now on, whose changes above `position` have it
    /// judged again.
    func move(_ part: TargetPart, from old: Set<[UInt8]>, to new: Set<[UInt8]>, of database: DatabaseName) {
        databases[database]?.judged.move(part, from: old, to: new)
    }

    /// Documents that the verdicts of all targets rest on.
    package var judgedDocuments: Int { databases.values.reduce(0) { $0 + $1.judged.count } }

    /// The targets of the database with a number; nil if there are none.
    private func targets(ofDatabase number: UInt32) -> DatabaseTargets? {
        if let targets = numbers[number] { return targets }
        if databases.count == numbers.count { return nil }
        guard let targets = store.databaseName(of: number).flatMap({ databases[$0] }) else { return nil }
        targets.number = number
        numbers[number] = targets
        return targets
    }

    // MARK: Waits

    /// Has ``ListenSession/storageIsReady(_:)`` called when what the session's last read lacked is in memory.
    func waitForStorage(_ session: ListenSession) {
        let end = beginWait { session.storageIsReady($0) }
        reader.whenReady(end)
    }

    /// Calls `completion` on this thread when everything up to a version is visible, or with `UNAVAILABLE` when it is
    /// not within ``VersionWaits/patienceMilliseconds``.
    func whenVisible(_ version: UInt64, _ completion: @escaping (Result<Void, RequestError>) -> Void) {
        if versionWaits.add(version, at: store.elapsedMilliseconds, completion) { ask(for: version) }
    }

    private func ask(for version: UInt64) {
        let completion = beginWait { [weak self] outcome in self?.versionAnswered(version, outcome) }
        store.whenVisible(version, completion: completion)
    }

    private func versionAnswered(_ version: UInt64, _ outcome: Result<Void, RequestError>) {
        let (ended, next) = versionWaits.end(
            outcome, of: version, visible: store.currentReadTime, now: store.elapsedMilliseconds)
        for end in ended { end() }
        guard let next else { return }
        // A store that takes the writes by now lacks no version.
        if store.isBehind(next) { ask(for: next) } else { versionAnswered(next, .success(())) }
    }

    /// - Parameter completion: called on this thread.
    /// - Returns: what ends the wait; it may be called on any thread.
    private func beginWait(
        _ completion: @escaping (Result<Void, RequestError>) -> Void
    ) -> @Sendable (Result<Void, RequestError>) -> Void {
        waits += 1
        waiting[waits] = completion
        return { [endedWaits, wakeUp, number = waits] outcome in
            endedWaits.add((number, outcome))
            wakeUp()
        }
    }

    /// Continues what has waited and need not wait any more.
    package func continueReads() {
        if waiting.isEmpty { return }
        for (number, outcome) in endedWaits.takeAll() { waiting.removeValue(forKey: number)?(outcome) }
    }

    // MARK: Changes

    /// Hands the changes that are visible now to the sessions, and wakes those that have something to send.
    package func advance() {
        continueReads()
        guard let subscription else { return }
        let readTime = store.currentReadTime
        guard readTime > position else { return }
        shared.removeAll()
        for database in store.deletedDatabases(after: position, through: readTime) { endTargets(of: database) }
        for (database, error) in store.releasedDatabases(after: position, through: readTime) {
            // The client comes back with tokens of times before this one, and finds the database at another store.
            for session in sessions.values where session.database == database { session.end(error) }
        }
        if let batches = subscription.changes(after: position, through: readTime) {
            for batch in batches { batch.forEachChange(after: position, through: readTime) { route($0) } }
        } else {
            for session in sessions.values { session.handleLostChanges(after: position) }
        }
        position = readTime
        wakeTouched()
    }

    /// Ends the targets of a database that was deleted.
    private func endTargets(of database: DatabaseName) {
        guard databases[database] != nil || sessions.values.contains(where: { $0.database == database }) else { return }
        let error = RequestError(.notFound, "The database \(database) was deleted.")
        for session in sessions.values where session.database == database { session.failAll(error) }
        forget(database)
    }

    private func route(_ change: StoreChange) {
        guard let targets = targets(ofDatabase: change.database) else { return }
        // The removal of what is left of a deleted database changes nothing that readers see.
        if store.isHidden(database: change.database, at: change.version) { return }
        targets.judged.forEachPart(restingOn: change.path) { $0.target.session.noteChange(under: $0) }
        var document: ChangedDocument?
        targets.router.route(change) { target, matches in
            let changed = document ?? ChangedDocument(path: [UInt8](copying: change.path))
            document = changed
            target.session.note(changed, target, version: change.version, matches: matches)
        }
    }

    /// Notes that a session has something to send.
    func touch(_ session: ListenSession) { touched.append(session) }

    func wakeTouched() {
        while !touched.isEmpty {
            let sessions = touched
            touched.removeAll(keepingCapacity: true)
            for session in sessions { session.wakeIfTouched() }
        }
    }
}
