// Commit versions and read times: no commit gets a version at or below a read time that a client has.
//
// A version is the time of its commit: max(wall clock, last version + 1, every read time handed out + 1). Readers
// hand out the wall clock's time while nothing is in flight, so that an idle database does not report the time of its
// last commit. The two sides meet in two atomics, each side writing its own before it looks at the other's:
//
//     reader:  issued = max(issued, r)                 commit:  assigned = v
//              a = assigned, p = published                      h = issued
//              p >= a ?  r  :  max(p, floor)                    v > h ?  v  :  again, with h + 1
//
// With sequentially consistent order at least one of the two sees the other: either the commit moves above r, or the
// reader sees it in flight and falls back to a time below every commit to come.
//
// This time is not the last published version, which is minutes old if nobody wrote for minutes. The commit thread sets
// `floor` to v - 1 when it takes a version while nothing is in flight:
//
//     published p                floor   v                     w
//     ────┴────────────────────────┴─────┴─────────────────────┴────▶
//         no commit; all before is visible   in flight: one group is synced, the next is decided
//
// A later time would need a wait, because the state at or above v is not known before the sync.

internal import Basics
internal import Storage
internal import StorageEngines
internal import Synchronization

/// Hands out commit versions to the commit thread and read times to everybody.
final class VersionClock: Sendable {
    private let clock: any StoreClock
    private let engine: StorageEngine
    private let waits: ReadWaits

    /// The highest read time handed out, or unlogged commit time.
    private let issued: Atomic<UInt64>
    /// The highest version given to a commit that is being made.
    private let assigned: Atomic<UInt64>
    /// A time up to which every commit is visible; every later version is above. Written by the commit thread.
    ///
    /// At first the time at which the store was opened, or the last version before it: not before the start of the
    /// history, which clients continue from. Above zero, which is not a valid read time.
    private let floor: Atomic<UInt64>

    private let follows: Atomic<Bool>
    /// On a follower: a time at or below which the leader makes no further commit, and up to which all are published.
    private let closed = Atomic<UInt64>(0)

    /// The highest time that was reserved when every commit at or below it was visible: so it stays. The other atomics
    /// do not show it while a commit takes its version just as the one before is published.
    private let readable = Atomic<UInt64>(0)

    /// A read time this much older than the clock is still handed out again, which spares the readers a contended
    /// write.
    private static let staleMicroseconds: UInt64 = 500
    /// By how much the clocks of a leader and a follower may differ.
    private static let clockDifferenceMicrosecondsMax: UInt64 = 10_000_000

    /// - Parameters:
    ///   - waits: holds the reads that wait for a version.
    ///   - isFollower: versions come from another server, and times are those that it has closed.
    init(clock: any StoreClock, engine: StorageEngine, waits: ReadWaits = ReadWaits(), isFollower: Bool = false) {
        follows = Atomic(isFollower)
        self.waits = waits
        self.clock = clock
        self.engine = engine
        let published = engine.publishedVersion.microseconds
        floor = Atomic(max(published, clock.nowMicroseconds, 1))
        issued = Atomic(0)
        assigned = Atomic(published)
    }

    /// The highest version given to a commit so far.
    var newestAssigned: UInt64 {
        yieldPoint()
        return assigned.load(ordering: .sequentiallyConsistent)
    }

    /// The highest read time handed out so far.
    var lastIssued: UInt64 {
        yieldPoint()
        return issued.load(ordering: .sequentiallyConsistent)
    }

    /// The highest version that the engine has published.
    private var published: UInt64 {
        yieldPoint()
        return engine.publishedVersion.microseconds
    }

    // MARK: Readers, on any thread

    /// A time such that everything committed up to it is visible now, and nothing will be committed at or below it.
    ///
    /// While commits are in flight it is the time just before the first of them, or of the last group that was
    /// published since: at most about two syncs old.
    func readTime() -> UInt64 {
        if let closedTime { return max(closedTime, 1) }
        var time = clock.nowMicroseconds
        let last = lastIssued
        if time <= last &+ VersionClock.staleMicroseconds { time = last } else { hold(time) }
        let newest = newestAssigned
        let published = published
        if published >= newest { return max(time, published) }
        yieldPoint()
        let floor = floor.load(ordering: .acquiring)
        if published >= floor { return published }
        // For `lastIssued`: the commit above the floor may be rolled back, or lost in a crash.
        if max(time, last) < floor { hold(floor) }
        return floor
    }

    /// Reserves a time that a client asks for: no later commit gets a version at or below it.
    /// - Returns: whether every commit at or below it is visible. It stays so.
    func reserve(_ time: UInt64) -> Bool {
        hold(time)
        return missingVersion(at: time) == nil
    }

    /// Calls `completion` when every commit at or below a time is visible: on the calling thread if that is the case
    /// already, otherwise on the thread that publishes the last of them. Never blocks.
    ///
    /// The completion is called once. It fails with `UNAVAILABLE` after the time limit (``endExpiredWaits()``) or if
    /// the sync fails, and with `RESOURCE_EXHAUSTED` if too many reads wait.
    func whenReadable(_ time: UInt64, completion: @escaping ReadWaits.Completion) {
        hold(time)
        guard let version = missingVersion(at: time) else { return completion(.success(())) }
        if let refusal = waits.add(version, nowMilliseconds: clock.elapsedMilliseconds, completion) {
            return completion(.failure(refusal))
        }
        // The version may have been published before the wait was added.
        endWaits()
    }

