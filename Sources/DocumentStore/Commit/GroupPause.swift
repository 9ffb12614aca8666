// Whether the next group waits for the clients of the last one.
//
//     group n ──► append ──► replies ──► the same clients commit again ──┐
//     group n+1 ◄── requests that came during the append ◄───────────────┘ within the pause
//
// Clients that wait for each commit otherwise form two halves: one is appended while the other one waits. An append of
// all of them costs little more than one of a half, where it is a statement of a database.

/// Decides after each append how long to wait for more requests. Belongs to the commit thread. Times are of the
/// monotonic clock, in nanoseconds.
struct GroupPause {
    /// The longest pause in percent of the time of an append; 0: none.
    private let percent: UInt64
    /// When the last append began, and how many requests it has; nil when its end was noted.
    private var appended: (start: UInt64, requests: Int)?
    /// A smoothed time of appends.
    private var appendTime: UInt64 = 0
    /// The pause that is under way: for how many requests, counted from those that waited at its start, and until when.
    private var current: (wanted: Int, waited: Int, end: UInt64)?
    /// Groups that are not waited for, because the clients did not come back in time.
    private var groupsToSkip = 0
    private var skipsNext = Self.skipsMin

    /// No pause is longer.
    static let longest: UInt64 = 2_000_000
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
    /// - Parameter waiting: the requests of the next group.
    /// - Returns: how many more to wait for, and until when; nil to append.
    mutating func next(waiting: Int, at now: @autoclosure () -> UInt64) -> (requests: Int, end: UInt64)? {
        // A local log asks after each group: it does not read the clock.
        if appended == nil && current == nil { return nil }
        let now = now()
        if let appended { begin(appended, waiting: waiting, now) }
        appended = nil
        guard let pause = current else { return nil }
        if waiting < pause.wanted, now < pause.end { return (pause.wanted - waiting, pause.end) }
        current = nil
        judge(pause, waiting: waiting)
        return nil
    }

    private mutating func begin(_ append: (start: UInt64, requests: Int), waiting: Int, _ now: UInt64) {
        let time = now > append.start ? now - append.start : 0
        appendTime = appendTime == 0 ? time : appendTime - appendTime / 8 + time / 8
        if groupsToSkip > 0 {
            groupsToSkip -= 1
            return
        }
        // A client alone has nobody to wait for.
        guard append.requests + waiting > 1 else { return }
        current = (append.requests + waiting, waiting, now + min(appendTime * percent / 100, Self.longest))
    }

    /// A pause that brought less than half of the clients is not made for some groups.
    private mutating func judge(_ pause: (wanted: Int, waited: Int, end: UInt64), waiting: Int) {
        if 2 * (waiting - pause.waited) >= pause.wanted - pause.waited {
            skipsNext = Self.skipsMin
        } else {
            groupsToSkip = skipsNext
            skipsNext = min(2 * skipsNext, Self.skipsMax)
        }
    }
}
