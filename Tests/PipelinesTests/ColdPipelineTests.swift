// Pipelines over documents and index entries that reads must wait for: the call waits beside its loop.

import Basics
import DocumentModel
import DocumentStore
import EngineTestSupport
import MemoryEngine
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ColdPipelineTests {
    private static let count = 300

    private static func harness(_ coldKeys: RandomColdKeys?) throws -> Harness {
        let harness = try Harness { configuration in
            configuration.volume = MemoryVolume(replaysRecords: true)
            configuration.engine.coldKeys = coldKeys
        }
        for number in 0..<count {
            let text = number % 3 == 0 ? "red fox" : "blue fox"
            try harness.set([
                "c/d\(1_000 + number)": Harness.fields(["n": .integer(Int64(number % 17)), "t": .string(text)])
            ])
        }
        try harness.declareSearches(["t"], of: "c")
        return harness
    }

    /// Pipelines of each way in which documents are read.
    private static let pipelines: [(name: String, stages: [Stage])] = [
        ("documents as they are stored", [.collection("c")]),
        ("rows", [.collection("c"), .select(("twice", .call("multiply", .field("n"), 2)))]),
        ("a range", [.collection("c"), .where(.call("greater_than", .field("n"), 5)), .limit(150)]),
        ("a count", [.collection("c"), .where(.call("equal", .field("n"), 3)), .aggregate([("k", .call("count"))])]),
        (
            "groups",
            [
                .collection("c"), .aggregate([("s", .call("sum", .field("n")))], by: [("t", .field("t"))]),
                .sort((.field("t"), false)),
            ]
        ),
        ("a sort", [.collection("c"), .sort((.call("mod", .field("n"), 5), true), (.field("__name__"), false))]),
        (
            "a search",
            [
                .collection("c"),
                Stage("search", [], options: [("query", .call("document_matches", "red fox"))]),
            ]
        ),
        (
            "subqueries",
            [
                .collection("c"), .limit(20), Stage("let", [.map([("n", .field("n"))])]),
                .select(
                    (
                        "same",
                        .call(
                            "scalar",
                            .pipeline([
                                .collection("c"), .where(.call("equal", .field("n"), .variable("n"))),
                                .aggregate([("k", .call("count"))]),
                            ]))
                    )),
            ]
        ),
    ]

    @Test(arguments: [UInt64(3), 8])
    func `A pipeline that has to wait returns what it returns from memory`(seed: UInt64) throws {
        let warm = try Self.harness(nil)
        let keys = RandomColdKeys(seed: seed)
        let cold = try Self.harness(keys)
        for (name, stages) in Self.pipelines {
            let waits = keys.waits
            let expected = try warm.execute(structuredPipeline(stages))
            let found = try cold.execute(structuredPipeline(stages))
            expectEqual(found.rows, expected.rows, "\(name)")
            expectEqual(found.paths, expected.paths, "\(name)")
            expect(!found.rows.isEmpty, "\(name)")
            // Small pipelines may find everything there that those before them have waited for.
            if name == "documents as they are stored" { expect(keys.waits > waits) }
        }
    }

    @Test
    func `A pipeline that writes waits as well, and writes once`() throws {
        let keys = RandomColdKeys(seed: 5)
        let harness = try Self.harness(keys)
        let waits = keys.waits
        let answer = try harness.execute(
            .collection("c"), .where(.call("equal", .field("n"), 3)),
            Stage("update", [.map([("n", .call("add", .field("n"), 100))])]))
        let matching = (0..<Self.count).filter { $0 % 17 == 3 }
        expectEqual(answer.rows.map { $0["documents_modified"] }, [.integer(Int64(matching.count))])
        expect(keys.waits > waits)
        let changed = try harness.execute(.collection("c"), .where(.call("equal", .field("n"), 103)))
        expectEqual(changed.paths, matching.map { "c/d\(1_000 + $0)" })
    }
}
