// Runs the query scripts: `document` blocks fill the database, `query` blocks print a plan and the results, or the
// error.

import Basics
import DocumentModel
import DocumentStore
import Testing

@testable import QueryEngine

@Suite("Query scripts", .timeLimit(.minutes(20)))
struct QueryScriptTests {
    @Test(
        "Scripts print what they say",
        arguments: [
            "filters", "orders", "cursors", "names", "groups", "plans", "rules", "projections", "aggregations",
            "nearest",
        ])
    func script(name: String) throws {
        var session = QuerySession()
        try GoldenScript("QueryScripts/\(name)", besides: #filePath).run { try session.execute($0) }
    }

    @Test(
        "Operators give out what their scripts say",
        arguments: [
            "collection-scan", "subtree-scan", "point-lookup", "index-scan", "zigzag-merge", "union", "append",
            "fetch", "filter", "sort", "limit", "project", "nearest", "aggregate",
        ])
    func operators(name: String) throws {
        var session = QuerySession()
        try GoldenScript("OperatorScripts/\(name)", besides: #filePath).run { try session.execute($0) }
    }
}

/// A database and the queries that a script asks of it.
private struct QuerySession {
    var documents: [TestDocument] = []

    mutating func execute(_ commands: [String]) throws -> [String] {
        if commands[0].hasPrefix("query ") { return try query(commands) }
        for command in commands {
            var parser = LiteralParser(command)
            try parser.expect("document")
            documents.append(TestDocument(path: try parser.word(), fields: try parser.map()))
        }
        return []
    }

    private func query(_ commands: [String]) throws -> [String] {
        var script = QueryCommands()
        for command in commands { try script.read(command) }
        do {
            return script.aggregations.isEmpty ? try results(script) : try totals(script)
        } catch let error as RequestError {
            return ["\(error.code): \(error.message)"]
        }
    }

    private func results(_ script: QueryCommands) throws -> [String] {
        let plan = try plan(script.query, parent: script.parent, options: script.options)
        let source = try MemorySource(documents, isIndexed: script.isIndexed)
        let (found, run) = try DocumentStoreTests.results(of: plan, over: source, pageSize: script.pageSize)
        return run.tree.split(separator: "\n").map(String.init)
            + (script.showsReads ? ["read \(run.scanned) documents, \(run.entries) entries in \(run.calls) calls"] : [])
            + (found.isEmpty ? ["nothing"] : found.map { "\($0.path) \($0.fields.literal)" })
    }

    private func totals(_ script: QueryCommands) throws -> [String] {
        let parent = Array(script.parent.utf8)
        var run = try AggregationExecution(
            StructuredAggregationQuery(query: script.query, aggregations: script.aggregations),
            parent: parent.byteSpan, options: script.options)
        let source = try MemorySource(documents, isIndexed: script.isIndexed)
        while try run.next(from: source) != .finished {}
        return run.tree.split(separator: "\n").map(String.init)
            + (try run.result.map { "\($0.alias) = \(try Value(wire: $0.value.span).literal)" })
    }
}

/// A query as the lines of a block spell it.
struct QueryCommands {
    var query = StructuredQuery()
    var parent = testRoot
    var aggregations: [Aggregation] = []
    var options = QueryOptions()
    /// Every field has index entries.
    var isIndexed = false
    /// Rows that a page has room for.
    var pageSize = Int.max
    var showsReads = false

    mutating func read(_ line: String) throws {
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
