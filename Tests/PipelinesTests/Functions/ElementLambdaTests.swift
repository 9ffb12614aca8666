// Functions that evaluate an expression for each element of an array.

import DocumentModel
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ElementLambdaTests {
    private let numbers: Expression = [1, 2, 3, 4]

    private func isEven(_ value: Expression) -> Expression { .call("equal", .call("mod", value, 2), 0) }

    @Test
    func `A filter keeps the elements on which its condition is true`() throws {
        let harness = try Harness()
        let even = Expression.call("array_filter", numbers, "x", isEven(.variable("x")))
        try expectEqual(harness.value(even), [2, 4])
        // Null is not true.
        let mixed: Expression = [1, nil, 6]
        let large = Expression.call("array_filter", mixed, "x", .call("greater_than", .variable("x"), 1))
        try expectEqual(harness.value(large), [6])
        let first = Expression.call("array_filter", numbers, "x", "i", .call("less_than", .variable("i"), 2))
        try expectEqual(harness.value(first), [1, 2])
    }

    @Test
    func `A transformation gives a value for each element, and null where it is absent`() throws {
        let harness = try Harness()
        let sums = Expression.call(
            "array_transform", numbers, "x", "i", .call("add", .variable("x"), .call("multiply", .variable("i"), 10)))
        try expectEqual(harness.value(sums), [1, 12, 23, 34])
        let names = Expression.call("array_transform", .field("m"), "x", .call("map_get", .variable("x"), "n"))
        let maps: Expression = [.map([("n", "a")]), .map([("o", "b")])]
        try expectEqual(harness.value(names, on: [("m", maps)]), .array([.string("a"), .null]))
    }

    @Test
    func `Lambdas see the variables around them, and the inner one of two with the same name`() throws {
        let harness = try Harness()
        let inner = Expression.call("array_transform", [10, 20], "y", .call("add", .variable("x"), .variable("y")))
        try expectEqual(harness.value(.call("array_transform", [1, 2], "x", inner)), [[11, 21], [12, 22]])
        let shadowing = Expression.call("array_transform", [10, 20], "x", .variable("x"))
        try expectEqual(harness.value(.call("array_transform", [1, 2], "x", shadowing)), [[10, 20], [10, 20]])
        let outside = Expression.call("array", .call("array_transform", [1], "x", .variable("x")), .variable("x"))
        expectEqual(harness.failure(outside).status, .invalidArgument)
    }

    @Test
    func `Null and absent arrays give null, other values fail, and so does an element`() throws {
        let harness = try Harness()
        for name in ["array_filter", "array_transform"] {
            try expectEqual(harness.value(.call(name, nil, "x", true)), .null)
            try expectEqual(harness.value(.call(name, .field("nothing"), "x", true)), .null)
            expectEqual(harness.failure(.call(name, 7, "x", true)).status, .invalidArgument)
            expect(harness.failure(.call(name, numbers, "x", .call("error", "no"))).text.contains("no"))
            expect(harness.failure(.call(name, numbers, "x", "x", true)).text.contains("distinct"))
            expectEqual(harness.failure(.call(name, numbers, 5, true)).status, .invalidArgument)
            expectEqual(harness.failure(.call(name, numbers, true)).status, .invalidArgument)
        }
        expectEqual(harness.failure(.call("array_filter", numbers, "x", 1)).status, .invalidArgument)
    }

    @Test
    func `Lambdas over lambdas end at the limits of a row`() throws {
        let harness = try Harness()
        let thousand = Expression.list((0..<1_000).map { .value(.integer($0)) })
        var nested = Expression.call("array_transform", thousand, "x", .variable("x"))
        for _ in 0..<3 { nested = .call("array_transform", thousand, "x", nested) }
        expectEqual(harness.failure(nested).status, .resourceExhausted)
    }

    @Test
    func `Variables that let has bound are those of each row`() throws {
        let harness = try Harness()
        let rows = try harness.execute(
            Stage("literals", [.map([("a", 1)]), .map([("a", 2)])]),
            Stage("let", [.map([("v", .call("add", .field("a"), 10)), ("none", .field("nothing"))])]),
            .select(("a", .call("multiply", .field("a"), 100))),
            .select(("a", .field("a")), ("none", .call("is_absent", .variable("none"))), ("v", .variable("v"))))
        expectEqual(rows.rows, [["a": 100, "none": true, "v": 11], ["a": 200, "none": true, "v": 12]])
        let grouped: [Stage] = [
            Stage("literals", [.map([("a", 1)])]), Stage("let", [.map([("v", .field("a"))])]),
            .aggregate([("n", .call("count"))]), .select(("v", .variable("v"))),
        ]
        expectEqual(harness.outcome(grouped).status, .invalidArgument)
    }
}
