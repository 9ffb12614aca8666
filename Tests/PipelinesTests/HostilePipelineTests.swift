// Pipelines that are wrong, or too large.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import Pipelines
import ServiceTestSupport
import TestSupport
import Testing

extension SplitMix64 {
    /// A number from 0 to `bound` - 1.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

@Suite(.timeLimit(.minutes(20)))
struct HostilePipelineTests {
    private func status(_ stages: [Stage], options: [(String, Expression)] = []) throws -> TestAnswer {
        try Harness().outcome(stages, options: options)
    }

    @Test
    func `What is not served is refused by name`() throws {
        let harness = try Harness()
        let cases: [([Stage], String)] = [
            ([.collection("c"), .select(("v", .call("array_shuffle", [1], 2)))], "array_shuffle"),
            ([.collection("c"), .aggregate([("v", .call("median", .field("a")))])], "median"),
            ([Stage("collection", [.value(.reference("/c"))], options: [("shuffle", 1)])], "shuffle"),
        ]
        for (stages, name) in cases {
            let answer = harness.outcome(stages)
            expect(answer.status == .unimplemented && answer.text.contains(name), "\(name): \(answer.text)")
        }
        let option = harness.outcome([.collection("c")], options: [("pace", "slow")])
        expect(option.status == .unimplemented && option.text.contains("pace"))
    }

    @Test
    func `What is wrong is refused before anything is read`() throws {
        let harness = try Harness()
        let cases: [[Stage]] = [
            [], [.where(true)], [.collection("c/d")], [.collection("")], [.collection("__x__")],
            [.collection("c"), .collection("c")], [.collection("c"), .limit(-1)],
            [.collection("c"), Stage("limit", ["x"])], [.collection("c"), Stage("limit", [1, 2])],
            [.collection("c"), Stage("where", [])], [.collection("c"), Stage("select", [.map([])])],
            [.collection("c"), Stage("sort", [.map([("direction", "ascending")])])],
            [.collection("c"), Stage("sort", [.map([("expression", .field("a")), ("direction", "up")])])],
            [.collection("c"), .aggregate([])], [.collection("c"), .aggregate([("a", .field("b"))])],
            [.collection("c"), .aggregate([("a", .call("count", []))], by: [("a", .field("b"))])],
            [.collection("c"), Stage("sample", [2.0, "percent"])], [.collection("c"), Stage("union", [1])],
            [.collection("c"), Stage("union", [.pipeline([])])], [Stage("documents", [])],
            [Stage("documents", [.value(.reference("/c"))])], [Stage("literals", [1])],
            [.collection("c"), .select(("v", .call("add", [.field("a")])))],
            [.collection("c"), Stage("unnest", [.field("a"), 5])], [.collection("c"), Stage("", [])],
        ]
        for (index, stages) in cases.enumerated() {
            let answer = harness.outcome(stages)
            expect(answer.status == .invalidArgument && !answer.text.isEmpty, "case \(index): \(answer.text)")
        }
        let missing = ExecutePipelineRequest(database: Harness.database, pipeline: nil)
        expectEqual(harness.call(.executePipeline, missing).status, .invalidArgument)
        var committing = ExecutePipelineRequest(
            database: Harness.database, pipeline: structuredPipeline([.collection("c")]))
        committing.autoCommitsTransaction = true
        expectEqual(harness.call(.executePipeline, committing).status, .invalidArgument)
    }

    @Test
    func `Depth, parts and stages are bounded`() throws {
        var deep = Expression.field("a")
        for _ in 0..<5_000 { deep = .call("not", deep) }
        try expectEqual(status([.collection("c"), .where(deep)]).status, .invalidArgument)
        var nested: Expression = 1
        for _ in 0..<60 { nested = .list([nested]) }
        try expectEqual(status([.collection("c"), .where(.call("equal", nested, 1))]).status, .invalidArgument)
        let wide = Expression.call("and", Array(repeating: .call("exists", .field("a")), count: 20_000))
        try expectEqual(status([.collection("c"), .where(wide)]).status, .invalidArgument)
        try expectEqual(status([.collection("c")] + Array(repeating: .limit(1), count: 250)).status, .invalidArgument)
        var union = [Stage.collection("c")]
        for _ in 0..<200 { union = [.collection("c"), Stage("union", [.pipeline(union)])] }
        try expectEqual(status(union).status, .invalidArgument)
    }

