internal import Basics
internal import CFirestoreProto
internal import DocumentModel

/// A message type that the generated protobuf-c code reads and writes: its C struct and its descriptors.
///
///     bytes ──MessageWalk──▶ bytes that are safe to unpack ──protobuf-c──▶ C struct in an arena ──▶ `body`
///
/// `Held` is the struct that `protoc-c` makes from `proto/` after `Tools/held-form.sed`: strings are bytes with a
/// length, and documents, queries and map entries are the bytes that our own readers take.
@safe struct MessageLayout<Held>: Sendable {
    // Both are constants of the generated code.
    private nonisolated(unsafe) let held: UnsafePointer<ProtobufCMessageDescriptor>
    private nonisolated(unsafe) let declared: UnsafePointer<ProtobufCMessageDescriptor>
    private nonisolated(unsafe) let initialize: (UnsafeMutablePointer<Held>?) -> Void

    /// - Parameters:
    ///   - held: the generated function that initializes the struct.
    ///   - declared: the one for the message as `proto/` declares it.
    init<Declared>(
        _ held: @escaping (UnsafeMutablePointer<Held>?) -> Void, _ declared: (UnsafeMutablePointer<Declared>?) -> Void
    ) {
        unsafe initialize = unsafe held
        unsafe self.held = unsafe Self.descriptor(held)
        unsafe self.declared = unsafe Self.descriptor(declared)
        precondition(
            unsafe self.held.pointee.n_fields == self.declared.pointee.n_fields, "the two forms of a message differ")
    }

    /// A generated struct begins with a `ProtobufCMessage`, which points to its descriptor.
    private static func descriptor<Message>(
        _ initialize: (UnsafeMutablePointer<Message>?) -> Void
    ) -> UnsafePointer<ProtobufCMessageDescriptor> {
        unsafe withUnsafeTemporaryAllocation(of: Message.self, capacity: 1) { room in
            unsafe initialize(room.baseAddress)
            // Room for one message has an address.
            let base = unsafe UnsafeRawPointer(room.baseAddress.unsafelyUnwrapped)
            return unsafe base.assumingMemoryBound(to: ProtobufCMessage.self).pointee.descriptor
        }
    }

    /// Unpacks a message and lends it; nothing of it may be used after `body`.
    ///
    /// - Throws: `InvalidDocument` for bytes that are not such a message or exceed the bounds of ``MessageWalk``; what
    ///   `body` throws.
    func read<Result>(_ wire: RawSpan, _ body: (Held) throws -> Result) throws -> Result {
        try unsafe MessageWalk.check(wire, held: held, declared: declared)
        return try MessageArena.with { arena in
            var allocator = unsafe arena.allocator
            let message = unsafe wire.withUnsafeBytes { bytes in
                unsafe protobuf_c_message_unpack(
                    held, &allocator, bytes.count, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
            }
            // A tag of more than five bytes passes the walk and not protobuf-c.
            guard let message = unsafe message else { throw InvalidDocument(.invalidTag, offset: 0) }
            return try unsafe body(UnsafeRawPointer(message).assumingMemoryBound(to: Held.self).pointee)
        }
    }

    /// Appends a message's fields.
    ///
    /// - Parameter fill: sets the struct's members; what they point to is allocated in the arena.
    func write(into writer: inout ByteBuffer, _ fill: (inout Held, borrowing MessageArena) -> Void) {
        MessageArena.with { arena in
            let message = unsafe make(in: arena, fill)
            let base = unsafe UnsafeRawPointer(message).assumingMemoryBound(to: ProtobufCMessage.self)
            let size = unsafe protobuf_c_message_get_packed_size(base)
            unsafe writer.append(capacity: size) { room in
                unsafe protobuf_c_message_pack(base, room.baseAddress?.assumingMemoryBound(to: UInt8.self))
            }
        }
    }

    /// A message in the arena, for a member that points to one.
    func make(in arena: borrowing MessageArena, _ fill: (inout Held, borrowing MessageArena) -> Void)
        -> UnsafeMutablePointer<Held>
    {
        let message = unsafe arena.allocate(Held.self, count: 1)
        unsafe initialize(message)
        unsafe fill(&message.pointee, arena)
        return unsafe message
    }
}

// MARK: Members

extension MessageArena {
    /// A string as a member of a message.
    func bytes(_ text: String) -> ProtobufCBinaryData {
        unsafe text.withUTF8Span { unsafe bytes($0) }
    }

