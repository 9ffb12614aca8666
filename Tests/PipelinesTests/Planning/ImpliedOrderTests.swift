// The order of pipelines without a sort.

import DocumentModel
import FirestoreMessages
import QueryEngine
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ImpliedOrderTests {
    private func harness() throws -> Harness {
        let harness = try Harness()
        try harness.set([
            "c/a": Harness.fields(["m": 9, "n": 3]), "c/b": Harness.fields(["m": 8, "n": 1]),
            "c/c": Harness.fields(["m": 7]), "c/d": Harness.fields(["m": 6, "n": 2]), "c/e": Harness.fields(["n": nil]),
        ])
        return harness
    }

    private func paths(_ harness: Harness, _ stages: Stage...) throws -> [String] {
        try harness.execute(structuredPipeline([.collection("c")] + stages)).paths.map {
            String(($0 ?? "--").dropFirst(2))
        }
    }

    private func compare(_ name: String, _ field: String, _ value: Int64) -> Expression {
        .call(name, .field(field), .value(.integer(value)))
    }

    @Test
    func `Rows come in the order of the fields that are compared for inequality, as those of queries`() throws {
        let harness = try harness()
        try expectEqual(paths(harness, .where(compare("greater_than", "n", 0))), ["b", "d", "a"])
        try expectEqual(paths(harness, .where(compare("greater_than", "n", 0)), .limit(2)), ["b", "d"])
        let both = Expression.call("and", compare("greater_than", "n", 0), compare("less_than", "m", 9))
        try expectEqual(paths(harness, .where(both)), ["d", "b"])
        let either = Expression.call(
            "or", .call("and", .call("exists", .field("n")), compare("greater_than", "n", 1)),
            compare("less_than", "n", 2))
        try expectEqual(paths(harness, .where(either)), ["b", "d", "a"])
        try expectEqual(paths(harness, .where(compare("equal", "n", 3))), ["a"])
        // A later sort decides.
        let up = Stage.sort((.field("m"), false))
        try expectEqual(paths(harness, .where(compare("greater_than", "n", 0)), up), ["d", "b", "a"])
    }

    @Test
    func `Rows without the field come last, and none is lost or twice`() throws {
        let harness = try harness()
        try expectEqual(paths(harness, .where(compare("not_equal", "n", 2))), ["e", "b", "a", "c"])
        try expectEqual(paths(harness, .where(compare("not_equal", "n", 2)), .offset(2), .limit(1)), ["a"])
        let none = Expression.call("not_equal_any", .field("n"), [1, 3])
        try expectEqual(paths(harness, .where(none)), ["e", "d", "c"])
        let either = Expression.call("or", compare("less_than", "n", 3), compare("equal", "m", 7))
        try expectEqual(paths(harness, .where(either)), ["b", "d", "c"])
        let exists = Expression.call("and", .call("exists", .field("n")), compare("not_equal", "n", 2))
        try expectEqual(paths(harness, .where(exists)), ["e", "b", "a"])
    }
}
