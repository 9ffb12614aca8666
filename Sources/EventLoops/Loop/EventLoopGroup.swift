// Several loops, so that a server or a client uses several cores.

import Synchronization

/// A fixed set of loops, each on its own thread. Thread-safe.
package final class EventLoopGroup: Sendable {
    package let loops: [EventLoop]
    private let turn = Atomic<Int>(0)

    /// Makes and starts `count` loops.
    package init(count: Int, name: String = "hearth-loop") {
        precondition(count > 0, "a group has at least one loop")
        loops = (0..<count).map { EventLoop(name: "\(name)-\($0)") }
        for loop in loops { loop.start() }
    }

    /// One loop after the other.
    package func next() -> EventLoop {
        let place = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return loops[Int(UInt(bitPattern: place) % UInt(loops.count))]
    }

    /// Ends all loops and waits for their threads; not from one of them.
    package func stop() {
        for loop in loops { loop.stop() }
    }
}
