import Basics
import ClientCache
import Dispatch
import DocumentModel
import FirebaseCore
import FirestoreMessages
import Foundation
import HearthClient
internal import QueryEngine
import Synchronization

/// Joins the local store, the server and the listeners of one `Firestore`.
///
///     program ── write ──► LocalStore (queue, overlay) ──► views ──► listeners
///                              │    ▲
///                              ▼    │ acknowledged, rejected, snapshots
///                          HearthClient: ordered commits, Listen stream, reads
///
/// All state belongs to one ``WorkQueue``. The methods may be called on any thread; they return at once.
final class SyncEngine: @unchecked Sendable {
    // Unchecked: the variables are touched on `queue` only.

    /// Names a listener.
    typealias ListenerID = Int

    /// A listener of the program.
    struct Subscriber {
        var listener: QueryListener
        /// Called on `queue`.
        let deliver: @Sendable (ViewSnapshot) -> Void
        let fail: @Sendable (RequestError) -> Void
    }

    /// What is listened to; subjects with the same canonical bytes share a view.
    struct Subject: Sendable {
        let kind: ListenTarget.Kind
        /// The last documents of the order instead of the first.
        var isReversed = false
        var limit: Int?

        /// Bytes that identify the subject in the store.
        func canonical(_ database: DatabaseName) -> [UInt8] {
            ListenRequest(database: "\(database)", .add(ListenTarget(kind, id: isReversed ? 2 : 1))).encodedBytes()
        }
    }

    /// A view with its listeners. The server is asked while one of them wants it; the others see what it sends too.
    final class Channel {
        /// Grows in the order of the channels.
        let number: Int
        let subject: Subject
        /// Identifies the subject.
        let canonical: [UInt8]
        let scope: ListenScope
        var view: SyncView
        var subscribers: [ListenerID: Subscriber] = [:]
        /// Nil while the server is not asked.
        var target: LocalTarget?
        var watchID: Int32?
        /// Changed documents that may concern the view.
        var changes: [SyncView.Change] = []
        /// Whether a listener asks for more than the cache.
        var wantsServer: Bool { subscribers.values.contains { !$0.listener.isOfCache } }

        init(_ number: Int, _ subject: Subject, _ canonical: [UInt8], _ view: SyncView) {
            self.number = number
            self.subject = subject
            self.canonical = canonical
            scope = ListenScope(subject.kind)
            self.view = view
        }
    }

    let queue: WorkQueue<WriteEvent>
    /// Replies to batches, on their way to the queue.
    let replies: TurnCollector<WriteEvent>
    let database: DatabaseName
    let client: HearthClient
    let store: LocalStore
    let numbers = WriteNumbers()
    /// Runs a callback of the program on the queue of the settings.
    let callBack: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// The channels by the bytes that identify their subjects, and by their listeners.
    private var channelsOfSubject: [[UInt8]: Channel] = [:] {
        didSet { isObserved.store(!channelsOfSubject.isEmpty, ordering: .relaxed) }
    }
    private var channelsOfListener: [ListenerID: Channel] = [:]
    private var nextChannel = 1
    /// The channels that have something to show, or may have, by their numbers; and those with documents in limbo. So
    /// no change costs the number of listeners.
    private var dueChannels: [Int: Channel] = [:]
    private var limboChannels: [Int: Channel] = [:]
    /// How many channels were looked at so far because of changes. For tests.
    private(set) var examinedChannelCount = 0
    /// The channels by what they are about.
    private var routes = ListenRoutes()
    private var channelsOfWatch: [Int32: Channel] = [:]
    private let isObserved = Atomic(false)
    private var nextWatchID: Int32 = 1
    private(set) var stream: WatchStream?
    private(set) var isOffline = false
    private var syncListeners: [ListenerID: @Sendable () -> Void] = [:]
    /// Whether a listener was called since the listeners of agreements were.
    private var hasDelivered = false
    private let nextListener = Atomic<Int>(1)
    var isClosed = false
    /// Whether the store takes nothing any more. Until then it takes the replies of the server.
    private(set) var isStoreClosed = false
    /// Whether a step of the cache's indexes waits for the queue.
    var isIndexing = false

