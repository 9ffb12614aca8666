// The values that expressions compute with.

package import DocumentModel

/// A value while an expression is evaluated.
///
/// Absent, null and error are three different things. A field that a document does not have is ``absent``, a field with
/// the value null is ``null``, and an operation that fails throws ``ExpressionError``. Lists and maps of documents stay
/// encoded until their elements are asked for.
package enum Operand: Sendable {
    /// There is no such field or element.
    case absent
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case string(String)
    case bytes([UInt8])
    case timestamp(TimestampValue)
    case geoPoint(GeoPointValue)
    /// A full document name: `projects/…/databases/…/documents/…`.
    case reference(String)
    case list([Operand])
    case map(OperandMap)
    /// A list in document bytes.
    case encodedList(EncodedSlice)
    /// A map in document bytes, or all fields of a document.
    case encodedMap(EncodedSlice)
    /// A value of a type that only one language has.
    case object(any LanguageValue)
}

/// A value of a type that only one language has: a path, a duration, a set.
package protocol LanguageValue: AnyObject, Sendable {
    /// The bit of the type in ``OperandTypes``; one of the language's bits.
    var operandTypes: OperandTypes { get }
    /// An estimate of the bytes of memory that the value holds, its parts included.
    var memoryBytes: Int { get }
}

extension LanguageValue {
    package var memoryBytes: Int { 32 }
}

/// A set of types of operands, for the signatures of functions. Bits from 16 on belong to the language.
package struct OperandTypes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let absent = OperandTypes(rawValue: 1 << 0)
    package static let null = OperandTypes(rawValue: 1 << 1)
    package static let boolean = OperandTypes(rawValue: 1 << 2)
    package static let integer = OperandTypes(rawValue: 1 << 3)
    package static let double = OperandTypes(rawValue: 1 << 4)
    package static let string = OperandTypes(rawValue: 1 << 5)
    package static let bytes = OperandTypes(rawValue: 1 << 6)
    package static let timestamp = OperandTypes(rawValue: 1 << 7)
    package static let geoPoint = OperandTypes(rawValue: 1 << 8)
    package static let reference = OperandTypes(rawValue: 1 << 9)
    package static let list = OperandTypes(rawValue: 1 << 10)
    package static let map = OperandTypes(rawValue: 1 << 11)

    package static let number: OperandTypes = [.integer, .double]
    /// Every type, those of the language included.
    package static let any = OperandTypes(rawValue: .max)

    /// The type of the language with a number, 0...15.
    package static func language(_ number: UInt32) -> OperandTypes {
        precondition(number < 16, "a language has at most 16 types")
        return OperandTypes(rawValue: 1 << (16 + number))
    }
}

extension Operand {
    /// The operand's type, one bit.
    package var types: OperandTypes {
        switch self {
        case .absent: .absent
        case .null: .null
        case .boolean: .boolean
        case .integer: .integer
        case .double: .double
        case .string: .string
        case .bytes: .bytes
        case .timestamp: .timestamp
        case .geoPoint: .geoPoint
        case .reference: .reference
        case .list, .encodedList: .list
        case .map, .encodedMap: .map
        case .object(let object): object.operandTypes
        }
    }

    /// The elements of a list, decoded; nil for any other type.
    package var elements: [Operand]? {
        switch self {
        case .list(let elements): elements
        case .encodedList(let slice): slice.elements
        default: nil
        }
    }

    /// The entries of a map, decoded; nil for any other type.
    package var entries: OperandMap? {
        switch self {
        case .map(let map): map
        case .encodedMap(let slice): slice.entries
        default: nil
        }
    }

    /// The field of a map to which a path leads; absent in any other value. A vector or a BSON value is one value and
    /// has no fields.
    package func field(_ name: String) -> Operand {
        switch self {
        case .encodedMap(let slice): slice.isPlain ? slice.member(name) : .absent
        case .map(let map): map.isPlain ? map[name] ?? .absent : .absent
        default: .absent
        }
    }

    /// An estimate of the bytes of memory that the operand holds, its parts included.
    package var memoryBytes: Int {
        switch self {
        case .string(let text): 32 + text.utf8.count
        case .bytes(let bytes): 32 + bytes.count
        case .reference(let name): 32 + name.utf8.count
        case .list(let elements): 32 + 32 * elements.count
        case .map(let map): 32 + 48 * map.count
        case .object(let object): object.memoryBytes
        default: 32
        }
    }
}

// MARK: Values of documents

extension Operand {
    /// The operand of a value tree.
    package init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .integer(let value): self = .integer(value)
        case .double(let value): self = .double(value)
        case .timestamp(let value): self = .timestamp(value)
        case .string(let value): self = .string(value)
        case .bytes(let value): self = .bytes(value)
        case .reference(let value): self = .reference(value)
        case .geoPoint(let value): self = .geoPoint(value)
        case .array(let elements): self = .list(elements.map { Operand($0) })
        case .map(let map): self = .map(OperandMap(sorted: map.entries.map { ($0.key, Operand($0.value)) }))
        }
    }
}
