// The open streams of one connection, by number.

/// A small hash table from stream numbers to their state.
///
/// Stream numbers grow one by one and few are open at a time, so the low bits of the number are a fine hash: open
/// addressing with linear probing, at most half full, and removal closes the gap instead of leaving a mark. It starts
/// without memory, since most streams of a server are answered before they need a place.
package struct StreamTable<Element> {
    /// Streams in the table.
    package private(set) var count = 0
    /// Zero = free; stream 0 is the connection and never stands here.
    private var keys: [UInt32] = []
    private var elements: [Element?] = []

    package init() {}

    package var isEmpty: Bool { count == 0 }

    /// All streams, in no order.
    package var streams: [UInt32] { keys.filter { $0 != 0 } }

    package func contains(_ stream: UInt32) -> Bool { slot(of: stream) != nil }

    /// Where the stream stands; valid until the next insertion or removal.
    package func slot(of stream: UInt32) -> Int? {
        guard count > 0, stream != 0 else { return nil }
        let mask = keys.count - 1
        var slot = Int(stream) & mask
        while keys[slot] != stream {
            if keys[slot] == 0 { return nil }
            slot = (slot + 1) & mask
        }
        return slot
    }

    /// The element in an occupied slot.
    package subscript(slot slot: Int) -> Element {
        _read { yield elements[slot]! }
        _modify { yield &elements[slot]! }
    }

    /// Adds a stream that is not there yet and says where it stands.
    @discardableResult
    package mutating func insert(_ stream: UInt32, _ element: Element) -> Int {
        precondition(stream != 0, "stream 0 is the connection")
        if (count + 1) * 2 > keys.count { grow() }
        return place(stream, element)
    }

    /// Takes a stream out; nil when it is not there.
    package mutating func remove(_ stream: UInt32) -> Element? {
        guard let found = slot(of: stream) else { return nil }
        let element = elements[found]
        closeGap(at: found)
        count -= 1
        return element
    }

    package mutating func removeAll() { self = StreamTable() }

    private mutating func place(_ stream: UInt32, _ element: Element) -> Int {
        let mask = keys.count - 1
        var slot = Int(stream) & mask
        while keys[slot] != 0 {
            precondition(keys[slot] != stream, "a stream is opened once")
            slot = (slot + 1) & mask
        }
        keys[slot] = stream
        elements[slot] = element
        count += 1
        return slot
    }

    private mutating func grow() {
        let oldKeys = keys
        let oldElements = elements
        let capacity = max(8, keys.count * 2)
        keys = Array(repeating: 0, count: capacity)
        elements = Array(repeating: nil, count: capacity)
        count = 0
        for (stream, element) in zip(oldKeys, oldElements) where stream != 0 { _ = place(stream, element!) }
    }

    /// Moves later members of the run back, so that no probe meets a hole before its stream.
    private mutating func closeGap(at removed: Int) {
        let mask = keys.count - 1
        var hole = removed
        var next = (hole + 1) & mask
        while keys[next] != 0 {
            let home = Int(keys[next]) & mask
            // The member may fill the hole when its home is not between the hole and where it stands.
            if (next - home) & mask >= (next - hole) & mask {
                keys[hole] = keys[next]
                elements[hole] = elements[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        keys[hole] = 0
        elements[hole] = nil
    }
}