    /// The time of the server's last consistent state. The reply to a write may come after a state that contains it.
    private var stateMicroseconds: UInt64 = 0
    /// Documents that the server is being asked for because of limbo, or because they are held.
    private var resolving: Set<UTF8Text> = []
    /// Documents that the server was asked for since its last consistent state.
    private var asked: Set<UTF8Text> = []
    /// Whether the server is asked after a pause for documents that are held.
    private var isWaitingForHeld = false
    /// The events with which the reads on their way began.
    var readsInFlight: Set<Int> = []
    /// Names of documents whose writes were acknowledged while reads were on their way, and when.
    var acknowledged: [(event: Int, name: String)] = []
    /// The last event: a read began, or writes were acknowledged.
    var eventNumber = 0
    /// Queries whose results the server has sent in answer to a read.
    var readQueries = RecentKeys(countMax: 1000)
    /// Replies that the store has not taken, because its disk is full.
    var unsettled: [SentReply] = []
    /// Whether the store gets them again after a pause.
    var isSettlingLater = false
    var settlingFailure = LastingFailure("take replies of the server")
    /// The user of the program, until the store has changed to this user.
    var nextUser: String?
    /// Whether the store changes to this user after a pause.
    var isChangingUserLater = false
    var userFailure = LastingFailure("change the user")
    var readFailure = LastingFailure("keep what is read")
    var indexFailure = LastingFailure("build indexes")
    /// Whether the server is asked for the listeners after a pause, because the disk of the store had no room for what
    /// it sent.
    var isSuspended = false
    /// The length of the next such pause.
    var suspensionSeconds = 1
    var listenFailure = LastingFailure("keep what listeners get")
    /// Time between two attempts to change a store whose disk is full.
    static let pause = DispatchTimeInterval.seconds(1)
    /// Calls that wait for pending writes.
    var writeWaits: [WriteWait] = []
    let nextWriteWait = Atomic<Int>(1)

    /// Opens the store, and sends the writes that an earlier process has left.
    ///
    /// - Parameters:
    ///   - makeClient: makes the client when the store is open; it has the client call `userChanged`.
    ///   - pendingWrites: counts the writes that were left.
    init(
        _ configuration: LocalStore.Configuration,
        makeClient: (_ userChanged: @escaping @Sendable (String?) -> Void) throws(RequestError) -> HearthClient,
        pendingWrites: PendingWrites, callBack: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) throws(RequestError) {
        let queue = WorkQueue<WriteEvent>(label: "hearth.firestore") { $0.first?.engine.take($0) }
        self.queue = queue
        database = configuration.database
        self.callBack = callBack
        store = try LocalStore(configuration) { body in queue.async(body) }
        let own = EngineReference()
        client = try makeClient { user in own.engine?.userChanged(user) }
        replies = TurnCollector(on: client.orderedLoop) { events in
            queue.submit(events, mayRun: events.first?.engine.isLight ?? false)
        }
        own.engine = self
        let left = store.allBatches
        numbers.restore(left.map { CommitSequence.Ticket($0.identity) })
        let orders = left.map { batch in
            let isCounted = pendingWrites.begin(byteCount: 0)
            return order(
                batch.number, batch.request, CommitSequence.Ticket(batch.identity),
                user: batch.isUnclaimed ? nil : batch.user, wasAccepted: true, cancellation: nil
            ) { error in
                if isCounted { pendingWrites.finish(byteCount: 0) }
                guard let error, error.code != .cancelled else { return }
                FirebaseLog.write(
                    .warning, "A write of an earlier process failed: \(error.message) (\(error.code))")
            }
        }
        client.commitInOrder(orders, of: numbers)
        scheduleGarbageCollection(after: Self.firstCollection)
        queue.async { self.continueIndexes() }
    }

    /// Whether writes and replies may be processed on the thread of their caller: without a disk and without listeners
    /// this takes microseconds. Thread-safe.
    var isLight: Bool { store.configuration.directory == nil && !isObserved.load(ordering: .relaxed) }

