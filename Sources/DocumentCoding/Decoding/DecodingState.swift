/// A map or array being read.
@safe struct DecodingFrame {
    enum Kind: UInt8 {
        case map
        case array
        /// Holds the one value that is decoded, which is not a document and has no key.
        case root
    }

    var kind: Kind
    /// The frame of the map or array that holds this one, which may be pinned (``DecodingSession/pin(_:)``); -1 for
    /// the document.
    var parent: Int
    /// The range of the map's entries on the stack of entries.
    var firstEntry: Int
    var entryEnd: Int
    /// The element or, without a key table, the entry that is being read.
    var index: Int
    /// The key being read is among the session's dynamic keys.
    var hasDynamicKey = false
    /// A kept container is in what this pinned frame is at.
    var isKept = false
    /// The key being read is `index` of the table's keys.
    var keyTable: UnsafeMutablePointer<DecodingKeyTable>?
    /// The keyed container lent for this frame.
    var slot: UnsafeMutablePointer<KeyedDecodingSlot>?
}

/// An entry of an open map.
struct DecodedEntry {
    var key: UInt32
    var keyCount: UInt32
    var value: UInt32
    var valueEnd: UInt32
}

/// The memory of one decoding: where the entries of open maps are, and who reads them.
///
/// One thread at a time uses it. It is reused and never freed.
///
/// Values are decoded on demand. A value is a range of the bytes (``ValueRange``). A keyed container for it notes the
/// positions of its entries on a stack that all containers share, and a frame with their range. At the same time it
/// finds the key of each entry: it expects the key that the last map had there (`DecodingKey.next`).
///
/// Containers are thin, for the reasons in ``EncodingState``: a container is one pointer to a slot, and its box is
/// reused. Arrays, optionals and string-keyed dictionaries decode themselves (``DirectlyDecodable``).
///
/// The frames and entries of a value end when its `init(from:)` returns. If code keeps a container for longer, which is
/// legal, its box shows it, and they stay until the whole document has been decoded.
@safe struct DecodingState {
    /// The bytes being decoded; empty between calls. Owner: the caller of `decode`.
    var base: UnsafeRawPointer
    var byteCount = 0
    /// The same if small strings may be read from the bytes as `SmallString` does, else 0.
    var smallStringEnd = 0

    var frames: UnsafeMutablePointer<DecodingFrame>
    var frameCapacity = 16
    var frameCount = 0

    var entries: UnsafeMutablePointer<DecodedEntry>
    var entryCapacity = 64
    var entryCount = 0

    /// Values being decoded inside one another.
    var depth = 0
    /// Identifies this call among earlier and later ones.
    var call: UInt32 = 0
    /// What the thread knows of types.
    let tables: UnsafeMutablePointer<DecodingTables>

    // Copies of the strategies that are asked for all the time.
    var usesDefaultKeys = true
    var readsTimestamps = true
    /// The bytes stand for a `[String: Any]` with objects passed through.
    var isTree = false

    // What this call was given; nil between calls. `FirestoreDecoder.withSession` keeps the objects alive.
    var strategies: Unmanaged<DecodingStrategies>?
    /// The document being decoded, for `@DocumentID`. References that are read have the owner that it has.
    var document: Unmanaged<DocumentReference>?
    /// The objects passed through.
    var objects: [AnyObject] = []

    /// Keys of types that are not enumerations, by frame, while a value below them is read.
    var dynamicKeys: [Int: any CodingKey] = [:]
    /// Entries by converted key, by frame, while the key strategy is not the default.
    var convertedKeys: [Int: [String: Int]] = [:]

    /// The next of the thread's idle sessions.
    var nextIdle: UnsafeMutablePointer<DecodingState>?

    init(tables: UnsafeMutablePointer<DecodingTables>) {
        unsafe base = UnsafeRawPointer(tables)
        unsafe frames = .allocate(capacity: frameCapacity)
        unsafe entries = .allocate(capacity: entryCapacity)
        unsafe self.tables = unsafe tables
    }
}

/// A handle on a `DecodingState`: one trivial word, so that containers pass it without reference counting.
@safe struct DecodingSession {
    // Owner: the thread's pool. Lifetime: never freed.
    let state: UnsafeMutablePointer<DecodingState>

    /// Values nest no deeper than this; past it decoding throws. The server's limit is 20.
    static let depthMax = 100
    /// Frames at once, those of kept containers among them. A document has at most 32,768 maps and arrays, and a nested
    /// container takes two frames.
    static let framesMax = 1 << 16
}

/// What a thread's decodings know of the types they met, and the pool of their sessions; see `CoderTables`.
@safe struct DecodingTables {
    /// `DecodingKeyTable`s by the metadata of the key type.
    var keyTables = PointerMap()
    /// `DecodingTypeRecord`s by the metadata of the type.
    var typeRecords = PointerMap()
    /// Idle sessions, linked by `nextIdle`.
    var idle: UnsafeMutablePointer<DecodingState>?
    /// Containers whose boxes were kept by the code they were lent to.
    var kept: UnsafeMutablePointer<KeyedDecodingSlot>?
}

extension DecodingSession {
    /// The strategies of this call; nil between calls.
    var strategies: DecodingStrategies? { unsafe state.pointee.strategies?.takeUnretainedValue() }
    /// The document being decoded.
    var document: DocumentReference? { unsafe state.pointee.document?.takeUnretainedValue() }

    /// An idle session of the thread, or a new one. Give it back with `recycle()`.
    static func take(from tables: UnsafeMutablePointer<DecodingTables>) -> DecodingSession {
        if let state = unsafe tables.pointee.idle {
            unsafe tables.pointee.idle = unsafe state.pointee.nextIdle
            return unsafe DecodingSession(state: state)
        }
        let state = UnsafeMutablePointer<DecodingState>.allocate(capacity: 1)
        unsafe state.initialize(to: DecodingState(tables: tables))
        return unsafe DecodingSession(state: state)
    }

    /// Forgets everything of the call and makes the session idle.
    func recycle() {
        closeFrames(downTo: 0)
        unsafe state.pointee.byteCount = 0
        unsafe state.pointee.smallStringEnd = 0
        unsafe state.pointee.entryCount = 0
        unsafe state.pointee.depth = 0
        unsafe state.pointee.call &+= 1
        unsafe state.pointee.strategies = nil
        unsafe state.pointee.document = nil
        unsafe state.pointee.isTree = false
        if unsafe !state.pointee.objects.isEmpty { unsafe state.pointee.objects = [] }
        if unsafe !state.pointee.dynamicKeys.isEmpty { unsafe state.pointee.dynamicKeys = [:] }
        if unsafe !state.pointee.convertedKeys.isEmpty { unsafe state.pointee.convertedKeys = [:] }
        let tables = unsafe state.pointee.tables
        unsafe state.pointee.nextIdle = unsafe tables.pointee.idle
        unsafe tables.pointee.idle = unsafe state
        if unsafe tables.pointee.kept != nil { reclaimKept() }
    }
}
