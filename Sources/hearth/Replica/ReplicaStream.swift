// What a replica does with the stream of its source.

import Authorization
import Basics
import DocumentStore
import FileSystem
import FirestoreMessages
import FirestoreService
import Identity
import Storage
import Synchronization

/// Applies the stream of a source to the store of a replica, which is being served. Thread-safe.
final class ReplicaStream: FollowTarget {
    private let source: String
    private let store: DocumentStore
    private let rules: RulesKeeper?
    private let revocations: RevocationKeeper
    private let ofSource: SourceRevocations
    private let log: Log
    private let rebuild = Mutex<String?>(nil)
    private let policy = Mutex(Policy())
    private let report = FollowingReport()
    /// ``ReplicaFile/timeMax(in:)``, as it was noted last; 0 before the first note.
    private let timeMax = Mutex<UInt64>(0)
    /// For that note on a full disk: without it no read would get a later time.
    private let spareSpace = SpareSpace()

    /// How far ahead of the closed time that is noted, in microseconds: one write of a small file in this time.
    private static let timeMaxAhead: UInt64 = 10_000_000

    /// What has come of the policy of the source with the present stream.
    private struct Policy {
        var isAccepted = false
        var isWhole = false
    }

    /// - Parameters:
    ///   - rules: the keeper of the replica's rules, which become those of the source; nil if it has none.
    ///   - revocations: those of the replica, which gets the source's too.
    ///   - ofSource: what it has in common with the source.
    init(
        source: String, _ store: DocumentStore, rules: RulesKeeper?, revocations: RevocationKeeper,
        _ ofSource: SourceRevocations, log: Log
    ) {
        self.source = source
        self.store = store
        self.rules = rules
        self.revocations = revocations
        self.ofSource = ofSource
        self.log = log
        spareSpace.lend(
            in: { [store] () throws(StorageError) in try store.checkPlace() }, { [store] in store.releaseReserve($0) })
    }

    /// Why the replica must be copied again; nil if it can continue.
    var rebuildReason: String? { rebuild.withLock { $0 } }

    func request(follower: UInt64) -> FollowRequest {
        policy.withLock { $0 = Policy() }
        ofSource.beginStream()
        return FollowRequest(
            version: store.publishedVersion.microseconds, timeline: store.timelineStart.microseconds,
            follower: follower)
    }

    func ended(isLogged: Bool) {
        if isLogged { report.reset() }
        store.replication.isConnected = false
        guard revocations.areAwaited, !policy.withLock({ $0.isAccepted }) else { return }
        log(
            .error, "revocations_not_followed",
            ["source": source, "message": "the source cannot be asked: the revocations of before are in force"])
        revocations.areAwaited = false
    }

    func take(_ message: FollowResponse) async throws -> Bool {
        if case .base(let reason, _) = message { return mustRebuild(reason) }
        if !message.isOpening { policyIsWhole() }
        switch message {
        case .accepted:
            policy.withLock { $0.isAccepted = true }
            store.replication.isConnected = true
            if report.isDue(of: source) {
                log(.info, "following", ["source": source, "version": String(store.publishedVersion.microseconds)])
            }
        case .records(let bytes): try await FollowerTask.apply(bytes, to: store)
        case .closed(let time):
            try noteReadable(through: time)
            store.closeTimes(through: time)
        case .derived(let bytes):
            let entries = try Self.derived(bytes)
            guard let version = store.replication.derived.difference(from: entries) else { break }
            log(.error, "replica_differs", ["source": source, "version": String(version)])
            return mustRebuild("the replica has derived something else from the commit \(version)")
        case .rules(let text): apply(rules: text, rules)
        case .revocations(let bytes): try apply(revocations: bytes)
        case .base, .file, .contents, .baseIsComplete, .groups:
            throw FollowFailure(description: "the source sends something unasked")
        }
        return true
    }

    /// Notes that reads get times up to one from now on. A server that is made of the directory without the source
    /// begins above them (`hearth promote --force`).
    private func noteReadable(through time: UInt64) throws {
        try timeMax.withLock { timeMax in
            if time <= timeMax { return }
            let directory = store.configuration.directory
            let next = max(time + Self.timeMaxAhead, try ReplicaFile.timeMax(in: directory))
            try spareSpace.writing(0) { () throws(StorageError) in
                try ReplicaFile.note(timeMax: next, in: directory)
            }
            timeMax = next
        }
    }

    private func mustRebuild(_ reason: String) -> Bool {
        rebuild.withLock { $0 = reason }
        return false
    }

    /// All revocations of the source have come: users are served, and the source gets those that it lacks.
    private func policyIsWhole() {
        let wasWhole = policy.withLock { policy in
            defer { policy.isWhole = true }
            return policy.isWhole
        }
        if wasWhole { return }
        revocations.areAwaited = false
        do {
            // It waits for the source, which tasks must not.
            try SystemThread(name: "revocations") { [self] in offerRevocations() }.detach()
        } catch {
            log(.warning, "revocations_not_sent", ["message": ErrorText.describe(error)])
        }
    }

    private func offerRevocations() {
        do throws(RequestError) {
            _ = try revocations.takeShared()
        } catch {
            log(.warning, "revocations_not_sent", ["source": source, "message": error.message])
        }
    }

    /// Puts the rules of the source in force.
    private func apply(rules text: String, _ keeper: RulesKeeper?) {
        guard let keeper else { return }
        do throws(RequestError) {
            let answer = try keeper.apply(text)
            if answer.changed { log(.info, "rules_followed", ["number": String(answer.rules.number)]) }
        } catch {
            log(.warning, "rules_not_followed", ["message": error.message])
        }
    }

    /// Refuses what the source refuses.
    /// - Throws: if they cannot be read or kept: the source sends all again with the next stream.
    private func apply(revocations bytes: [UInt8]) throws {
        do {
            let moments = try Revocations.decode(bytes)
            ofSource.note(moments)
            let count = try revocations.add(moments)
            if count > 0 { log(.info, "revocations_followed", ["users": String(count)]) }
        } catch {
            throw FollowFailure(description: "the revocations of the source cannot be kept: \(error)")
        }
    }

    /// Reads what a source has derived.
    /// - Returns: nothing for a source with another derivation.
    private static func derived(_ bytes: [UInt8]) throws -> [DerivedHashes.Entry] {
        guard bytes.count % 16 == 0 else { throw FollowFailure(description: "a message is cut") }
        let entries = stride(from: 0, to: bytes.count, by: 16).map {
            DerivedHashes.Entry(
                version: bytes.byteSpan.littleEndian64(at: $0), hash: bytes.byteSpan.littleEndian64(at: $0 + 8))
        }
        let derivation = DerivedHashes.Entry(version: 0, hash: DerivedHashes.derivation)
        return entries.first == derivation ? Array(entries.dropFirst()) : []
    }
}
