// Whether the next group waits for the clients of the last one.
//
//     group n ──► append ──► replies ──► the same clients commit again ──┐
//     group n+1 ◄── requests that came during the append ◄───────────────┘ within the pause
//
// Clients that wait for each commit otherwise form two halves: one is appended while the other one waits. An append of
// all of them costs little more than one of a half, where it is a statement of a database. A group that waits for all
// of them loses nothing: with R from the reply to the next request and A for an append, n clients make n commits in
// A + R in both cases.

/// Decides after each append how long to wait for more requests. Belongs to the commit thread. Times are of the
/// monotonic clock, in nanoseconds.
struct GroupPause {
    /// A pause that is under way.
    private struct Current {
        let start: UInt64
        /// Requests that came during the append.
        let waited: Int
        /// All that are waited for.
        let wanted: Int
        /// What was there at the start of the present part.
        var before: Int
        /// Of the present part.
        var end: UInt64
        /// Nearly all are there, and the rest has a short time.
        var isLast = false

        /// The pause is over then.
        let latest: UInt64

        /// Requests that are enough for the last part.
        var nearlyAll: Int { wanted - (wanted - waited) / 8 }

        /// How many more are waited for. The first half is decided while the other one is still coming, if that is
        /// worth a wake-up.
        func missing(_ waiting: Int) -> Int {
            if isLast { return wanted - waiting }
            let half = waited + (wanted - waited) / 2
            let isWorthIt = half - waiting >= GroupPause.requestsOfHalf
            return (isWorthIt ? half : nearlyAll) - waiting
        }
    }

    /// The least half that is decided before the rest has come.
    private static let requestsOfHalf = 16

    /// The least time for the clients to come back, in percent of the time of an append; 0: there are no pauses.
    private let percent: UInt64
    /// When the last append began, and how many requests it has; nil when its end was noted.
    private var appended: (start: UInt64, requests: Int)?
    /// A smoothed time of appends.
    private var appendTime: UInt64 = 0
    /// A smoothed time in which nearly all clients come back; longer after a pause that was too short.
    private var returnTime: UInt64 = 0
    private var current: Current?
    /// Groups that are not waited for, because the clients did not come back in time.
    private var groupsToSkip = 0
    private var skipsNext = Self.skipsMin

    /// A pause is no longer than twice the time of an append, within these bounds: on a busy machine the clients come
    /// back later, and appends take longer.
    static let longestMin: UInt64 = 2_000_000
    static let longestMax: UInt64 = 10_000_000
    private static let skipsMin = 4
    private static let skipsMax = 256

    init(percent: Int) { self.percent = UInt64(max(percent, 0)) }

    /// An append begins.
    mutating func noteAppend(at now: @autoclosure () -> UInt64, requests: Int) {
        if percent == 0 { return }
        appended = (now(), requests)
        current = nil
    }

    /// To be asked when no append is on its way, before the next one.
    ///
    /// - Parameters:
    ///   - waiting: the requests of the next group.
    ///   - waited: those that came before the end of the last append; others may be of its clients.
    /// - Returns: how many more to wait for, and until when; nil to append.
    mutating func next(
        waiting: Int, waited: @autoclosure () -> Int, at now: @autoclosure () -> UInt64
    ) -> (requests: Int, end: UInt64)? {
        // A local log asks after each group: it does not read the clock.
        if appended == nil && current == nil { return nil }
        let now = now()
        // Requests without a reply yet wait for others.
        if let appended { begin(appended, waiting: waiting, waited: min(waited(), waiting), now) }
        appended = nil
        guard var pause = current else { return nil }
        if Self.continues(&pause, waiting: waiting, now) {
            current = pause
            return (pause.missing(waiting), pause.end)
        }
        current = nil
        judge(pause, waiting: waiting, now)
        return nil
    }

    private mutating func begin(
        _ append: (start: UInt64, requests: Int), waiting: Int, waited: Int, _ now: UInt64
    ) {
        let time = now > append.start ? now - append.start : 0
        appendTime = appendTime == 0 ? time : appendTime - appendTime / 8 + time / 8
        if groupsToSkip > 0 {
            groupsToSkip -= 1
            return
        }
        // A client alone has nobody to wait for.
        guard append.requests + waited > 1 else { return }
        let length = min(max(appendTime * percent / 100, returnTime), longest)
        current = Current(
            start: now, waited: waited, wanted: append.requests + waited, before: waiting, end: now + length,
            latest: now + longest)
    }

    private var longest: UInt64 { min(max(2 * appendTime, Self.longestMin), Self.longestMax) }

    /// Whether the pause continues; its part may be another one then.
    private static func continues(_ pause: inout Current, waiting: Int, _ now: UInt64) -> Bool {
        if waiting >= pause.wanted { return false }
        if !pause.isLast, waiting >= pause.nearlyAll {
            pause.isLast = true
            pause.end = min(now + (now - pause.start) / 4, pause.latest)
        } else if now >= pause.end {
            // The clients are coming back, and need longer.
            let isMoving = 8 * (waiting - pause.before) >= pause.wanted - pause.waited
            guard !pause.isLast, isMoving else { return false }
            pause.before = waiting
            pause.end = min(now + max((pause.end - pause.start) / 4, 1), pause.latest)
        }
        return now < pause.end
    }

    /// A pause that brought less than half of the clients is not made for some groups.
    private mutating func judge(_ pause: Current, waiting: Int, _ now: UInt64) {
        let (came, wanted) = (waiting - pause.waited, pause.wanted - pause.waited)
        if waiting >= pause.nearlyAll {
            let time = min(now - pause.start, longest)
            returnTime = returnTime == 0 ? time : returnTime - returnTime / 8 + time / 8
        }
        if 2 * came >= wanted {
            skipsNext = Self.skipsMin
        } else {
            // The next one is longer, unless all of them are as long as they may be.
            returnTime = min(2 * max(returnTime, appendTime * percent / 100), longest)
            groupsToSkip = skipsNext
            skipsNext = min(2 * skipsNext, Self.skipsMax)
        }
    }
}
