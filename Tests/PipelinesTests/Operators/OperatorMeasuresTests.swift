// What explain says about each operator of a pipeline that was run.

import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct OperatorMeasuresTests {
    /// `name rows entries` of each operator, indented by its depth.
    private func operators(_ harness: Harness, _ stages: Stage...) throws -> [String] {
        let answer = try harness.execute(
            structuredPipeline(stages, options: [("explain_options", .map([("mode", "analyze")]))]))
        let metrics = try #require(answer.responses.last?.explainMetrics)
        let execution = try #require(metrics.execution)
        expect(execution.resultsReturned == answer.rows.count)
        expect(execution.durationNanoseconds >= execution.operators[0].nanoseconds)
        expectEqual(metrics.tree.split(separator: "\n").count, execution.operators.count)
        expectEqual(answer.responses.last?.explainText?.contains("results returned: \(answer.rows.count)"), true)
        for (position, one) in execution.operators.enumerated().dropFirst() {
            let above = execution.operators[..<position].last { $0.depth < one.depth }
            // The time of an operator has that of the operators below it, and of the reads for them.
            try expect(#require(above).nanoseconds >= one.nanoseconds, "\(one.line)")
        }
        return execution.operators.map { one in
            let name = one.line.prefix { $0 != " " }
            return String(repeating: " ", count: Int(one.depth)) + "\(name) \(one.rows) \(one.entries)"
        }
    }

    private func harness() throws -> Harness {
        let harness = try Harness()
        for number in 0..<20 {
            try harness.set(["c/\(10 + number)": Harness.fields(["g": .integer(Int64(number % 3)), "n": 1])])
        }
        try harness.set(["d/a": Harness.fields(["g": 1])])
        return harness
    }

    @Test
    func `Operators over rows have their rows, and those of the query theirs with the entries`() throws {
        let count: [(String, Expression)] = [("n", .call("count"))]
        let found = try operators(
            harness(), .collection("c"), .where(.call("equal", .field("g"), 1)),
            .select(("m", .call("add", .field("n"), 1))), .aggregate(count), .sort((.field("n"), true)))
        expectEqual(
            found,
            ["Sort 1 0", " Aggregate 1 0", "  Select 7 0", "   Filter 7 0", "    Fetch 7 0", "     IndexScan 7 7"])
    }

    @Test
    func `Groups of documents, unions and documents as they are have figures`() throws {
        let harness = try harness()
        let groups = Stage("aggregate", [.map([("n", .call("count"))]), .map([("g", .field("g"))])])
        try expectEqual(operators(harness, .collection("c"), groups), ["Aggregate 3 0", " CollectionScan 20 0"])
        let union = Stage("union", [.pipeline([.collection("d")])])
        try expectEqual(
            operators(harness, .collection("c"), .limit(2), union),
            ["Union 3 0", " Limit 2 0", "  CollectionScan 2 0", " CollectionScan 1 0"])
        let count = try operators(harness, .collection("c"), .aggregate([("n", .call("count"))]))
        expectEqual(count, ["Aggregate 1 0", " CatalogueCount 1 0"])
        let documents = try operators(harness, .collection("c"))
        expectEqual(documents, ["CollectionScan 20 0"])
    }

    @Test
    func `The reads of subqueries are time of the operator that runs them`() throws {
        let subquery = Expression.call(
            "scalar",
            .pipeline([
                .collection("c"), .where(.call("equal", .field("g"), .variable("g"))),
                .aggregate([("n", .call("count"))]),
            ]))
        let found = try operators(
            harness(), .collection("d"), Stage("let", [.map([("g", .field("g"))])]), .select(("n", subquery)))
        expectEqual(found, ["Select 1 0", " Subqueries 1 0", "  Let 1 0", "   CollectionScan 1 0"])
    }
}
