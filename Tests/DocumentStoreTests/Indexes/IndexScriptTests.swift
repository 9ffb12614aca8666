// Runs the index scripts: documents go into a real store; each query prints its plan, what was read, and its results.

import Basics
import DocumentModel
import Foundation
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct IndexScriptTests {
    @Test(arguments: ["equality", "ranges", "orders", "counts", "strict", "declared", "overrides", "groups", "nearest"])
    func `Scripts print what they say`(name: String) throws {
        var session = try IndexSession()
        try GoldenScript("IndexScripts/\(name)", besides: #filePath).run { try session.execute($0) }
        try session.harness.finish()
    }
}

/// A store and the queries that a script asks of it.
private struct IndexSession {
    let harness = try! StoreHarness(database: "d")

    init() throws {}

    mutating func execute(_ commands: [String]) throws -> [String] {
        if commands[0].hasPrefix("query ") {
            do {
                return try query(commands)
            } catch let error as RequestError {
                return ["\(error.code): \(error.message)"]
            }
        }
        if commands[0].hasPrefix("index ") || commands[0].hasPrefix("override ") { return try declare(commands) }
        for command in commands {
            var parser = LiteralParser(command)
            if parser.take("many") {
                try commitMany(in: try parser.word(), count: Int(try parser.word()) ?? 0)
            } else {
                try parser.expect("document")
                try commit([.set(try parser.word(), try parser.map())])
            }
        }
        return []
    }

    /// Documents `d0000`, `d0001`, … of numbers and texts that repeat at different rates.
    private func commitMany(in collection: String, count: Int) throws {
        var writes: [StepWrite] = []
        for number in 0..<count {
            let digits = String(number)
            let id = "d" + String(repeating: "0", count: 4 - digits.count) + digits
            let fields: MapValue = [
                "n": .integer(Int64(number)), "tenth": .integer(Int64(number % 10)),
                "half": .integer(Int64(number % 2)),
                "tags": .array([.integer(Int64(number % 50)), .string("all")]),
                "m": .map(["x": .integer(Int64(number % 100))]),
            ]
            writes.append(.set("\(collection)/\(id)", fields))
        }
        try commit(writes)
    }

    /// `index c a, b desc`, `index group c a`, `index c a, vector e 3`, `override c a ascending group-contains`,
    /// `override c * none`: all lines together are what is wanted.
    private func declare(_ commands: [String]) throws -> [String] {
        var wanted = IndexDeclaration()
        for command in commands {
            var parser = LiteralParser(command)
            if parser.take("override") {
                wanted.fieldOverrides.append(try override(&parser))
                continue
            }
            try parser.expect("index")
            let isGroup = parser.take("group")
            let id = try parser.word()
            var parts: [IndexShape.Part] = []
            var vector: IndexShape.VectorPart?
            var reversesName = false
            repeat {
                if parser.take("vector") {
                    let field = try FieldPath(try parser.word())
                    vector = IndexShape.VectorPart(field: field, dimension: Int(try parser.word()) ?? 0)
                    continue
                }
                let field = try FieldPath(try parser.word())
                let kind: IndexShape.Part.Kind =
                    parser.take("desc") ? .descending : parser.take("contains") ? .contains : .ascending
                if field.isDocumentName {
                    reversesName = (kind == .descending) != (parts.last?.kind == .descending)
                    continue
                }
                parts.append(IndexShape.Part(field: field, kind: kind))
            } while parser.take(",")
            wanted.indexes.append(
                IndexShape(
                    collectionID: id, isGroup: isGroup, parts: parts, vector: vector, reversesName: reversesName))
        }
        try waitForSuccess("the declaration is complete") {
            harness.store.declareIndexes(wanted, in: harness.database, completion: $0)
        }
        try waitUntil("every index is ready") {
            harness.store.indexListing(in: harness.database).allSatisfy { $0.state == .ready }
        }
        return harness.store.indexListing(in: harness.database).map { "\($0.state.rawValue) \($0.json)" }
    }

    private func override(_ parser: inout LiteralParser) throws -> FieldOverride {
        let id = try parser.word()
        let field = parser.take("*") ? nil : try FieldPath(try parser.word())
        let modes: [(String, FieldOverride.Modes)] = [
            ("group-ascending", .groupAscending), ("group-descending", .groupDescending),
            ("group-contains", .groupContains), ("ascending", .ascending), ("descending", .descending),
            ("contains", .contains), ("none", []),
        ]
        var override = FieldOverride(collectionID: id, field: field, indexes: nil)
        while true {
            if parser.take("ttl") {
                override.expires = true
            } else if let mode = modes.first(where: { parser.take($0.0) }) {
                override.indexes = (override.indexes ?? []).union(mode.1)
            } else {
                return override
            }
        }
    }

    private func commit(_ writes: [StepWrite]) throws {
        let request = CommitRequest(writes: try harness.list(writes))
        try waitForSuccess("the commit is complete") { harness.store.commit(request, completion: $0) }
    }

    /// Starts a request, waits for its outcome, and throws its error.
    private func waitForSuccess<Value>(
        _ what: String, _ start: (@escaping @Sendable (Result<Value, RequestError>) -> Void) -> Void
    ) throws {
        let done = DispatchSemaphore(value: 0)
        let errors = Collected<RequestError>()
        start { outcome in
            if case .failure(let error) = outcome { errors.append(error) }
            done.signal()
        }
        try done.wait(until: what)
        if let error = errors.all.first { throw error }
    }

    private func query(_ commands: [String]) throws -> [String] {
        var script = QueryCommands()
        for command in commands { try script.read(command) }
        let reader = harness.store.makeReader()
        let point = try reader.readPoint(.latest, in: harness.database)
        let parent = Array(script.parent.utf8)
        if !script.aggregations.isEmpty {
            var run = try AggregationExecution(
                StructuredAggregationQuery(query: script.query, aggregations: script.aggregations),
                parent: parent.byteSpan, options: script.options)
            let source = try reader.source(at: point)
            while try run.next(from: source) != .finished {}
            return run.tree.split(separator: "\n").map(String.init) + run.withQuery { figures(of: $0) }
                + (try run.result.map { "\($0.alias) = \(try Value(wire: $0.value.span).literal)" })
        }
        var run = QueryExecution(try plan(script.query, parent: script.parent, options: script.options))
        let source = try reader.source(at: point, matching: run.plan.matcher)
        var results: [String] = []
        while try run.next(
            from: source,
            emit: { (result) throws(RequestError) in
                results.append(String(repairingUTF8: result.path))
                return .more
            }) != .finished
        {}
        let shown = results.prefix(6).joined(separator: " ") + (results.count > 6 ? " … \(results.count) in all" : "")
        return run.tree.split(separator: "\n").map(String.init) + figures(of: run) + [
            results.isEmpty ? "nothing" : shown
        ]
    }

    private func figures(of run: borrowing QueryExecution) -> [String] {
        ["read \(run.scannedDocuments) documents, \(run.scannedEntries) entries"]
            + (run.explanation.adviceJSON.map { ["advice \($0)"] } ?? [])
    }
}
