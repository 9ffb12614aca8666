// Reading and writing aggregation queries. Field numbers: `google/firestore/v1/query.proto`.

package import Basics

extension StructuredAggregationQuery {
    private typealias Field = FieldNumber.StructuredAggregationQuery

    /// Reads the message.
    ///
    /// - Throws: `INVALID_ARGUMENT` for malformed bytes, values or paths.
    package init(wire: RawSpan) throws(RequestError) {
        self.init(query: StructuredQuery(), aggregations: [])
        do {
            var reader = WireReader(wire)
            while let tag = try reader.nextTag() {
                switch tag.fieldNumber {
                case Field.structuredQuery: query = try StructuredQuery(wire: try reader.span(tag))
                case Field.aggregations: aggregations.append(try Aggregation(wire: try reader.span(tag)))
                default: try reader.skip(tag)
                }
            }
        } catch {
            throw RequestError(queryFault: error)
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.structuredQuery) { query.encode(into: &$0) }
        for aggregation in aggregations {
            writer.withLengthPrefix(field: Field.aggregations) { aggregation.encode(into: &$0) }
        }
    }
}

extension Aggregation {
    private typealias Field = FieldNumber.StructuredAggregationQuery.Aggregation

    init(wire: RawSpan) throws {
        var operation: Operation?
        var alias = ""
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.count: operation = .count(upTo: try Aggregation.upTo(try reader.span(tag)))
            case Field.sum: operation = .sum(try Aggregation.field(try reader.span(tag)))
            case Field.avg: operation = .average(try Aggregation.field(try reader.span(tag)))
            case Field.alias: alias = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
        guard let operation else { throw RequestError.invalidArgument("An aggregation must be a count, sum or avg.") }
        if !alias.isEmpty { try FieldName.check(alias, as: "property.name") }
        self.init(operation, alias: alias)
    }

    private static func upTo(_ wire: RawSpan) throws -> Int64? {
        var limit: Int64?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.StructuredAggregationQuery.Aggregation.Count.upTo {
                limit = try reader.wrappedInteger(tag)
            } else {
                try reader.skip(tag)
            }
        }
        return limit
    }

    private static func field(_ wire: RawSpan) throws -> FieldPath {
        var path: FieldPath?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.StructuredAggregationQuery.Aggregation.Sum.field {
                path = try FieldPath(fieldReference: try reader.span(tag))
            } else {
                try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        return path
    }

    func encode(into writer: inout ByteBuffer) {
        switch operation {
        case .count(let upTo):
            writer.withLengthPrefix(field: Field.count) { writer in
                if let upTo {
                    writer.withLengthPrefix(field: FieldNumber.StructuredAggregationQuery.Aggregation.Count.upTo) {
                        $0.writeIfSet(FieldNumber.Protobuf.Int64Value.value, int64: upTo)
                    }
                }
            }
        case .sum(let path):
            writer.withLengthPrefix(field: Field.sum) {
                $0.appendFieldReference(FieldNumber.StructuredAggregationQuery.Aggregation.Sum.field, path)
            }
        case .average(let path):
            writer.withLengthPrefix(field: Field.avg) {
                $0.appendFieldReference(FieldNumber.StructuredAggregationQuery.Aggregation.Avg.field, path)
            }
        }
        writer.writeIfSet(Field.alias, string: alias)
    }
}
