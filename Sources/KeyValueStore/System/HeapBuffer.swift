// A block of raw memory with an owner.

/// Memory that is freed with its owner. Grows on demand; contents up to `byteCount` are kept.
@safe
final class HeapBuffer {
    private(set) var start: UnsafeMutableRawPointer
    private(set) var capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        unsafe start = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        unsafe start.deallocate()
    }

    var all: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: start, count: capacity)
    }

    /// Makes the capacity at least `needed`, moving the first `used` bytes.
    func reserve(_ needed: Int, keeping used: Int) {
        guard needed > capacity else { return }
        replace(capacity: max(needed, capacity * 2), keeping: used)
    }

    /// Makes the capacity `smaller`, dropping the contents.
    func shrink(to smaller: Int) {
        if capacity > smaller { replace(capacity: smaller, keeping: 0) }
    }

    private func replace(capacity newCapacity: Int, keeping used: Int) {
        let replacement = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 16)
        unsafe replacement.copyMemory(from: start, byteCount: used)
        unsafe start.deallocate()
        unsafe start = replacement
        capacity = newCapacity
    }
}
