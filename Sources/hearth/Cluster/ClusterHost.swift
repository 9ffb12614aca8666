// Between the driver of a member and the store that is served.

import Basics
import DocumentStore
import FirestoreService
import PostgreSQLLog
import Replication
import Server
import Synchronization

/// Does at the store what the driver of its member wants. Thread-safe.
final class ClusterHost: MemberHost {
    private struct State {
        var store: DocumentStore?
        var leader: String?
        var known: KnownLeader?
        var stream: LeaderStream?
        var isStopping = false
        var server: @Sendable (String) -> KnownLeader.Server? = { _ in nil }
    }

    private let state = Mutex(State())
    private let log: Log
    private let advertised: String
    private let onRestart: @Sendable (RestartReason) -> Void

    /// - Parameter onRestart: the store must be closed, and opened again. Called once, on the driver's thread; it must
    ///   not wait.
    init(log: Log, advertised: String, onRestart: @escaping @Sendable (RestartReason) -> Void) {
        self.log = log
        self.advertised = advertised
        self.onRestart = onRestart
    }

    /// Before the server is started.
    ///
    /// - Parameters:
    ///   - known: learns which server leads.
    ///   - server: how calls reach a server by its address; nil if the address cannot be used.
    func forward(to known: KnownLeader, _ server: @escaping @Sendable (String) -> KnownLeader.Server?) {
        state.withLock { state in
            state.known = known
            state.server = server
        }
    }

    /// Before the driver is started.
    func stream(with stream: LeaderStream) { state.withLock { $0.stream = stream } }

    private func move(to location: KnownLeader.Location) { state.withLock { $0.known }?.move(to: location) }

    /// Before the driver is started.
    func bind(_ store: DocumentStore) {
        state.withLock { $0.store = store }
        store.follow(leader: nil)
    }

    private var store: DocumentStore? { state.withLock { $0.store } }

    /// The store is about to be closed: groups that cannot be applied any more do not count as failures.
    func beginStopping() { state.withLock { $0.isStopping = true } }

    func apply(
        _ groups: [LoggedGroup], areAcknowledged: Bool, completion: @escaping @Sendable (ApplyOutcome) -> Void
    ) {
        var records = FollowedRecords()
        for group in groups {
            guard records.append(logged: group.records) else {
                log(.error, "cluster_record_damaged", ["sequence": String(group.header.sequence)])
                return completion(.impossible)
            }
        }
        guard let store else { return completion(.impossible) }
        if let version = groups.last?.header.version {
            // Before anybody can see the groups.
            areAcknowledged
                ? store.replication.noteAcknowledged(through: version)
                : store.replication.noteReadBeforeLeader(through: version)
        }
        store.follow(records) { [self] result in
            guard case .failure(let error) = result else { return completion(compare(groups)) }
            // The store may be closed already. The group stays in the log.
            if state.withLock({ $0.isStopping }) { return }
            log(.error, "cluster_apply_failed", ["message": error.message])
            completion(.impossible)
        }
    }

    func derived(from start: UInt64, through end: UInt64) -> [UInt8] {
        store?.replication.derivedSpaces.group(from: start, through: end) ?? []
    }

    /// Compares what was derived from groups with what their leaders derived.
    private func compare(_ groups: [LoggedGroup]) -> ApplyOutcome {
        guard let store else { return .impossible }
        for group in groups {
            guard let keySpace = Self.difference(of: group, in: store) else { continue }
            return .differs(keySpace: keySpace, sequence: group.header.sequence)
        }
        return .applied
    }

    /// The key space in which a store has derived something else from a group than its leader; nil if there is none.
    static func difference(of group: LoggedGroup, in store: DocumentStore) -> String? {
        if group.derived.isEmpty { return nil }
        let start = LoggedGroup.firstVersion(group.records)
        let here = store.replication.derivedSpaces.group(from: start, through: group.header.version)
        return DerivedSpaces.difference(here, group.derived)
    }