    /// Closes the store. Calls after this do nothing.
    func close() async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            queue.async {
                self.shutDown()
                continuation.resume()
            }
        }
    }

    /// The same at the end of the process, on a thread that may block.
    func closeAtExit() { queue.sync { self.shutDown() } }

    /// Calls from now on change nothing in the store: the client is about to cancel its calls. Replies that come before
    /// are taken, because the program gets them too.
    func prepareToClose() async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            queue.async {
                self.isClosed = true
                self.endWriteWaits(Self.terminatedBeforeWrites)
                continuation.resume()
            }
        }
    }

    private func shutDown() {
        isClosed = true
        isStoreClosed = true
        endWriteWaits(Self.terminatedBeforeWrites)
        stream?.close()
        channelsOfSubject = [:]
        dueChannels = [:]
        limboChannels = [:]
        channelsOfListener = [:]
        routes = ListenRoutes()
        channelsOfWatch = [:]
        syncListeners = [:]
        store.close()
    }

    /// The cache cannot be used any more.
    func report(_ error: RequestError) { FirebaseLog.write(.error, "The local cache failed: \(error.message)") }

    // MARK: Listeners

    /// Adds a listener.
    ///
    /// - Parameters:
    ///   - isOfCache: whether the listener does not ask the server.
    ///   - deliver: called on the queue of the engine with each snapshot.
    ///   - fail: called there once, as the last call.
    func listen(
        _ subject: Subject, isOfCache: Bool, includesMetadataChanges: Bool,
        deliver: @escaping @Sendable (ViewSnapshot) -> Void, fail: @escaping @Sendable (RequestError) -> Void
    ) -> ListenerID {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        queue.async {
            if self.isClosed { return }
            let subscriber = Subscriber(
                listener: QueryListener(
                    includesMetadataChanges: includesMetadataChanges, isOfCache: isOfCache),
                deliver: deliver, fail: fail)
            do throws(RequestError) {
                try self.add(subscriber, id, subject)
                self.reportAgreement()
            } catch {
                self.remove(id)
                fail(error)
            }
        }
        return id
    }

    func unlisten(_ id: ListenerID) {
        queue.async {
            self.syncListeners[id] = nil
            self.remove(id)
            self.reportAgreement()
        }
    }

    /// Removes a listener of a query or document, if there is one with this id.
    private func remove(_ id: ListenerID) {
        guard let channel = channelsOfListener.removeValue(forKey: id) else { return }
        channel.subscribers[id] = nil
        if channel.subscribers.isEmpty {
            end(channel)
        } else if !channel.wantsServer {
            unwatch(channel)
            update(channel)
        }
    }

    /// Calls `body` on the engine's queue now, and whenever all listeners that a change concerns have been called, at
    /// least one.
    func addSyncListener(_ body: @escaping @Sendable () -> Void) -> ListenerID {
        let id = nextListener.add(1, ordering: .relaxed).newValue
        queue.async {
            if self.isClosed { return }
            self.syncListeners[id] = body
            body()
        }
        return id
    }

    /// Calls the listeners of agreements, if another listener was called before.
    private func reportAgreement() {
        guard hasDelivered else { return }
        hasDelivered = false
        for body in syncListeners.values { body() }
    }

    private func add(_ subscriber: Subscriber, _ id: ListenerID, _ subject: Subject) throws(RequestError) {
        let channel = try channel(of: subject)
        channel.subscribers[id] = subscriber
        channelsOfListener[id] = channel
        guard channel.watchID == nil, channel.wantsServer, !isSuspended else {
            return deliver(channel.view.snapshot, to: id, of: channel)
        }
        let target: LocalTarget
        do throws(RequestError) {
            target = try use(targetOf: channel)
        } catch {
            guard error.code == .resourceExhausted else { throw error }
            deliver(channel.view.snapshot, to: id, of: channel)
            return suspend(because: error)
        }
        deliver(channel.view.snapshot, to: id, of: channel)
        try watch(channel, target)
    }

    /// The target of a channel, which is in use from now on.
    func use(targetOf channel: Channel) throws(RequestError) -> LocalTarget {
        let target = try store.use(target: channel.canonical)
        if target.hasResult { channel.view.hasCachedResult = true }
        return target
    }

    /// The view of a subject with its listeners; it is loaded now if there is none.
    private func channel(of subject: Subject) throws(RequestError) -> Channel {
        let canonical = subject.canonical(database)
        if let channel = channelsOfSubject[canonical] { return channel }
        let view = SyncView(try Self.viewSubject(subject))
        let channel = Channel(nextChannel, subject, canonical, view)
        try channel.view.load(from: store)
        if readQueries.contains(canonical) { channel.view.hasCachedResult = true }
        nextChannel += 1
        channelsOfSubject[canonical] = channel
        dueChannels[channel.number] = channel
        routes.add(channel)
        continueIndexes()
        return channel
    }

    /// What a view of a subject shows.
    ///
    /// - Parameter surplus: results beyond a limit that the view reads.
    static func viewSubject(_ subject: Subject, surplus: Int = ViewLimit.surplus) throws(RequestError)
        -> SyncView.Subject
    {
        switch subject.kind {
        case .documents(let names): return .document(name: UTF8Text(names.first ?? ""))
        case .query(let parent, let query?):
            let parent = Array(parent.utf8)
            let plan = try QueryPlan(query, parent: parent.byteSpan)
            let limit = try subject.limit.map { count throws(RequestError) in
                try ViewLimit(count, of: query, parent: parent, surplus: surplus)
            }
            return .query(plan, isReversed: subject.isReversed, limit: limit)
        case .query, .invalidQuery, .pipeline: throw .invalidArgument("The query cannot be listened to.")
        }
    }

    /// Begins to listen to the server.
    func watch(_ channel: Channel, _ target: LocalTarget) throws(RequestError) {
        channel.target = target
        let id = nextWatchID
        nextWatchID += 1
        channel.watchID = id
        channelsOfWatch[id] = channel
        let documents = target.hasSnapshot ? try store.documents(of: target.id) : TargetDocuments()
        channel.view.resume(documents.times.keys)
        let resume = resumption(of: target, documents)
        let stream = watchStream
        stream.add(id, channel.subject.kind, resume: resume)
    }

    /// What a listener continues from; nil if nothing is known of the target.
    ///
    /// - Parameter documents: the target's documents.
    func resumption(of target: LocalTarget, _ documents: TargetDocuments) -> WatchState.Resumption? {
        if !target.hasSnapshot { return nil }
        // A bundle gives the time of a state, the server a token.
        let time = TimestampValue(microseconds: Int64(clamping: target.snapshotMicroseconds))
        let place = target.hasResult ? ListenTarget.Resume.token(target.token) : .readTime(time)
        return WatchState.Resumption(
            place: documents.isComplete ? place : nil,
            documents: documents.times.mapValues { TimestampValue(microseconds: Int64(clamping: $0)) })
    }

    private var watchStream: WatchStream {
        if let stream { return stream }
        let made = client.makeWatchStream(in: database) { [weak self] output in
            guard let self else { return }
            queue.async { self.take(output) }
        }
        stream = made
        return made
    }

    /// Nobody listens to a channel any more.
    private func end(_ channel: Channel) {
        channelsOfSubject[channel.canonical] = nil
        dueChannels[channel.number] = nil
        limboChannels[channel.number] = nil
        routes.remove(channel)
        unwatch(channel)
        if !isClosed { collectEagerly() }
    }

    /// Nobody asks the server for a channel any more.
    private func unwatch(_ channel: Channel) {
        stopWatching(channel)
        channel.view.unwatched()
        guard let target = channel.target, !isClosed else { return }
        channel.target = nil
        do throws(RequestError) { try store.release(target: target.canonical) } catch { report(error) }
    }

    /// Does not ask the server for a channel any more. Its target stays in use.
    func stopWatching(_ channel: Channel) {
        guard let watchID = channel.watchID else { return }
        channelsOfWatch[watchID] = nil
        stream?.remove(watchID)
        channel.watchID = nil
        // Nobody would find out that the server can be reached again.
        if channelsOfWatch.isEmpty { isOffline = false }
    }

    private func deliver(_ snapshot: ViewSnapshot, to id: ListenerID, of channel: Channel) {
        let isAlone = isOffline || isSuspended
        guard let due = channel.subscribers[id]?.listener.take(snapshot, isOffline: isAlone) else { return }
        deliver(due: due, to: id, of: channel)
    }

    private func deliver(due snapshot: ViewSnapshot, to id: ListenerID, of channel: Channel) {
        hasDelivered = true
        channel.subscribers[id]?.deliver(snapshot)
    }

    // MARK: Changes

    /// Passes changed documents to the views that they may concern.
    func broadcast(_ changes: [LocalChange], snapshotMicroseconds: UInt64? = nil) {
        show(changes, snapshotMicroseconds: snapshotMicroseconds)
        reportAgreement()
    }

    private func show(_ changes: [LocalChange], snapshotMicroseconds: UInt64? = nil) {
        if channelsOfSubject.isEmpty { return }
        for change in changes {
            let concerned = routes.channels(of: change.name)
            if concerned.isEmpty { continue }
            let seen = SyncView.Change(change.name, change.state, namePrefix: store.namePrefixByteCount)
            for channel in concerned {
                channel.changes.append(seen)
                dueChannels[channel.number] = channel
            }
        }
        for channel in Self.inOrder(dueChannels) { update(channel, snapshotMicroseconds: snapshotMicroseconds) }
    }

    private static func inOrder(_ channels: [Int: Channel]) -> [Channel] {
        channels.values.sorted { $0.number < $1.number }
    }

    /// All channels, in their order. Only for what concerns each of them.
    var channels: [Channel] { channelsOfSubject.values.sorted { $0.number < $1.number } }

    /// Applies the changes of a channel to its view, and passes on what its listeners see of them.
    private func update(_ channel: Channel, snapshotMicroseconds: UInt64? = nil) {
        let changes = channel.changes
        channel.changes = []
        examinedChannelCount += 1
        defer { noteWork(of: channel) }
        do throws(RequestError) {
            let snapshot = try channel.view.apply(
                changes, snapshotMicroseconds: snapshotMicroseconds, stateMicroseconds: stateMicroseconds,
                store: store)
            guard let snapshot else { return }
            for id in channel.subscribers.keys.sorted() { deliver(snapshot, to: id, of: channel) }
        } catch {
            fail(channel, error)
        }
    }

    /// Keeps the channels that have more to do.
    private func noteWork(of channel: Channel) {
        let isOpen = channelsOfSubject[channel.canonical] === channel
        dueChannels[channel.number] = isOpen && channel.view.isDue ? channel : nil
        limboChannels[channel.number] = isOpen && channel.view.hasLimbo ? channel : nil
    }

    func fail(_ channel: Channel, _ error: RequestError) {
        let subscribers = channel.subscribers
        for id in subscribers.keys { channelsOfListener[id] = nil }
        channel.subscribers = [:]
        end(channel)
        for subscriber in subscribers.values { subscriber.fail(error) }
    }

    // MARK: The server

    private func take(_ output: WatchStream.Output) {
        if isClosed { return }
        switch output {
        case .step(let step): take(step)
        case .online: isOffline = false
        case .offline:
            if isOffline || channelsOfWatch.isEmpty { return }
            isOffline = true
            showCacheAlone([])
        }
    }

    /// Nothing comes from the server: all listeners show the cache.
    ///
    /// - Parameter changes: what has changed in it.
    func showCacheAlone(_ changes: [LocalChange]) {
        let channels = channels
        for channel in channels {
            channel.view.disconnected()
            dueChannels[channel.number] = channel
        }
        show(changes)
        for channel in channels {
            for id in channel.subscribers.keys.sorted() {
                let due = channel.subscribers[id]?.listener.connectionChanged(isOffline: true)
                if let due { deliver(due: due, to: id, of: channel) }
            }
        }
        reportAgreement()
    }

    /// A consistent state of all targets, or the end of one.
    private func take(_ step: WatchState.Step) {
        var updates = WatchedUpdates()
        var failures: [(Channel, RequestError)] = []
        for (id, event) in step.events {
            guard let channel = channelsOfWatch[id] else { continue }
            switch event {
            case .failure(let error): failures.append((channel, error))
            case .mismatch:
                channel.view.disconnected()
                dueChannels[channel.number] = channel
            case .snapshot(let snapshot):
                let update = updates.add(snapshot, of: channel.target?.id ?? 0)
                channel.view.apply(added: update.added, removed: update.removed)
                dueChannels[channel.number] = channel
            }
        }
        for (channel, error) in failures { fail(channel, error) }
        var changes: [LocalChange] = []
        do throws(RequestError) {
            try store.apply(Array(updates.documents.values), targets: updates.targets, changing: &changes)
            if let readTime = step.readTime {
                endSuspensions()
                stateMicroseconds = UInt64(clamping: readTime.microseconds)
                broadcast(changes, snapshotMicroseconds: stateMicroseconds)
                asked = []
                resolveLimbo()
                collectEagerly()
            }
        } catch {
            if error.code == .resourceExhausted { return suspend(because: error, changes) }
            report(error)
            for channel in channels where channel.watchID != nil { fail(channel, error) }
            broadcast(changes)
        }
    }

    /// Connections are allowed again.
    func networkEnabled() { queue.async { self.stream?.networkEnabled() } }

    // MARK: Limbo

    /// Documents that the server is asked for at a time.
    private static let limboMax = 100

    /// Writes of documents were acknowledged: one that the last state of the server does not have is in limbo, or held.
    func resolveLimbo(after acknowledged: [String]) {
        waitForHeld()
        if limboChannels.isEmpty { return }
        asked.subtract(acknowledged.map { UTF8Text($0) })
        resolveLimbo()
    }

    /// Asks the server for documents that are in the results of the cache but not in those of the server.
    func resolveLimbo() {
        if isClosed { return }
        var names: Set<UTF8Text> = []
        for channel in limboChannels.values {
            examinedChannelCount += 1
            names.formUnion(channel.view.limbo)
        }
        if names.isEmpty { return }
        // One that stays in limbo although it exists is asked for again when the server has sent something, and one for
        // which there is no answer after a pause.
        ask(for: names.subtracting(asked))
    }

    /// Asks the server after a pause for the documents that are held now and then. It sends most of them before.
    private func waitForHeld() {
        if isWaitingForHeld || dueChannels.isEmpty { return }
        guard let last = heldOutsideTargets.max(by: { $0.time < $1.time })?.time else { return }
        isWaitingForHeld = true
        queue.async(after: Self.pause) { [weak self] in
            guard let self else { return }
            isWaitingForHeld = false
            if isClosed { return }
            ask(for: Set(heldOutsideTargets.lazy.filter { $0.time <= last }.map(\.name)))
            waitForHeld()
        }
    }

    private var heldOutsideTargets: [(name: UTF8Text, time: UInt64)] {
        dueChannels.values.flatMap { $0.view.heldOutsideTarget.map { ($0.key, $0.value) } }
    }

    private func ask(for names: Set<UTF8Text>) {
        let wanted = names.subtracting(resolving).prefix(max(0, Self.limboMax - resolving.count))
        if wanted.isEmpty { return }
        resolving.formUnion(wanted)
        asked.formUnion(wanted)
        askForLimbo(wanted.map(\.string))
    }

    private func askForLimbo(_ names: [String]) {
        let request = BatchGetDocumentsRequest(database: "\(database)", documents: names)
        client.collectBatchGet(request, options: .failFast) { [weak self] result in
            guard let self else { return }
            queue.async { self.limboResolved(names, result) }
        }
    }

    private func limboResolved(_ names: [String], _ result: Result<BatchGetReply, RequestError>) {
        if isClosed { return }
        if case .failure(let error) = result, error.code == .permissionDenied, names.count > 1 {
            // The server refuses all of them because of one.
            for name in names { askForLimbo([name]) }
            return
        }
        resolving.subtract(names.map { UTF8Text($0) })
        do throws(RequestError) {
            switch result {
            case .success(let reply): broadcast(try store.apply(reply.remoteUpdates))
            case .failure(let error) where error.code == .permissionDenied || error.code == .notFound:
                // What may not be read does not exist for this program, unless the server has sent it meanwhile.
                broadcast(try store.forget(names.filter { use(of: $0) != .covered }))
            case .failure:
                // The stream may be on another connection, and nothing new may come on it for a long time.
                asked.subtract(names.map { UTF8Text($0) })
                return queue.async(after: Self.pause) { [weak self] in self?.resolveLimbo() }
            }
            resolveLimbo()
        } catch {
            report(error)
        }
    }

    // MARK: Garbage

    /// What the listeners need of a document.
    func use(of name: String) -> ListenerUse {
        let concerned = routes.channels(of: name)
        let key = UTF8Text(name)
        if concerned.contains(where: { $0.view.remoteNames.contains(key) }) { return .covered }
        return concerned.contains { $0.view.keeps(name) } ? .shown : .none
    }

    /// Removes documents that no listener covers or shows, and no read on its way needs, if the store is configured to.
    func collectEagerly() {
        guard store.hasEagerCandidates(hasReads: !readsInFlight.isEmpty) else { return }
        do throws(RequestError) {
            try store.collectEagerly(before: readsInFlight.min(), keeping: use)
        } catch {
            report(error)
        }
    }

    private static let firstCollection = DispatchTimeInterval.seconds(60)
    private static let nextCollection = DispatchTimeInterval.seconds(300)

    private func scheduleGarbageCollection(after delay: DispatchTimeInterval) {
        guard store.configuration.bytesMax != nil else { return }
        queue.async(after: delay) { [weak self] in
            guard let self, !isClosed else { return }
            collectGarbage()
            scheduleGarbageCollection(after: Self.nextCollection)
        }
    }

    private func collectGarbage() {
        do throws(RequestError) {
            _ = try store.collectGarbage { use(of: $0) != .none }
        } catch {
            report(error)
        }
        if let reclaim = store.makeSpaceReclamation() { DispatchQueue.global(qos: .utility).async(execute: reclaim) }
    }
}
