// Admin/Follow: the state and the commits of this server for a replica, or for another server of its cluster.
//
//     thread "follow"   base files, records or groups, closed times ──► FollowFeed (bounded) ──► the call's loop
//
// The thread reads files and the log, so no event loop waits for a disk. It stops reading while the replica does not.

internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService
internal import Identity
internal import Storage

/// Messages between the thread that makes them and the loop that sends them. Thread-safe.
final class FollowFeed: Sendable {
    private struct State {
        var messages: [FollowResponse] = []
        var byteCount = 0
        /// Why the stream ends after its messages; nil inside for OK.
        var end: RequestError??
        var isStopped = false
        /// The log may have more records.
        var hasNews = false
        /// The thread waits until messages are taken.
        var waitsForRoom = false

        /// - Returns: whether messages are wanted; nil, and nothing is added, if there are too many.
        mutating func put(_ message: FollowResponse, bytesMax: Int) -> Bool? {
            if isStopped { return false }
            let size = message.roughBytes
            waitsForRoom = byteCount > 0 && byteCount + size > bytesMax
            if waitsForRoom { return nil }
            messages.append(message)
            byteCount += size
            return true
        }
    }

    private let state = Monitor(State())
    /// Bytes that wait for a slow replica.
    private static let bytesMax = 4 << 20

    /// Adds a message. Waits while there are too many.
    /// - Parameter wake: called before it waits, so that the loop takes what was put before.
    /// - Returns: false if nobody wants messages any more.
    func put(_ message: FollowResponse, orWait wake: () -> Void) -> Bool {
        if let isWanted = state.withLock({ $0.put(message, bytesMax: Self.bytesMax) }) { return isWanted }
        wake()
        return state.wait { $0.put(message, bytesMax: Self.bytesMax) }
    }

    /// Ends the stream after what was put.
    func finish(_ error: RequestError?) { state.update { if $0.end == nil { $0.end = .some(error) } } }

    /// Ends the stream at once.
    func stop(_ error: RequestError?) {
        state.update { state in
            state.isStopped = true
            state.messages.removeAll()
            if state.end == nil { state.end = .some(error) }
        }
    }

    /// The log has more records.
    func signal() { state.update { $0.hasNews = true } }

    /// Waits until a deadline or a signal; false if the stream has been stopped.
    func pause(milliseconds: UInt64) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000
        return state.wait(untilNanoseconds: deadline) { state in
            if state.isStopped { return false }
            guard state.hasNews else { return nil }
            state.hasNews = false
            return true
        } ?? true
    }

    /// What comes next.
    enum Next {
        case message(FollowResponse)
        case end(RequestError?)
        case nothing
    }

    func take() -> Next {
        let (next, wakes) = state.withLock { state -> (Next, Bool) in
            if !state.messages.isEmpty {
                let message = state.messages.removeFirst()
                state.byteCount -= message.roughBytes
                return (.message(message), state.waitsForRoom)
            }
            if let end = state.end { return (.end(end), false) }
            return (.nothing, false)
        }
        if wakes { state.wakeOne() }
        return next
    }
}

extension FollowResponse {
    fileprivate var roughBytes: Int {
        switch self {
        case .contents(let bytes), .records(let bytes), .derived(let bytes), .groups(let bytes),
            .revocations(let bytes):
            bytes.count + 64
        case .rules(let text): text.utf8.count + 64
        default: 64
        }
    }
}

/// One call of Follow. Confined to its loop.
final class FollowStream: ResponseSource, LongLivedStream {
    private let call: Call
    private let service: FirestoreService
    private let feed = FollowFeed()
    private let authorization: Authorization?
    private let ended: () -> Void

    /// - Parameters:
    ///   - authorization: asked whether the caller may still follow; nil permits it.
    ///   - ended: called once, on the loop.
    init(
        _ call: Call, _ service: FirestoreService, _ authorization: Authorization?, ended: @escaping () -> Void
    ) {
        self.call = call
        self.service = service
        self.authorization = authorization
        self.ended = ended
    }

    /// Starts the thread that makes the messages.
    ///
    /// - Parameters:
    ///   - rules: followed too; nil if the server has nothing to do with rules.
    ///   - revocations: the same.
    func start(
        _ request: FollowRequest, _ store: DocumentStore, _ rules: RulesKeeper?, _ revocations: RevocationKeeper?,
        _ log: Log
    ) throws {
        let bound = LoopBound(call)
        let loop = call.loop
        let source = FollowSource(
            store: store, number: store.replication.makeStreamNumber(), rules: rules, revocations: revocations,
            feed: feed, log: log,
            wake: { loop.execute { bound.value.resume() } })
        try SystemThread(name: "follow") { source.run(request) }.detach()
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        switch feed.take() {
        case .message(let message):
            message.encode(into: &output)
            return .message
        case .nothing: return .waiting
        case .end(let error):
            finish(error?.code ?? .ok)
            guard let error else { return .finished }
            return .failed(error.code, error.message)
        }
    }

