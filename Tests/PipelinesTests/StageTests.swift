// Stages, alone and after one another.

import DocumentModel
import FirestoreMessages
import Indexing
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct StageTests {
    private func harness() throws -> Harness {
        let harness = try Harness()
        try harness.set([
            "c/a": Harness.fields(["g": "x", "n": 1, "t": [10, 20]]),
            "c/b": Harness.fields(["g": "y", "n": 2, "t": []]),
            "c/c": Harness.fields(["g": "x", "m": ["k": 5], "n": 3.5]),
            "c/d": Harness.fields(["g": nil, "n": "text", "t": 7]),
            "c/a/e/f": Harness.fields(["n": 100]),
            "d/a/c/z": Harness.fields(["n": 200]),
        ])
        return harness
    }

    private func paths(_ harness: Harness, _ stages: Stage...) throws -> [String] {
        try harness.execute(structuredPipeline(stages)).paths.map { $0 ?? "" }
    }

    @Test
    func `Sources read a collection, a group, the database, named documents or literals`() throws {
        let harness = try harness()
        try expectEqual(paths(harness, .collection("c")), ["c/a", "c/b", "c/c", "c/d"])
        try expectEqual(paths(harness, .collection("c/a/e")), ["c/a/e/f"])
        let group = Stage("collection_group", [.value(.reference("")), "c"])
        expectEqual(Set(try paths(harness, group)), ["c/a", "c/b", "c/c", "c/d", "d/a/c/z"])
        try expectEqual(paths(harness, Stage("database", [])).count, 6)
        let documents = Stage("documents", ["c/b", "/c/zz", "/c/a", "/c/a"].map { .value(.reference($0)) })
        try expectEqual(paths(harness, documents), ["c/a", "c/b"])
        let literals = try harness.execute(Stage("literals", [.map([("a", 1)]), .map([("b", .call("add", 1, 1))])]))
        expectEqual(literals.rows, [["a": 1], ["b": 2]])
        expectEqual(literals.paths, [nil, nil])
    }

    @Test
    func `Documents of a pipeline and of its subqueries are judged in steps`() throws {
        let references = (0..<5).map { Expression.value(.reference("/c/\($0)")) }
        let subquery = Expression.call("array", .pipeline([Stage("documents", references)]))
        for (stages, count) in [
            ([Stage("documents", references)], 5),
            ([Stage("literals", [.map([("a", 1)])]), .select(("v", subquery))], 5),
            ([Stage("documents", references), Stage("union", [.pipeline([Stage("documents", references)])])], 10),
        ] {
            let control = SlowAccessControl(.executePipeline)
            let harness = try Harness(accessControl: control)
            let answer = harness.outcome(stages)
            expect(answer.isOK, "\(answer.text)")
            let turns = try #require(control.access?.turns)
            expect(turns.count == count && Set(turns).count == count)
            let denial = SlowAccessControl(.executePipeline, denying: "c/4")
            let denied = try Harness(accessControl: denial).outcome(stages)
            expect(denied.status == .permissionDenied && denied.messages.isEmpty)
        }
    }

    @Test
    func `A row keeps the name and the times of its document until it is grouped`() throws {
        let harness = try harness()
        let document = try #require(try harness.get("c/a"))
        let selected = try harness.execute(
            .collection("c"),
            .select(("id", .call("document_id", .field("__name__"))), ("at", .field("__update_time__"))),
            .limit(1))
        let result = try #require(selected.responses.first?.results.first)
        expect(result.name == document.name && result.updateTime == document.updateTime)
        expectEqual(selected.rows[0]["id"], "a")
        expectEqual(selected.rows[0]["at"], document.updateTime.map { .timestamp($0) })
        let grouped = try harness.execute(.collection("c"), Stage("distinct", [.map([("g", .field("g"))])]))
        expectEqual(grouped.paths, [nil, nil, nil])
    }

    @Test
    func `A condition that is null or fails leaves its row out`() throws {
        let harness = try harness()
        let sum = Expression.call("greater_than", .call("add", .field("n"), 1), 2)
        try expectEqual(paths(harness, .collection("c"), .where(sum)), ["c/b", "c/c"])
        try expectEqual(paths(harness, .collection("c"), .where(nil)), [])
        let both = Expression.call("and", .call("equal", .field("g"), "x"), sum)
        try expectEqual(paths(harness, .collection("c"), .where(both)), ["c/c"])
        let missing = Expression.call("not", .call("exists", .field("t")))
        try expectEqual(paths(harness, .collection("c"), .where(missing)), ["c/c"])
    }

    @Test
    func `Rows without the field are sorted before all others, and fields of any type are in one order`() throws {
        let harness = try harness()
        try expectEqual(paths(harness, .collection("c"), .sort((.field("t"), false))), ["c/c", "c/d", "c/b", "c/a"])
        try expectEqual(
            paths(harness, .collection("c"), .sort((.field("g"), true), (.field("n"), true))),
            ["c/b", "c/c", "c/a", "c/d"])
        try expectEqual(paths(harness, .collection("c"), .sort((.field("t"), true)), .limit(2)), ["c/a", "c/b"])
        try expectEqual(paths(harness, .collection("c"), .offset(1), .limit(2), .offset(1)), ["c/c"])
        try expectEqual(paths(harness, .collection("c"), .limit(2), .offset(1)), ["c/b"])
    }

    @Test
    func `Fields are selected, added, removed and replaced`() throws {
        let harness = try harness()
        let one = Stage("documents", [.value(.reference("/c/c"))])
        try expectEqual(harness.execute(one, .select(("v", .field("m.k")), ("w", .field("m.z")))).rows, [["v": 5]])
        try expectEqual(
            harness.execute(one, Stage("add_fields", [.map([("n", 0), ("a", .field("g"))])])).rows,
            [["a": "x", "g": "x", "m": ["k": 5], "n": 0]])
        try expectEqual(
            harness.execute(one, Stage("remove_fields", [.field("m.k"), .field("n"), .field("zz.z")])).rows,
            [["g": "x", "m": [:]]])
        try expectEqual(harness.execute(one, Stage("replace_with", [.field("m")])).rows, [["k": 5]])
        let map = Expression.map([("g", 1), ("h", .field("n"))])
        try expectEqual(
            harness.execute(one, Stage("replace_with", [map, "merge_keep_existing"])).rows,
            [["g": "x", "h": 3.5, "m": ["k": 5], "n": 3.5]])
        try expectEqual(
            harness.execute(one, Stage("replace_with", [map, "merge_overwrite_existing"])).rows,
            [["g": 1, "h": 3.5, "m": ["k": 5], "n": 3.5]])
        expectEqual(harness.outcome([one, Stage("replace_with", [.field("n")])]).status, .invalidArgument)
    }

    @Test
    func `Maps are made around a path that is selected and absent, and not around one that is added`() throws {
        let harness = try harness()
        let one = Stage("documents", [.value(.reference("/c/c"))])
        let fields = ["m.z.y", "n.k", "z.k", "z.l", "nothing", "m.k"].map { ($0, Expression.field($0)) }
        try expectEqual(
            harness.execute(one, Stage("select", [.map(fields)])).rows,
            [["m": ["k": 5, "z": .map([:])], "n": .map([:]), "z": .map([:])]])
        try expectEqual(
            harness.execute(one, Stage("add_fields", [.map(fields)])).rows, [["g": "x", "m": ["k": 5], "n": 3.5]])
        try expectEqual(harness.execute(Stage("literals", [.map(fields)])).rows, [[:]])
    }

    @Test
    func `An index that is forced is that of the names, or is refused`() throws {
        let harness = try harness()
        let condition = Stage.where(.call("equal", .field("g"), "x"))
        func stages(_ source: String, _ arguments: [Expression], _ index: Expression) -> [Stage] {
            [Stage(source, arguments, options: [("force_index", index)]), condition]
        }
        let path = [Expression.value(.reference("/c"))]
        for (source, arguments) in [("collection", path), ("collection_group", [.value(.reference("")), "c"])] {
            let forced = stages(source, arguments, "primary")
            try expectEqual(harness.execute(structuredPipeline(forced)).paths, ["c/a", "c/c"])
            for (pipeline, usesIndex) in [(forced, false), ([Stage(source, arguments), condition], true)] {
                let explained = try harness.execute(
                    structuredPipeline(pipeline, options: [("explain_options", .map([("mode", "explain")]))]))
                let text = explained.responses.compactMap(\.explainText).joined()
                let scans = text.contains("CollectionScan") || text.contains("SubtreeScan")
                expect(scans != usesIndex, "\(text)")
            }
            for index in ["other", 7] as [Expression] {
                let answer = harness.outcome(stages(source, arguments, index))
                expect(answer.status == .invalidArgument && answer.text.contains("Invalid index"), "\(answer.text)")
            }
        }
        let search = Stage("search", [], options: [("query", .call("document_matches", "x"))])
        let searching = [stages("collection", path, "primary")[0], search]
        expectEqual(harness.outcome(searching).status, .invalidArgument)
        let documents = stages("documents", [.value(.reference("/c/a"))], "primary")
        expectEqual(harness.outcome(documents).status, .unimplemented)
    }

    @Test
    func `A declared index that is forced is used, or the pipeline is refused`() throws {
        let harness = try harness()
        let shape = IndexShape(
            collectionID: "c", isGroup: false,
            parts: [
                IndexShape.Part(field: try FieldPath("g"), kind: .ascending),
                IndexShape.Part(field: try FieldPath("n"), kind: .descending),
            ])
        let database = try DatabaseName(Harness.database)
        harness.store.changeIndexes(in: database, { $0.indexes.append(shape) }, completion: { _ in })
        try waitUntil("the index is built") {
            harness.store.declaredIndexes(in: database).contains { $0.shape == shape && $0.state == .ready }
        }
        func stages(_ id: String, _ rest: [Stage]) -> [Stage] {
            [
                Stage(
                    "collection", [.value(.reference("/c"))],
                    options: [("force_index", .value(.string(shape.identifier)))])
            ]
                + rest
        }
        let condition = Stage.where(.call("equal", .field("g"), "x"))
        let order = Stage.sort((.field("n"), true))
        let exists = Stage.where(.call("exists", .field("n")))
        let served = [condition, exists, order]
        try expectEqual(harness.execute(structuredPipeline(stages(shape.identifier, served))).paths, ["c/c", "c/a"])
        let explained = try harness.execute(
            structuredPipeline(
                stages(shape.identifier, served), options: [("explain_options", .map([("mode", "explain")]))]))
        let text = explained.responses.compactMap(\.explainText).joined()
        expect(text.contains("IndexScan (g ASC, n DESC"), "\(text)")
        for rest in [
            [], [Stage.where(.call("equal", .field("n"), 1))], [Stage.aggregate([("all", .call("count", []))])],
        ] {
            let answer = harness.outcome(stages(shape.identifier, rest))
            expect(answer.status == .invalidArgument && answer.text.contains("serves neither"), "\(answer.text)")
        }
        let group = Stage(
            "collection_group", [.value(.reference("")), "c"],
            options: [("force_index", .value(.string(shape.identifier)))])
        let answer = harness.outcome([group, condition])
        expect(answer.status == .invalidArgument && answer.text.contains("no index with this id"), "\(answer.text)")
    }

    @Test
    func `An array becomes rows; what is not an array stays one row without an index`() throws {
        let harness = try harness()
        let unnest = Stage("unnest", [.field("t"), .field("v")], options: [("index_field", .field("i"))])
        let rows = try harness.execute(.collection("c"), unnest, .select(("v", .field("v")), ("i", .field("i")))).rows
        expectEqual(rows, [["i": 0, "v": 10], ["i": 1, "v": 20], ["i": nil], ["i": nil, "v": 7]])
    }

    @Test
    func `Groups have totals; without groups there is one row, even of nothing`() throws {
        let harness = try harness()
        let totals: [(String, Expression)] = [
            ("all", .call("count", [])), ("numbers", .call("count_if", .call("is_type", .field("n"), "number"))),
            ("sum", .call("sum", .field("n"))), ("mean", .call("average", .field("n"))),
            ("least", .call("minimum", .field("n"))), ("most", .call("maximum", .field("n"))),
        ]
        let grouped = try harness.execute(
            .collection("c"), .aggregate(totals, by: [("g", .field("g"))]), .sort((.field("g"), false))
        ).rows
        expectEqual(
            grouped,
            [
                ["all": 1, "g": nil, "least": "text", "mean": nil, "most": "text", "numbers": 0, "sum": 0],
                ["all": 2, "g": "x", "least": 1, "mean": 2.25, "most": 3.5, "numbers": 2, "sum": 4.5],
                ["all": 1, "g": "y", "least": 2, "mean": 2.0, "most": 2, "numbers": 1, "sum": 2],
            ])
        let none = try harness.execute(.collection("none"), .aggregate(totals)).rows
        expectEqual(none, [["all": 0, "least": nil, "mean": nil, "most": nil, "numbers": 0, "sum": 0]])
        let lists = try harness.execute(
            .collection("c"),
            .aggregate([
                ("first", .call("first", .field("m"))), ("last", .call("last", .field("n"))),
                ("kinds", .call("count_distinct", .field("g"))), ("each", .call("array_agg", .field("g"))),
                ("set", .call("array_agg_distinct", .field("g"))),
            ])
        ).rows
        expectEqual(
            lists, [["each": ["x", "y", "x", nil], "first": nil, "kinds": 2, "last": "text", "set": ["x", "y", nil]]])
    }

    @Test
    func `Integers are summed exactly, and a total beyond 64 bits is a double`() throws {
        let harness = try Harness()
        try harness.set([
            "c/a": Harness.fields(["n": .integer(.max)]), "c/b": Harness.fields(["n": 1]),
            "c/c": Harness.fields(["n": -1]),
        ])
        let sum = Stage.aggregate([("sum", .call("sum", .field("n")))])
        try expectEqual(harness.execute(.collection("c"), sum).rows, [["sum": .integer(.max)]])
        let positive = Stage.where(.call("greater_than", .field("n"), 0))
        try expectEqual(harness.execute(.collection("c"), positive, sum).rows, [["sum": .double(0x1p63)]])
    }

    @Test
    func `Pipelines are united, and rows are sampled`() throws {
        let harness = try harness()
        let other = Expression.pipeline([.collection("d/a/c")])
        try expectEqual(paths(harness, .collection("c"), .limit(1), Stage("union", [other])), ["c/a", "d/a/c/z"])
        try expectEqual(paths(harness, .collection("c"), Stage("sample", [2, "documents"])).count, 2)
        expectEqual(Set(try paths(harness, .collection("c"), Stage("sample", [9, "documents"]))).count, 4)
        try expectEqual(paths(harness, .collection("c"), Stage("sample", [1.0, "percent"])).count, 4)
        try expect(paths(harness, .collection("c"), Stage("sample", [0.0, "percent"])).isEmpty)
    }

    @Test
    func `The nearest rows have vectors of the dimension asked for, sorted by distance`() throws {
        let harness = try Harness()
        try harness.set([
            "v/a": Harness.fields(["e": .vector([1, 2])]), "v/b": Harness.fields(["e": .vector([1, 5])]),
            "v/c": Harness.fields(["e": .vector([1, 2, 3])]), "v/d": Harness.fields(["e": [1, 2]]),
            "v/e": Harness.fields(["e": .vector([2, 2])]),
        ])
        func nearest(_ measure: String, _ limit: Int64) throws -> PipelineAnswer {
            try harness.execute(
                .collection("v"),
                Stage(
                    "find_nearest", [.field("e"), .value(.vector([1, 2])), .value(.string(measure))],
                    options: [("limit", .value(.integer(limit))), ("distance_field", .field("d"))]),
                .select(("d", .field("d"))))
        }
        let near = try nearest("euclidean", 2)
        expect(near.paths == ["v/a", "v/e"] && near.rows == [["d": 0.0], ["d": 1.0]])
        try expectEqual(nearest("dot_product", 9).rows, [["d": 11.0], ["d": 6.0], ["d": 5.0]])
        try expectEqual(nearest("cosine", 1).paths, ["v/a"])
        let unknown = Stage("find_nearest", [.field("e"), .value(.vector([1])), "manhattan"])
        expectEqual(harness.outcome([.collection("v"), unknown]).status, .invalidArgument)
    }

    @Test
    func `The head of a pipeline uses the indexes of queries, and explain shows the operators`() throws {
        let harness = try harness()
        func text(_ mode: String, _ stages: Stage...) throws -> String {
            let options: [(String, Expression)] = [("explain_options", .map([("mode", .value(.string(mode)))]))]
            let answer = try harness.execute(structuredPipeline(stages, options: options))
            if mode == "explain" { expect(answer.rows.isEmpty) }
            return try #require(answer.responses.last?.explainText)
        }
        let plan = try text(
            "explain", .collection("c"),
            .where(.call("and", .call("exists", .field("n")), .call("equal", .field("n"), 2))),
            Stage("distinct", [.map([("g", .field("g"))])]))
        expectEqual(
            plan,
            """
            Distinct g
            └─ Filter n == 2
               └─ Fetch
                  └─ IndexScan (n ASC, __name__ ASC): n == 2
            """)
        let analysis = try text("analyze", .collection("c"), .where(.call("equal", .field("n"), 2)))
        expect(analysis.contains("Execution:") && analysis.contains("results returned: 1"))
        expect(analysis.contains("index entries scanned: 1"))
    }

    @Test
    func `Results come in pages with the time of their state, and one message at least`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        for index in 0..<3_000 {
            let fields = Harness.fields(["n": .integer(Int64(index)), "p": .string(String(repeating: "x", count: 100))])
            try Harness.name("c/\(10_000 + index)").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        try harness.commit(writes)
        let all = try harness.execute(.collection("c"))
        expectEqual(all.paths.map { $0 ?? "" }, (0..<3_000).map { "c/\(10_000 + $0)" })
        expect(all.responses.count > 2 && Set(all.responses.map(\.executionTime)).count == 1)
        let sorted = try harness.execute(.collection("c"), .sort((.call("subtract", 0, .field("n")), false)))
        expectEqual(sorted.rows.map { $0["n"] }, (0..<3_000).reversed().map { .integer($0) })
        let top = try harness.execute(.collection("c"), .sort((.call("mod", .field("n"), 1_000), true)), .limit(4))
        expectEqual(top.rows.map { $0["n"] }, [999, 1999, 2999, 998])
        let none = try harness.execute(.collection("c"), .where(false))
        expect(none.responses.count == 1 && none.responses[0].executionTime != nil && none.rows.isEmpty)
    }

    @Test
    func `A pipeline reads at a time or in a transaction, which may begin with it`() throws {
        let harness = try Harness()
        let first = try harness.response(setting: ["c/a": Harness.fields(["n": 1])])
        let transaction = try harness.begin(.readOnly(readTime: nil))
        try harness.set(["c/b": Harness.fields(["n": 2])])
        let pipeline = structuredPipeline([.collection("c")])
        try expectEqual(harness.execute(pipeline, .readTime(first.commitTime)).rows.count, 1)
        try expectEqual(harness.execute(pipeline, .transaction(transaction)).rows.count, 1)
        let begun = try harness.execute(pipeline, .newTransaction(.readOnly(readTime: nil)))
        expectEqual(begun.rows.count, 2)
        let identifier = try #require(begun.responses.first?.transaction)
        expect(!identifier.isEmpty)
        try harness.delete("c/a")
        try expectEqual(harness.execute(pipeline, .transaction(identifier)).rows.count, 2)
    }

    @Test(arguments: [
        (["n": 1] as MapValue, false), (["n": 5] as MapValue, true),
    ])
    func `A commit conflicts with what a pipeline read, and not with what its query leaves out`(
        written: MapValue, conflicts: Bool
    ) throws {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": 4])])
        let transaction = try harness.begin(.readWrite(retryTransaction: [], concurrency: .unspecified))
        let pipeline = structuredPipeline([
            .collection("c"), .where(.call("greater_than", .field("n"), 3)), .aggregate([("all", .call("count", []))]),
        ])
        try expectEqual(harness.execute(pipeline, .transaction(transaction)).rows, [["all": 1]])
        try harness.set(["c/b": written.documentBytes])
        var writes = try harness.emptyWrites()
        try Harness.name("d/x").withUTF8Span { try writes.update($0, fields: Harness.fields(["n": 0]).span.bytes) }
        let answer = harness.tryCommit(writes, transaction: transaction)
        expectEqual(answer.status, conflicts ? .aborted : .ok, "\(answer.text)")
    }
}
