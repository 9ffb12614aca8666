internal import CFirestoreProto
internal import DocumentModel

/// Memory for the C structs of one message: handed out front to back, freed in one step when the arena goes.
///
/// The first block is on the stack, so that a small message allocates nothing. One thread at a time.
@safe struct MessageArena: ~Copyable {
    /// What protobuf-c's allocator works on.
    @unsafe fileprivate struct Room {
        // Owner: the blocks, which are freed together. Bounds: `next` up to `end`.
        var next: UnsafeMutableRawPointer
        var end: UnsafeMutableRawPointer
        /// The last block taken from the heap, whose first word points to the one before.
        var blocks: UnsafeMutableRawPointer?
        var blockBytes = 8 << 10
    }

    // Lifetime: the call of `with` that made the arena.
    private let room: UnsafeMutablePointer<Room>

    /// Bytes of the first block.
    private static var stackBytes: Int { 2 << 10 }
    /// Every piece is aligned for any C type.
    private static var alignment: Int { 16 }

    /// Lends an arena; what was allocated in it must not be used after `body`.
    static func with<Result>(_ body: (borrowing MessageArena) throws -> Result) rethrows -> Result {
        try unsafe withUnsafeTemporaryAllocation(byteCount: stackBytes, alignment: alignment) { first in
            // A temporary allocation of more than 0 bytes has an address.
            let start = unsafe first.baseAddress.unsafelyUnwrapped
            var room = unsafe Room(next: start, end: start + first.count, blocks: nil)
            defer { unsafe free(room.blocks) }
            return try unsafe withUnsafeMutablePointer(to: &room) { unsafe try body(MessageArena(room: $0)) }
        }
    }

    private init(room: UnsafeMutablePointer<Room>) { unsafe self.room = unsafe room }

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
            alloc: { room, size in
                unsafe room.map { unsafe MessageArena.allocate(size, in: $0.assumingMemoryBound(to: Room.self)) }
            },
            free: { _, _ in }, allocator_data: UnsafeMutableRawPointer(room))
    }

    /// Memory for `count` elements, not initialized.
    func allocate<Element>(_ type: Element.Type, count: Int) -> UnsafeMutablePointer<Element> {
        let bytes = unsafe Self.allocate(count * MemoryLayout<Element>.stride, in: room)
        return unsafe bytes.bindMemory(to: type, capacity: count)
    }

    private static func allocate(_ size: Int, in room: UnsafeMutablePointer<Room>) -> UnsafeMutableRawPointer {
        let rounded = (size + alignment - 1) & ~(alignment - 1)
        if unsafe rounded > room.pointee.end - room.pointee.next { unsafe addBlock(for: rounded, to: room) }
        let piece = unsafe room.pointee.next
        unsafe room.pointee.next = unsafe piece + rounded
        return unsafe piece
    }

    private static func addBlock(for size: Int, to room: UnsafeMutablePointer<Room>) {
        let bytes = unsafe max(room.pointee.blockBytes, size + alignment)
        let block = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: alignment)
        unsafe block.storeBytes(of: room.pointee.blocks, as: UnsafeMutableRawPointer?.self)
        unsafe room.pointee.blocks = unsafe block
        unsafe room.pointee.blockBytes = unsafe min(room.pointee.blockBytes * 2, 1 << 20)
        unsafe room.pointee.next = unsafe block + alignment
        unsafe room.pointee.end = unsafe block + bytes
    }
}
