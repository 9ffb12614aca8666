// `hearth query`: documents of a collection that meet conditions, as lines of JSON.

import DocumentJSON
import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Gateway

/// Runs a query on a running server and prints its results.
enum QueryCommand: Subcommand {
    static let name = "query"
    static let summary = "Prints the documents of a collection that meet conditions."
    static let words = ["COLLECTION", "[CONDITION...]"]

    static let discussion = """
        COLLECTION is a collection's path, such as books or users/ada/books. A CONDITION is
        FIELD OPERATOR VALUE in one word of the shell; all of them must hold.

        Operators: == != < <= > >= in not-in array-contains array-contains-any
        Values are JSON, in the forms of docs/json-lines.md: 3, 3.0, "text", null,
        {"$timestamp": "2026-01-31T12:00:00Z"}, and a list for the operators that take one.
        A field inside a map is written with dots; a name that is not simple in backticks.

        Results are lines of JSON, in the form that hearth get prints.

        Examples:

          hearth query books 'year >= 1922' 'tags array-contains "novel"' --order-by 'year desc'
          hearth query reviews --group --limit 10
          hearth query books 'author == "Joyce"' --count
          hearth query books 'year >= 1922' --order-by 'year desc' --explain
        """

    static let orderBy = Flag<String>(
        "order-by", "FIELDS", required: false, help: "The order of the results, for example 'year desc, title'.")
    static let limit = Flag<Int>("limit", "N", required: false, help: "The most results wanted.")
    static let offset = Flag("offset", "N", default: 0, in: 0...Int(Int32.max), help: "Results to leave out at the beginning.")
    static let select = Flag<String>("select", "FIELDS", required: false, help: "The fields wanted, separated by commas.")
    static let group = Flag(switch: "group", help: "Search every collection with this id, at any depth.")
    static let count = Flag(switch: "count", help: "Print how many results there are instead of the results.")

    static let explain = Flag(
        switch: "explain", help: "Print how the query would be answered instead of the results: the plan as a tree, source at the bottom.")
    static let analyze = Flag(
        switch: "analyze", help: "Run the query, throw its results away, and print the plan and what was read.")

    static let flagGroups = [
        FlagGroup(heading: "What", flags: [orderBy, limit, offset, select, group, count, explain, analyze]),
        FlagGroup(heading: "Where", flags: ReadingFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let (parent, query) = try query(arguments, database)
        var printer = DocumentPrinter(database: database)
        try await ReadingFlags.withClient(arguments) { client in
            if arguments[explain] || arguments[analyze] {
                let options = ExplainOptions(analyze: arguments[analyze])
                return try await printPlan(client, parent, query, isCount: arguments[count], options)
            }
            if arguments[count] {
                print(try await numberOfResults(client, parent, query))
                return
            }
            for try await document in client.queryStream(RunQueryRequest(parent: parent, query: query)) {
                try printer.print(name: document.name, fields: document.content.fields)
            }
        }
    }

    private static func printPlan(
        _ client: HearthClient, _ parent: String, _ query: StructuredQuery, isCount: Bool, _ options: ExplainOptions
    ) async throws {
        let metrics: ExplainMetrics
        if isCount {
            var request = RunAggregationQueryRequest(parent: parent, query: counting(query))
            request.explain = options
            metrics = try await client.explain(request)
        } else {
            var request = RunQueryRequest(parent: parent, query: query)
            request.explain = options
            metrics = try await client.explain(request)
        }
        print(metrics.tree)
        if let execution = metrics.execution {
            let microseconds = execution.durationNanoseconds / 1_000
            print(
                "\n\(execution.resultsReturned) results, \(execution.documentsScanned) documents and "
                    + "\(execution.indexEntriesScanned) index entries read, \(microseconds) us")
        }
        if !metrics.advice.isEmpty { print("\nThis index would make it cheaper:\n\(metrics.advice)") }
    }

    private static func counting(_ query: StructuredQuery) -> StructuredAggregationQuery {
        StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: nil), alias: "count")])
    }

    private static func numberOfResults(
        _ client: HearthClient, _ parent: String, _ query: StructuredQuery
    ) async throws -> Int64 {
        let totals = try await client.runAggregation(RunAggregationQueryRequest(parent: parent, query: counting(query)))
        let bytes = totals["count"] ?? []
        guard case .integer(let count) = try Value(wire: bytes.span.bytes) else {
            throw CommandFailure("the server sent no count")
        }
        return count
    }

    /// The query that the words and flags describe, and the parent it runs below.
    private static func query(
        _ arguments: ParsedArguments, _ database: DatabaseName
    ) throws -> (parent: String, StructuredQuery) {
        let collection = try CollectionPath(database: database, path: arguments.words[0])
        var query = StructuredQuery(
            from: [CollectionSelector(collectionID: collection.collectionID, allDescendants: arguments[group])])
        let conditions = try arguments.words.dropFirst().map { try QueryCondition.parse($0, database) }
        query.filter = conditions.count > 1 ? .and(conditions) : conditions.first
        if let text = arguments.value(of: orderBy) { query.orderBy = try OrderText.parse(text) }
        if let text = arguments.value(of: select) {
            query.select = Projection(fields: try OrderText.split(text).map { try DocumentModel.FieldPath($0.trimmingSpaces) })
        }
        if let number = arguments.value(of: limit) {
            guard let limit = Int32(exactly: number), limit >= 0 else {
                throw UsageError(message: "--limit must be between 0 and \(Int32.max)")
            }
            query.limit = limit
        }
        query.offset = Int32(arguments[offset])
        return (collection.parent?.description ?? database.documentsRoot, query)
    }
}