    func stopServing() {
        feed.stop(RequestError(.unavailable, "the server is draining"))
        call.resume()
    }

    func checkAccess() {
        guard let authorization, !authorization.permits(call.origin, for: .administration) else { return }
        feed.stop(RequestError(.permissionDenied, "The caller may not administer the server any more."))
        call.resume()
    }

    func cancelled() {
        feed.stop(nil)
        finish(nil)
    }

    private func finish(_ code: StatusCode?) {
        service.longLivedStreams.remove(self)
        if let code { service.counters.callEnded(Method.adminFollow.rpc, code) }
        ended()
    }
}

/// What a replica has of the policy of its source.
private struct SentPolicy {
    var rules: String?
    var revocations: Revocations.Moments = [:]
    /// Of the revocations; 0 before the first.
    var version: UInt64 = 0
}

/// Makes the messages of one stream, on a thread.
private struct FollowSource: Sendable {
    let store: DocumentStore
    /// Of the stream. The last stream of the same follower may end after this one has begun.
    let number: UInt64
    let rules: RulesKeeper?
    let revocations: RevocationKeeper?
    let feed: FollowFeed
    let log: Log
    let wake: @Sendable () -> Void

    /// Time between two looks at the log without a commit, in milliseconds.
    private static let intervalMilliseconds: UInt64 = 100
    /// Time between two looks at rules and revocations, in milliseconds.
    private static let policyMilliseconds: UInt64 = 1_000
    /// Users of a message.
    private static let usersMax = 256
    private static let messageBytesMax = 256 << 10

    func run(_ request: FollowRequest) {
        let replication = store.replication
        replication.countFollower(1)
        // Groups have other hashes.
        let wantsHashes = request.place == nil ? 1 : 0
        replication.derived.want(wantsHashes)
        replication.wake(number) { [feed] in feed.signal() }
        defer {
            replication.stopWaking(number)
            replication.derived.want(-wantsHashes)
            replication.countFollower(-1)
            if request.follower != 0 { store.endHold(of: request.follower, stream: number) }
        }
        do {
            if let place = request.place { try serve(place, request.follower) } else { try serve(request) }
            feed.finish(nil)
        } catch let error as RequestError {
            feed.finish(error)
        } catch let error as StorageError where error.code == .versionTooOld {
            feed.finish(RequestError(.unavailable, "The replica is too slow: the log does not have what comes next."))
        } catch {
            if replication.isNews(failure: "\(error)") { log(.error, "follow_failed", ["message": "\(error)"]) }
            feed.finish(RequestError(.internal, "The log cannot be read."))
        }
        wake()
    }

    private func serve(_ request: FollowRequest) throws {
        // Before the look at the log: from here on nothing that the replica lacks is trimmed.
        hold(request, after: request.version)
        let reason = try refusal(of: request)
        if let reason { return try sendBase(reason) }
        if store.replication.isNews(connected: request.follower) {
            log(.info, "replica_connected", ["version": String(request.version)])
        }
        guard put(.accepted(timeline: store.timelineStart.microseconds)) else { return }
        let records = try store.records(after: CommitVersion(microseconds: request.version))
        var reached = request.version
        var sent = SentPolicy()
        var policyAt: UInt64 = 0
        while true {
            let now = SystemClock.monotonicMilliseconds()
            if now >= policyAt {
                policyAt = now + Self.policyMilliseconds
                guard putRules(unless: &sent.rules), putRevocations(unless: &sent) else { return }
            }
            // Taken before the records are read: those up to it are among them.
            let closed = store.currentReadTime
            let before = reached
            var batch: [UInt8] = []
            while try records.next() {
                reached = records.version.microseconds
                batch.append(littleEndian: reached, bytes: 8)
                batch.append(littleEndian: UInt64(records.record.byteCount), bytes: 4)
                batch.append(contentsOf: records.record)
                if batch.count >= Self.messageBytesMax {
                    guard put(.records(batch)) else { return }
                    batch.removeAll(keepingCapacity: true)
                }
            }
            if !batch.isEmpty, !put(.records(batch)) { return }
            if reached > before {
                hold(request, after: before)
                guard putDerived(after: before, through: reached) else { return }
            }
            guard put(.closed(closed)), feed.pause(milliseconds: Self.intervalMilliseconds) else { return }
        }
    }

