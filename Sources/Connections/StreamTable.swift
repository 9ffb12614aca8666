// The open streams of one connection, by number.

/// A small hash table from stream numbers to their state.
///
/// Stream numbers grow one by one and few are open at a time, so the low bits of the number are a fine hash: open
/// addressing with linear probing, at most half full. Removal closes the gap and leaves no mark. The elements are in an
/// array without gaps, in no order, so that an access copies nothing. A table starts without memory, since most
/// calls of a server end before they need one.
@usableFromInline package struct StreamTable<Element> {
    /// A place of the hash table.
    @usableFromInline struct Slot {
        /// Zero if the slot is free; stream 0 is the connection and never in the table.
        @usableFromInline var stream: UInt32
        /// Where the element is.
        @usableFromInline var position: UInt32

        @inlinable
        init(stream: UInt32 = 0, position: UInt32 = 0) {
            self.stream = stream
            self.position = position
        }
    }

    @usableFromInline var slots: [Slot] = []
    @usableFromInline var elements: [Element] = []
    /// The streams of `elements`.
    @usableFromInline var owners: [UInt32] = []

    @inlinable
    package init() {}

    /// Streams in the table.
    @inlinable
    package var count: Int { elements.count }

    @inlinable
    package var isEmpty: Bool { elements.isEmpty }

    /// All streams, in no order.
    @inlinable
    package var streams: [UInt32] { owners }

    @inlinable
    package func contains(_ stream: UInt32) -> Bool { slot(of: stream) != nil }

    /// The position of the stream's element; valid until the next insertion or removal.
    @inlinable
    package func position(of stream: UInt32) -> Int? { slot(of: stream).map { Int(slots[$0].position) } }

    /// The element at a position.
    @inlinable
    package subscript(position position: Int) -> Element {
        _read { yield elements[position] }
        _modify { yield &elements[position] }
    }

    /// Adds a stream that is not there yet and returns its position.
    @discardableResult @inlinable
    package mutating func insert(_ stream: UInt32, _ element: Element) -> Int {
        precondition(stream != 0, "stream 0 is the connection")
        precondition(!contains(stream), "a stream is opened once")
        if (count + 1) * 2 > slots.count { grow() }
        elements.append(element)
        owners.append(stream)
        enter(stream, count - 1)
        return count - 1
    }

    /// Takes a stream out; nil when it is not there.
    @inlinable
    package mutating func remove(_ stream: UInt32) -> Element? {
        guard let found = slot(of: stream) else { return nil }
        let position = Int(slots[found].position)
        closeGap(at: found)
        let last = count - 1
        if position != last, let slot = slot(of: owners[last]) {
            elements.swapAt(position, last)
            owners[position] = owners[last]
            slots[slot].position = UInt32(position)
        }
        owners.removeLast()
        return elements.removeLast()
    }

    @inlinable
    package mutating func removeAll() { self = StreamTable() }

    // MARK: Slots

    @inlinable
    func slot(of stream: UInt32) -> Int? {
        guard count > 0, stream != 0 else { return nil }
        let mask = slots.count - 1
        var slot = Int(stream) & mask
        while slots[slot].stream != stream {
            if slots[slot].stream == 0 { return nil }
            slot = (slot + 1) & mask
        }
        return slot
    }

    @inlinable
    mutating func enter(_ stream: UInt32, _ position: Int) {
        let mask = slots.count - 1
        var slot = Int(stream) & mask
        while slots[slot].stream != 0 { slot = (slot + 1) & mask }
        slots[slot] = Slot(stream: stream, position: UInt32(position))
    }

    @inlinable
    mutating func grow() {
        slots = Array(repeating: Slot(), count: max(4, slots.count * 2))
        for (position, stream) in owners.enumerated() { enter(stream, position) }
    }

    /// Moves later members of the run back, so that no probe meets a hole before its stream.
    @inlinable
    mutating func closeGap(at removed: Int) {
        let mask = slots.count - 1
        var hole = removed
        var next = (hole + 1) & mask
        while slots[next].stream != 0 {
            let home = Int(slots[next].stream) & mask
            // The member may fill the hole when its home is not between the hole and its slot.
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = Slot()
    }
}
