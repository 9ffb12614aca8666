// Output buffers for the connections that have something to say, so that the silent ones hold no memory.

import Basics

/// A stack of reusable buffers; the one used last, and still in the cache, is handed out first. Confined to one loop.
@safe struct WriterPool: ~Copyable {
    /// Room that a fresh buffer has, and the most that a buffer keeps when it comes back.
    static let bufferBytes = 64 << 10
    private static let capacity = 32

    // Owner: this pool. The first `count` of `capacity` places are initialised.
    private let places: UnsafeMutablePointer<ByteBuffer>
    private var count = 0

    init() { unsafe places = .allocate(capacity: Self.capacity) }

    deinit {
        unsafe places.deinitialize(count: count)
        unsafe places.deallocate()
    }

    /// An empty buffer.
    mutating func take() -> ByteBuffer {
        guard count > 0 else { return ByteBuffer(capacity: Self.bufferBytes) }
        count -= 1
        return unsafe (places + count).move()
    }

    /// Takes a buffer back; one that grew large or that nobody is likely to need is freed.
    mutating func give(_ writer: consuming ByteBuffer) {
        guard count < Self.capacity, writer.capacity <= 4 * Self.bufferBytes else { return }
        writer.reset()
        unsafe (places + count).initialize(to: writer)
        count += 1
    }
}