    @Test
    func `Values that grow by doubling are refused`() throws {
        let harness = try Harness()
        var text = Expression.value(.string(String(repeating: "x", count: 1_000)))
        for _ in 0..<18 { text = .call("string_repeat", text, 2) }
        expectEqual(harness.failure(text).status, .resourceExhausted)
        var stages = [Stage("literals", [.map([("a", .list([1]))])])]
        for _ in 0..<40 {
            stages.append(Stage("add_fields", [.map([("a", .call("array_concat", .field("a"), .field("a")))])]))
        }
        expectEqual(harness.outcome(stages).status, .resourceExhausted)
        stages = [Stage("literals", [.map([("a", 1)])])]
        for _ in 0..<40 { stages.append(Stage("add_fields", [.map([("a", .call("array", .field("a")))])])) }
        expectEqual(harness.outcome(stages).status, .invalidArgument)
    }

    @Test
    func `A value that has one part many times costs no more than the bounds`() throws {
        let harness = try Harness()
        var doubled = [Stage("literals", [.map([("a", .value(.string(String(repeating: "x", count: 200_000))))])])]
        let twice = Expression.call("array", .field("a"), .field("a"))
        for _ in 0..<8 { doubled.append(Stage("add_fields", [.map([("a", twice)])])) }
        expectEqual(harness.outcome(doubled).status, .resourceExhausted)
        for stage in [
            Stage.sort((.field("a"), false)), Stage("distinct", [.map([("b", .field("a"))])]),
            Stage("add_fields", [.map([("b", .call("equal", .field("a"), .field("a")))])]),
            .aggregate([("b", .call("array_agg", .field("a")))]),
        ] {
            expectEqual(harness.outcome(doubled + [stage]).status, .resourceExhausted, "\(stage.name)")
        }
        let deep = doubled + Array(repeating: Stage("add_fields", [.map([("a", twice)])]), count: 40)
        expect(harness.outcome(deep + [.select(("b", 1))]).isOK)
        expect([.invalidArgument, .resourceExhausted].contains(harness.outcome(deep).status))
        let wide = (0..<200).map { ("f\($0)", Expression.call("string_repeat", "x", 1_000_000)) }
        let wideLiteral = [Stage("literals", [.map([("a", 1)])]), Stage("add_fields", [.map(wide)])]
        expectEqual(harness.outcome(wideLiteral + [.select(("b", 1))]).status, .resourceExhausted)
    }

