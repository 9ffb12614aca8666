internal import CFirestoreProto
internal import DocumentModel

/// Memory for the C structs of one message: allocated front to back, and freed in one step at the end.
///
/// The first block is on the stack, so that a small message allocates nothing. One thread at a time.
@safe struct MessageArena: ~Copyable {
    /// The state of protobuf-c's allocator.
    @unsafe fileprivate struct State {
        // Owner: the blocks, which are freed together. Bounds: `next` up to `end`.
        var next: UnsafeMutableRawPointer
        var end: UnsafeMutableRawPointer
        /// The last block taken from the heap, whose first word points to the one before.
        var blocks: UnsafeMutableRawPointer?
        var blockBytes = 8 << 10
    }

    // Lifetime: the call of `with` that made the arena.
    private let state: UnsafeMutablePointer<State>

    /// Bytes of the first block.
    private static var stackBytes: Int { 2 << 10 }
    /// Every piece is aligned for any C type.
    private static var alignment: Int { 16 }

    /// Lends an arena; what was allocated in it must not be used after `body`.
    static func with<Result>(_ body: (borrowing MessageArena) throws -> Result) rethrows -> Result {
        try unsafe withUnsafeTemporaryAllocation(byteCount: stackBytes, alignment: alignment) { first in
            // A temporary allocation of more than 0 bytes has an address.
            let start = unsafe first.baseAddress.unsafelyUnwrapped
            var state = unsafe State(next: start, end: start + first.count, blocks: nil)
            defer { unsafe free(state.blocks) }
            return try unsafe withUnsafeMutablePointer(to: &state) { unsafe try body(MessageArena(state: $0)) }
        }
    }

    private init(state: UnsafeMutablePointer<State>) { unsafe self.state = unsafe state }

    private static func free(_ blocks: UnsafeMutableRawPointer?) {
        var block = unsafe blocks
        while let current = unsafe block {
            unsafe block = current.load(as: UnsafeMutableRawPointer?.self)
            unsafe current.deallocate()
        }
    }

    /// The arena as protobuf-c takes it; valid as long as the arena.
    var allocator: ProtobufCAllocator {
        unsafe ProtobufCAllocator(
            alloc: { state, size in
                unsafe state.map { unsafe MessageArena.allocate(size, in: $0.assumingMemoryBound(to: State.self)) }
            },
            free: { _, _ in }, allocator_data: UnsafeMutableRawPointer(state))
    }

    /// Memory for `count` elements, not initialized.
    func allocate<Element>(_ type: Element.Type, count: Int) -> UnsafeMutablePointer<Element> {
        let bytes = unsafe Self.allocate(count * MemoryLayout<Element>.stride, in: state)
        return unsafe bytes.bindMemory(to: type, capacity: count)
    }

    private static func allocate(_ size: Int, in state: UnsafeMutablePointer<State>) -> UnsafeMutableRawPointer {
        let rounded = (size + alignment - 1) & ~(alignment - 1)
        if unsafe rounded > state.pointee.end - state.pointee.next { unsafe addBlock(for: rounded, to: state) }
        let piece = unsafe state.pointee.next
        unsafe state.pointee.next = unsafe piece + rounded
        return unsafe piece
    }

    private static func addBlock(for size: Int, to state: UnsafeMutablePointer<State>) {
        let bytes = unsafe max(state.pointee.blockBytes, size + alignment)
        let block = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: alignment)
        unsafe block.storeBytes(of: state.pointee.blocks, as: UnsafeMutableRawPointer?.self)
        unsafe state.pointee.blocks = unsafe block
        unsafe state.pointee.blockBytes = unsafe min(state.pointee.blockBytes * 2, 1 << 20)
        unsafe state.pointee.next = unsafe block + alignment
        unsafe state.pointee.end = unsafe block + bytes
    }
}
