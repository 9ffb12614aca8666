// The examples of docs/pipelines.md.

import Basics
import DocumentModel
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@testable import Pipelines

@Suite(.timeLimit(.minutes(20)))
struct PageTests {
    /// A row of a table: the cells without backquotes and escapes.
    private struct Row {
        /// What stands before the first parenthesis of the first cell.
        let name: String
        let example: String
        let result: String
    }

    /// The rows of the tables whose head begins with a word.
    private func rows(_ head: String) throws -> [Row] {
        let page = try String(contentsOf: Repository.url("docs/pipelines.md"), encoding: .utf8)
        var rows: [Row] = []
        var isWanted = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                isWanted = false
                continue
            }
            let cells = line.replacingOccurrences(of: "\\|", with: "\u{1}").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces).replacingOccurrences(of: "\u{1}", with: "|")
            }
            if cells[0] == head, cells.count > 2, cells[1] == "example" {
                isWanted = true
            } else if isWanted, !cells[0].hasPrefix("-") {
                func code(_ cell: String) -> String { cell.trimmingCharacters(in: CharacterSet(charactersIn: "`")) }
                let name = code(String(cells[0].prefix { $0 != "(" && $0 != " " }))
                rows.append(Row(name: name, example: code(cells[1]), result: code(cells[2])))
            }
        }
        return rows
    }

    private func harness() throws -> Harness {
        let harness = try Harness()
        let place = Value.geoPoint(GeoPointValue(latitude: 52.5, longitude: 13.4))
        try harness.set([
            "books/a": Harness.fields([
                "title": "Ubik", "genre": "sf", "price": 12.5, "tags": ["classic", "mind"],
                "embedding": .vector([1, 0]),
                "place": place,
            ]),
            "books/b": Harness.fields([
                "title": "Dune", "genre": "sf", "price": 20.0, "tags": ["desert"], "embedding": .vector([0, 1]),
            ]),
            "books/c": Harness.fields(["title": "Emma", "genre": "romance", "price": 5.0]),
            "books/a/reviews/r": Harness.fields(["stars": 5]),
        ])
        return harness
    }

    private func run(_ text: String, _ harness: Harness) throws -> [MapValue] {
        try harness.execute(try PipelineText.structuredPipeline(text)).rows
    }

    /// The value of a text without fields.
    private func value(_ text: String, _ harness: Harness) throws -> Value? {
        try run("literals({none: null}) | select(v: \(text))", harness).first?["v"]
    }

    private func expectValue(_ found: Value?, _ row: Row, _ harness: Harness) throws {
        let expected = try value(row.result, harness)
        expectEqual(
            found?.wireBytes, expected?.wireBytes, "\(row.example): \(String(describing: found)), not \(row.result)")
    }

    /// Whether a request calls a function, or has a stage.
    private func mentions(_ name: String, _ text: String) throws -> Bool {
        let bytes = try PipelineText.structuredPipeline(text)
        let wanted = Array(name.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: wanted) }
    }

    @Test
    func `Every function of the page has the value that the page says`() throws {
        let harness = try harness()
        let rows = try rows("function")
        for row in rows {
            let text = "documents(books/a) | select(v: \(row.example))"
            try expect(mentions(row.name, text), "\(row.example) has no \(row.name)")
            try expectValue(try run(text, harness).first?["v"], row, harness)
        }
        let named = Set(rows.map(\.name))
        let served = Set(PipelineFunction.table.keys).union(ElementLambda.names).union(["scalar"])
        expectEqual(named, served, "\(named.symmetricDifference(served))")
    }

    @Test
    func `Every accumulator of the page has the value that the page says`() throws {
        let harness = try harness()
        let rows = try rows("accumulator")
        for row in rows {
            let text = "collection(books) | sort(title) | aggregate(v: \(row.example))"
            try expectValue(try run(text, harness).first?["v"], row, harness)
        }
        expectEqual(Set(rows.map(\.name)), Set(Accumulator.Kind.allCases.map(\.rawValue)))
    }

    @Test
    func `Every stage of the page has the results that the page says`() throws {
        let rows = try rows("stage")
        for row in rows {
            let harness = try harness()
            if row.name == "search" { try harness.declareSearches(["title"], of: "books") }
            try expect(mentions(row.name, row.example), "\(row.example) has no \(row.name)")
            try expectValue(.array(try run(row.example, harness).map { .map($0) }), row, harness)
        }
        let stages = [
            "collection", "collection_group", "database", "documents", "literals", "where", "sort", "limit", "offset",
            "select",
            "add_fields", "remove_fields", "replace_with", "aggregate", "distinct", "unnest", "sample", "union", "let",
            "subcollection", "update", "delete", "find_nearest", "search",
        ]
        expectEqual(rows.map(\.name), stages)
    }
}
