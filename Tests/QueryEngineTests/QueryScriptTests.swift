// Runs the query scripts: `document` blocks fill the database, `query` blocks print a plan and the results, or the
// error.

import Basics
import DocumentModel
import StoreTestSupport
import Testing

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct QueryScriptTests {
    @Test(arguments: [
        "filters", "orders", "cursors", "names", "groups", "plans", "rules", "projections", "aggregations",
        "nearest", "figures",
    ])
    func `Scripts print what they say`(name: String) throws {
        var session = QuerySession()
        try GoldenScript("QueryScripts/\(name)", besides: #filePath).run { try session.execute($0) }
    }

    @Test(arguments: [
        "collection-scan", "subtree-scan", "point-lookup", "index-scan", "zigzag-merge", "union", "append",
        "fetch", "filter", "sort", "limit", "project", "nearest", "aggregate",
    ])
    func `Operators give out what their scripts say`(name: String) throws {
        var session = QuerySession()
        try GoldenScript("OperatorScripts/\(name)", besides: #filePath).run { try session.execute($0) }
    }
}

extension OperatorLine {
    /// The line of the tree, with what a measured operator gave out and read.
    fileprivate var scriptText: String {
        let indent = depth == 0 ? "" : String(repeating: "   ", count: depth - 1) + "└─ "
        guard let figures else { return indent + text }
        return "\(indent)\(text)  [\(figures.rows) rows, \(figures.entries) entries]"
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
        let (found, run) = try QueryEngineTests.results(of: plan, over: source, pageSize: script.pageSize)
        return run.lines.map(\.scriptText)
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
        return run.operatorLines.map(\.scriptText)
            + (try run.result.map { "\($0.alias) = \(try Value(wire: $0.value.span).literal)" })
    }
}
