// Listeners of pipelines: what they are sent is what the pipeline returns after each commit.

import Basics
import DocumentModel
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ListenedPipelineTests {
    /// A client that keeps the documents of its targets.
    private final class Client {
        private let harness: Harness
        private let call: TestCall
        private var read = 0
        /// Paths by target.
        private(set) var documents: [Int32: Set<String>] = [:]
        private(set) var causes: [Int32: StatusCode] = [:]
        /// The number in the document of target 1.
        private var mark: Value?
        private var isSeen = false

        /// Target 1 is a document whose number shows which commits the client has.
        init(_ harness: Harness) throws {
            self.harness = harness
            call = TestCall(loop: harness.loop, method: .listen)
            let mark = ListenTarget(.documents([Harness.name("mark/m")]), id: 1)
            harness.service.begin(call, ListenRequest(database: Harness.database, .add(mark)).encodedBytes())
        }

        func listen(_ stages: [Stage], id: Int32) {
            var writer = ByteBuffer()
            writer.appendField(FieldNumber.ListenRequest.database, string: Harness.database)
            writer.withLengthPrefix(field: FieldNumber.ListenRequest.addTarget) { target in
                target.withLengthPrefix(field: FieldNumber.Target.pipelineQuery) { query in
                    query.withLengthPrefix(field: FieldNumber.Target.PipelineQueryTarget.structuredPipeline) {
                        $0.append(structuredPipeline(stages))
                    }
                }
                target.appendField(FieldNumber.Target.targetId, varint: UInt64(id))
            }
            call.send(writer.copyBytes())
        }

        /// Waits until the client has everything that was committed before.
        func catchUp(_ number: Int) throws {
            try harness.set(["mark/m": Harness.fields(["n": .integer(Int64(number))])])
            isSeen = false
            expect(
                harness.loop.run {
                    self.take(until: number)
                    return self.isSeen || self.call.answer.status != nil
                })
            expectNil(call.answer.status, "\(call.answer.text)")
        }

        private func take(until number: Int) {
            let messages = call.answer.messages
            let wanted = Value.integer(Int64(number))
            while read < messages.count {
                let message = messages[read]
                read += 1
                switch try? ListenResponse(wire: message.byteSpan) {
                case .documentChange(let change)?:
                    guard let document = try? DocumentMessage(wire: change.document.byteSpan) else { continue }
                    let path = String(document.name.dropFirst(Harness.root.count + 1))
                    if change.targets.contains(1) {
                        mark = (try? MapValue(documentBytes: document.fields.byteSpan))?["n"]
                    }
                    for id in change.targets { documents[id, default: []].insert(path) }
                    for id in change.removedTargets { documents[id]?.remove(path) }
                case .documentDelete(let removal)?, .documentRemove(let removal)?:
                    let path = String(removal.name.dropFirst(Harness.root.count + 1))
                    for id in removal.removedTargets { documents[id]?.remove(path) }
                case .targetChange(let change)?:
                    if change.kind == .remove { for id in change.targets { causes[id] = change.cause?.code } }
                    if change.kind == .noChange, change.targets.isEmpty, mark == wanted { isSeen = true }
                default: continue
                }
            }
        }
    }

    private static func field(_ name: String) -> Expression { .field(name) }

    /// Pipelines that no query says.
    private static let pipelines: [[Stage]] = [
        [.where(.call("equal", .call("mod", field("n"), 3), 1))],
        [.where(.call("not_equal", field("t"), "b"))],
        [.where(.call("greater_than", field("n"), 4)), .where(.call("starts_with", field("t"), "a"))],
        [.where(.call("or", .call("less_than", field("n"), 3), .call("greater_than", field("m"), 5)))],
        [.where(.call("equal", field("n"), field("m")))],
        [.where(.call("regex_contains", .call("document_id", field("__name__")), "^1"))],
        [
            .where(.call("exists", field("n"))), .where(.call("equal", .call("mod", field("m"), 2), 0)),
            .sort((field("n"), true)), .limit(4),
        ],
        [.where(.call("is_absent", field("t"))), .limit(5)],
        [.where(.call("less_than", .call("divide", 10, field("m")), 4))],
    ]

    private static func randomDocument(_ random: inout SeededGenerator) -> [UInt8] {
        var fields: [UInt8] = []
        if !random.oneIn(6) { fields += Harness.fields(["m": .integer(Int64(random.below(8)))]) }
        if !random.oneIn(6) { fields += Harness.fields(["n": .integer(Int64(random.below(8)))]) }
        if !random.oneIn(4) { fields += Harness.fields(["t": .string(random.pick(["a", "ab", "b", ""]))]) }
        return fields
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `A listener has what the pipeline returns, after each of many commits`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let harness = try Harness()
        for number in 0..<20 { try harness.set(["c/\(10 + number)": Self.randomDocument(&random)]) }
        let client = try Client(harness)
        for (index, stages) in Self.pipelines.enumerated() {
            client.listen([.collection("c")] + stages, id: Int32(index + 2))
        }
        client.listen([Stage("collection_group", [.value(.reference("")), "c"])] + Self.pipelines[0], id: 50)
        for round in 1...30 {
            for _ in 0..<random.below(4) {
                let path = random.pick(["c", "c", "d/x/c"]) + "/\(10 + random.below(30))"
                if random.oneIn(4) {
                    try harness.delete(path)
                } else {
                    try harness.set([path: Self.randomDocument(&random)])
                }
            }
            try client.catchUp(round)
            for (index, stages) in Self.pipelines.enumerated() {
                let expected = try harness.execute(structuredPipeline([.collection("c")] + stages)).paths
                let found = client.documents[Int32(index + 2)] ?? []
                expectEqual(found, Set(expected.compactMap(\.self)), "seed \(seed), round \(round), pipeline \(index)")
            }
            let group = [Stage("collection_group", [.value(.reference("")), "c"])] + Self.pipelines[0]
            let expected = try harness.execute(structuredPipeline(group)).paths
            expectEqual(client.documents[50] ?? [], Set(expected.compactMap(\.self)), "seed \(seed), round \(round)")
        }
        expect(client.causes.isEmpty)
    }

    @Test
    func `Pipelines whose results are not those of single documents are refused by name, and the stream continues`()
        throws
    {
        let harness = try Harness()
        try harness.set(["c/a": Harness.fields(["n": 1])])
        let client = try Client(harness)
        let scalar = Expression.call("scalar", .pipeline([.collection("c"), .aggregate([("k", .call("count"))])]))
        let refused: [[Stage]] = [
            [.select(("n", Self.field("n")))],
            [.aggregate([("k", .call("count"))])],
            [.where(.call("less_than", .call("rand"), 0.5))],
            [.where(.call("less_than", Self.field("n"), .call("current_timestamp")))],
            [.where(.call("equal", scalar, 1))],
            [.where(.call("less_than", Self.field("__update_time__"), Self.field("t")))],
            [.sort((Self.field("n"), false))],
            [.where(.call("not_equal", Self.field("n"), 5)), .limit(2)],
            [.where(.call("equal", .call("mod", Self.field("n"), 2), 1)), .limit(2), .where(true)],
        ]
        for (index, stages) in refused.enumerated() { client.listen([.collection("c")] + stages, id: Int32(index + 2)) }
        try client.catchUp(1)
        for index in refused.indices { expectEqual(client.causes[Int32(index + 2)], .unimplemented, "\(index)") }
    }

    @Test
    func `A condition that costs too much for a document leaves it out`() throws {
        let harness = try Harness()
        let elements = Value.array((0..<3_000).map { .integer($0) })
        try harness.set(["c/long": Harness.fields(["l": elements]), "c/short": Harness.fields(["l": [1, 2]])])
        let client = try Client(harness)
        let transformed = Expression.call("array_transform", Self.field("l"), "e", .call("add", .variable("e"), 1))
        client.listen([.collection("c"), .where(.call("exists", transformed))], id: 2)
        try client.catchUp(1)
        expectEqual(client.documents[2], ["c/short"])
        expect(client.causes.isEmpty)
    }
}
