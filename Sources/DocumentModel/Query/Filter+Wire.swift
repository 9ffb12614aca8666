// Reading and writing filters. The tree is the one recursive part of a query; its depth is bounded while reading.

package import Basics

extension Filter {
    private typealias Field = FieldNumber.StructuredQuery.Filter

    /// Reads the message.
    ///
    /// - Parameter nesting: composite filters around this one.
    /// - Throws: `RequestError` or `InvalidDocument`.
    init(wire: RawSpan, nesting: Int) throws {
        var filter: Filter?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.compositeFilter: filter = try Filter(composite: try reader.span(tag), nesting: nesting)
            case Field.fieldFilter: filter = try Filter(fieldFilter: try reader.span(tag))
            case Field.unaryFilter: filter = try Filter(unaryFilter: try reader.span(tag))
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
            case FieldNumber.StructuredQuery.CompositeFilter.op: operation = try reader.int32(tag)
            case FieldNumber.StructuredQuery.CompositeFilter.filters:
                parts.append(try Filter(wire: try reader.span(tag), nesting: nesting + 1))
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
            case FieldNumber.StructuredQuery.FieldFilter.field:
                path = try FieldPath(fieldReference: try reader.span(tag))
            case FieldNumber.StructuredQuery.FieldFilter.op: operation = try reader.int32(tag)
            case FieldNumber.StructuredQuery.FieldFilter.value:
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
            case FieldNumber.StructuredQuery.UnaryFilter.op: operation = try reader.int32(tag)
            case FieldNumber.StructuredQuery.UnaryFilter.field:
                path = try FieldPath(fieldReference: try reader.span(tag))
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
    package func encode(into writer: inout ByteBuffer) {
        switch self {
        case .and(let parts): Filter.encode(parts, operation: 1, into: &writer)
        case .or(let parts): Filter.encode(parts, operation: 2, into: &writer)
        case .field(let path, let operation, let operand):
            writer.withLengthPrefix(field: Field.fieldFilter) { writer in
                writer.appendFieldReference(FieldNumber.StructuredQuery.FieldFilter.field, path)
                writer.appendField(FieldNumber.StructuredQuery.FieldFilter.op, varint: UInt64(operation.rawValue))
                writer.appendField(FieldNumber.StructuredQuery.FieldFilter.value, bytes: operand.bytes)
            }
        case .unary(let path, let operation):
            writer.withLengthPrefix(field: Field.unaryFilter) { writer in
                writer.appendField(FieldNumber.StructuredQuery.UnaryFilter.op, varint: UInt64(operation.rawValue))
                writer.appendFieldReference(FieldNumber.StructuredQuery.UnaryFilter.field, path)
            }
        }
    }

    private static func encode(_ parts: [Filter], operation: UInt64, into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.compositeFilter) { writer in
            writer.appendField(FieldNumber.StructuredQuery.CompositeFilter.op, varint: operation)
            for part in parts {
                writer.withLengthPrefix(field: FieldNumber.StructuredQuery.CompositeFilter.filters) {
                    part.encode(into: &$0)
                }
            }
        }
    }
}
