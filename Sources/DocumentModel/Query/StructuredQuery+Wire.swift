// Reading and writing query messages. Field numbers: `google/firestore/v1/query.proto`.
//
// Reading accepts any order of fields, skips unknown ones, and lets the last of a repeated scalar win, as protobuf asks.
// It refuses what has no meaning at all (an operator without a number, a filter without a type); what is merely
// forbidden is the planner's business.

package import Basics

extension StructuredQuery {
    /// Reads the message.
    ///
    /// - Throws: `INVALID_ARGUMENT` for malformed bytes, values or paths.
    package init(wire: RawSpan) throws(RequestError) {
        self.init()
        do {
            var reader = WireReader(wire)
            while let tag = try reader.nextTag() {
                switch tag.fieldNumber {
                case 1: select = try Projection(wire: try reader.span(tag))
                case 2: from.append(try CollectionSelector(wire: try reader.span(tag)))
                case 3: filter = try Filter(wire: try reader.span(tag), nesting: 0)
                case 4: orderBy.append(try Order(wire: try reader.span(tag)))
                case 5: limit = Int32(truncatingIfNeeded: try reader.wrappedInteger(tag))
                case 6: offset = try reader.int32(tag)
                case 7: startAt = try Cursor(wire: try reader.span(tag))
                case 8: endAt = try Cursor(wire: try reader.span(tag))
                case 9: findNearest = try FindNearest(wire: try reader.span(tag))
                default: try reader.skip(tag)
                }
            }
        } catch {
            throw RequestError(queryFault: error)
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout WireWriter) {
        if let select {
            writer.withLengthPrefix(field: 1) { writer in
                for field in select.fields { writer.appendFieldReference(2, field) }
            }
        }
        for selector in from {
            writer.withLengthPrefix(field: 2) { writer in
                writer.writeIfSet(2, string: selector.collectionID)
                writer.writeIfSet(3, boolean: selector.allDescendants)
            }
        }
        if let filter { writer.withLengthPrefix(field: 3) { filter.encode(into: &$0) } }
        for order in orderBy {
            writer.withLengthPrefix(field: 4) { writer in
                writer.appendFieldReference(1, order.field)
                writer.appendField(2, varint: UInt64(order.direction.rawValue))
            }
        }
        if let limit { writer.withLengthPrefix(field: 5) { $0.writeIfSet(1, int64: Int64(limit)) } }
        writer.writeIfSet(6, int64: Int64(offset))
        if let startAt { writer.withLengthPrefix(field: 7) { startAt.encode(into: &$0) } }
        if let endAt { writer.withLengthPrefix(field: 8) { endAt.encode(into: &$0) } }
        if let findNearest { writer.withLengthPrefix(field: 9) { findNearest.encode(into: &$0) } }
    }
}

extension Projection {
    init(wire: RawSpan) throws {
        self.init(fields: [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 2 {
                fields.append(try FieldPath(fieldReference: try reader.span(tag)))
            } else {
                try reader.skip(tag)
            }
        }
    }
}

extension CollectionSelector {
    init(wire: RawSpan) throws {
        self.init(collectionID: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 2: collectionID = try reader.string(tag)
            case 3: allDescendants = try reader.boolean(tag)
            default: try reader.skip(tag)
            }
        }
    }
}

extension Order {
    init(wire: RawSpan) throws {
        var path: FieldPath?
        var direction = SortDirection.ascending
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: path = try FieldPath(fieldReference: try reader.span(tag))
            case 2:
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
    /// Reads the message; each value must be a valid one, references excepted: they may name reserved ids.
    package init(wire: RawSpan) throws {
        self.init(values: [], before: false)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: values.append(try EncodedValue(operand: try reader.span(tag)))
            case 2: before = try reader.boolean(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for value in values { writer.appendField(1, bytes: value.bytes) }
        writer.writeIfSet(2, boolean: before)
    }
}

extension FindNearest {
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
            case 1: path = try FieldPath(fieldReference: try reader.span(tag))
            case 2: vector = try EncodedValue(operand: try reader.span(tag))
            case 3: measure = DistanceMeasure(rawNumber: try reader.int32(tag))
            case 4: limit = try reader.wrappedInteger(tag)
            case 5:
                let name = try reader.string(tag)
                if !name.isEmpty { try FieldName.check(name, as: "distanceResultField.property.name") }
                resultField = name.isEmpty ? nil : name
            case 6: threshold = try reader.wrappedDouble(tag)
            default: try reader.skip(tag)
            }
        }
        guard let path, let vector, let measure else {
            throw RequestError.invalidArgument("find_nearest needs a vector field, a query vector and a distance measure.")
        }
        guard (1...Int64(Limits.findNearestResults)).contains(limit) else {
            throw RequestError.invalidArgument(
                "FindNearest.limit must be a positive integer of no more than \(Limits.findNearestResults)")
        }
        self.init(
            vectorField: path, queryVector: vector, distanceMeasure: measure, limit: Int32(limit),
            distanceResultField: resultField, distanceThreshold: threshold)
    }

    package func encode(into writer: inout WireWriter) {
        writer.appendFieldReference(1, vectorField)
        writer.appendField(2, bytes: queryVector.bytes)
        writer.appendField(3, varint: UInt64(distanceMeasure.rawValue))
        writer.withLengthPrefix(field: 4) { $0.writeIfSet(1, int64: Int64(limit)) }
        if let distanceResultField { writer.appendField(5, string: distanceResultField) }
        if let distanceThreshold {
            writer.withLengthPrefix(field: 6) { $0.writeIfSet(1, double: distanceThreshold) }
        }
    }
}