    func close(through time: UInt64) {
        guard let store else { return }
        // The leader closes times up to which all commits are acknowledged.
        store.replication.noteAcknowledged(through: time)
        store.closeTimes(through: time)
        store.replication.isConnected = true
    }

    func lead(_ epoch: Epoch, above time: UInt64) {
        let stream = state.withLock { state in
            state.leader = nil
            return state.stream
        }
        stream?.move(to: nil)
        store?.lead(above: time)
        move(to: .here(through: state.withLock { $0.server }(advertised)))
        log(.info, "cluster_leads", ["epoch": String(epoch.number), "address": advertised])
    }

    var closedTime: UInt64 { store?.currentReadTime ?? 0 }

    func follow(_ address: String) {
        let isNew = state.withLock { state in
            defer { state.leader = address }
            return state.leader != address
        }
        guard isNew else { return }
        // The row may name this server as it was before its last start.
        let isOther = !address.isEmpty && address != advertised
        store?.follow(leader: isOther ? address : nil)
        let server = isOther ? state.withLock { $0.server }(address) : nil
        move(to: server.map { .at($0) } ?? .unknown)
        state.withLock { $0.stream }?.move(to: isOther ? address : nil)
        log(.info, "cluster_follows", ["leader": address])
    }

    func noteDatabase(isAway: Bool) {
        store?.isCutOff = isAway
        if isAway {
            log(.error, "cluster_database_away", ["message": "commits wait; further ones get UNAVAILABLE"])
        } else {
            log(.info, "cluster_database_back")
        }
    }

    func restart(_ reason: RestartReason) {
        store?.follow(leader: nil)
        move(to: .unknown)
        state.withLock { $0.stream }?.stop()
        report(reason)
        onRestart(reason)
    }

    private func report(_ reason: RestartReason) {
        switch reason {
        case .deposed:
            log(
                .warning, "cluster_deposed",
                ["message": "another server leads; the store is opened again from its last durable state"])
        case .outdated:
            log(.warning, "cluster_outdated", ["message": "the log was trimmed; the directory is made again of a base"])
        case .diverged:
            log(
                .error, "cluster_diverged",
                [
                    "message": "the last commits of this directory are not in the database, which was restored or lost "
                        + "them; they are discarded"
                ])
        case .newTimeline:
            log(
                .warning, "cluster_timeline_changed",
                ["message": "the store lost commits and has begun a new time line; it is opened again"])
        case .differs(let keySpace, let sequence):
            log(
                .error, "cluster_differs",
                [
                    "key_space": keySpace, "sequence": String(sequence),
                    "message": "this server has derived something else from a group than the leader; its state is "
                        + "discarded",
                ])
        case .refused(let message): log(.error, "cluster_refused", ["message": message])
        }
    }

    func note(_ event: MemberEvent) {
        switch event {
        case .connected(let name): log(.debug, "cluster_connected", ["connection": name])
        case .connectionLost(let name, let reason):
            log(.warning, "cluster_connection_lost", ["connection": name, "message": reason])
        case .outcomeUnknown(let sequence):
            log(.warning, "cluster_outcome_unknown", ["sequence": String(sequence)])
        case .statementRefused(let message): log(.warning, "cluster_statement_refused", ["message": message])
        case .claimGivenUp(let reason):
            log(
                .error, "cluster_claim_given_up",
                ["message": "\(reason); this server leaves the lease to others, and claims it when it can lead"])
        case .addressIsTaken:
            log(
                .error, "cluster_address_taken",
                [
                    "address": advertised,
                    "message": "another server leads and has the same --advertise; calls cannot be forwarded to it",
                ])
        case .clockDiffers(let milliseconds):
            log(.error, "cluster_clock_differs", ["milliseconds": String(milliseconds)])
        case .clockAgrees: log(.info, "cluster_clock_agrees")
        }
    }
}
