// The form of a pipeline: what the console's table of queries shows.

import Basics
import DocumentModel
import ServiceTestSupport
import TestSupport
import Testing

@testable import Pipelines

@Suite(.timeLimit(.minutes(20)))
struct PipelineFormTests {
    private func form(_ stages: [Stage]) throws -> PipelineForm {
        let bytes = structuredPipeline(stages)
        return PipelineForm(try ParsedPipeline(structuredPipeline: bytes.byteSpan).stages)
    }

    private func hash(_ form: PipelineForm) -> Int {
        var hasher = Hasher()
        form.hash(into: &hasher)
        return hasher.finalize()
    }

    private func books(_ user: String, _ least: Int64, descending: Bool = true) -> [Stage] {
        [
            .collection("users/\(user)/books"),
            .where(.call("and", .call("greater_than", .field("rating"), .value(.integer(least))), .variable("x"))),
            .sort((.field("rating"), descending)),
            .aggregate([("n", .call("count"))], by: [("genre", .field("genre"))]),
        ]
    }

    @Test
    func `Pipelines that differ in values and ids alone have one form`() throws {
        let (one, other) = (try form(books("ada", 3)), try form(books("bob", 5)))
        expectEqual(
            one.text,
            """
            collection(users/*/books) | where(and(greater_than(rating, ?), $x)) | sort(rating desc) \
            | aggregate({n: count()}, {genre: genre})
            """)
        expectEqual(one.text, other.text)
        expectEqual(hash(one), hash(other))
        expect(hash(one) != hash(try form(books("ada", 3, descending: false))))
    }

    @Test
    func `Named documents and literal rows are one value, and nested pipelines are shown`() throws {
        let nested = Expression.call("scalar", .pipeline([.collection("c"), .limit(1)]))
        let names: [Expression] = [.value(.reference("/c/a")), .value(.reference("/c/b"))]
        let stages = [Stage("documents", names), .select(("v", nested))]
        try expectEqual(form(stages).text, "documents(?) | select({v: scalar(collection(c) | limit(?))})")
        let group = Stage("collection_group", [.value(.reference("/users/ada")), "books"])
        try expectEqual(form([group]).text, "collection_group(users/*, books)")
        let all = Stage("collection_group", [.value(.reference("")), "books"])
        try expectEqual(form([all]).text, "collection_group(books)")
    }

    @Test
    func `What pipelines have read is counted by their form`() throws {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": 1]), "c/b": Harness.fields(["n": 2]), "c/c": Harness.fields([:])])
        for limit: Int64 in [1, 3] {
            _ = try harness.execute(.collection("c"), .select(("n", .field("n"))), .limit(limit))
        }
        expect(!harness.outcome([.collection("c"), .select(("v", .call("add", .field("n"), "x")))]).isOK)
        let costs = harness.service.queryCosts
        let served = costs.first { $0.form == "collection(c) | select({n: n}) | limit(?)" }
        expectEqual(served?.runs, 2)
        expectEqual(served?.documents, 6)
        expectEqual(served?.database, Harness.database)
        expectEqual(costs.first { $0.form == "collection(c) | select({v: add(n, ?)})" }?.runs, 1)
    }

    @Test
    func `A long form is cut`() throws {
        let name = String(repeating: "ä", count: 700)
        let text = try form([.collection(name), .collection(name)]).text
        expectEqual(text.count, 300)
        expect(text.hasPrefix("collection(ää"))
    }
}