    /// The version that must be published before reads at a reserved time are possible; nil if there is none.
    private func missingVersion(at time: UInt64) -> UInt64? {
        if let closedTime { return time <= closedTime ? nil : time }
        yieldPoint()
        if time <= readable.load(ordering: .acquiring) { return nil }
        let newest = newestAssigned
        let published = published
        yieldPoint()
        guard published >= newest || max(published, floor.load(ordering: .acquiring)) >= time else {
            return min(newest, time)
        }
        readable.max(time, ordering: .acquiringAndReleasing)
        return nil
    }

    /// Completes the waits for what is published. Call it after every publication; it costs two atomic loads while
    /// nothing waits.
    func endWaits() {
        // A wait is added before the published version is read, and published before waits are read: one side sees the
        // other.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if waits.isEmpty { return }
        if let closedTime { return waits.complete(upTo: closedTime) }
        let newest = newestAssigned
        let published = published
        waits.complete(upTo: published >= newest ? .max : published)
    }

    /// Fails all waits, because what they wait for was not published.
    func failWaits(_ error: RequestError) { waits.fail(error) }

    /// Fails all waits, and those to come, because nothing will be published any more.
    func closeWaits(_ error: RequestError) { waits.close(error) }

    /// Fails the waits whose time limit has passed. Call it regularly, on any thread.
    func endExpiredWaits() {
        if !waits.isEmpty { waits.failExpired(nowMilliseconds: clock.elapsedMilliseconds) }
    }

    /// Reads that wait.
    var waitCount: Int { waits.count }

    /// The latest time that a client may name as read time. A follower takes times that the leader's clock has reached,
    /// which may be ahead.
    var latestReadable: UInt64 {
        let latest = max(clock.nowMicroseconds, lastIssued, published, closedTime ?? 0)
        return isFollower ? latest + VersionClock.clockDifferenceMicrosecondsMax : latest
    }

    private func hold(_ time: UInt64) {
        if isFollower { return }
        yieldPoint()
        issued.max(time, ordering: .sequentiallyConsistent)
    }

    // MARK: Followers

    private var isFollower: Bool { follows.load(ordering: .acquiring) }

    /// From now on commits are made here.
    /// - Parameter time: their versions are above it, in microseconds; no earlier leader gave out a later time.
    func lead(above time: UInt64) {
        issued.max(max(time, closed.load(ordering: .acquiring)), ordering: .sequentiallyConsistent)
        follows.store(false, ordering: .releasing)
    }

    /// From now on commits are made elsewhere, maybe above the times that this server has given out. What is in flight
    /// here is not published any more.
    func stopLeading() { follows.store(true, ordering: .releasing) }

    /// Up to where a follower can be read: what is published, or a later time that the leader has closed. Nil for a
    /// store that commits itself.
    private var closedTime: UInt64? {
        guard isFollower else { return nil }
        return max(published, closed.load(ordering: .acquiring))
    }

    /// Whether a time that the leader, or another follower, may have given out is above the closed time.
    func isBehind(_ time: UInt64) -> Bool {
        guard let closedTime else { return false }
        return time > closedTime && time <= latestReadable
    }

    /// The leader makes no commit at or below a time, and all before are published here.
    func close(_ time: UInt64) {
        closed.max(time, ordering: .acquiringAndReleasing)
        endWaits()
    }

    /// A commit of the leader is about to be staged.
    func follow(_ version: CommitVersion) {
        yieldPoint()
        assigned.store(version.microseconds, ordering: .sequentiallyConsistent)
    }

    // MARK: The commit thread

    /// A version for the next commit.
    /// - Parameter last: the version of the last commit that was staged.
    func nextVersion(after last: CommitVersion) -> CommitVersion {
        let lowest = max(last.microseconds, floor.load(ordering: .relaxed)) + 1
        var version = max(clock.nowMicroseconds, lowest, lastIssued + 1)
        // If nothing is in flight, every commit below the new version is visible. A reader that sees the version
        // assigned sees the floor too.
        let isFirst = published >= last.microseconds
        while true {
            yieldPoint()
            if isFirst { floor.store(version - 1, ordering: .releasing) }
            yieldPoint()
            assigned.store(version, ordering: .sequentiallyConsistent)
            let held = lastIssued
            if version > held { return CommitVersion(microseconds: version) }
            version = held + 1
        }
    }

    /// Has later versions and times be above a time of another store, in microseconds.
    func raise(above time: UInt64) { hold(time) }

    /// Takes back a version that nothing was staged with.
    /// - Parameter isReported: a client learns of it as a commit time, so it must stay below every later version.
    func returnVersion(_ version: CommitVersion, last: CommitVersion, isReported: Bool) {
        if isReported { hold(version.microseconds) }
        yieldPoint()
        assigned.store(last.microseconds, ordering: .sequentiallyConsistent)
        endWaits()
    }
}
