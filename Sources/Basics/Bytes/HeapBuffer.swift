// A block of raw memory with an owner.

/// Memory that is freed with its owner. Grows on demand; contents up to `byteCount` are kept.
@safe
@usableFromInline package final class HeapBuffer {
    // Without checks of exclusive access, which other modules would make at each use.
    @exclusivity(unchecked) @usableFromInline package private(set) var start: UnsafeMutableRawPointer
    @exclusivity(unchecked) @usableFromInline package private(set) var capacity: Int

    package init(capacity: Int) {
        unsafe self.capacity = capacity
        unsafe start = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        unsafe start.deallocate()
    }

    /// The whole block.
    @inlinable
    package var all: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: start, count: capacity)
    }

    /// Makes the capacity at least `needed`, moving the first `used` bytes.
    @inlinable
    package func reserve(_ needed: Int, keeping used: Int) {
        guard unsafe needed > capacity else { return }
        replace(capacity: unsafe max(needed, capacity * 2), keeping: used)
    }

    /// Makes the capacity `smaller`, dropping the contents.
    package func shrink(to smaller: Int) {
        if unsafe capacity > smaller { replace(capacity: smaller, keeping: 0) }
    }

    @usableFromInline
    func replace(capacity newCapacity: Int, keeping used: Int) {
        let replacement = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 16)
        unsafe replacement.copyMemory(from: start, byteCount: used)
        unsafe start.deallocate()
        unsafe start = replacement
        unsafe capacity = newCapacity
    }
}
