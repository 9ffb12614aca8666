internal import Basics
internal import Synchronization

/// What a store knows of its replicas, or of its source. Thread-safe.
package final class ReplicationState: Sendable {
    private let followerCount = Atomic<Int>(0)
    private let streamCount = Atomic<UInt64>(0)
    private let connected = Atomic<Bool>(false)
    private let closed = Mutex(ClosedTime())
    private let readBeforeLeader = Atomic<UInt64>(0)
    private let acknowledged = Atomic<UInt64>(0)
    private let wakers = Mutex<[UInt64: @Sendable () -> Void]>([:])
    private let wakerCount = Atomic<Int>(0)

    private let failureReport = Mutex(RepeatedReport())
    private let connectReports = Mutex<[UInt64: RepeatedReport]>([:])

    /// What was derived from the records. A follower always keeps it, a leader while it has followers.
    package let derived = DerivedHashes()
    /// The same by key space, for the groups of a shared log.
    package let derivedSpaces = DerivedSpaces()

    /// Streams to replicas.
    package var followers: Int { followerCount.load(ordering: .relaxed) }

    /// A stream to a replica has begun or ended.
    package func countFollower(_ change: Int) { followerCount.add(change, ordering: .relaxed) }

    /// The number of a stream that begins, from 1 on: it is higher than those of all before.
    package func makeStreamNumber() -> UInt64 { streamCount.add(1, ordering: .relaxed).newValue }

    /// Whether a failure to read the log for a replica is to be reported: each further stream meets it again.
    package func isNews(failure: String) -> Bool {
        failureReport.withLock { $0.isDue(failure, at: SystemClock.monotonicMilliseconds()) }
    }

    /// Whether it is to be reported that a follower has connected: one that cannot keep its stream connects again and
    /// again.
    /// - Parameters:
    ///   - number: of the follower; 0 for one without, which is always reported.
    ///   - now: of a clock that does not go back, in milliseconds.
    package func isNews(connected number: UInt64, at now: UInt64 = SystemClock.monotonicMilliseconds()) -> Bool {
        if number == 0 { return true }
        return connectReports.withLock { reports in
            if reports.count >= Self.connectReportsMax { reports.removeAll() }
            return reports[number, default: RepeatedReport()].isDue("", at: now)
        }
    }

    private static let connectReportsMax = 1_000

    /// Calls `wake` after each group of commits, on a thread of the store, until ``stopWaking(_:)``. A group that is
    /// published meanwhile may be missed.
    /// - Parameter number: names the waker.
    package func wake(_ number: UInt64, _ wake: @escaping @Sendable () -> Void) {
        wakers.withLock { wakers in
            wakers[number] = wake
            wakerCount.store(wakers.count, ordering: .relaxed)
        }
    }

    package func stopWaking(_ number: UInt64) {
        wakers.withLock { wakers in
            wakers[number] = nil
            wakerCount.store(wakers.count, ordering: .relaxed)
        }
    }

    /// A group of commits is visible.
    func published() {
        if wakerCount.load(ordering: .relaxed) == 0 { return }
        for wake in wakers.withLock({ Array($0.values) }) { wake() }
    }

    /// Whether a replica has a stream from its source.
    package var isConnected: Bool {
        get { connected.load(ordering: .relaxed) }
        set { connected.store(newValue, ordering: .relaxed) }
    }

    /// A time that the leader has closed.
    struct ClosedTime: Sendable {
        /// In microseconds; 0 for none.
        var microseconds: UInt64 = 0
        /// When it came, in elapsed milliseconds.
        var takenAt: UInt64 = 0
    }

    /// The last time up to which this server has everything of its leader.
    var closedTime: ClosedTime { closed.withLock { $0 } }

    /// The server has everything up to a time. One that is not later than the last changes nothing.
    func noteClosed(_ time: UInt64, atMilliseconds now: UInt64) {
        closed.withLock { closed in
            if time > closed.microseconds { closed = ClosedTime(microseconds: time, takenAt: now) }
        }
    }

    // MARK: Groups that the leader may not have acknowledged yet

    /// Groups up to a version are about to be applied that are durable in the shared log. Whether their leader knows
    /// that they are is not known here.
    package func noteReadBeforeLeader(through version: UInt64) {
        readBeforeLeader.max(version, ordering: .sequentiallyConsistent)
    }

    /// The leader has acknowledged all commits up to a version, or a time.
    package func noteAcknowledged(through version: UInt64) {
        acknowledged.max(version, ordering: .sequentiallyConsistent)
    }

    /// Whether a read of the newest state may see a commit here that a later one at another server does not see,
    /// because the leader has not acknowledged it yet.
    package var mayBeBeforeLeader: Bool {
        readBeforeLeader.load(ordering: .sequentiallyConsistent) > acknowledged.load(ordering: .sequentiallyConsistent)
    }
}
