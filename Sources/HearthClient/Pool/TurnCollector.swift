import Basics
package import EventLoops

/// Collects values on the thread of a loop, and hands those of one turn over together: one wake-up of another thread
/// for all replies that one read of a socket has brought.
///
/// Thread-safe. Values from other threads are handed over at once.
package final class TurnCollector<Element: Sendable>: TurnObserver, @unchecked Sendable {
    // Unchecked: the variables are used on the loop's thread only.

    private let loop: EventLoop
    private let deliver: @Sendable ([Element]) -> Void
    private var collected: [Element] = []
    /// The loop takes no observer while it calls them.
    private var isDelivering = false

    /// - Parameter deliver: called on the loop's thread, or on the thread of `add(_:)`.
    package init(on loop: EventLoop, deliver: @escaping @Sendable ([Element]) -> Void) {
        self.loop = loop
        self.deliver = deliver
    }

    package func add(_ element: Element) {
        guard loop.isCurrent, !isDelivering else { return deliver([element]) }
        if collected.isEmpty { loop.whenTurnEnds(self) }
        collected.append(element)
    }

    package func turnEnded(nanoseconds: UInt64) {
        let taken = collected
        collected = []
        isDelivering = true
        deliver(taken)
        isDelivering = false
    }
}
