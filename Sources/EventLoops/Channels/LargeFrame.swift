// A frame larger than the loop's read buffer, while it arrives.

import Glibc

/// The bytes of one large frame. Its memory follows the bytes that have come, not the length that the sender claims.
@safe final class LargeFrame {
    private static let firstBytes = 128 << 10

    /// Bytes of the whole frame.
    private let needed: Int
    // Owner: this object. `base` addresses `capacity` bytes of which `count` have arrived.
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private var count: Int

    init(beginningWith start: RawSpan, needed: Int) {
        self.needed = needed
        count = start.byteCount
        capacity = min(needed, max(Self.firstBytes, count * 2))
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
        unsafe start.withUnsafeBytes { unsafe base.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }

    deinit { unsafe base.deallocate() }

    var isWhole: Bool { count == needed }

    /// What has arrived, lent to `body`.
    func withBytes(_ body: (RawSpan) -> Void) {
        body(unsafe RawSpan(_unsafeStart: base, byteCount: count))
    }

    /// Where the next bytes go: at least one, and never more than the frame still needs. Valid until the next call.
    func room() -> UnsafeMutableRawBufferPointer {
        if count == capacity { grow() }
        return unsafe UnsafeMutableRawBufferPointer(start: base + count, count: capacity - count)
    }

    /// Bytes were put where `room` said.
    func filled(_ more: Int) { count += more }

    private func grow() {
        capacity = min(needed, capacity * 2)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
        unsafe larger.copyMemory(from: base, byteCount: count)
        unsafe base.deallocate()
        unsafe base = larger
    }
}
