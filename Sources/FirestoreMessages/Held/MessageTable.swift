internal import Basics
internal import CFirestoreProto
internal import DocumentModel

/// A message whose fields are a table, by which it is both read and written.
protocol TableMessage: FirestoreMessage {
    static var table: MessageTable<Self> { get }
}

extension TableMessage {
    package init(wire: RawSpan) throws { self = try unsafe Self.table.reads(wire) }

    package func encode(into writer: inout ByteBuffer) { unsafe Self.table.writes(self, &writer) }
}

/// Reads and writes a message by a list of its fields.
@safe struct MessageTable<Message>: Sendable {
    // Constants: the functions capture a layout and fields, which have no state.
    fileprivate nonisolated(unsafe) let reads: (RawSpan) throws -> Message
    fileprivate nonisolated(unsafe) let writes: (Message, inout ByteBuffer) -> Void

    /// - Parameters:
    ///   - empty: what a message without bytes reads as.
    ///   - held: the generated function that initializes the struct.
    ///   - declared: the one for the message as `proto/` declares it.
    ///   - fields: in any order.
    init<Held, Declared>(
        _ empty: Message, _ held: @escaping (UnsafeMutablePointer<Held>?) -> Void,
        _ declared: (UnsafeMutablePointer<Declared>?) -> Void, _ fields: [MessageField<Message, Held>]
    ) {
        let layout = unsafe MessageLayout(held, declared)
        unsafe reads = { wire in
            try layout.read(wire) { held in
                var message = empty
                for field in fields { try field.read(held, &message) }
                return message
            }
        }
        unsafe writes = { message, writer in
            layout.write(into: &writer) { held, arena in
                for field in fields { field.write(message, &held, arena) }
            }
        }
    }
}

/// What joins a property of a message to the members of its C struct.
struct MessageField<Message, Held> {
    typealias Property<Value> = WritableKeyPath<Message, Value>
    typealias Member<Value> = WritableKeyPath<Held, Value>
    typealias Elements = UnsafeMutablePointer<ProtobufCBinaryData>?

    let read: (Held, inout Message) throws -> Void
    let write: (Message, inout Held, borrowing MessageArena) -> Void

    /// For a oneof, and for what no other kind of field fits.
    static func custom(
        read: @escaping (Held, inout Message) throws -> Void,
        write: @escaping (Message, inout Held, borrowing MessageArena) -> Void
    ) -> Self {
        Self(read: read, write: write)
    }

    /// Refuses messages that set what is not served. Nothing is kept of it.
    static func check(_ body: @escaping (Held) throws -> Void) -> Self {
        Self(read: { held, _ in try body(held) }, write: { _, _, _ in })
    }

    static func text(_ property: Property<String>, _ member: Member<ProtobufCBinaryData>) -> Self {
        Self {
            unsafe $1[keyPath: property] = $0[keyPath: member].text
        } write: {
            unsafe $1[keyPath: member] = $2.bytes($0[keyPath: property])
        }
    }

    static func bytes(_ property: Property<[UInt8]>, _ member: Member<ProtobufCBinaryData>) -> Self {
        Self {
            unsafe $1[keyPath: property] = $0[keyPath: member].array
        } write: {
            unsafe $1[keyPath: member] = $2.bytes($0[keyPath: property])
        }
    }

    static func number<Number>(_ property: Property<Number>, _ member: Member<Number>) -> Self {
        Self {
            $1[keyPath: property] = $0[keyPath: member]
        } write: { message, held, _ in
            held[keyPath: member] = message[keyPath: property]
        }
    }

    static func flag(_ property: Property<Bool>, _ member: Member<protobuf_c_boolean>) -> Self {
        Self {
            $1[keyPath: property] = $0[keyPath: member] != 0
        } write: { message, held, _ in
            held[keyPath: member] = message[keyPath: property] ? 1 : 0
        }
    }

    /// A number that the property's type does not know reads as in the empty message.
    static func enumeration<Value: RawRepresentable, Number: RawRepresentable<UInt32>>(
        _ property: Property<Value>, _ member: Member<Number>
    ) -> Self where Value.RawValue: FixedWidthInteger {
        Self {
            let value = Value.RawValue(exactly: $0[keyPath: member].rawValue).flatMap(Value.init(rawValue:))
            if let value { $1[keyPath: property] = value }
        } write: { message, held, _ in
            if let number = Number(rawValue: UInt32(message[keyPath: property].rawValue)) {
                held[keyPath: member] = number
            }
        }
    }

