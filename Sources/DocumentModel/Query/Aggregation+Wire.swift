// Reading and writing aggregation queries. Field numbers: `google/firestore/v1/query.proto`.

package import Basics

extension StructuredAggregationQuery {
    /// Reads the message.
    ///
    /// - Throws: `INVALID_ARGUMENT` for malformed bytes, values or paths.
    package init(wire: RawSpan) throws(RequestError) {
        self.init(query: StructuredQuery(), aggregations: [])
        do {
            var reader = WireReader(wire)
            while let tag = try reader.nextTag() {
                switch tag.fieldNumber {
                case 1: query = try StructuredQuery(wire: try reader.span(tag))
                case 3: aggregations.append(try Aggregation(wire: try reader.span(tag)))
                default: try reader.skip(tag)
                }
            }
        } catch {
            throw RequestError(queryFault: error)
        }
    }

    /// Appends the message's fields.
    package func encode(into writer: inout WireWriter) {
        writer.withLengthPrefix(field: 1) { query.encode(into: &$0) }
        for aggregation in aggregations {
            writer.withLengthPrefix(field: 3) { aggregation.encode(into: &$0) }
        }
    }
}

extension Aggregation {
    init(wire: RawSpan) throws {
        var operation: Operation?
        var alias = ""
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: operation = .count(upTo: try Aggregation.upTo(try reader.span(tag)))
            case 2: operation = .sum(try Aggregation.field(try reader.span(tag)))
            case 3: operation = .average(try Aggregation.field(try reader.span(tag)))
            case 7: alias = try reader.string(tag)
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
            if tag.fieldNumber == 1 { limit = try reader.wrappedInteger(tag) } else { try reader.skip(tag) }
        }
        return limit
    }

    private static func field(_ wire: RawSpan) throws -> FieldPath {
        var path: FieldPath?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 1 {
                path = try FieldPath(fieldReference: try reader.span(tag))
            } else {
                try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        return path
    }

    func encode(into writer: inout WireWriter) {
        switch operation {
        case .count(let upTo):
            writer.withLengthPrefix(field: 1) { writer in
                if let upTo { writer.withLengthPrefix(field: 1) { $0.writeIfSet(1, int64: upTo) } }
            }
        case .sum(let path): writer.withLengthPrefix(field: 2) { $0.appendFieldReference(1, path) }
        case .average(let path): writer.withLengthPrefix(field: 3) { $0.appendFieldReference(1, path) }
        }
        writer.writeIfSet(7, string: alias)
    }
}
