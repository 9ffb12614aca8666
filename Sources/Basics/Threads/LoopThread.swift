/// The thread of an event loop, as those see it whose work it does: other work, time and buffers.
///
/// The modules that answer calls know loops by this alone, and neither sockets nor libuv. `execute(_:)` and `isCurrent`
/// may be used on any thread, all else on the loop's.
package protocol LoopThread: AnyObject, Sendable {
    /// Whether the caller is on the loop's thread.
    var isCurrent: Bool { get }

    /// Runs `work` on the loop's thread, in the order of the calls. Dropped when the loop has stopped.
    func execute(_ work: @escaping @Sendable () -> Void)
    /// Runs `work` once, `milliseconds` from now or up to a tick later.
    func execute(afterMilliseconds milliseconds: UInt64, _ work: @escaping () -> Void)

    /// Monotonic milliseconds, as of the beginning of this turn.
    var nowMilliseconds: UInt64 { get }
    /// Monotonic nanoseconds, read once a turn.
    var turnNanoseconds: UInt64 { get }
    /// Has the observer called, once, when everything of this turn has been handed to the sockets.
    func whenTurnEnds(_ observer: any TurnObserver)

    /// Counts bytes that the work which has its share of the loop has made.
    func spend(_ bytes: Int)

    /// An empty buffer to write output into.
    func takeWriter() -> ByteBuffer
    /// Takes a buffer back.
    func recycle(_ writer: consuming ByteBuffer)
}

/// Something that wants to know how long a turn of a loop took; called on the loop's thread.
package protocol TurnObserver: AnyObject {
    /// - Parameter nanoseconds: since the turn's clock was read first.
    func turnEnded(nanoseconds: UInt64)
}
