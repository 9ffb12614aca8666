// How much a loop does before it reads new input.
//
//     an iteration:  read what has come, reply ──▶ long work, in shares ──▶ wait for more, or look whether there is
//                    (each connection a slice)     (in rotation, up to the budget)
//
// Long work is what one request can make a loop do for longer than it takes to read requests: streaming replies above
// all. A connection does it in shares, and gets its next share after all others that wait have had one. When the budget
// of an iteration is spent, the loop reads everything that has come, and then continues the rotation where it stopped.

/// Work of a loop that may be long. Used on the loop's thread.
package protocol LoopWork: AnyObject {
    /// Does work until ``EventLoop/isShareSpent`` or there is no more. If there is more, asks for another share.
    func work()
}

/// The long work that one iteration of a loop may do, as a value without a clock.
///
/// The end of the iteration does not cut a share short that has begun: it would be the same worker's each time.
struct IterationBudget {
    /// Bytes of an iteration: what a processor copies within a fraction of a millisecond.
    static let iterationBytes = 512 << 10
    /// Bytes of a share: one full write to a socket.
    static let shareBytes = 64 << 10
    /// Time of the long work of an iteration, of a share, and of what one connection's input takes in an iteration.
    static let iterationNanoseconds: UInt64 = 2_000_000
    static let shareNanoseconds: UInt64 = 1_000_000
    static let inputNanoseconds: UInt64 = 1_000_000

    private var iterationBytesLeft = 0
    private var shareBytesLeft = 0
    /// Monotonic nanoseconds: when the clock was read last, and when the times are over.
    private var now: UInt64 = 0
    private var iterationEndsAt: UInt64 = 0
    private var shareEndsAt: UInt64 = 0

    /// Whether no further share begins in the iteration.
    var isIterationSpent: Bool { iterationBytesLeft <= 0 || now >= iterationEndsAt }
    /// Whether the present share is over; true outside of shares.
    var isShareSpent: Bool { shareBytesLeft <= 0 || now >= shareEndsAt }

    /// An iteration begins.
    mutating func begin(now: UInt64) {
        self.now = now
        iterationBytesLeft = Self.iterationBytes
        iterationEndsAt = now + Self.iterationNanoseconds
    }

    /// The next in the rotation gets its share.
    mutating func beginShare() {
        shareBytesLeft = Self.shareBytes
        shareEndsAt = now + Self.shareNanoseconds
    }

    /// Some work was done. Even work that makes no bytes counts as one.
    mutating func spend(_ bytes: Int, now: UInt64) {
        self.now = now
        let cost = max(bytes, 1)
        shareBytesLeft -= cost
        iterationBytesLeft -= cost
    }

    /// The share ends: work outside of shares has none.
    mutating func endShare() { shareBytesLeft = 0 }
}

/// Who waits for a share of a loop, first come first served.
struct WorkRotation {
    private var queue: [any LoopWork] = []
    private var next = 0

    var isEmpty: Bool { next == queue.count }

    mutating func append(_ worker: any LoopWork) { queue.append(worker) }

    /// Takes out who has waited longest.
    mutating func popFirst() -> (any LoopWork)? {
        guard next < queue.count else { return nil }
        let first = queue[next]
        next += 1
        // The part that is done is dropped when it is the larger one: each element moves once at most on average.
        if next * 2 >= queue.count {
            queue.removeFirst(next)
            next = 0
        }
        return first
    }

    mutating func removeAll() { self = WorkRotation() }
}

/// The longest iteration of a loop in the last one to two minutes, as a value without a clock.
struct LongestIteration {
    /// Time that one maximum covers, in nanoseconds.
    static let windowNanoseconds: UInt64 = 60_000_000_000

    private var present: UInt64 = 0
    private var previous: UInt64 = 0
    private var windowEnd: UInt64 = 0

    /// An iteration that lasted `nanoseconds` has ended.
    mutating func record(_ nanoseconds: UInt64, now: UInt64) {
        move(to: now)
        present = max(present, nanoseconds)
    }

    /// The longest, in nanoseconds; 0 if there was none.
    mutating func value(now: UInt64) -> UInt64 {
        move(to: now)
        return max(present, previous)
    }

    private mutating func move(to now: UInt64) {
        guard now >= windowEnd else { return }
        previous = now - windowEnd < Self.windowNanoseconds ? present : 0
        present = 0
        windowEnd = now + Self.windowNanoseconds
    }
}