    /// Sends the durable groups after a place, while this server leads.
    /// - Parameter follower: its number; 0 for one without.
    private func serve(_ message: LogPlaceMessage, _ follower: UInt64) throws {
        guard let log = store.configuration.engine.sharedLog else {
            throw RequestError(.failedPrecondition, "This server is not one of a cluster.")
        }
        var place = SharedLogPlace(
            store: StoreIdentity(high: message.storeHigh, low: message.storeLow), sequence: message.sequence,
            hash: message.hash)
        guard log.durableGroups(after: place, bytesMax: 0) != nil else { throw Self.groupsAreNotKept }
        if store.replication.isNews(connected: follower) {
            self.log(.info, "follower_connected", ["sequence": String(message.sequence)])
        }
        guard put(.accepted(timeline: store.timelineStart.microseconds)) else { return }
        while true {
            // Taken before the groups: those up to it are among them. The lease is looked at after that.
            let closed = store.currentReadTime
            guard store.configuration.holdsLease?() == true else {
                throw RequestError(.unavailable, "This server does not lead.")
            }
            while true {
                guard let next = log.durableGroups(after: place, bytesMax: Self.messageBytesMax) else {
                    throw Self.groupsAreNotKept
                }
                if next.bytes.isEmpty { break }
                // The loop is woken once, for what follows too.
                guard feed.put(.groups(next.bytes), orWait: wake) else { return }
                place = next.end
            }
            guard put(.closed(closed)), feed.pause(milliseconds: Self.intervalMilliseconds) else { return }
        }
    }

    private static let groupsAreNotKept = RequestError(
        .unavailable, "The groups after those of the follower are not in memory; it has to read the database first.")

    /// Keeps what the replica may lack: it has what was sent before the last time that something was sent, or connects
    /// again in time. Its last commit is kept too, since the next stream compares it.
    private func hold(_ request: FollowRequest, after version: UInt64) {
        guard request.follower != 0, version > 0 else { return }
        store.holdRecords(after: CommitVersion(microseconds: version - 1), for: request.follower, stream: number)
    }

    /// Sends what was derived from records. Those of the time before the stream have no hash. An entry without a
    /// version comes first and has the derivation.
    private func putDerived(after version: UInt64, through last: UInt64) -> Bool {
        let entries = store.replication.derived.entries(after: version, through: last)
        if entries.isEmpty { return true }
        var bytes: [UInt8] = []
        for entry in [DerivedHashes.Entry(version: 0, hash: DerivedHashes.derivation)] + entries {
            bytes.append(littleEndian: entry.version, bytes: 8)
            bytes.append(littleEndian: entry.hash, bytes: 8)
        }
        return put(.derived(bytes))
    }

    /// Sends the rules if they are others than those sent before.
    private func putRules(unless sent: inout String?) -> Bool {
        guard let rules, let text = try? rules.get(0).text, sent?.utf8.elementsEqual(text.utf8) != true else {
            return true
        }
        sent = text
        return put(.rules(text))
    }

    /// Sends the revocations that were not sent before.
    private func putRevocations(unless sent: inout SentPolicy) -> Bool {
        guard let revocations, revocations.version != sent.version else { return true }
        sent.version = revocations.version
        let all = revocations.moments
        var left = Array(all.later(than: sent.revocations))[...]
        sent.revocations = all
        while !left.isEmpty {
            let users = Dictionary(uniqueKeysWithValues: left.prefix(Self.usersMax).map { ($0.key, $0.value) })
            guard put(.revocations(Revocations.encode(users))) else { return false }
            left = left.dropFirst(Self.usersMax)
        }
        return true
    }

    /// Why a replica cannot continue from what it has; nil if it can.
    private func refusal(of request: FollowRequest) throws -> String? {
        if request.version == 0 { return "the replica is new" }
        guard request.timeline == store.timelineStart.microseconds else {
            return "the replica has the history of another store"
        }
        // The last commit of the replica must be one of this log.
        let records = try store.records(after: CommitVersion(microseconds: request.version - 1))
        do {
            guard try records.next() else {
                // A server of a cluster that has just started has not read the log to its end.
                if store.configuration.engine.sharedLog != nil { throw Self.isBehind }
                return "the replica has commits that this server does not have"
            }
        } catch let error as StorageError where error.code == .versionTooOld {
            // The log begins after the last commit, for example since the server has ended in order.
            if store.publishedVersion.microseconds == request.version { return nil }
            return "the commits after those of the replica are not in the log any more"
        }
        if records.version.microseconds == request.version { return nil }
        return "the last commit of the replica is not one of this server"
    }

    private static let isBehind = RequestError(
        .unavailable, "This server does not have the last commit of the replica yet.")

    private func sendBase(_ reason: String) throws {
        let base = try StoreBase(of: store)
        log(.info, "base_begun", ["bytes": String(base.byteCount), "reason": reason])
        guard put(.base(reason: reason, bytes: UInt64(base.byteCount))) else { return }
        for part in base.parts {
            guard put(.file(part.path)) else { return }
            var isWanted = true
            try base.read(part) { piece in
                if isWanted { isWanted = put(.contents(piece)) }
            }
            guard isWanted else { return }
        }
        // The replica may come without its source.
        var sent = SentPolicy()
        guard putRevocations(unless: &sent), put(.baseIsComplete) else { return }
        log(.info, "base_sent", ["bytes": String(base.byteCount)])
    }

    private func put(_ message: FollowResponse) -> Bool {
        guard feed.put(message, orWait: wake) else { return false }
        wake()
        return true
    }
}

extension [UInt8] {
    fileprivate mutating func append(littleEndian value: UInt64, bytes: Int) {
        for index in 0..<bytes { append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(index)))) }
    }
}
