// Several writes to one document in one commit: each sees what those before it left, and only the last state is kept.

import Basics
import DocumentModel
import Storage
import StorageEngines
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct RepeatedWriteTests {
    private static func write(_ random: inout RandomDocuments) -> TestWrite {
        var write = TestWrite()
        write.kind = random.generator.pick([.update, .update, .update, .update, .update, .delete, .transform])
        if write.kind == .update {
            for name in ["a", "b", "m"] where random.generator.oneIn(2) {
                write.fields[name] =
                    random.generator.oneIn(2) ? .integer(Int64(random.generator.below(3))) : ["x": 1, "y": 2]
            }
            if !random.generator.oneIn(3) {
                let mask = (0..<random.generator.below(3)).map { _ in
                    random.generator.pick(["a", "b", "m", "m.x", "m.y"].map { try! FieldPath($0) })
                }
                write.mask = mask.filter { path in !mask.contains { $0 != path && $0.isPrefix(of: path) } }
            }
        }
        if write.kind == .transform || random.generator.oneIn(3), write.kind != .delete {
            write.transforms = (0...random.generator.below(3)).map { _ in
                FieldTransform(
                    path: try! FieldPath(random.generator.pick(["a", "t", "m.x"])),
                    operation: random.generator.pick([
                        .increment(.integer(1)), .requestTime, .appendMissingElements([EncodedValue(.integer(1))]),
                        .appendMissingElements([EncodedValue(.integer(2))]),
                        .removeAllFromArray([EncodedValue(.integer(1))]),
                    ]))
            }
        }
        if random.generator.oneIn(2), write.mask != nil { write.transforms = [] }
        if random.generator.oneIn(6) { write.precondition = .exists(random.generator.oneIn(2)) }
        return write
    }

    /// Documents as a plain dictionary has them after the writes of a commit, and the writes' results.
    private static func expected(
        _ writes: [(id: Int, write: TestWrite)], on documents: [Int: TestState], at time: UInt64
    ) throws(RequestError) -> ([Int: TestState], [WriteResult]) {
        var documents = documents
        var results: [WriteResult] = []
        for (id, write) in writes {
            let outcome = try NaiveWrites.apply(write, to: documents[id], at: time)
            documents[id] = outcome.state
            results.append(
                WriteResult(
                    updateMicroseconds: outcome.updateMicroseconds,
                    transformResults: outcome.transformResults.map { EncodedValue($0) }))
        }
        return (documents, results)
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `Random commits leave what their writes would leave one by one, also after a crash`(seed: UInt64) async throws
    {
        let harness = try StoreHarness()
        var random = RandomDocuments(seed: seed)
        var documents: [Int: TestState] = [:]
        var failures = 0
        for round in 0..<120 {
            var writes: [(id: Int, write: TestWrite)] = []
            var list = WriteList(database: harness.database)
            for _ in 0..<(1 + random.generator.below(9)) {
                let write = Self.write(&random)
                // The first ones tend to be followed by others of the same document.
                let id = !random.generator.oneIn(4) ? writes.last?.id ?? 0 : random.generator.below(5)
                writes.append((id, write))
                try list.add(write, to: Array(harness.name("c/\(id)").utf8))
            }
            switch await harness.outcome(CommitRequest(writes: list)) {
            case .success(let result):
                let (after, results) = try Self.expected(writes, on: documents, at: result.commitMicroseconds)
                expectEqual(result.writeResults, results, "seed \(seed), round \(round)")
                documents = after
            case .failure(let error):
                failures += 1
                let wanted = #expect(throws: RequestError.self, "seed \(seed), round \(round): \(error)") {
                    try Self.expected(writes, on: documents, at: .max >> 1)
                }
                expectEqual(wanted?.code, error.code)
            }
        }
        expect(failures > 0)
        expect(!documents.isEmpty)
        let crashed = try harness.crashed()
        for store in [harness, crashed] {
            for id in 0..<5 {
                let expected = documents[id].map {
                    SeenDocument(
                        fields: $0.fields, createMicroseconds: $0.createMicroseconds,
                        updateMicroseconds: $0.updateMicroseconds)
                }
                try expectEqual(store.get("c/\(id)"), expected, "seed \(seed), document \(id)")
            }
        }
        try crashed.finish()
        try harness.finish()
    }

    @Test
    func `Deleted and created again: a new document; created and deleted again: none, and nothing is logged`()
        async throws
    {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.set("c/a", fields(1))])
        harness.clock.advance(milliseconds: 10)
        let second = try await harness.result(committing: [
            .delete("c/a"), .set("c/a", fields(1)), .set("c/b", fields(1)), .delete("c/b"),
        ])
        expectEqual(
            second.writeResults.map(\.updateMicroseconds),
            [nil, second.commitMicroseconds, second.commitMicroseconds, nil])
        let created = try #require(try harness.get("c/a"))
        expectEqual(created.createMicroseconds, second.commitMicroseconds)
        expect(created.createMicroseconds > first.commitMicroseconds)
        try expectNil(harness.get("c/b"))
        let written = harness.store.statistics.documentsWritten
        try await harness.commit([.set("c/b", fields(1)), .delete("c/b")])
        expectEqual(harness.store.statistics.documentsWritten, written)
        let crashed = try harness.crashed()
        try expectEqual(crashed.get("c/a"), created)
        try expectNil(crashed.get("c/b"))
        try crashed.finish()
        try harness.finish()
    }

    /// A document of nearly the largest size.
    private static let large = MapValue([("f", .bytes([UInt8](repeating: 7, count: 1_000_000)))])

    @Test(arguments: [false, true])
    func `Writes to a large document cost its last state, not all between`(isTransform: Bool) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", Self.large)])
        let before = harness.store.statistics.engine.logBytesWritten
        let writes = (0..<50).map { number -> StepWrite in
            isTransform
                ? .increment("c/a", field: "n", by: 1)
                : .merge("c/a", fields(Int64(number + 1)), mask: ["n"], .exists(true))
        }
        let result = try await harness.result(committing: writes)
        try expectEqual(harness.integer("c/a"), 50)
        if isTransform {
            expectEqual(result.writeResults.map(\.transformResults), (1...50).map { [EncodedValue(.integer($0))] })
        }
        expect(harness.store.statistics.engine.logBytesWritten - before < 2 << 20)
        let crashed = try harness.crashed()
        try expectEqual(crashed.integer("c/a"), 50)
        try crashed.finish()
        try harness.finish()
    }

    @Test
    func `Masked updates in a row of a large document are one pass over it, whatever fields they name`() async throws {
        let harness = try StoreHarness { $0.commitWorkBytesMax = 16 << 20 }
        try await harness.commit([.set("c/a", Self.large)])
        let writes = (0..<2_000).map { number -> StepWrite in
            .merge("c/a", fields(Int64(number), "m\(number % 700)"), mask: ["m\(number % 700)"], .exists(true))
        }
        let result = try await harness.result(committing: writes)
        expectEqual(
            result.writeResults,
            Array(repeating: WriteResult(updateMicroseconds: result.commitMicroseconds), count: 2_000))
        for number in 0..<700 {
            try expectEqual(harness.integer("c/a", "m\(number)"), Int64(number < 600 ? number + 1_400 : number + 700))
        }
        try harness.finish()
    }

    @Test
    func `Masked updates in a row that see each other's fields are applied one by one`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1, "a"))])
        let inner: MapValue = ["a": ["b": 1]]
        try await harness.commit([
            .merge("c/a", fields(0), mask: ["n"]), .merge("c/a", inner, mask: ["a.b"]),
            .merge("c/a", [:], mask: ["a.b"]),
        ])
        // Setting a.b made a map of a, and removing it left the map.
        try expectEqual(harness.get("c/a")?.fields, ["a": .map([:]), "n": 0])
        try await harness.commit([
            .merge("c/a", fields(1), mask: ["n"]), .merge("c/a", inner, mask: ["a"]),
            .merge("c/a", ["a": ["c": 2]], mask: ["a.c"]),
            .merge("c/a", [:], mask: ["n"]),
        ])
        try expectEqual(harness.get("c/a")?.fields, ["a": ["b": 1, "c": 2]])
        // A document that becomes too large fails all of it.
        let text = Value.string(String(repeating: "x", count: 600_000))
        let error = try #require(
            try await harness.failure([
                .merge("c/a", fields(5), mask: ["n"]), .merge("c/a", ["t": text], mask: ["t"]),
                .merge("c/a", ["u": text], mask: ["u"]),
            ]))
        expectEqual(error.code, .invalidArgument)
        try expectNil(harness.integer("c/a"))
        try harness.finish()
    }

    // MARK: Bounds

    @Test
    func `A commit that reads and rewrites too much is refused before it is done, and changes nothing`() async throws {
        let harness = try StoreHarness { $0.commitWorkBytesMax = 20 << 20 }
        try await harness.commit([.set("c/a", Self.large)])
        let error = try #require(
            try await harness.failure(
                [.set("c/b", fields(1))] + (0..<20).map { _ in .increment("c/a", field: "n", by: 1) }))
        expectEqual(error.code, .invalidArgument)
        try expectNil(harness.get("c/b"))
        try expectNil(harness.integer("c/a"))
        // Others are not affected.
        try await harness.commit([.increment("c/a", field: "n", by: 1)])
        try expectEqual(harness.integer("c/a"), 1)
        try harness.finish()
    }

    @Test
    func `In a batch the writes beyond the bound are refused, each by itself`() async throws {
        let harness = try StoreHarness { $0.commitWorkBytesMax = 6 << 20 }
        for number in 0..<5 { try await harness.commit([.set("c/\(number)", Self.large)]) }
        let result = try await harness.batch((0..<5).map { .increment("c/\($0)", field: "n", by: 1) })
        let codes = result.outcomes.map { outcome -> StatusCode? in
            if case .failure(let error) = outcome { error.code } else { nil }
        }
        expectEqual(codes.first, .some(nil))
        expectEqual(codes.last, .invalidArgument)
        for (number, code) in codes.enumerated() {
            try expectEqual(harness.integer("c/\(number)"), code == nil ? 1 : nil)
        }
        try harness.finish()
    }

    @Test
    func `A commit of more documents than the log takes at once is refused as too large`() async throws {
        let harness = try StoreHarness()
        for number in 0..<130 { try await harness.commit([.set("c/\(number)", Self.large)]) }
        let error = try #require(
            try await harness.failure((0..<130).map { .increment("c/\($0)", field: "n", by: 1) }))
        expectEqual(error.code, .invalidArgument)
        for number in 0..<130 { try expectNil(harness.integer("c/\(number)")) }
        expectNil(harness.store.close())
    }

    @Test(arguments: [true, false])
    func `Array transforms of one large array are bounded too, in one write and in many`(inOneWrite: Bool) async throws
    {
        let harness = try StoreHarness { $0.commitWorkBytesMax = 64 << 20 }
        let path = try FieldPath("t")
        let array = MapValue([("t", .array((0..<8_000).map { .integer($0) }))])
        try await harness.commit([.set("c/a", array)])
        let name = Array(harness.name("c/a").utf8)
        let nothing: [UInt8] = []
        func list(_ count: Int) throws -> WriteList {
            var list = WriteList(database: harness.database)
            let transforms = (0..<count).map {
                FieldTransform(
                    path: path, operation: .appendMissingElements([EncodedValue(.integer(100_000 + Int64($0)))]))
            }
            for part in inOneWrite ? [transforms] : transforms.map({ [$0] }) {
                try list.update(
                    name.byteSpan, fields: nothing.byteSpan, mask: DocumentMask(paths: []), transforms: part)
            }
            return list
        }
        let refused = await harness.outcome(CommitRequest(writes: try list(500)))
        #expect(throws: RequestError.self) { try refused.get() }
        if case .failure(let error) = refused { expectEqual(error.code, .invalidArgument) }
        _ = try await harness.outcome(CommitRequest(writes: try list(5))).get()
        guard case .array(let elements)? = try harness.get("c/a")?.fields["t"] else {
            Issue.record("no array")
            return
        }
        expectEqual(elements.count, 8_005)
        expect(elements.suffix(5).elementsEqual((0..<5).map { .integer(100_000 + $0) }))
        try harness.finish()
    }

    // MARK: Recovery

    @Test
    func `A log of earlier versions, which has every state of a document, is recovered`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("c/b", fields(1)), .set("c/c", fields(1))])
        harness.store.close()
        var record = LogRecordWriter()
        record.begin(database: try #require(harness.store.databases.number(of: harness.database)), newDatabaseName: nil)
        record.append(.updated, "c/a", createMicroseconds: 5, fields: fields(2).documentBytes)
        record.append(.updated, "c/a", createMicroseconds: 5, fields: fields(3).documentBytes)
        record.append(.deleted, "c/b", fields: [])
        record.append(.created, "c/b", fields: fields(4).documentBytes)
        record.append(.deleted, "c/c", fields: [])
        record.append(.created, "c/d", fields: fields(5).documentBytes)
        record.append(.deleted, "c/d", fields: [])
        // What a crash leaves: the record is in the log, and what follows from it is nowhere.
        var options = DocumentStore.engineOptions(harness.configuration)
        options.idleCheckpointMicroseconds = 0
        let engine = try StorageEngine.open(
            directory: harness.configuration.directory, volume: harness.configuration.volume, options: options,
            replay: { _, _, _, _ in })
        let writer = try engine.makeWriter()
        let version = CommitVersion(microseconds: writer.lastVersion.microseconds + 1_000)
        try writer.stage(version: version, record: record.bytes, mutations: MutationBatch())
        try writer.commitGroup()
        let crashed = try harness.crashed()
        try expectEqual(crashed.integer("c/a"), 3)
        try expectEqual(crashed.integer("c/b"), 4)
        try expectEqual(crashed.get("c/b")?.createMicroseconds, version.microseconds)
        try expectEqual(crashed.ids("c"), ["a", "b"])
        try crashed.finish()
        try engine.close()
    }
}
