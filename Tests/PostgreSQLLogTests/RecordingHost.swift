// The server of a member, for tests of the driver alone.

import Basics
import PostgreSQLLog
import Replication
import Storage
import Synchronization
import TestSupport

/// Keeps what its member applies and appends.
final class RecordingHost: MemberHost {
    struct Recorded {
        /// Records of groups that were applied or acknowledged, in order.
        var groups: [[UInt8]] = []
        /// How often groups were given to be applied.
        var applications = 0
        var closed: UInt64 = 0
        var lowest: UInt64?
        var leader = ""
        var restarts: [RestartReason] = []
        var events: [String] = []
    }

    private let recorded = Mutex(Recorded())
    private let clock = Atomic<UInt64>(0)
    /// Ends of applications that are held up; nil while none is.
    private let held = Mutex<[@Sendable () -> Void]?>(nil)
    private let observer = Mutex(Observer())

    private struct Observer: Sendable {
        var body: @Sendable () -> Void = {}
    }

    var state: Recorded { recorded.withLock { $0 } }

    func apply(
        _ groups: [LoggedGroup], areAcknowledged: Bool, completion: @escaping @Sendable (ApplyOutcome) -> Void
    ) {
        recorded.withLock { recorded in
            recorded.groups += groups.map(\.records)
            recorded.applications += 1
        }
        observer.withLock { $0 }.body()
        let different = groups.first { $0.derived != derived(from: 0, through: $0.header.version) }
        let outcome = different.map { ApplyOutcome.differs(keySpace: "test", sequence: $0.header.sequence) }
        let end: @Sendable () -> Void = { completion(outcome ?? .applied) }
        let isHeld = held.withLock { held in
            held?.append(end)
            return held != nil
        }
        if !isHeld { end() }
    }

    /// Called when groups are to be applied, on the thread of the loop.
    func whenApplying(_ body: @escaping @Sendable () -> Void) { observer.withLock { $0.body = body } }

    /// From now on nothing that is applied ends, until ``release()``.
    func hold() { held.withLock { $0 = [] } }

    func release() {
        let ends = held.withLock { held in
            defer { held = nil }
            return held ?? []
        }
        for end in ends { end() }
    }

    func derived(from start: UInt64, through end: UInt64) -> [UInt8] { [UInt8(truncatingIfNeeded: end)] }

    func acknowledged(_ group: [UInt8], version: UInt64) {
        clock.max(version, ordering: .relaxed)
        recorded.withLock { $0.groups.append(group) }
    }

    func close(through time: UInt64) { recorded.withLock { $0.closed = max($0.closed, time) } }
    func lead(_ epoch: Epoch, above time: UInt64) { recorded.withLock { $0.lowest = time } }
    var closedTime: UInt64 { clock.load(ordering: .relaxed) }
    func follow(_ address: String) { recorded.withLock { $0.leader = address } }
    func noteDatabase(isAway: Bool) { recorded.withLock { $0.events.append(isAway ? "away" : "back") } }
    func restart(_ reason: RestartReason) { recorded.withLock { $0.restarts.append(reason) } }
    func note(_ event: MemberEvent) { recorded.withLock { $0.events.append("\(event)") } }
}

/// A member of a store with its driver.
final class TestMember: Sendable {
    let host = RecordingHost()
    let driver: MemberDriver
    private let directory = TemporaryDirectory("member")

    /// A server with one store.
    convenience init(
        _ address: String, _ name: String, store: StoreIdentity, place: LogPlace = .start,
        wallClock: @escaping @Sendable () -> UInt64 = { SystemClock.microseconds() }
    ) throws {
        try self.init(
            on: MemberLoop(database: address), name, of: "main", store: store, place: place, wallClock: wallClock)
    }

    /// - Parameters:
    ///   - loop: of the server.
    ///   - name: of the server.
    ///   - storeName: of the store.
    ///   - wallClock: of the server.
    init(
        on loop: MemberLoop, _ name: String, of storeName: String, store: StoreIdentity, place: LogPlace = .start,
        wallClock: @escaping @Sendable () -> UInt64 = { SystemClock.microseconds() }
    ) throws {
        driver = MemberDriver(
            MemberSettings(
                loop: loop, tables: StoreTables(name: storeName, advertised: name), timing: MemberSettings.timing,
                store: store, place: place, wallClock: wallClock),
            places: try LogPlaces(directory: directory.path), host: host)
        try driver.start()
    }

    /// Appends a group with one record.
    func append(_ text: String, version: UInt64) throws {
        let group = Self.group(text, version: version)
        try append(group, version: version)
        host.acknowledged(group, version: version)
    }

    /// Appends a group, and waits until it is durable.
    func append(_ records: [UInt8], version: UInt64) throws {
        let outcome = Monitor<Result<Void, StorageError>?>(nil)
        driver.append(records.byteSpan, version: CommitVersion(microseconds: version)) { result in
            outcome.update { $0 = result }
        }
        try outcome.wait { $0 }.get()
    }

    /// Hands over groups as a stream does.
    /// - Returns: whether they were taken.
    func receive(_ groups: [LoggedGroup], after sequence: UInt64, closed: UInt64) -> Bool {
        let outcome = Monitor<Bool?>(nil)
        driver.receive(groups, after: sequence, closed: closed) { isTaken in outcome.update { $0 = isTaken } }
        return outcome.wait { $0 }
    }

    static func group(_ text: String, version: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        for shift: UInt64 in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: version >> (8 * shift))) }
        for shift in 0..<4 { bytes.append(UInt8(truncatingIfNeeded: text.utf8.count >> (8 * shift))) }
        return bytes + Array(text.utf8)
    }

    func waitUntilLeading() throws {
        try waitUntil("\(driver.settings.tables.advertised) leads: \(host.state.events)") { driver.state.holdsLease }
    }

    func waitFor(_ count: Int) throws {
        func reported() -> String { "\(host.state.events) \(host.state.restarts)" }
        try waitUntil("\(count) groups are there: \(reported())") { host.state.groups.count >= count }
    }
}

/// Makes the tables of a store that nobody leads.
func makeStore(_ server: PostgreSQLServer, _ name: String = "main") throws -> StoreIdentity {
    let store = StoreIdentity.random()
    let session = try PostgreSQLSession(address: server.address)
    defer { session.close() }
    try session.run(StoreTables.creation)
    try session.run(StoreTables(name: name, advertised: "").adoption(store, timeline: 7, ceiling: 0))
    return store
}