    @Test(arguments: [
        Stage.sort((.call("subtract", 0, .field("n")), false)),
        .aggregate([("all", .call("array_agg", .field("p")))]),
        .aggregate([("all", .call("count", []))], by: [("n", .field("n"))]),
        Stage("distinct", [.map([("n", .field("n"))])]), Stage("sample", [100_000, "documents"]),
    ])
    func `A stage that holds more than a pipeline may is refused with its name`(stage: Stage) throws {
        var limits = ServiceLimits()
        limits.pipelines.memoryBytes = 100_000
        let harness = try Harness(limits: limits)
        var writes = try harness.emptyWrites()
        for index in 0..<2_000 {
            let fields = Harness.fields(["n": .integer(Int64(index)), "p": .string(String(repeating: "x", count: 100))])
            try Harness.name("c/\(index)").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        try harness.commit(writes)
        let answer = harness.outcome([.collection("c"), stage])
        expect(answer.status == .resourceExhausted && answer.text.contains("stage \(stage.name)"), "\(answer.text)")
        // What needs no memory runs with little of it.
        let counted = try harness.execute(.collection("c"), .aggregate([("all", .call("count", []))]))
        expectEqual(counted.rows, [["all": 2_000]])
    }

    @Test
    func `Values that one row is given are bounded while they are built`() throws {
        let harness = try Harness()
        let row = Stage("literals", [.map([("a", 1)])])
        // Without the bound, 15 GB are built before the stage ends.
        let wide = (0..<1_000).map { ("f\($0)", Expression.call("string_repeat", "x", 15_000_000)) }
        for stage in [
            Stage("add_fields", [.map(wide)]), Stage("select", [.map(wide)]), Stage("let", [.map(wide)]),
        ] {
            let answer = harness.outcome([row, stage, .select(("b", 1))])
            expect(
                answer.status == .resourceExhausted && answer.text.contains("stage 2: \(stage.name)"), "\(answer.text)")
        }
        let literals = Stage("literals", [.map(wide)])
        expectEqual(harness.outcome([literals, .select(("b", 1))]).status, .resourceExhausted)
    }

    /// Each call makes a copy of the value of the variable `x`, or decodes it.
    @Test(
        arguments: [
            .call("string_reverse", .variable("x")), .call("trim", .variable("x")), .call("ltrim", .variable("x")),
            .call("rtrim", .variable("x")), .call("substring", .variable("x"), 0),
            .call("get_field", .variable("x"), "t"), .call("equal_any", 7, .variable("x")),
            .call("type", .variable("x")), .call("is_type", .variable("x"), "map"),
        ] as [Expression])
    func `Work on the variables of a lambda is paid for`(call: Expression) throws {
        let harness = try Harness()
        guard case .call(let name, _) = call else { return }
        let value: Value =
            switch name {
            case "get_field", "type", "is_type": ["t": .string(String(repeating: "x", count: 900_000))]
            case "equal_any": .array(Array(repeating: 7, count: 12_000))
            default: .bytes(Array(repeating: 1, count: 900_000))
            }
        func outcome(times count: Int) -> TestAnswer {
            let calls = Expression.call("array", Array(repeating: call, count: count))
            let array = Expression.call(
                "array_transform", .call("array", .field("v")), "x", .call("array_length", calls))
            return harness.outcome([Stage("literals", [.map([("v", .value(value))])]), .select(("n", array))])
        }
        expect(outcome(times: 2).isOK)
        expectEqual(outcome(times: 200).status, .resourceExhausted)
    }

    /// A million comparisons each, most of them of values without bytes.
    @Test(arguments: [("", true), (nil, 1), ("", "a"), (false, true)] as [(Expression, Expression)])
    func `Comparisons are paid for, however small the values are`(left: Expression, right: Expression) throws {
        func array(_ element: Expression) -> Expression {
            .call("array_transform", .call("split", .call("string_repeat", ",", 300_000), ","), "e", element)
        }
        let search = Expression.call("array_contains", array(left), right)
        let answer = try Harness().failure(.call("array", search, search, search, search))
        expectEqual(answer.status, .resourceExhausted, "\(answer.text)")
    }

    /// Nine million pairs, whose comparison costs more than a row may.
    @Test
    func `Two long arrays are compared by keys, not each element with each`() throws {
        let values = (0..<3_000).map { "v\($0)" }
        func split(_ values: [String]) -> Expression {
            .call("split", .value(.string(values.joined(separator: ","))), ",")
        }
        let others = values.map { $0 + "x" }
        let rows = try Harness().execute(
            Stage("literals", [.map([("n", 1)])]),
            .select(
                ("none", .call("array_contains_any", split(values), split(others))),
                ("one", .call("array_contains_any", split(values), split(others + values.suffix(1)))),
                ("all", .call("array_contains_all", split(values), split(values.reversed()))),
                ("most", .call("array_contains_all", split(values), split(values + ["x"]))))
        ).rows
        expectEqual(rows, [["none": false, "one": true, "all": true, "most": false]])
    }

    /// One of each array alone is in both, by the equality of stored values, beside 100 that are not.
    @Test(
        arguments: [
            (1, 1.0, true), (.value(.double(-0.0)), 0, true), (.value(.double(.nan)), .value(.double(-.nan)), true),
            (nil, nil, true),
            (.list([1, nil]), .list([1.0, nil]), true), (.map([("a", 1)]), .map([("a", 1.0)]), true),
            (9_007_199_254_740_993, 9_007_199_254_740_992.0, false), ("1", 1, false), (.list([1]), 1, false),
            (true, 1, false), (.map([("a", 1)]), .map([("b", 1)]), false),
        ] as [(Expression, Expression, Bool)])
    func `Keys of elements are equal where the elements are`(left: Expression, right: Expression, isEqual: Bool) throws
    {
        func array(_ element: Expression, _ prefix: String) -> Expression {
            .list((0..<100).map { .value(.string("\(prefix)\($0)")) } + [element])
        }
        let rows = try Harness().execute(
            Stage("literals", [.map([("l", array(left, "l")), ("r", array(right, "r"))])]),
            .select(
                ("any", .call("array_contains_any", .field("l"), .field("r"))),
                ("all", .call("array_contains_all", .call("array_concat", .field("l"), array("x", "r")), .field("r"))))
        ).rows
        expectEqual(rows, [["any": .boolean(isEqual), "all": .boolean(isEqual)]])
    }

    /// Each takes some 10 ms. Those of the first kind are refused in the end, because they are too large.
    @Test(arguments: ["\\pL{100}", "(\\pN|\\pL){20}"])
    func `Patterns that take long to compile are paid for`(pattern: String) throws {
        let harness = try Harness()
        func outcome(times count: Int) -> TestAnswer {
            let calls = (0..<count).map { index in
                Expression.call(
                    "is_error",
                    .call("regex_match", .field("a"), .call("concat", .field("p"), .value(.string("\(index)")))))
            }
            let row = Stage("literals", [.map([("a", "b"), ("p", .value(.string(pattern)))])])
            return harness.outcome([row, .select(("n", .call("array_length", .call("array", calls))))])
        }
        expect(outcome(times: 5).isOK)
        expectEqual(outcome(times: 60).status, .resourceExhausted)
    }

    /// If each path read its map again, this would take many minutes.
    @Test
    func `A stage reads a map once, however many of its fields it changes`() throws {
        let harness = try Harness()
        var map: MapValue = [:]
        for index in 0..<30_000 { map["f\(index)"] = .null }
        try harness.set(["c/a": Harness.fields(["m": .map(map)])])
        let missing = Stage("remove_fields", (0..<1_000).map { .field("m.missing\($0)") })
        let nested = (0..<1_000).map { ("m.f\($0)", Expression.value(.integer(1))) }
        let stages = Array(repeating: missing, count: 15) + [Stage("add_fields", [.map(nested)])]
        let removed = Stage("remove_fields", (0..<1_000).map { .field("m.f\($0)") })
        let size = Stage.select(("n", .call("length", .field("m"))), ("one", .field("m.f999")))
        let answer = try harness.execute(structuredPipeline([.collection("c")] + stages + [size]))
        expectEqual(answer.rows, [["n": 30_000, "one": 1]])
        let rest = try harness.execute(structuredPipeline([.collection("c")] + stages + [removed, size]))
        expectEqual(rest.rows, [["n": 29_000]])
    }

    @Test
    func `The elements of an array count as held while their rows are made`() throws {
        var limits = ServiceLimits()
        limits.pipelines.memoryBytes = 500_000
        let harness = try Harness(limits: limits)
        let row = Stage("literals", [.map([("a", .list(Array(repeating: 1, count: 3_000)))])])
        func unnest(_ count: Int) -> [Stage] {
            (0..<count).map { Stage("unnest", [.field("a"), .field("e\($0)")]) }
        }
        expect(harness.outcome([row] + unnest(1) + [.limit(10)]).isOK)
        let answer = harness.outcome([row] + unnest(20) + [.limit(10)])
        expect(answer.status == .resourceExhausted && answer.text.contains("stage unnest"), "\(answer.text)")
    }

    @Test
    func `A step makes fewer rows of an array if each is a copy of many fields`() throws {
        let fields = (0..<5_000).map { ("f\($0)", Expression.value(.null)) }
        let wide = ("w", Expression.map(fields))
        let array = ("a", Expression.list(Array(repeating: 1, count: 500)))
        func rowsOfFirstStep(_ stages: [Stage]) throws -> Int {
            let execution = try PipelineExecution(
                structuredPipeline: structuredPipeline(stages).byteSpan, in: try DatabaseName(Harness.database))
            _ = try execution.next { _ in .more }
            return execution.returnedResults
        }
        let unnest = Stage("unnest", [.field("a"), .field("e")])
        let few = try rowsOfFirstStep([Stage("literals", [.map([wide, array])]), unnest])
        let flat = Stage("replace_with", [.field("w"), "merge_keep_existing"])
        let many = try rowsOfFirstStep([Stage("literals", [.map([wide, array])]), flat, unnest])
        expectEqual(few, 500)
        expect(many > 0 && many < 250, "\(many)")
    }

    @Test
    func `Values that accumulators compare, and keys of groups, are work`() throws {
        let wide = Expression.value(.string(String(repeating: "x", count: 2_000)))
        let row = Stage("literals", [.map([("w", wide), ("a", .list((0..<200).map { .value(.integer($0)) }))])])
        let rows = [row, Stage("unnest", [.field("a"), .field("e")])]
        let many = Stage("let", [.map([("v", .call("array", Array(repeating: .field("w"), count: 30)))])])
        func steps(_ stages: Stage...) throws -> Int {
            let execution = try PipelineExecution(
                structuredPipeline: structuredPipeline(rows + stages).byteSpan, in: try DatabaseName(Harness.database))
            var count = 1
            while case .paused = try execution.next(emit: { _ in .more }) { count += 1 }
            return count
        }
        let named = (0..<100).map { "m\($0)" }
        // Some 60 KB are compared for each, and are a key.
        let largest = named.map { ($0, Expression.call("maximum", .variable("v"))) }
        try expect(steps(many, .aggregate(largest)) > 50)
        let counts = named.map { ($0, Expression.call("maximum", .field("e"))) }
        try expect(steps(many, .aggregate(counts)) < 20)
        let keys = named.map { ($0, Expression.variable("v")) }
        try expect(steps(many, Stage("distinct", [.map(keys)])) > 50)
    }

    @Test
    func `An aggregate of many fields of large documents takes several steps`() throws {
        let harness = try Harness()
        var fields: MapValue = [:]
        for index in 0..<1_001 { fields["f\(1_000 + index)"] = .integer(Int64(index)) }
        let bytes = fields.documentBytes
        var writes = try harness.emptyWrites()
        for index in 0..<150 {
            try Harness.name("c/\(index)").withUTF8Span { try writes.update($0, fields: bytes.byteSpan) }
        }
        try harness.commit(writes)
        func accumulators(_ count: Int) -> [(String, Expression)] {
            (0..<count).map { ("s\($0)", .call("sum", .field("f\(2_000 - $0)"))) }
        }
        func steps(_ stage: Stage) throws -> (count: Int, row: MapValue?) {
            let execution = try PipelineExecution(
                structuredPipeline: structuredPipeline([.collection("c"), stage]).byteSpan,
                in: try DatabaseName(Harness.database))
            let reader = harness.store.makeReader()
            let point = try reader.readPoint(.latest, in: try DatabaseName(Harness.database))
            var (count, row) = (0, MapValue?.none)
            while true {
                let progress = try execution.next { (result) throws(RequestError) in
                    var writer = ByteBuffer()
                    try result.appendFields(into: &writer)
                    row = try? MapValue(documentBytes: writer.bytes)
                    return .more
                }
                switch progress {
                case .finished: return (count, row)
                case .paused: continue
                case .starved:
                    count += 1
                    try execution.fill(from: try reader.source(at: point, matching: execution.starvedPlan?.matcher))
                }
            }
        }
        let few = try steps(.aggregate(accumulators(2)))
        expectEqual(few.row?["s1"], .integer(150 * 999))
        let many = try steps(.aggregate(accumulators(1_000), by: [("g", .field("f1000"))]))
        expect(many.row?["s999"] == 150 && many.row?["g"] == 0)
        expect(many.count > few.count, "\(many.count) and \(few.count) steps")
    }

    @Test(arguments: ["", "m."])
    func `Many fields of a large map are found without a walk for each`(around: String) throws {
        let harness = try Harness()
        var large: MapValue = [:]
        for index in 0..<30_000 { large["field_number_\(10_000 + index)"] = .integer(Int64(index)) }
        let fields: MapValue = around.isEmpty ? large : ["m": .map(large)]
        try harness.set(["c/a": fields.documentBytes])
        let names = (0..<999).map { "field_number_\(39_998 - 30 * $0)" }
        let selected = names.enumerated().map { ("v\($0)", Expression.field(around + $1)) }
        let row = try harness.execute(
            Stage("documents", [.value(.reference("/c/a"))]),
            Stage("select", [.map([("none", .field(around + "field_number_1"))] + selected)])
        ).rows[0]
        expect(row["v0"] == 29_998 && row["v998"] == 58 && row["none"] == nil)
    }

    /// Steps that a pipeline takes from one result to the next; the last number leads to the end.
    private func stepsBetweenResults(_ stages: [Stage]) throws -> [Int] {
        let execution = try PipelineExecution(
            structuredPipeline: structuredPipeline(stages).byteSpan, in: try DatabaseName(Harness.database))
        var steps = [1]
        while case .paused = try execution.next(emit: { _ in .full }) {
            if execution.returnedResults == steps.count { steps.append(0) }
            steps[steps.count - 1] += 1
        }
        return steps
    }

    /// A row with a text, and expressions that search it. Each search counts as more than a megabyte of work.
    private static let text = Stage(
        "literals", [.map([("t", .value(.string(String(repeating: "z", count: 200))))])])

    private static func searches(_ count: Int) -> [(String, Expression)] {
        (0..<count).map { ("v\($0)", .call("regex_contains", .field("t"), "x{900}y")) }
    }

    @Test
    func `A row waits for the next step between stages that are costly`() throws {
        let stages = Array(repeating: Stage("add_fields", [.map(Self.searches(10))]), count: 40)
        let changed = try stepsBetweenResults([Self.text] + stages)
        expect(changed.count == 2 && changed[0] > 15, "\(changed)")
        let conditions = Array(repeating: Stage.where(.call("not", Self.searches(1)[0].1)), count: 200)
        let filtered = try stepsBetweenResults([Self.text] + conditions)
        expect(filtered.count == 2 && filtered[0] > 5, "\(filtered)")
    }

    @Test
    func `A row waits for the next step between expressions with subqueries`() throws {
        let one = Expression.call("scalar", .pipeline([Stage("literals", [.map([("a", 1)])])]))
        let fields = Self.searches(100).map { ($0.0, Expression.call("array", $0.1, one)) }
        let rows = Stage("unnest", [.list([1, 2]), .field("e")])
        let steps = try stepsBetweenResults([Self.text, rows, Stage("select", [.map(fields)])])
        // The subqueries run once, for the first row.
        expect(steps.count == 3 && steps[1] > 3, "\(steps)")
    }

    @Test
    func `The work of all expressions of a stage on a row is bounded`() throws {
        let harness = try Harness()
        func outcome(_ count: Int) -> TestAnswer {
            harness.outcome([Self.text, Stage("select", [.map(Self.searches(count))])])
        }
        expect(outcome(30).isOK)
        let answer = outcome(1_000)
        expect(answer.status == .resourceExhausted && answer.text.contains("stage 2"), "\(answer.text)")
    }

    @Test
    func `A constant reference names a document`() throws {
        let harness = try Harness()
        for name in ["", "/c/a", "c", Harness.name("c"), "\(Harness.database)/documents"] {
            let reference = Expression.value(.reference(name))
            for value in [reference, .list([1, reference]), .map([("k", reference)])] {
                for stages in [
                    [.collection("c"), .where(.call("equal", .field("a"), value))],
                    [.collection("c"), .select(("a", value))], [Stage("literals", [.map([("a", value)])])],
                ] {
                    expectEqual(harness.outcome(stages).status, .invalidArgument, "\(name)")
                }
            }
        }
        let reserved = Expression.value(.reference(Harness.name("c/__id7__")))
        expect(harness.outcome([.collection("c"), .where(.call("equal", .field("__name__"), reserved))]).isOK)
    }

    @Test
    func `A value of more bytes than a number can count is refused`() throws {
        let harness = try Harness()
        let most = Expression.value(.integer(.max))
        let endless = Expression.call("string_repeat", "x", most)
        // Something is built before, so that the sum of both has no place in 64 bits.
        for expression in [
            endless, .call("string_concat", .call("string_repeat", "x", 1_000), endless),
            .call("array", .call("to_upper", "abc"), endless, endless),
        ] {
            expectEqual(harness.failure(expression).status, .resourceExhausted)
            let condition = harness.outcome([
                Stage("literals", [.map([("a", 1)])]), .where(.call("equal", .call("concat", "a", expression), "a")),
            ])
            expectEqual(condition.status, .resourceExhausted)
        }
    }

    @Test
    func `What subqueries return counts as held while its row needs it`() throws {
        var limits = ServiceLimits()
        limits.pipelines.memoryBytes = 400_000
        let harness = try Harness(limits: limits)
        let text = Expression.call("string_repeat", "x", 50_000)
        let row = Stage("literals", [.map([("a", 1)])])
        func subquery(_ value: Expression) -> Expression {
            .call("array", .pipeline([Stage("literals", [.map([("t", value)])]), .select(("t", text), ("a", value))]))
        }
        let few = (0..<3).map { ("s\($0)", Expression.call("array_length", subquery(.value(.integer(Int64($0)))))) }
        expect(harness.outcome([row, .select(few[0], few[1])]).isOK)
        // Results that are the same for all rows are kept for the whole pipeline.
        let many = (0..<20).map { ("s\($0)", Expression.call("array_length", subquery(.value(.integer(Int64($0)))))) }
        expectEqual(harness.outcome([row, Stage("select", [.map(many)])]).status, .resourceExhausted)
        let dependent = (0..<20).map { ("s\($0)", Expression.call("array_length", subquery(.variable("v")))) }
        let bound = Stage("let", [.map([("v", .field("a"))])])
        expectEqual(harness.outcome([row, bound, Stage("select", [.map(dependent)])]).status, .resourceExhausted)
        // Results of other rows are not held: one after the other fits.
        let rows = Stage("literals", (0..<30).map { .map([("a", .value(.integer(Int64($0))))]) })
        expect(harness.outcome([rows, bound, .select(dependent[0])]).isOK)
    }

    @Test
    func `Stages that pass rows on hold none of them, however many there are`() throws {
        var limits = ServiceLimits()
        // An array is held while its elements become rows.
        limits.pipelines.memoryBytes = 300_000
        let harness = try Harness(limits: limits)
        let elements = Expression.list((0..<3_000).map { .value(.integer($0)) })
        let row = Stage("literals", [.map([("a", elements)])])
        let unnest = Stage("unnest", [.field("a"), .field("e")])
        let others = Stage("union", [.pipeline([row, unnest, .select(("e", .field("e")))])])
        let answer = try harness.execute(row, unnest, .select(("e", .field("e"))), others)
        expectEqual(answer.rows.count, 6_000)
        // A sort of which few rows are wanted holds few.
        let first = try harness.execute(row, unnest, .select(("e", .field("e"))), .sort((.field("e"), true)), .limit(2))
        expectEqual(first.rows, [["e": 2_999], ["e": 2_998]])
        for stage in [
            Stage.sort((.field("e"), true)), .aggregate([("n", .call("count_distinct", .field("e")))]),
            .aggregate([("n", .call("array_agg_distinct", .field("e")))]),
            .aggregate([("n", .call("array_agg", .field("e")))]),
        ] {
            let refused = harness.outcome([row, unnest, .select(("e", .field("e"))), stage])
            expect(
                refused.status == .resourceExhausted && refused.text.contains("stage \(stage.name)"), "\(refused.text)")
        }
    }

    @Test
    func `Groups of documents are held to the memory of a pipeline, and a search is`() throws {
        var limits = ServiceLimits()
        limits.pipelines.memoryBytes = 100_000
        let harness = try Harness(limits: limits)
        var writes = try harness.emptyWrites()
        for index in 0..<3_000 {
            let fields = Harness.fields(["n": .integer(Int64(index)), "t": "word other"])
            try Harness.name("c/\(index)").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        try harness.commit(writes)
        try harness.declareSearches(["t"], of: "c")
        let grouped = harness.outcome([
            .collection("c"), .aggregate([("v", .call("sum", .field("n")))], by: [("n", .field("n"))]),
        ])
        expect(grouped.status == .resourceExhausted && grouped.text.contains("stage aggregate"), "\(grouped.text)")
        let all = harness.outcome([.collection("c"), .aggregate([("v", .call("array_agg", .field("t")))])])
        expect(all.status == .resourceExhausted && all.text.contains("stage aggregate"), "\(all.text)")
        try expectEqual(
            harness.execute(.collection("c"), .aggregate([("v", .call("sum", .field("n")))])).rows, [["v": 4_498_500]])
        let search = Stage("search", [], options: [("query", .call("document_matches", "word"))])
        let found = harness.outcome([.collection("c"), search])
        expect(found.status == .resourceExhausted && found.text.contains("search"), "\(found.text)")
    }

    @Test
    func `Errors name the stage and the field that they come from`() throws {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": "text"])])
        let failing = Expression.call("add", .field("n"), 1)
        let cases: [([Stage], String)] = [
            ([.collection("c"), .limit(1), .select(("ok", 1), ("v", failing))], "(stage 3: select, field \"v\")"),
            ([.collection("c"), .sort((failing, false))], "(stage 2: sort)"),
            ([.collection("c"), .aggregate([("s", .call("sum", failing))])], "(stage 2: aggregate)"),
            (
                [.collection("c"), .aggregate([("s", .call("count", []))], by: [("g", failing)])],
                "(stage 2: aggregate, field \"g\")"
            ),
            (
                [.collection("c"), Stage("union", [.pipeline([.collection("c"), .select(("v", failing))])])],
                "(stage 2: union, stage 2: select, field \"v\")"
            ),
            ([.collection("c"), .select(("v", .call("add", 1)))], "(stage 2: select, field \"v\")"),
            ([.collection("c"), .limit(-1)], "(stage 2: limit)"),
            ([.collection("c"), Stage("nothing", [])], "(stage 2: nothing)"),
            ([.collection("c"), .collection("c")], "(stage 2: collection)"),
            ([.collection("c"), .where(.call("equal", .variable("x"), 1))], "(stage 2: where)"),
            (
                [.collection("c"), .where(.call("equal", .field("a"), 1)), .where(.call("nothing", 1))],
                "(stage 3: where)"
            ),
            ([.collection("c"), Stage("search", [], options: [("nothing", 1)])], "(stage 2: search)"),
            ([.collection("c"), .limit(1), .where(.call("equal", .variable("x"), 1))], "(stage 3: where)"),
        ]
        for (stages, place) in cases {
            let answer = harness.outcome(stages)
            expect(!answer.isOK && answer.text.contains(place), "\(answer.text)")
        }
    }

    @Test
    func `Subqueries are bounded in number and in rows`() throws {
        var limits = ServiceLimits()
        // The bound is 10,000 steps.
        limits.pipelines.rowsPerStep = 8
        let harness = try Harness(limits: limits)
        var writes = try harness.emptyWrites()
        for index in 0..<250 {
            let fields = Harness.fields(["n": .integer(Int64(index))])
            try Harness.name("c/\(index)").withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        try harness.commit(writes)
        let others = Stage.where(.call("not_equal", .call("add", .field("n"), 0), .variable("x")))
        let counted = Expression.call(
            "scalar", .pipeline([.collection("c"), others, .aggregate([("n", .call("count", []))])]))
        let joined: [Stage] = [
            .collection("c"), Stage("let", [.map([("x", .field("n"))])]), .select(("others", counted)),
        ]
        let answer = harness.outcome(joined)
        expect(answer.status == .resourceExhausted && answer.text.contains("subqueries"), "\(answer.text)")
        expect(harness.outcome([.collection("c"), .limit(3)] + joined.dropFirst()).isOK)
        let elements = Expression.list((0..<1_100).map { .value(.integer($0)) })
        let each = Expression.call("scalar", .pipeline([Stage("literals", [.map([("a", .variable("e"))])])]))
        expectEqual(harness.failure(.call("array_transform", elements, "e", each)).status, .resourceExhausted)
    }

    @Test
    func `Constants that are costly are not computed before the pipeline runs`() throws {
        let harness = try Harness()
        let long = Expression.call("string_repeat", "x", 10_000_000)
        let conditions = (0..<200).map { Expression.call("equal", .field("f\($0)"), long) }
        try expectEqual(harness.execute(.collection("c"), .where(.call("and", conditions))).rows, [])
    }

    @Test
    func `Damaged requests end with an error or an answer`() throws {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": 1, "t": [1, 2]])])
        let lambda = Expression.call("array_transform", .field("t"), "e", .call("add", .variable("e"), .variable("x")))
        let nested = Expression.pipeline([
            .collection("c"), .where(.call("less_than", .field("n"), .variable("x"))), .select(("n", .field("n"))),
        ])
        let subqueries = structuredPipeline([
            .collection("c"), Stage("let", [.map([("x", .call("add", .field("n"), 1))])]),
            .select(("l", lambda), ("s", .call("scalar", nested)), ("t", .call("timestamp_trunc", nil, "day", "UTC"))),
        ])
        let stages = structuredPipeline([
            .collection("c"), .where(.call("greater_than", .call("add", .field("n"), 1), 1)),
            .select(("v", .call("map", "k", .field("t")))), Stage("unnest", [.field("v.k"), .field("u")]),
            .aggregate([("all", .call("count", []))], by: [("u", .field("u"))]), .sort((.field("u"), true)), .limit(3),
        ])
        var random = SplitMix64(seed: 7)
        for round in 0..<3_000 {
            var damaged = round % 2 == 0 ? stages : subqueries
            for _ in 0...random.below(3) {
                switch random.below(3) {
                case 0: damaged[random.below(damaged.count)] = UInt8(random.below(256))
                case 1: damaged.remove(at: random.below(damaged.count))
                default:
                    damaged.insert(UInt8(random.below(256)), at: random.below(damaged.count))
                }
            }
            let answer = harness.call(
                .executePipeline, ExecutePipelineRequest(database: Harness.database, pipeline: damaged))
            let isExpected = [.ok, .invalidArgument, .unimplemented, .resourceExhausted].contains(answer.status)
            expect(isExpected, "\(answer.text)")
        }
    }
}
