// Pipelines in expressions.

import DocumentModel
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SubqueryTests {
    private func harness() throws -> Harness {
        let harness = try Harness()
        try harness.set([
            "books/a": Harness.fields(["genre": "sf", "n": 1]), "books/b": Harness.fields(["genre": "sf", "n": 2]),
            "books/c": Harness.fields(["genre": "crime", "n": 3]),
            "books/a/reviews/1": Harness.fields(["stars": 5]), "books/a/reviews/2": Harness.fields(["stars": 3]),
            "books/b/reviews/1": Harness.fields(["stars": 1]),
        ])
        return harness
    }

    private func stars(_ kind: String, _ stages: Stage...) -> Expression {
        .call(kind, .pipeline([Stage("subcollection", ["reviews"])] + stages))
    }

    private let byStars = Stage.sort((.field("stars"), false))

    @Test
    func `A search in a subquery reads the variables of each row`() throws {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": 1]), "c/b": Harness.fields(["n": 2])])
        let search = Stage("search", [], options: [("query", .call("equal", .field("n"), .variable("v")))])
        let found = Expression.call(
            "array", .pipeline([.collection("c"), search, .select(("n", .field("n")))]))
        let answer = try harness.execute(
            Stage("literals", [.map([("x", 1)]), .map([("x", 2)])]), Stage("let", [.map([("v", .field("x"))])]),
            .select(("found", found)))
        expectEqual(answer.rows, [["found": [1]], ["found": [2]]])
    }

    @Test
    func `A subquery gives its results as an array, and the value of an only field for each`() throws {
        let harness = try harness()
        let answer = try harness.execute(
            .collection("books"), .sort((.field("n"), false)),
            .select(
                ("all", stars("array", byStars)),
                ("one", stars("array", .select(("s", .field("stars"))), Stage.sort((.field("s"), true)))),
                ("two", stars("array", .select(("s", .field("stars")), ("t", 1)), .limit(1)))))
        expectEqual(answer.rows.map { $0["one"] }, [[5, 3], [1], []])
        expectEqual(answer.rows.map { $0["all"] }, [[3, 5], [1], []])
        expectEqual(answer.rows[1]["two"], .array([["s": 1, "t": 1]]))
    }

    @Test
    func `A scalar subquery gives one value, null for none, and fails for several`() throws {
        let harness = try harness()
        let average = stars("scalar", .aggregate([("a", .call("average", .field("stars")))]))
        let answer = try harness.execute(
            .collection("books"), .sort((.field("n"), false)),
            .select(
                ("average", average), ("first", stars("scalar", byStars, .limit(1))),
                ("safe", .call("if_error", stars("scalar"), "several"))))
        expectEqual(answer.rows.map { $0["average"] }, [4.0, 1.0, .null])
        expectEqual(answer.rows.map { $0["first"] }, [3, 1, .null])
        expectEqual(answer.rows.map { $0["safe"] }, ["several", 1, .null])
        let failed = harness.outcome([.collection("books"), .select(("x", stars("scalar")))])
        expect(failed.status == .invalidArgument && failed.text.contains("multiple results"))
    }

    /// If the expression were evaluated again for each element, this would take hours.
    @Test
    func `A subquery that is the same for all rows runs once in an expression that asks for it many times`() throws {
        let harness = try harness()
        try harness.set(["lists/a": Harness.fields(["l": .array((0..<30_000).map { .integer($0) })])])
        let genres = Expression.call(
            "array", .pipeline([.collection("books"), .sort((.field("n"), false)), .select(("g", .field("genre")))]))
        let many = Expression.call("array_transform", .field("l"), "x", genres)
        let answer = try harness.execute(
            .collection("lists"),
            .select(("n", .call("array_length", many)), ("last", .call("array_last", many))))
        expectEqual(answer.rows, [["n": 30_000, "last": ["sf", "sf", "crime"]]])
        // Others keep their places beside it.
        let each = Expression.call(
            "array_transform", .list([1, 2]), "x",
            .call(
                "array", genres,
                .call(
                    "array",
                    .pipeline([
                        .collection("books"), .where(.call("equal", .field("n"), .variable("x"))),
                        .select(("g", .field("genre"))),
                    ])), genres))
        let mixed = try harness.execute(Stage("literals", [.map([("a", 1)])]), .select(("v", each)))
        let all: Value = ["sf", "sf", "crime"]
        expectEqual(mixed.rows, [["v": [[all, ["sf"], all], [all, ["sf"], all]]]])
    }

    @Test
    func `A subquery sees the variables around it, and an index serves its condition`() throws {
        let harness = try harness()
        let same = Expression.pipeline([
            .collection("books"), .where(.call("equal", .field("genre"), .call("map_get", .variable("book"), "genre"))),
            .aggregate([("n", .call("count"))]),
        ])
        let answer = try harness.execute(
            .collection("books"), .sort((.field("n"), false)),
            Stage("let", [.map([("book", .call("current_document"))])]),
            .select(("id", .call("document_id", .field("__name__"))), ("same", .call("scalar", same))))
        expectEqual(answer.rows, [["id": "a", "same": 2], ["id": "b", "same": 2], ["id": "c", "same": 1]])
        let nested = Expression.call(
            "array_transform", ["sf", "crime"], "g",
            .call(
                "scalar",
                .pipeline([
                    .collection("books"), .where(.call("equal", .field("genre"), .variable("g"))),
                    .aggregate([("n", .call("count"))]),
                ])))
        try expectEqual(harness.value(nested), [2, 1])
        let scanned = try harness.execute(
            structuredPipeline(
                [Stage("literals", [.map([("a", 1)])]), .select(("v", nested))],
                options: [("explain_options", .map([("mode", "analyze")]))]))
        // A count reads the entries of the index alone.
        expectEqual(scanned.responses.last?.explainText?.contains("index entries scanned: 3"), true)
    }

    @Test
    func `Subqueries stand in every stage and within subqueries`() throws {
        let harness = try harness()
        let count = stars("scalar", .aggregate([("n", .call("count"))]))
        let filtered = try harness.execute(.collection("books"), .where(.call("equal", count, 2)))
        expectEqual(filtered.paths, ["books/a"])
        let sorted = try harness.execute(.collection("books"), .sort((count, true)), .limit(2))
        expectEqual(sorted.paths, ["books/a", "books/b"])
        let grouped = try harness.execute(
            .collection("books"), .aggregate([("sum", .call("sum", count))], by: [("g", .field("genre"))]),
            .sort((.field("g"), false)))
        expectEqual(grouped.rows, [["g": "crime", "sum": 0], ["g": "sf", "sum": 3]])
        let unnested = try harness.execute(
            .collection("books"), Stage("unnest", [stars("array", byStars), "s"]), .sort((.field("s"), false)))
        expectEqual(unnested.rows.map { $0["s"] }, [1, 3, 5])
        let literal = try harness.execute(
            Stage("literals", [.map([("n", .call("scalar", .pipeline([.collection("books"), .limit(0)])))])]))
        expectEqual(literal.rows, [["n": .null]])
        let inner = Expression.call("array", .pipeline([.collection("books"), .select(("n", count))]))
        try expectEqual(harness.value(.call("array_length", inner)), 3)
        let union = try harness.execute(
            .collection("books"), Stage("union", [.pipeline([.collection("books"), .where(.call("equal", count, 0))])]))
        expectEqual(union.paths, ["books/a", "books/b", "books/c", "books/c"])
    }

    @Test
    func `What cannot be is refused before anything is read`() throws {
        let harness = try harness()
        func status(_ expression: Expression) -> TestAnswer {
            harness.outcome([.collection("books"), .select(("x", expression))])
        }
        expectEqual(status(.call("array", .pipeline([]))).status, .invalidArgument)
        expectEqual(status(.call("scalar", 1)).status, .invalidArgument)
        expectEqual(status(.call("add", .pipeline([.collection("books")]), 1)).status, .invalidArgument)
        expect(
            status(.call("array", .pipeline([.collection("books"), .where(.variable("x"))]))).text.contains("\"x\""))
        expectEqual(
            status(.call("array", .pipeline([.collection("books"), Stage("delete", [])]))).status, .invalidArgument)
        expectEqual(harness.outcome([Stage("subcollection", ["reviews"])]).status, .invalidArgument)
        var deep = Expression.call("array", .pipeline([.collection("books")]))
        for _ in 0..<12 { deep = .call("array", .pipeline([.collection("books"), .select(("x", deep))])) }
        expectEqual(status(deep).status, .invalidArgument)
        let grouped: [Stage] = [
            .collection("books"), .aggregate([("n", .call("count"))]), .select(("x", stars("array"))),
        ]
        expectEqual(harness.outcome(grouped).status, .invalidArgument)
    }

    @Test
    func `An expression that chooses at random between subqueries ends`() throws {
        let harness = try harness()
        let read = Expression.call("scalar", .pipeline([.collection("books"), .limit(1), .select(("n", .field("n")))]))
        let chosen = Expression.call("conditional", .call("less_than", .call("rand"), 0.5), read, .call("add", read, 0))
        for _ in 0..<20 { try expectEqual(harness.value(chosen), 1) }
    }
}