/// A condition as it is written on the command line.
enum QueryCondition {
    private static let operators: [(text: String, meaning: FieldOperator)] = [
        ("==", .equal), ("!=", .notEqual), ("<=", .lessThanOrEqual), (">=", .greaterThanOrEqual), ("<", .lessThan),
        (">", .greaterThan), ("in", .isIn), ("not-in", .notIn), ("array-contains-any", .arrayContainsAny),
        ("array-contains", .arrayContains),
    ]

    /// Reads `FIELD OPERATOR VALUE`; the parts are separated by spaces.
    static func parse(_ text: String, _ database: DatabaseName) throws -> DocumentModel.Filter {
        for (name, meaning) in operators {
            guard let range = text.range(of: " \(name) ") else { continue }
            let field = try DocumentModel.FieldPath(String(text[..<range.lowerBound]).trimmingSpaces)
            let value = try value(String(text[range.upperBound...]).trimmingSpaces, of: text, database)
            return filter(field, meaning, value)
        }
        throw UsageError(message: "\"\(text)\" is no condition: write FIELD OPERATOR VALUE, with spaces between them")
    }

    /// The parser of lines reads the value as the one member of a document.
    private static func value(_ json: String, of text: String, _ database: DatabaseName) throws -> EncodedValue {
        var parser = JSONLineParser(database: database.description)
        let line = Array("{\"value\":\(json)}".utf8)
        do {
            _ = try parser.parse(line.span)
        } catch {
            throw UsageError(message: "the value of \"\(text)\" is not understood: \(error.reason)")
        }
        return parser.withDocumentBytes { bytes in
            let name = Array("value".utf8)
            guard let value = DocumentBytes.entryValue(name.span.bytes, in: bytes, tag: DocumentTag.field) else {
                return EncodedValue(.null)
            }
            return EncodedValue(canonical: [UInt8](copying: value))
        }
    }

    /// Equality with null and NaN has operators of its own.
    private static func filter(_ field: DocumentModel.FieldPath, _ meaning: FieldOperator, _ value: EncodedValue) -> DocumentModel.Filter {
        let isNull = value == EncodedValue(.null)
        let isNaN = value == EncodedValue(.double(.nan))
        switch meaning {
        case .equal where isNull: return .unary(field, .isNull)
        case .equal where isNaN: return .unary(field, .isNaN)
        case .notEqual where isNull: return .unary(field, .isNotNull)
        case .notEqual where isNaN: return .unary(field, .isNotNaN)
        default: return .field(field, meaning, value)
        }
    }
}

extension String {
    /// The text without spaces at its ends.
    var trimmingSpaces: String {
        let start = drop { $0 == " " }
        return String(start.reversed().drop { $0 == " " }.reversed())
    }
}
