// `hearth query`: documents of a collection that meet conditions, as lines of JSON, or totals over them.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreMessages
import FirestoreService
import HearthClient
import Pipelines
import Server

/// Runs a query on a server or a data directory and prints its results.
enum QueryCommand: AsyncSubcommand {
    static let name = "query"
    static let summary = "Prints the documents of a collection that match conditions."
    static let words = ["[COLLECTION [CONDITION...]]"]

    static let discussion = """
        COLLECTION is the path of a collection, such as books or users/ada/books. A CONDITION
        is FIELD OPERATOR VALUE as one shell word, with or without --where. A document must
        match all conditions.

        Operators: == != < <= > >= in not-in array-contains array-contains-any
        Write a field of a map with dots. Put a name with special characters in backticks.

        Values:
          3  3.0  -1e9              a number: an integer, or a double if it has . or e
          NaN  Infinity  -Infinity  a double
          true  false  null         booleans and null
          2026-01-31T12:00:00Z      a timestamp, with any offset from UTC
          /users/ada                a reference to that document
          anything else             a string: Joyce, two words, 2026-01-31
          "3"                       always a string
          [...]  {...}              JSON as in docs/json-lines.md: lists, maps,
                                    {"$bytes": "aGk="}, {"$geoPoint": [52.5, 13.4]}
        Operators that take a list accept JSON, or values separated by commas: in red,blue
        __name__ is compared with a document id of the collection, or with a document path.

        Results are lines of JSON, in the format of hearth get.

        Examples:

          hearth query books --where 'year >= 1922' --where 'tags array-contains novel'
          hearth query books --order-by year:desc --limit 10 --select title,year
          hearth query reviews --group --where 'book == /books/ulysses' --count
          hearth query orders --sum price --avg price --data /var/lib/hearth
          hearth query books --where 'year >= 1922' --order-by year:desc --explain
          hearth query --pipeline 'collection(books) | aggregate(n: count() by author) | sort(n desc)'
        """

    static let conditions = Flag<String>(
        repeatable: "where", "CONDITION", help: "A condition that results must match: 'FIELD OPERATOR VALUE'.")
    static let orderBy = Flag<String>(
        "order-by", "FIELDS", required: false,
        help:
            "The order of the results: fields separated by commas, each followed by :desc for descending order, "
            + "such as year:desc,title."
    )
    static let limit = Flag<Int>("limit", "N", required: false, help: "The maximum number of results.")
    static let offset = Flag("offset", "N", default: 0, in: 0...Int(Int32.max), help: "The number of results to skip.")
    static let select = Flag<String>(
        "select", "FIELDS", required: false, help: "The fields to print, separated by commas.")
    static let group = Flag(switch: "group", help: "Search every collection with this id, at any depth.")

    static let count = Flag(switch: "count", help: "Print the number of results.")
    static let sum = Flag<String>(repeatable: "sum", "FIELD", help: "Print the sum of the field's numbers.")
    static let average = Flag<String>(repeatable: "avg", "FIELD", help: "Print the mean of the field's numbers.")

    static let pipeline = Flag<String>(
        "pipeline", "FILE|TEXT", required: false,
        help:
            "Run this pipeline instead of a query: stages separated by |, the JSON of a REST request, "
            + "or a file with one of them. See docs/pipelines.md."
    )

    static let explain = Flag(
        switch: "explain", help: "Print the query plan instead of the results, as a tree with the source at the bottom."
    )
    static let analyze = Flag(
        switch: "analyze",
        help:
            "Run the query, discard its results, and print the plan with the rows and the time of each operator, and "
            + "what was read.")

    static let json = Flag(
        switch: "json",
        help: "Print totals, or a plan, as one JSON object. Documents are lines of JSON with and without it.")

