// Queries as scripts write them.

package import Basics
package import DocumentModel
package import QueryEngine

/// A query as the lines of a block spell it.
package struct QueryCommands {
    package init() {}

    package var query = StructuredQuery()
    package var parent = testRoot
    package var aggregations: [Aggregation] = []
    package var options = QueryOptions()
    /// Every field has index entries.
    package var isIndexed = false
    /// Rows that a page has room for.
    package var pageSize = Int.max
    package var showsReads = false

    package mutating func read(_ line: String) throws {
        var parser = LiteralParser(line)
        switch try parser.word() {
        case "query": try from(&parser)
        case "where": query.filter = try filter(&parser)
        case "order":
            repeat {
                let field = try FieldPath(try parser.word())
                query.orderBy.append(Order(field: field, direction: parser.take("desc") ? .descending : .ascending))
            } while parser.take(",")
        case "start-at": query.startAt = try cursor(&parser, before: true)
        case "start-after": query.startAt = try cursor(&parser, before: false)
        case "end-before": query.endAt = try cursor(&parser, before: true)
        case "end-at": query.endAt = try cursor(&parser, before: false)
        case "limit": query.limit = Int32(try parser.word())
        case "offset": query.offset = Int32(try parser.word()) ?? 0
        case "select":
            var fields: [FieldPath] = []
            repeat { fields.append(try FieldPath(try parser.word())) } while parser.take(",")
            query.select = Projection(fields: fields)
        case "count": try aggregate(.count(upTo: parser.take("up-to") ? Int64(try parser.word()) : nil), &parser)
        case "sum": try aggregate(.sum(try FieldPath(try parser.word())), &parser)
        case "avg": try aggregate(.average(try FieldPath(try parser.word())), &parser)
        case "nearest": try nearest(&parser)
        case "buffer": options.sortBufferBytes = Int(try parser.word()) ?? 0
        case "strict": options.requiresIndexes = true
        case "indexed": isIndexed = true
        case "page": pageSize = Int(try parser.word()) ?? 0
        case "step": options.candidatesPerStep = Int(try parser.word()) ?? 0
        case "reads": showsReads = true
        case "measured": options.measuresOperators = true
        case let other: throw ScriptError("unknown command \(other)")
        }
    }

    /// `query users`, `query group users`, `query all`, `query children`, each with `below some/document`; `query
    /// nothing` has no selector.
    private mutating func from(_ parser: inout LiteralParser) throws {
        if parser.take("all") {
            query.from = [CollectionSelector(collectionID: "", allDescendants: true)]
        } else if parser.take("children") {
            query.from = [CollectionSelector(collectionID: "")]
        } else if parser.take("two") {
            query.from = [CollectionSelector(collectionID: "a"), CollectionSelector(collectionID: "b")]
        } else if parser.take("nothing") {
            query.from = []
        } else {
            let isGroup = parser.take("group")
            query.from = [CollectionSelector(collectionID: try parser.word(), allDescendants: isGroup)]
        }
        if parser.take("below") { parent += "/" + (try parser.word()) }
    }

    private mutating func aggregate(_ operation: Aggregation.Operation, _ parser: inout LiteralParser) throws {
        aggregations.append(Aggregation(operation, alias: parser.take("as") ? try parser.word() : ""))
    }

    private mutating func nearest(_ parser: inout LiteralParser) throws {
        let field = try FieldPath(try parser.word())
        let measure = try parser.word()
        let vector = try parser.value()
        try parser.expect("limit")
        let limit = Int32(try parser.word()) ?? 0
        let resultField = parser.take("as") ? try parser.word() : nil
        let threshold = parser.take("within") ? Double(try parser.word()) : nil
        let measures: [String: FindNearest.DistanceMeasure] = [
            "euclidean": .euclidean, "cosine": .cosine, "dot": .dotProduct,
        ]
        guard let known = measures[measure] else { throw ScriptError("unknown measure \(measure)") }
        query.findNearest = FindNearest(
            vectorField: field, queryVector: EncodedValue(vector), distanceMeasure: known, limit: limit,
            distanceResultField: resultField, distanceThreshold: threshold)
    }

    private func cursor(_ parser: inout LiteralParser, before: Bool) throws -> Cursor {
        Cursor(values: try parser.listToEnd().map { EncodedValue($0) }, before: before)
    }

    private func filter(_ parser: inout LiteralParser) throws -> Filter {
        var alternatives = [try conjunction(&parser)]
        while parser.take("or") { alternatives.append(try conjunction(&parser)) }
        return alternatives.count == 1 ? alternatives[0] : .or(alternatives)
    }

    private func conjunction(_ parser: inout LiteralParser) throws -> Filter {
        var parts = [try condition(&parser)]
        while parser.take("and") { parts.append(try condition(&parser)) }
        return parts.count == 1 ? parts[0] : .and(parts)
    }

    private func condition(_ parser: inout LiteralParser) throws -> Filter {
        if parser.take("(") {
            let inner = try filter(&parser)
            try parser.expect(")")
            return inner
        }
        let path = try FieldPath(try parser.word())
        for operation in [UnaryOperator.isNaN, .isNull, .isNotNaN, .isNotNull] where parser.take(operation.name) {
            return .unary(path, operation)
        }
        // The longer signs first.
        let signs: [(String, FieldOperator)] = [
            ("<=", .lessThanOrEqual), ("<", .lessThan), (">=", .greaterThanOrEqual), (">", .greaterThan),
            ("==", .equal),
            ("!=", .notEqual), ("array-contains-any", .arrayContainsAny), ("array-contains", .arrayContains),
            ("not-in", .notIn), ("in", .isIn),
        ]
        for (sign, operation) in signs where parser.take(sign) {
            return .field(path, operation, EncodedValue(try parser.value()))
        }
        throw ScriptError("unknown operator at \(parser.rest())")
    }
}

/// Plans a query below the root or a document.
package func plan(
    _ query: StructuredQuery, parent: String = testRoot, options: QueryOptions = QueryOptions()
) throws(RequestError) -> QueryPlan {
    let bytes = Array(parent.utf8)
    return try QueryPlan(query, parent: bytes.byteSpan, options: options)
}
