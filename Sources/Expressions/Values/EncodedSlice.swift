// Lists and maps that stay in document bytes.

internal import Basics
package import DocumentModel

/// The contents of a list or a map within document bytes, which the slice shares.
///
/// Only the parts that are asked for are decoded. Malformed bytes give absent or shorter values, never a trap.
package struct EncodedSlice: Sendable {
    /// The bytes of a document's fields, or of one `Value` message.
    let bytes: [UInt8]
    private let start: Int
    private let end: Int
    /// The tag before each entry of a map: that of a document's fields or of a map value.
    let entryTag: UInt8

    /// All fields of a document, as a map.
    package init(documentFields bytes: [UInt8]) {
        self.bytes = bytes
        start = 0
        end = bytes.count
        entryTag = DocumentTag.field
    }

    private init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        start = range.lowerBound
        end = range.upperBound
        entryTag = DocumentTag.mapEntry
    }

    /// Length of the encoded contents in bytes.
    package var byteCount: Int { end - start }

    var contents: RawSpan {
        @_lifetime(borrow self)
        borrowing get { bytes.byteSpan.extracting(start..<end) }
    }

    /// The operand of a key of a map; ``Operand/absent`` if there is none.
    package func member(_ name: String) -> Operand {
        name.withUTF8Span { name in
            guard let value = DocumentBytes.entryValue(name, in: contents, tag: entryTag) else { return .absent }
            return operand(value)
        }
    }

    /// Whether a map has a key.
    package func hasMember(_ name: String) -> Bool {
        name.withUTF8Span { DocumentBytes.entryValue($0, in: contents, tag: entryTag) != nil }
    }

    /// Whether paths lead into a map. They do not lead into vectors and BSON values.
    package var isPlain: Bool { entryTag == DocumentTag.field || DocumentBytes.isPlain(mapEntries: contents) }

    /// The number of entries of a map.
    package var entryCount: Int {
        var reader = MapEntries(contents)
        var count = 0
        while reader.next() != nil { count += 1 }
        return count
    }

    /// The entries of a map.
    package var entries: OperandMap {
        var reader = MapEntries(contents)
        var entries: [OperandMap.Entry] = []
        while let entry = reader.next() {
            entries.append((String(repairingUTF8: entry.key), operand(entry.value)))
        }
        // Canonical documents are sorted; others are put in order.
        let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.key.compareUTF8($1.key) < 0 }
        return isSorted ? OperandMap(sorted: entries) : OperandMap(entries)
    }

    /// The number of elements of a list.
    package var elementCount: Int {
        var reader = ArrayElements(contents)
        var count = 0
        while reader.next() != nil { count += 1 }
        return count
    }

    /// The elements of a list.
    package var elements: [Operand] {
        var reader = ArrayElements(contents)
        var elements: [Operand] = []
        while let element = reader.next() { elements.append(operand(element)) }
        return elements
    }

    /// The element of a list at an index from 0, or ``Operand/absent``.
    package func element(at index: Int) -> Operand {
        var reader = ArrayElements(contents)
        var at = 0
        while let element = reader.next() {
            if at == index { return operand(element) }
            at += 1
        }
        return .absent
    }

    /// Whether both are the same place in the same memory.
    package func isIdentical(to other: EncodedSlice) -> Bool {
        byteCount == other.byteCount && entryTag == other.entryTag
            && contents.byteOffsets(of: other.contents) == 0..<byteCount
    }

    /// The operand of a `Value` message within the slice's bytes.
    func operand(_ value: RawSpan) -> Operand {
        Operand(value, within: bytes)
    }

    /// The slice of a part of the same bytes.
    fileprivate init?(_ part: RawSpan, within bytes: [UInt8]) {
        guard let range = bytes.byteSpan.byteOffsets(of: part) else { return nil }
        self.init(bytes, range)
    }
}

extension Operand {
    /// The operand of an encoded value, which shares its bytes.
    package init(_ value: EncodedValue) {
        // Swift 6.3 lets go of the array too early when it optimizes the call: the span alone does not hold it.
        self = withExtendedLifetime(value) { Operand(value.bytes.byteSpan, within: value.bytes) }
    }

    /// The operand of a `Value` message that lies within `bytes`.
    ///
    /// The sentinel maps of 32-bit integers and decimals are numbers, as in queries.
    init(_ value: RawSpan, within bytes: [UInt8]) {
        guard let wire = WireValue(value) else {
            self = .absent
            return
        }
        switch wire.tag {
        case ValueTag.null: self = .null
        case ValueTag.boolean: self = .boolean(wire.bits != 0)
        case ValueTag.integer: self = .integer(Int64(bitPattern: wire.bits))
        case ValueTag.double: self = .double(Double(bitPattern: wire.bits))
        case ValueTag.string: self = .string(String(repairingUTF8: wire.payload))
        case ValueTag.bytes: self = .bytes([UInt8](copying: wire.payload))
        case ValueTag.reference: self = .reference(String(repairingUTF8: wire.payload))
        case ValueTag.timestamp: self = wire.timestamp.map(Operand.timestamp) ?? .absent
        case ValueTag.geoPoint: self = wire.geoPoint.map(Operand.geoPoint) ?? .absent
        case ValueTag.array: self = EncodedSlice(wire.payload, within: bytes).map(Operand.encodedList) ?? .list([])
        default:
            switch wire.number {
            case .integer(let number)?: self = .integer(number)
            case .double(let number)?: self = .double(number)
            case nil: self = EncodedSlice(wire.payload, within: bytes).map(Operand.encodedMap) ?? .map([:])
            }
        }
    }
}
