// What a thread's encodings know of the types they met, and the pool of their sessions.

/// Shared by all sessions of one thread; see `CoderTables`.
@safe struct EncodingTables {
    /// `KeyTable`s by the metadata of the key type.
    var keyTables = PointerMap()
    /// `TypeRecord`s by the metadata of the type.
    var typeRecords = PointerMap()
    /// Idle sessions, linked by `nextIdle`.
    var idle: UnsafeMutablePointer<EncodingState>?
    /// Containers whose boxes were kept by the code they were lent to.
    var kept: UnsafeMutablePointer<KeyedEncodingSlot>?
}

extension EncodingSession {
    /// An idle session of the thread, or a new one. Give it back with `recycle()`.
    static func take(from tables: UnsafeMutablePointer<EncodingTables>) -> EncodingSession {
        if let state = unsafe tables.pointee.idle {
            unsafe tables.pointee.idle = unsafe state.pointee.nextIdle
            return unsafe EncodingSession(state: state)
        }
        let state = UnsafeMutablePointer<EncodingState>.allocate(capacity: 1)
        unsafe state.initialize(to: EncodingState(tables: tables))
        return unsafe EncodingSession(state: state)
    }

    /// Buffers larger than this are not kept.
    private static let keptBytes = 1 << 20

    /// Forgets everything of the call and makes the session idle.
    func recycle() {
        abandonFrames(above: -1)
        unsafe state.pointee.count = 0
        unsafe state.pointee.entryCount = 0
        if unsafe state.pointee.capacity > Self.keptBytes {
            unsafe state.pointee.base.deallocate()
            unsafe state.pointee.capacity = 4096
            unsafe state.pointee.base = .allocate(byteCount: 4096, alignment: 16)
        }
        unsafe state.pointee.strategies = nil
        if unsafe state.pointee.database != nil { unsafe state.pointee.database = nil }
        if unsafe !state.pointee.transforms.isEmpty { unsafe state.pointee.transforms = [] }
        if unsafe !state.pointee.deletedPaths.isEmpty { unsafe state.pointee.deletedPaths = [] }
        if unsafe !state.pointee.objects.isEmpty { unsafe state.pointee.objects = [] }
        if unsafe !state.pointee.swiftKeys.isEmpty { unsafe state.pointee.swiftKeys = [] }
        if unsafe state.pointee.parent != nil { unsafe state.pointee.parent = nil }
        let tables = unsafe state.pointee.tables
        unsafe state.pointee.nextIdle = unsafe tables.pointee.idle
        unsafe tables.pointee.idle = unsafe state
    }
}
