// Thousands of coarse timers for the price of one: deadlines, idle and handshake limits of all connections of a loop.

/// A hashed timer wheel: pure data, stepped by the owner of the clock.
///
/// Time is counted in ticks. A timer hangs in the slot of its tick modulo the number of slots, in a doubly linked list
/// of nodes that are reused, so adding and removing cost no allocation and no search. A timer further away than one
/// turn is passed over until its turn comes. Timers fire at their tick or later, never before.
package struct TimerWheel<Payload> {
    /// Names a timer until it fires or is removed; a stale name is harmless.
    package struct Timer: Hashable, Sendable {
        fileprivate var index: UInt32
        fileprivate var generation: UInt32
    }

    private struct Node {
        var tick: UInt64
        var previous: Int32
        var next: Int32
        var generation: UInt32
        var payload: Payload?
    }

    private static var none: Int32 { -1 }

    private var heads: [Int32]
    private var nodes: [Node] = []
    private var free: Int32 = -1
    /// The last tick whose timers have fired.
    package private(set) var now: UInt64
    /// Timers that have neither fired nor been removed.
    package private(set) var count = 0

    /// - Parameter slots: a power of two.
    package init(slots: Int = 512, now: UInt64 = 0) {
        precondition(slots > 0 && slots & (slots - 1) == 0, "the number of slots is a power of two")
        heads = Array(repeating: Self.none, count: slots)
        self.now = now
    }

    /// Adds a timer for `tick`; one that is not in the future fires at the next step.
    package mutating func insert(at tick: UInt64, _ payload: Payload) -> Timer {
        let due = max(tick, now + 1)
        let index = takeNode()
        let slot = slot(of: due)
        let head = heads[slot]
        nodes[Int(index)].tick = due
        nodes[Int(index)].payload = payload
        nodes[Int(index)].previous = Self.none
        nodes[Int(index)].next = head
        if head != Self.none { nodes[Int(head)].previous = index }
        heads[slot] = index
        count += 1
        return Timer(index: UInt32(index), generation: nodes[Int(index)].generation)
    }

    /// Removes a timer; false when it has fired or was removed before.
    @discardableResult
    package mutating func remove(_ timer: Timer) -> Bool {
        let index = Int(timer.index)
        guard index < nodes.count, nodes[index].generation == timer.generation, nodes[index].payload != nil else {
            return false
        }
        _ = unlink(Int32(index))
        return true
    }

    /// Takes out every timer up to `tick`, earliest tick first.
    package mutating func takeDue(upTo tick: UInt64) -> [Payload] {
        guard tick > now else { return [] }
        guard count > 0 else {
            now = tick
            return []
        }
        var due: [(tick: UInt64, payload: Payload)] = []
        // After a long sleep one look at each slot suffices.
        let steps = min(tick - now, UInt64(heads.count))
        for step in 1...steps where count > 0 { collect(slot: slot(of: now + step), upTo: tick, &due) }
        now = tick
        due.sort { $0.tick < $1.tick }
        return due.map(\.payload)
    }

    /// The tick by which the wheel must be stepped next; nil when it is empty. It may be early for a timer that is more
    /// than one turn away, never late.
    package var nextTick: UInt64? {
        guard count > 0 else { return nil }
        for step in 1...UInt64(heads.count) where heads[slot(of: now + step)] != Self.none { return now + step }
        return nil
    }

    private func slot(of tick: UInt64) -> Int { Int(truncatingIfNeeded: tick & UInt64(heads.count - 1)) }

    private mutating func collect(slot: Int, upTo tick: UInt64, _ due: inout [(tick: UInt64, payload: Payload)]) {
        var index = heads[slot]
        while index != Self.none {
            let next = nodes[Int(index)].next
            let own = nodes[Int(index)].tick
            if own <= tick { due.append((own, unlink(index))) }
            index = next
        }
    }

    private mutating func takeNode() -> Int32 {
        if free != Self.none {
            let index = free
            free = nodes[Int(index)].next
            return index
        }
        nodes.append(Node(tick: 0, previous: Self.none, next: Self.none, generation: 0, payload: nil))
        return Int32(nodes.count - 1)
    }

    private mutating func unlink(_ index: Int32) -> Payload {
        let node = nodes[Int(index)]
        if node.previous == Self.none {
            heads[slot(of: node.tick)] = node.next
        } else {
            nodes[Int(node.previous)].next = node.next
        }
        if node.next != Self.none { nodes[Int(node.next)].previous = node.previous }
        nodes[Int(index)].payload = nil
        nodes[Int(index)].generation &+= 1
        nodes[Int(index)].next = free
        free = index
        count -= 1
        return node.payload!
    }
}
