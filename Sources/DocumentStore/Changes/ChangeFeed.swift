// The change feed: commit version -> the documents that the commit changed.
//
//     commit thread   seal a group   ──► append          (not visible yet)
//     log thread      sync, publish  ──► announce ──► every subscriber's wake-up
//     subscriber      read time R    ──► changes(after: position, through: R); then its position is R
//
// A batch is appended before its versions are published, so a subscriber that has a read time R finds every commit up
// to R. Changes above R may not be durable yet; nobody takes them.
//
// The feed holds what a subscriber has not taken, in memory and bounded. A subscriber that is too far back gets nil. It
// then compares two versions of the store, whose history covers the retention.
//
// Without subscribers nothing is collected: a commit loads one flag. When the first one comes, a commit
// may already be on its way. The flag and the clock's `assigned` order the two, as docs/commits.md describes for read
// times: the commit takes its version and then reads the flag; the subscriber sets the flag and then reads the version.
// So either the commit is collected, or its version is at most `coverage`.

internal import Basics
internal import Synchronization

/// The recent changes of a store, for subscribers. Thread-safe.
final class ChangeFeed: Sendable {
    fileprivate struct Subscriber {
        let wake: @Sendable () -> Void
        /// It needs no changes up to this version.
        var position: UInt64
    }

    fileprivate struct State {
        /// Ascending versions; those before `first` have been taken out.
        var batches: [ChangeBatch] = []
        var first = 0
        var byteCount = 0
        /// Every change above this version is in `batches`.
        var coverage: UInt64 = 0
        /// The version that was announced last.
        var announced: UInt64 = 0
        var subscribers: [UInt64: Subscriber] = [:]
        var nextSubscriber: UInt64 = 0
    }

    private let state = Monitor(State())
    private let hasSubscribers = Atomic<Bool>(false)
    private let bytesMax: Int
    private let versions: VersionClock

    /// - Parameter bytesMax: memory for batches.
    init(bytesMax: Int, versions: VersionClock) {
        self.bytesMax = bytesMax
        self.versions = versions
    }

    // MARK: The commit thread

    /// Whether the changes of a commit are to be collected. Asked after the commit has taken its version.
    var isWanted: Bool {
        yieldPoint()
        return hasSubscribers.load(ordering: .sequentiallyConsistent)
    }

    /// Adds the changes of a group that is staged and not published yet.
    func append(_ batch: ChangeBatch) {
        state.withLock { state in
            if state.subscribers.isEmpty { return }
            state.batches.append(batch)
            state.byteCount += batch.byteCount
            while state.byteCount > bytesMax { state.removeFirst() }
        }
    }

    /// Wakes the subscribers if changes, or the end of a database, have become visible since the last time. May be
    /// called on any thread.
    ///
    /// - Parameters:
    ///   - version: the version that was published, in microseconds.
    ///   - end: that of the last deletion or release of a database, which changes no document.
    func announce(through version: UInt64, lastEnd end: UInt64) {
        if !isWanted { return }
        let subscribers = state.withLock { state in
            state.announce(through: version, lastEnd: end) ? state.subscribers.values.map(\.wake) : []
        }
        for wake in subscribers { wake() }
    }

    /// Bytes that it holds now.
    var byteCount: Int { state.withLock { $0.byteCount } }

    // MARK: Subscribers

    /// - Parameter wake: called after changes have become visible, on a thread of the store; must not block.
    func subscribe(_ wake: @escaping @Sendable () -> Void) -> ChangeSubscription {
        let number = state.withLock { state in
            defer { state.nextSubscriber += 1 }
            state.subscribers[state.nextSubscriber] = Subscriber(wake: wake, position: 0)
            if state.subscribers.count == 1 {
                yieldPoint()
                hasSubscribers.store(true, ordering: .sequentiallyConsistent)
                state.coverage = versions.newestAssigned
            }
            return state.nextSubscriber
        }
        return ChangeSubscription(self, number: number)
    }

    fileprivate func unsubscribe(_ number: UInt64) {
        state.withLock { state in
            state.subscribers[number] = nil
            guard state.subscribers.isEmpty else { return }
            yieldPoint()
            hasSubscribers.store(false, ordering: .sequentiallyConsistent)
            state.removeAll()
        }
    }

    /// The changes of the commits above `position`, up to and including `readTime`.
    fileprivate func batches(
        after position: UInt64, through readTime: UInt64, for subscriber: UInt64
    ) -> [ChangeBatch]? {
        state.withLock { state in
            defer {
                state.subscribers[subscriber]?.position = readTime
                state.removeTaken()
            }
            if position < state.coverage { return nil }
            let present = state.batches[state.first...]
            let start = present.partitioningIndex { $0.lastVersion > position }
            let end = present[start...].partitioningIndex { $0.firstVersion > readTime }
            return Array(present[start..<end])
        }
    }
}

extension ChangeFeed.State {
    /// - Returns: whether there is something that was not announced before, batches that were dropped included.
    fileprivate mutating func announce(through version: UInt64, lastEnd end: UInt64) -> Bool {
        let previous = announced
        announced = max(announced, version)
        if coverage > previous || previous < end && end <= version { return true }
        let start = batches[first...].partitioningIndex { $0.lastVersion > previous }
        return start < batches.endIndex && batches[start].firstVersion <= version
    }

    /// Removes what all subscribers have taken.
    fileprivate mutating func removeTaken() {
        let position = subscribers.values.lazy.map(\.position).min() ?? 0
        while first < batches.count, batches[first].lastVersion <= position { removeFirst() }
    }

    fileprivate mutating func removeFirst() {
        coverage = batches[first].lastVersion
        byteCount -= batches[first].byteCount
        first += 1
        // Each batch is moved at most once for each batch that is dropped.
        if first * 2 > batches.count {
            batches.removeFirst(first)
            first = 0
        }
    }

    fileprivate mutating func removeAll() {
        batches = []
        first = 0
        byteCount = 0
    }
}

/// Keeps a subscription of the change feed until it is released. Thread-safe.
package final class ChangeSubscription: Sendable {
    private let feed: ChangeFeed
    private let number: UInt64

    fileprivate init(_ feed: ChangeFeed, number: UInt64) {
        self.feed = feed
        self.number = number
    }

    /// The changes of the commits above `position`, up to and including `readTime`.
    ///
    /// - Parameters:
    ///   - position: a read time of the time since the subscription; in later calls the last `readTime`.
    ///   - readTime: a value of ``DocumentStore/currentReadTime``.
    /// - Returns: batches in the order of their versions, which may also have changes outside of the range; nil if some
    ///   changes are not in memory any more. The documents that have changed then follow from reads at both times.
    package func changes(after position: UInt64, through readTime: UInt64) -> [ChangeBatch]? {
        feed.batches(after: position, through: readTime, for: number)
    }

    deinit { feed.unsubscribe(number) }
}
