// Operators alone: rows from an array, and pages and steps of every size.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport

@testable import QueryEngine

/// Rows of an array, as an input of other operators.
struct ArrayRows: QueryOperator {
    let documents: [TestDocument]
    private var position = 0
    /// How often the rows were begun again.
    private(set) var restarts = 0

    init(_ documents: [TestDocument]) { self.documents = documents }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        while position < documents.count {
            let document = documents[position]
            position += 1
            let path = Array(document.path.utf8)
            let fields = document.fields.documentBytes
            let hasBudget = work.countDocument(byteCount: fields.count)
            let row = QueryRow(
                path: path.byteSpan, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds, fields: fields.byteSpan)
            if try page(row) == .full || !hasBudget { return }
        }
    }

    var isFinished: Bool { position == documents.count }

    mutating func restart() {
        position = 0
        restarts += 1
    }

    var tree: PlanTree { PlanTree(line: "Rows") }
}

/// How rows are asked for.
struct Paging: CustomStringConvertible {
    /// Rows that a page has room for.
    var rows = Int.max
    /// Documents that a step may look at.
    var budget = Int.max

    static let all: [Paging] = [
        Paging(), Paging(rows: 1), Paging(rows: 3), Paging(budget: 1), Paging(budget: 2), Paging(rows: 2, budget: 3),
    ]

    var description: String { "\(rows) rows a page, \(budget) documents a step" }
}

/// What an operator gave out.
struct GivenRows {
    var documents: [TestDocument] = []
    /// The most rows that one page was given.
    var mostInPage = 0
    var work = StepWork()

    var ids: [String] { documents.map(\.id) }
    var paths: [String] { documents.map(\.path) }
}

/// Runs an operator to its end.
///
/// Between two pages everything is thrown away but the operator's value, which is its resume token.
func rows<Rows: QueryOperator>(
    of rows: Rows, over source: borrowing MemorySource, _ paging: Paging = Paging(), pagesMax: Int = 100_000
) throws -> GivenRows {
    var given = GivenRows()
    var token = rows
    for _ in 0..<pagesMax {
        if token.isFinished { return given }
        var operation = token
        var inPage = 0
        given.work.budget = paging.budget
        try operation.next(from: source, &given.work) { (row) throws(RequestError) in
            given.documents.append(try TestDocument(row))
            inPage += 1
            return inPage < paging.rows ? .more : .full
        }
        given.mostInPage = max(given.mostInPage, inPage)
        token = operation
    }
    throw ScriptError("the operator does not come to an end")
}

/// Documents `c/d000`, `c/d001`, … with the fields that `fields` makes of their numbers.
func numbered(_ count: Int, _ fields: (Int64) -> MapValue) -> [TestDocument] {
    (0..<count).map { number in
        let digits = String(number)
        return TestDocument(
            path: "c/d" + String(repeating: "0", count: 3 - digits.count) + digits, fields: fields(Int64(number)))
    }
}