    static let flagGroups = [
        FlagGroup(heading: "Query", flags: [conditions, orderBy, limit, offset, select, group]),
        FlagGroup(heading: "Instead of results", flags: [pipeline, count, sum, average, explain, analyze, json]),
        FlagGroup(heading: "Server", flags: ReadingFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        if let text = arguments.value(of: pipeline) { return try await run(pipeline: text, arguments, database) }
        if arguments.words.isEmpty { throw UsageError(message: "missing argument COLLECTION") }
        let (parent, query) = try query(arguments, database)
        let totals = try totals(arguments)
        var printer = DocumentPrinter(database: database)
        try await ReadingFlags.withClient(arguments) { client in
            if arguments[explain] || arguments[analyze] {
                let options = ExplainOptions(analyze: arguments[analyze])
                let metrics = try await plan(client, parent, query, totals, options)
                return try PlanText.print(metrics, isJSON: arguments[json])
            }
            if !totals.isEmpty {
                return try await printTotals(client, parent, query, totals, isJSON: arguments[json], &printer)
            }
            for try await document in client.queryStream(RunQueryRequest(parent: parent, query: query)) {
                try printer.print(name: document.name, fields: document.content.fields)
            }
        }
    }

    private static func run(
        pipeline text: String, _ arguments: ParsedArguments, _ database: DatabaseName
    ) async throws {
        guard arguments.words.isEmpty, arguments.values(of: conditions).isEmpty else {
            throw UsageError(message: "--pipeline takes the place of COLLECTION and CONDITION")
        }
        var printer = DocumentPrinter(database: database)
        let mode: PipelineExplanation.Mode = arguments[analyze] ? .analyze : arguments[explain] ? .explain : .execute
        try await ReadingFlags.withClient(arguments) { client in
            try await PipelineQueryAction.run(client, text, in: database, mode, isJSON: arguments[json], &printer)
        }
    }

    private static func plan(
        _ client: HearthClient, _ parent: String, _ query: StructuredQuery, _ totals: [Aggregation],
        _ options: ExplainOptions
    ) async throws -> ExplainMetrics {
        if totals.isEmpty {
            var request = RunQueryRequest(parent: parent, query: query)
            request.explain = options
            return try await client.explain(request)
        }
        var request = RunAggregationQueryRequest(
            parent: parent, query: StructuredAggregationQuery(query: query, aggregations: totals))
        request.explain = options
        return try await client.explain(request)
    }

    /// The totals asked for; the alias of each says what it is.
    private static func totals(_ arguments: ParsedArguments) throws -> [Aggregation] {
        var totals: [Aggregation] = []
        if arguments[count] { totals.append(Aggregation(.count(upTo: nil), alias: "count")) }
        for field in arguments.values(of: sum) {
            totals.append(Aggregation(.sum(try PathWords.field(field, of: "--sum")), alias: "sum \(field)"))
        }
        for field in arguments.values(of: average) {
            totals.append(Aggregation(.average(try PathWords.field(field, of: "--avg")), alias: "avg \(field)"))
        }
        return totals
    }

    /// Prints one total alone, several each after its name; as JSON an object that has all by their names.
    private static func printTotals(
        _ client: HearthClient, _ parent: String, _ query: StructuredQuery, _ totals: [Aggregation], isJSON: Bool,
        _ printer: inout DocumentPrinter
    ) async throws {
        let request = RunAggregationQueryRequest(
            parent: parent, query: StructuredAggregationQuery(query: query, aggregations: totals))
        let results = try await client.runAggregation(request)
        var members: [String] = []
        for total in totals {
            guard let value = results[total.alias] else { throw CommandFailure("the server sent no \(total.alias)") }
            if isJSON {
                members.append("\(JSONText.quoted(total.alias)):\(try printer.json(of: value))")
            } else {
                try printer.print(value: value, after: totals.count > 1 ? total.alias + "\t" : "")
            }
        }
        if isJSON { try StandardOutput.print("{\(members.joined(separator: ","))}") }
    }

    /// The query that the words and flags describe, and the parent it runs below.
    static func query(
        _ arguments: ParsedArguments, _ database: DatabaseName
    ) throws -> (parent: String, StructuredQuery) {
        let path = PathWords.path(arguments.words[0])
        let collection = try CollectionPath(database: database, path: path)
        var query = StructuredQuery(
            from: [CollectionSelector(collectionID: collection.collectionID, allDescendants: arguments[group])])
        let reader = ConditionReader(database: database, collection: arguments[group] ? nil : path)
        let conditions = try (arguments.words.dropFirst() + arguments.values(of: conditions)).map {
            try reader.read($0)
        }
        query.filter = conditions.count > 1 ? .and(conditions) : conditions.first
        if let text = arguments.value(of: orderBy) { query.orderBy = try PathWords.orders(text) }
        if let text = arguments.value(of: select) {
            query.select = Projection(fields: try PathWords.fields(text, of: "--select"))
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
