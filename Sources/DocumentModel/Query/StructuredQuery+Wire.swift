// Reading and writing query messages. Field numbers: `google/firestore/v1/query.proto`.
//
// As protobuf requires, reading accepts fields in any order, skips unknown fields, and takes the last of a repeated
// scalar. It rejects messages without a meaning (an operator without a number, a filter without a type). The planner
// checks the rules of Firestore.

package import Basics

extension StructuredQuery {
    private typealias Field = FieldNumber.StructuredQuery

    /// Reads the message.
    ///
    /// - Throws: `INVALID_ARGUMENT` for malformed bytes, values or paths.
    package init(wire: RawSpan) throws(RequestError) {
        self.init()
        do {
            var reader = WireReader(wire)
            while let tag = try reader.nextTag() {
                switch tag.fieldNumber {
                case Field.select: select = try Projection(wire: try reader.span(tag))
                case Field.from: from.append(try CollectionSelector(wire: try reader.span(tag)))
                case Field.where: filter = try Filter(wire: try reader.span(tag), nesting: 0)
                case Field.orderBy: orderBy.append(try Order(wire: try reader.span(tag)))
                case Field.limit: limit = Int32(truncatingIfNeeded: try reader.wrappedInteger(tag))
                case Field.offset: offset = try reader.int32(tag)
                case Field.startAt: startAt = try Cursor(wire: try reader.span(tag))
                case Field.endAt: endAt = try Cursor(wire: try reader.span(tag))
                case Field.findNearest: findNearest = try FindNearest(wire: try reader.span(tag))
                default: try reader.skip(tag)
                }
            }
        } catch {
            throw RequestError(queryFault: error)
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        if let select {
            writer.withLengthPrefix(field: Field.select) { writer in
                for field in select.fields {
                    writer.appendFieldReference(FieldNumber.StructuredQuery.Projection.fields, field)
                }
            }
        }
        for selector in from {
            writer.withLengthPrefix(field: Field.from) { writer in
                writer.writeIfSet(
                    FieldNumber.StructuredQuery.CollectionSelector.collectionId, string: selector.collectionID)
                writer.writeIfSet(
                    FieldNumber.StructuredQuery.CollectionSelector.allDescendants, boolean: selector.allDescendants)
            }
        }
        if let filter { writer.withLengthPrefix(field: Field.where) { filter.encode(into: &$0) } }
        for order in orderBy {
            writer.withLengthPrefix(field: Field.orderBy) { writer in
                writer.appendFieldReference(FieldNumber.StructuredQuery.Order.field, order.field)
                writer.appendField(
                    FieldNumber.StructuredQuery.Order.direction, varint: UInt64(order.direction.rawValue))
            }
        }
        if let limit {
            writer.withLengthPrefix(field: Field.limit) {
                $0.writeIfSet(FieldNumber.Protobuf.Int32Value.value, int64: Int64(limit))
            }
        }
        writer.writeIfSet(Field.offset, int64: Int64(offset))
        if let startAt { writer.withLengthPrefix(field: Field.startAt) { startAt.encode(into: &$0) } }
        if let endAt { writer.withLengthPrefix(field: Field.endAt) { endAt.encode(into: &$0) } }
        if let findNearest { writer.withLengthPrefix(field: Field.findNearest) { findNearest.encode(into: &$0) } }
    }
}

extension Projection {
    init(wire: RawSpan) throws {
        self.init(fields: [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.StructuredQuery.Projection.fields {
                fields.append(try FieldPath(fieldReference: try reader.span(tag)))
            } else {
                try reader.skip(tag)
            }
        }
    }
}

extension CollectionSelector {
    private typealias Field = FieldNumber.StructuredQuery.CollectionSelector

    init(wire: RawSpan) throws {
        self.init(collectionID: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.collectionId: collectionID = try reader.string(tag)
            case Field.allDescendants: allDescendants = try reader.boolean(tag)
            default: try reader.skip(tag)
            }
        }
    }
}

extension Order {
    private typealias Field = FieldNumber.StructuredQuery.Order

    init(wire: RawSpan) throws {
        var path: FieldPath?
        var direction = SortDirection.ascending
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.field: path = try FieldPath(fieldReference: try reader.span(tag))
            case Field.direction:
                // 0 means ascending.
                let number = try reader.int32(tag)
                guard let known = number == 0 ? .ascending : SortDirection(rawNumber: number) else {
                    throw RequestError.invalidArgument("Unknown order direction \(number).")
                }
                direction = known
            default: try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        self.init(field: path, direction: direction)
    }
}

extension Cursor {
    private typealias Field = FieldNumber.Cursor

    /// Reads the message; each value must be a valid one, references excepted: they may name reserved ids.
    package init(wire: RawSpan) throws {
        self.init(values: [], before: false)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.values: values.append(try EncodedValue(operand: try reader.span(tag)))
            case Field.before: before = try reader.boolean(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        for value in values { writer.appendField(Field.values, bytes: value.bytes) }
        writer.writeIfSet(Field.before, boolean: before)
    }
}

extension FindNearest {
    private typealias Field = FieldNumber.StructuredQuery.FindNearest

    init(wire: RawSpan) throws {
        var path: FieldPath?
        var vector: EncodedValue?
        var measure: DistanceMeasure?
        var limit: Int64 = 0
        var resultField: String?
        var threshold: Double?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.vectorField: path = try FieldPath(fieldReference: try reader.span(tag))
            case Field.queryVector: vector = try EncodedValue(operand: try reader.span(tag))
            case Field.distanceMeasure: measure = DistanceMeasure(rawNumber: try reader.int32(tag))
            case Field.limit: limit = try reader.wrappedInteger(tag)
            case Field.distanceResultField:
                let name = try reader.string(tag)
                if !name.isEmpty { try FieldName.check(name, as: "distanceResultField.property.name") }
                resultField = name.isEmpty ? nil : name
            case Field.distanceThreshold: threshold = try reader.wrappedDouble(tag)
            default: try reader.skip(tag)
            }
        }
        guard let path, let vector else {
            throw RequestError.invalidArgument("find_nearest needs a vector field and a query vector.")
        }
        guard let measure else { throw RequestError.invalidArgument("Unknown Distance Measure.") }
        guard (1...Int64(Limits.findNearestResults)).contains(limit) else {
            throw RequestError.invalidArgument(
                "FindNearest.limit must be a positive integer of no more than \(Limits.findNearestResults)")
        }
        self.init(
            vectorField: path, queryVector: vector, distanceMeasure: measure, limit: Int32(limit),
            distanceResultField: resultField, distanceThreshold: threshold)
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.appendFieldReference(Field.vectorField, vectorField)
        writer.appendField(Field.queryVector, bytes: queryVector.bytes)
        writer.appendField(Field.distanceMeasure, varint: UInt64(distanceMeasure.rawValue))
        writer.withLengthPrefix(field: Field.limit) {
            $0.writeIfSet(FieldNumber.Protobuf.Int32Value.value, int64: Int64(limit))
        }
        if let distanceResultField { writer.appendField(Field.distanceResultField, string: distanceResultField) }
        if let distanceThreshold {
            writer.withLengthPrefix(field: Field.distanceThreshold) {
                $0.writeIfSet(FieldNumber.Protobuf.DoubleValue.value, double: distanceThreshold)
            }
        }
    }
}
