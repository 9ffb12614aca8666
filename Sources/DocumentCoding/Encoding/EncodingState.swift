import Glibc

/// A value being encoded.
@safe struct EncodingFrame {
    enum Kind: UInt8 {
        /// The value has not asked for a container yet.
        case undecided
        case map
        case array
        /// A scalar, or whatever a single-value container wrote.
        case single
        /// A sentinel: it was noted elsewhere and leaves nothing in the bytes.
        case omitted
    }

    var kind: Kind
    /// The tag of this map's entries.
    var entryTag: UInt8
    /// The entries noted so far are not in order, or two of them may have equal names.
    var isUnsorted: Bool
    /// There are child sessions to be gathered when the frame closes.
    var hasChildren: Bool
    /// Identifies this use of the frame's place among earlier and later ones; 0 = closed.
    var serial: UInt32
    /// Where the value begins: offset of its tag.
    var valueStart: Int
    /// Where the contents of the map or array begin.
    var bodyStart: Int
    /// Two bytes are reserved for the length before the contents.
    var isLong: Bool
    /// The first of the map's entries on the stack of entries.
    var firstEntry: Int
    /// Elements of an array so far.
    var count: Int
    /// The prefix of the last entry's name.
    var lastPrefix: UInt64
    /// Where the entry or element being written begins.
    var partStart: Int
    /// The key of the entry being written is `keyIndex` of `keyTable`; without a table it is in the bytes.
    var keyTable: UnsafeMutablePointer<KeyTable>?
    var keyIndex: Int
    /// The keyed containers lent for this frame.
    var slots: UnsafeMutablePointer<KeyedEncodingSlot>?

    /// Whether it is that of the document itself, if that is a structure or given as `Any`.
    @inline(__always) var isDocument: Bool { entryTag == ValueWireTag.documentField }
}

/// An entry of an open map.
struct EncodedEntry {
    /// The first eight bytes of the name, big-endian, padded with zeros: names that differ there compare like these.
    var prefix: UInt64
    var start: UInt32
    var end: UInt32
}

/// An entry whose value is being written.
struct OpenEntry {
    var prefix: UInt64
    /// Offset of the entry's tag.
    var start: Int
    /// Offset of the value's first byte; the byte before is left for its length.
    var valueStart: Int
    /// Two bytes are left for each length.
    var isLong = false
}

/// The memory of one encoding: bytes, open maps and arrays, entries to sort.
///
/// One thread at a time uses it. It is reused and never freed, so that a container that is kept too long finds a closed
/// frame instead of freed memory.
///
/// ## How encoding works
///
/// The session writes bytes forwards into one buffer while the standard library walks the value:
///
///     12 .. 0a 05 t i t l e 12 .. 8a 01 04 D u n e      an entry: tag, length, key, value
///        ^                     ^
///        one byte is reserved for each length; if the length is 128 or more, the following bytes are moved
///
/// The stack has a frame for each value that is being encoded. A frame is undecided until its value requests a
/// container. For an open map the state notes its entries (first eight bytes of the key, start, end). If they are not
/// sorted by name when the map ends, they are sorted with one copy. So the output is canonical.
///
/// ## Why the containers are thin
///
/// The standard library boxes each keyed container in an object and calls it through unspecialised witnesses. That is
/// most of the cost, so everything else is cheap (docs/codable.md has measurements):
///
/// - A container is one trivial word, a pointer to a slot. It has no class reference, so calls retain nothing.
/// - Boxes are kept for each key type and reused (``KeyedEncodingSlot``). If a borrower keeps a box, the reference
///   count shows it, and the box is not reused.
/// - A key enumeration without payloads is one byte. It indexes prepared entry heads (``KeyTable``), so a key's string
///   is requested once per thread.
/// - Properties of a type (`Date`, arrays, dictionaries, property wrappers) are found by the address of its metadata
///   (``TypeRecord``) instead of casts.
///
/// ## Nested containers
///
/// Code may write to `nestedContainer` and `superEncoder` in any order while their parent is open. Each has a separate
/// session (`EncodingSession+Children`); its bytes become an entry when the parent is closed.
@safe struct EncodingState {
    // Owner: this state. Bounds: capacity bytes, of which count are written.
    var base: UnsafeMutableRawPointer
    var capacity: Int
    var count = 0

    var frames: UnsafeMutablePointer<EncodingFrame>
    var frameCapacity: Int
    /// The innermost open frame, or -1.
    var top = -1

    var entries: UnsafeMutablePointer<EncodedEntry>
    var entryCapacity: Int
    var entryCount = 0

    var lastSerial: UInt32 = 0
    /// The value that begins here is that of an entry with `OpenEntry.isLong`.
    var expectsLong = false
    /// What the thread knows of types.
    let tables: UnsafeMutablePointer<EncodingTables>

    // Copies of the strategies that are asked for all the time.
    var usesDefaultKeys = true
    var writesTimestamps = true
    /// See `SmallString.isKnown`.
    let readsSmallStrings = SmallString.isKnown
    /// Objects are passed through for `[String: Any]` (see `TreeObjects`); the rules of documents are not checked.
    var isTree = false
    /// Arrays may be written directly in arrays: for the lists of `in` filters, whose elements the server checks.
    var allowsNestedArrays = false

    /// The strategies of this call; nil between calls. `FirestoreEncoder.withSession` keeps them alive.
    var strategies: Unmanaged<EncodingStrategies>?
    /// The database that references must be of, `projects/P/databases/D`; nil = any.
    var database: Substring?
    /// The sentinels met, in a root session.
    var transforms: [FieldTransformData] = []
    var deletedPaths: [[String]] = []
    var objects: [AnyObject] = []

    /// Swift keys of the entries being written, by frame, while the key strategy is not the default.
    var swiftKeys: [(any CodingKey)?] = []
    /// Sessions of nested containers of open frames; those of one frame are neighbours.
    var children: [ChildSession] = []
    /// Where a child session hangs.
    var parent: ParentLink?

    /// The next of the thread's idle sessions.
    var nextIdle: UnsafeMutablePointer<EncodingState>?

    init(tables: UnsafeMutablePointer<EncodingTables>) {
        capacity = 256
        unsafe base = .allocate(byteCount: capacity, alignment: 16)
        frameCapacity = 4
        unsafe frames = .allocate(capacity: frameCapacity)
        entryCapacity = 16
        unsafe entries = .allocate(capacity: entryCapacity)
        unsafe self.tables = unsafe tables
    }
}

/// A handle on an `EncodingState`: one trivial word, so that containers pass it without reference counting.
@safe struct EncodingSession {
    // Owner: the thread's pool. Lifetime: never freed.
    let state: UnsafeMutablePointer<EncodingState>

    /// Containers nest no deeper than this; past it encoding throws. The server's limit is 20.
    static let depthMax = 100

    /// The strategies of this call; nil between calls.
    var strategies: EncodingStrategies? { unsafe state.pointee.strategies?.takeUnretainedValue() }

    @inline(__always) var count: Int { unsafe state.pointee.count }
    @inline(__always) var top: Int { unsafe state.pointee.top }
}