    /// Bytes as a member of a message.
    func bytes(_ array: [UInt8]) -> ProtobufCBinaryData {
        unsafe bytes(array.span.bytes)
    }

    /// A message that our own writer writes, as a member.
    func bytes(_ encode: (inout ByteBuffer) -> Void) -> ProtobufCBinaryData {
        var writer = ByteBuffer()
        encode(&writer)
        return unsafe bytes(writer.bytes)
    }

    private func bytes(_ span: RawSpan) -> ProtobufCBinaryData {
        let copy = unsafe allocate(UInt8.self, count: span.byteCount)
        unsafe span.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            unsafe UnsafeMutableRawPointer(copy).copyMemory(from: start, byteCount: source.count)
        }
        return unsafe ProtobufCBinaryData(len: span.byteCount, data: copy)
    }

    /// A repeated member: the number of its elements, and the elements.
    func list<Element>(
        _ elements: [Element], _ member: (Element) -> ProtobufCBinaryData
    ) -> (Int, UnsafeMutablePointer<ProtobufCBinaryData>?) {
        let start = unsafe allocate(ProtobufCBinaryData.self, count: elements.count)
        for (index, element) in elements.enumerated() {
            unsafe (start + index).initialize(to: member(element))
        }
        return unsafe (elements.count, start)
    }

    /// A message that our own writer writes and that may be absent, in the form of a repeated member.
    func optional<Message>(
        _ message: Message?, _ encode: (Message, inout ByteBuffer) -> Void
    ) -> (Int, UnsafeMutablePointer<ProtobufCBinaryData>?) {
        guard let message else { return (0, nil) }
        return unsafe list([message]) { message in unsafe bytes { encode(message, &$0) } }
    }

    /// A timestamp as a member.
    func timestamp(_ time: TimestampValue) -> UnsafeMutablePointer<Google__Protobuf__Timestamp> {
        unsafe TimestampValue.layout.make(in: self) { message, _ in
            unsafe message.seconds = time.seconds
            unsafe message.nanos = time.nanoseconds
        }
    }
}

extension TimestampValue {
    fileprivate static let layout = unsafe MessageLayout(
        google__protobuf__timestamp__init, google__protobuf__timestamp__init)

    /// A member that is set.
    init(_ message: UnsafeMutablePointer<Google__Protobuf__Timestamp>?) {
        guard let message = unsafe message else { preconditionFailure("a oneof's case is set without its member") }
        self.init(seconds: unsafe message.pointee.seconds, nanoseconds: unsafe message.pointee.nanos)
    }
}

extension ProtobufCBinaryData {
    /// The bytes of a string, whose UTF-8 the walk has checked.
    var text: String { unsafe String(decoding: buffer, as: UTF8.self) }

    /// A copy of the bytes.
    var array: [UInt8] { unsafe [UInt8](buffer) }

    /// Lends the bytes to a hand-written reader.
    func lend<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result {
        // The arena outlives the call.
        try unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer)))
    }

    private var buffer: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: data, count: len) }
}

/// The elements of a repeated member.
func elements<Element>(
    _ start: UnsafeMutablePointer<ProtobufCBinaryData>?, _ count: Int,
    _ element: (ProtobufCBinaryData) throws -> Element
) rethrows -> [Element] {
    try unsafe UnsafeBufferPointer(start: start, count: count).map { try unsafe element($0) }
}

/// Lends the last element of a repeated member, which stands for a message that may be absent; nil if there is none.
func lendLast<Result>(
    _ start: UnsafeMutablePointer<ProtobufCBinaryData>?, _ count: Int, _ body: (RawSpan) throws -> Result
) rethrows -> Result? {
    guard count > 0, let start = unsafe start else { return nil }
    return try unsafe start[count - 1].lend(body)
}
