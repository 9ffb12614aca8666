// Reading and writing filters. The tree is the one recursive part of a query; its depth is bounded while reading.

import Basics

extension Filter {
    /// Reads the message.
    ///
    /// - Parameter nesting: composite filters around this one.
    /// - Throws: `RequestError` or `InvalidDocument`.
    init(wire: RawSpan, nesting: Int) throws {
        var filter: Filter?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: filter = try Filter(composite: try reader.span(tag), nesting: nesting)
            case 2: filter = try Filter(fieldFilter: try reader.span(tag))
            case 3: filter = try Filter(unaryFilter: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
        guard let filter else {
            throw RequestError.invalidArgument("A filter must be a composite, field or unary filter.")
        }
        self = filter
    }

    private init(composite wire: RawSpan, nesting: Int) throws {
        guard nesting < Filter.nestingMax else {
            throw RequestError.invalidArgument("Filters may be nested at most \(Filter.nestingMax) levels deep.")
        }
        var operation: Int32 = 0
        var parts: [Filter] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: operation = try reader.int32(tag)
            case 2: parts.append(try Filter(wire: try reader.span(tag), nesting: nesting + 1))
            default: try reader.skip(tag)
            }
        }
        if parts.isEmpty {
            throw RequestError.invalidArgument("A composite filter must have at least one sub-filter.")
        }
        switch operation {
        case 1: self = .and(parts)
        case 2: self = .or(parts)
        default: throw RequestError.invalidArgument("A composite filter must have the operator AND or OR.")
        }
    }

    private init(fieldFilter wire: RawSpan) throws {
        var path: FieldPath?
        var operation: Int32 = 0
        var hasOperand = false
        var operand = wire.extracting(first: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: path = try FieldPath(fieldReference: try reader.span(tag))
            case 2: operation = try reader.int32(tag)
            case 3:
                operand = try reader.span(tag)
                hasOperand = true
            default: try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        if !hasOperand { throw RequestError.invalidArgument("A field filter must have a value.") }
        guard let known = FieldOperator(rawNumber: operation) else {
            throw RequestError.invalidArgument("A field filter has the unknown operator \(operation).")
        }
        // The operator decides whether an array is a list of operands, and it may come after the value.
        self = .field(
            path, known,
            known.takesList ? try EncodedValue(listOperand: operand) : try EncodedValue(operand: operand))
    }

    private init(unaryFilter wire: RawSpan) throws {
        var path: FieldPath?
        var operation: Int32 = 0
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: operation = try reader.int32(tag)
            case 2: path = try FieldPath(fieldReference: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        guard let known = UnaryOperator(rawNumber: operation) else {
            throw RequestError.invalidArgument("A unary filter has the unknown operator \(operation).")
        }
        self = .unary(path, known)
    }

    /// Appends the message's fields.
    package func encode(into writer: inout WireWriter) {
        switch self {
        case .and(let parts): Filter.encode(parts, operation: 1, into: &writer)
        case .or(let parts): Filter.encode(parts, operation: 2, into: &writer)
        case .field(let path, let operation, let operand):
            writer.withLengthPrefix(field: 2) { writer in
                writer.appendFieldReference(1, path)
                writer.appendField(2, varint: UInt64(operation.rawValue))
                writer.appendField(3, bytes: operand.bytes)
            }
        case .unary(let path, let operation):
            writer.withLengthPrefix(field: 3) { writer in
                writer.appendField(1, varint: UInt64(operation.rawValue))
                writer.appendFieldReference(2, path)
            }
        }
    }

    private static func encode(_ parts: [Filter], operation: UInt64, into writer: inout WireWriter) {
        writer.withLengthPrefix(field: 1) { writer in
            writer.appendField(1, varint: operation)
            for part in parts { writer.withLengthPrefix(field: 2) { part.encode(into: &$0) } }
        }
    }
}