    static func texts(_ property: Property<[String]>, _ member: Member<Elements>, _ count: Member<Int>) -> Self {
        Self {
            unsafe $1[keyPath: property] = elements($0[keyPath: member], $0[keyPath: count]) { unsafe $0.text }
        } write: { message, held, arena in
            unsafe (held[keyPath: count], held[keyPath: member]) = arena.list(message[keyPath: property]) {
                unsafe arena.bytes($0)
            }
        }
    }

    static func messages<Element: FirestoreMessage>(
        _ property: Property<[Element]>, _ member: Member<Elements>, _ count: Member<Int>
    ) -> Self {
        Self {
            $1[keyPath: property] = try unsafe elements($0[keyPath: member], $0[keyPath: count]) {
                try unsafe $0.lend { try Element(wire: $0) }
            }
        } write: { message, held, arena in
            unsafe (held[keyPath: count], held[keyPath: member]) = arena.list(message[keyPath: property]) {
                unsafe arena.bytes($0.encode)
            }
        }
    }

    /// A message that is always written; an absent one reads as in the empty message.
    static func message<Value: FirestoreMessage>(
        _ property: Property<Value>, _ member: Member<Elements>, _ count: Member<Int>
    ) -> Self {
        Self {
            if let value = try unsafe lendLast($0[keyPath: member], $0[keyPath: count], Value.init(wire:)) {
                $1[keyPath: property] = value
            }
        } write: { message, held, arena in
            unsafe (held[keyPath: count], held[keyPath: member]) = arena.list([message[keyPath: property]]) {
                unsafe arena.bytes($0.encode)
            }
        }
    }

    /// A message that may be absent.
    static func optional<Value: FirestoreMessage>(
        _ property: Property<Value?>, _ member: Member<Elements>, _ count: Member<Int>
    ) -> Self {
        unsafe optional(property, member, count, read: { try Value(wire: $0) }, write: { $0.encode(into: &$1) })
    }

    /// A `google.protobuf.FieldMask`, by its paths.
    static func mask(_ property: Property<[String]?>, _ member: Member<Elements>, _ count: Member<Int>) -> Self {
        unsafe optional(
            property, member, count, read: { try FieldMask(wire: $0).paths },
            write: { FieldMask(paths: $0).encode(into: &$1) })
    }

    static func precondition(
        _ property: Property<Precondition?>, _ member: Member<Elements>, _ count: Member<Int>
    ) -> Self {
        unsafe optional(
            property, member, count, read: { try Precondition(wire: $0) }, write: { $0.encode(into: &$1) })
    }

    /// The oneof of a request that can be served as of a past time, and in no transaction.
    /// - Parameters:
    ///   - selector: which member is set.
    ///   - readTime: the selector of `member`.
    static func consistency<Selector: Equatable>(
        _ property: Property<ReadConsistency>, _ selector: Member<Selector>, readTime: Selector,
        _ member: Member<UnsafeMutablePointer<Google__Protobuf__Timestamp>?>
    ) -> Self {
        Self {
            guard $0[keyPath: selector] == readTime else { return }
            $1[keyPath: property] = unsafe .readTime(TimestampValue($0[keyPath: member]))
        } write: {
            guard case .readTime(let time) = $0[keyPath: property] else { return }
            $1[keyPath: selector] = readTime
            unsafe $1[keyPath: member] = $2.timestamp(time)
        }
    }

    /// A part of a message that may be absent: also if `read` returns nil.
    static func optional<Value>(
        _ property: Property<Value?>, _ member: Member<Elements>, _ count: Member<Int>,
        read: @escaping (RawSpan) throws -> Value?,
        write: @escaping (Value, inout ByteBuffer) -> Void
    ) -> Self {
        Self {
            $1[keyPath: property] = try unsafe lendLast($0[keyPath: member], $0[keyPath: count], read) ?? nil
        } write: { message, held, arena in
            unsafe (held[keyPath: count], held[keyPath: member]) = arena.optional(message[keyPath: property], write)
        }
    }
}
