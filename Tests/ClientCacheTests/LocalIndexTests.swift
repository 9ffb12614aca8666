// Indexes of the local store: queries give the same results with and without them, whatever happens to the cache.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import Foundation
import QueryEngine
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct LocalIndexTests: LocalStoreFixture {
    private let directory = TemporaryDirectory("local-index")

    private static func plan(_ filter: DocumentModel.Filter?, by order: Order? = nil, limit: Int32? = nil) throws
        -> QueryPlan
    {
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "c")], filter: filter, orderBy: order.map { [$0] } ?? [],
            limit: limit)
        return try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan)
    }

    private static func plan(_ field: String, _ operation: FieldOperator, _ value: Value) throws -> QueryPlan {
        try plan(.field(FieldPath(field), operation, EncodedValue(value)))
    }

    /// Numbers 0 up to `count`, with their last digits.
    private static func documents(_ count: Int) -> [RemoteUpdate] {
        (0..<count).map { number in
            let id = String(number)
            return found(
                String(repeating: "0", count: 4 - id.count) + id,
                ["n": .integer(Int64(number)), "digit": .integer(Int64(number % 10))], at: 10)
        }
    }

    private static func finish(_ store: LocalStore) throws {
        while store.hasIndexWork { try store.stepIndexes(documentsMax: 50) }
    }

    @Test
    func `A query that reads many documents without a match makes its index, and then uses it`() throws {
        let path = directory.path(of: "creation")
        var store = try Self.open(path)
        _ = try store.apply(Self.documents(300))
        let (one, range) = (try Self.plan("n", .equal, .integer(7)), try Self.plan("n", .greaterThan, .integer(290)))
        try expectEqual(Self.names(store, one), [Self.name("0007")])
        expect(!store.hasIndexWork, "automatic creation is off")
        store.createsIndexes = true
        try expectEqual(Self.names(store, try Self.plan("n", .greaterThan, .integer(100))).count, 199)
        expect(!store.hasIndexWork, "most of what was read is a result")
        try expectEqual(Self.names(store, one), [Self.name("0007")])
        expect(store.hasIndexWork)
        expectEqual(store.completeIndexes, [])
        let scan = try store.explain(one)
        try Self.finish(store)
        expectEqual(store.completeIndexes, ["c (n)"])
        try expect(store.explain(one) != scan)
        // A new, a changed, a pending and a deleted document.
        _ = try store.apply([
            Self.found("new", 295, at: 20), Self.found("0295", 7, at: 20),
            RemoteUpdate(name: Self.name("0299"), content: .missing(readMicroseconds: 20)),
        ])
        _ = try store.enqueue(Self.request([("0001", .set(299)), ("0298", .delete)]), identity: Self.identity(1))
        func check() throws {
            try expectEqual(Self.names(store, one), ["0007", "0295"].map(Self.name))
            let ids = ["0291", "0292", "0293", "0294", "new", "0296", "0297", "0001"]
            try expectEqual(Self.names(store, range), ids.map(Self.name))
        }
        try check()
        store.close()
        store = try Self.open(path)
        expectEqual(store.completeIndexes, ["c (n)"])
        try check()
        try store.removeAllIndexes()
        expectEqual(store.completeIndexes, [])
        try check()
        try Self.finish(store)
        try expectEqual(store.explain(one), scan)
        try check()
        store.close()
    }

    @Test
    func `An index that was being made when the store was closed is removed`() throws {
        let path = directory.path(of: "interruption")
        var store = try Self.open(path)
        _ = try store.apply(Self.documents(300))
        store.createsIndexes = true
        let plan = try Self.plan("n", .equal, .integer(7))
        try expectEqual(Self.names(store, plan).count, 1)
        try store.stepIndexes(documentsMax: 50)
        store.close()
        store = try Self.open(path)
        expect(store.hasIndexWork)
        _ = try store.apply([Self.found("0003", 7, at: 20)])
        try Self.finish(store)
        expectEqual(store.completeIndexes, [])
        store.createsIndexes = true
        try expectEqual(Self.names(store, plan), ["0003", "0007"].map(Self.name))
        try Self.finish(store)
        expectEqual(store.completeIndexes, ["c (n)"])
        try expectEqual(Self.names(store, plan), ["0003", "0007"].map(Self.name))
        store.close()
    }

    private static func definition(_ field: String, isOfElements: Bool = false) throws -> LocalIndexDefinition {
        LocalIndexDefinition(collectionID: "c", field: try FieldPath(field), isOfElements: isOfElements)
    }

    @Test
    func `Indexes that a program asks for replace the others, also while those are being removed or built`() throws {
        let path = directory.path(of: "replacement")
        var store = try Self.open(path)
        _ = try store.apply(Self.documents(300))
        let (n, digit) = (try Self.definition("n"), try Self.definition("digit"))
        try store.setIndexes([n, digit, n, try Self.definition("tags", isOfElements: true)])
        expectEqual(store.completeIndexes, [])
        try Self.finish(store)
        expectEqual(store.completeIndexes, ["c (digit)", "c (n)", "c (tags CONTAINS)"])
        let size = store.entryByteCount
        expect(size > 0)
        try expectEqual(store.readEntryByteCount(), size)
        // One stays, two go, and one of those is wanted again before it is gone.
        try store.setIndexes([n])
        expectEqual(store.completeIndexes, ["c (n)"])
        try store.setIndexes([n, digit])
        try store.stepIndexes(documentsMax: 50)
        try Self.finish(store)
        expectEqual(store.completeIndexes, ["c (digit)", "c (n)"])
        try expectEqual(Self.names(store, try Self.plan("digit", .equal, .integer(3))).count, 30)
        expectEqual(store.entryByteCount, size)
        // A restart during the building: the next call with the same index begins again.
        try store.setIndexes([try Self.definition("x")])
        try store.stepIndexes(documentsMax: 50)
        store.close()
        store = try Self.open(path)
        try store.setIndexes([try Self.definition("x"), digit])
        try Self.finish(store)
        expectEqual(store.completeIndexes, ["c (digit)", "c (x)"])
        let many = try (0..<150).map { try Self.definition("f\($0)") }
        try store.setIndexes(many)
        try Self.finish(store)
        expectEqual(store.completeIndexes.count, LocalIndexDefinition.countMax)
        try store.setIndexes([])
        try Self.finish(store)
        expect(store.completeIndexes == [] && store.entryByteCount == 0)
        store.close()
    }

    @Test
    func `Index entries count as bytes of the cache`() throws {
        let path = directory.path(of: "size")
        var store = try Self.open(path)
        _ = try store.apply(Self.documents(300))
        let documents = store.byteCount
        expectEqual(store.entryByteCount, 0)
        try store.setIndexes([try Self.definition("n"), try Self.definition("digit")])
        try Self.finish(store)
        let entries = store.entryByteCount
        expect(store.byteCount == documents && entries > 2 * 300 * 8)
        store.close()
        // Large enough for the documents, not for the entries too.
        store = try Self.open(path, bytesMax: documents + entries / 2)
        expectEqual(store.entryByteCount, entries)
        expect(store.isTooLarge)
        try expect(store.collectGarbage().documents > 0)
        expect(!store.isTooLarge && store.byteCount < documents)
        try expectEqual(store.readEntryByteCount(), store.entryByteCount)
        store.close()
        store = try Self.open(path, bytesMax: documents)
        try store.setIndexes([])
        try Self.finish(store)
        expect(store.entryByteCount == 0 && !store.isTooLarge)
        store.close()
    }

    // MARK: Random

    private struct Random {
        var generator: SeededGenerator
        private static let fields = ["n", "digit", "m.x", "tags", "at"]

        mutating func value() -> Value {
            switch generator.below(6) {
            case 0: .integer(Int64(generator.below(20)))
            case 1: .double(Double(generator.below(40)) / 2)
            case 2: .string(String(repeating: "x", count: generator.below(4) * 100))
            case 3: .timestamp(TimestampValue(microseconds: Int64(generator.below(10))))
            case 4: .null
            default: .array([.integer(Int64(generator.below(5))), .integer(Int64(generator.below(5)))])
            }
        }

        mutating func document() -> [String: Value] {
            var values: [String: Value] = ["n": .integer(Int64(generator.below(200)))]
            if generator.oneIn(2) { values["digit"] = value() }
            if generator.oneIn(2) { values["m"] = .map(["x": value(), "y": value()]) }
            if generator.oneIn(2) { values["tags"] = .array([value(), .string("t")].filter(\.isNoArray)) }
            if generator.oneIn(3) { values["at"] = value() }
            return values
        }

        mutating func id() -> String {
            let number = generator.below(300)
            // Some ids are too long for a key.
            return "d\(number)" + (number % 50 == 0 ? String(repeating: "y", count: 300) : "")
        }

        mutating func indexes() throws -> [LocalIndexDefinition] {
            try (0..<generator.below(4)).map { _ in
                LocalIndexDefinition(
                    collectionID: "c", field: try FieldPath(generator.pick(Self.fields)),
                    isOfElements: generator.oneIn(3))
            }
        }

        /// An index for every query.
        static func allIndexes() throws -> [LocalIndexDefinition] {
            try fields.map { try LocalIndexTests.definition($0, isOfElements: $0 == "tags") }
        }

        mutating func plan() throws -> QueryPlan {
            let field = try FieldPath(generator.pick(Self.fields))
            let operation = generator.pick([FieldOperator.equal, .greaterThan, .lessThanOrEqual, .arrayContains])
            var operand = value()
            if operation == .arrayContains && !operand.isNoArray { operand = .string("t") }
            var filter: DocumentModel.Filter? = .field(field, operation, EncodedValue(operand))
            var order: Order?
            if operation == .equal || operation == .arrayContains {
                if generator.oneIn(3) { order = Order(field: try FieldPath("n"), direction: .descending) }
            } else if generator.oneIn(2) {
                order = Order(field: field, direction: generator.oneIn(2) ? .ascending : .descending)
                if generator.oneIn(3) { filter = nil }
            }
            let limit: Int32? = generator.oneIn(3) ? Int32(1 + generator.below(20)) : nil
            return try LocalIndexTests.plan(filter, by: order, limit: limit)
        }
    }

    @Test
    func `Queries give the same results with and without indexes, after changes, evictions, kills and deletions`()
        throws
    {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = Random(generator: SeededGenerator(seed: seed))
        var path = directory.path(of: "random")
        var store = try Self.open(path, bytesMax: 60_000)
        var pending: [UInt64] = []
        var time: UInt64 = 100
        var used = 0
        for step in 0..<600 {
            time += 1
            store.createsIndexes = true
            if step % 50 == 49 {
                // Whatever the seed does, the queries of some steps have indexes.
                try store.setIndexes(try Random.allIndexes())
                try Self.finish(store)
            }
            switch random.generator.below(12) {
            case 0...3:
                let updates = Set((0..<20).map { _ in random.id() }).sorted().map { id in
                    random.generator.oneIn(5)
                        ? RemoteUpdate(name: Self.name(id), content: .missing(readMicroseconds: time))
                        : Self.found(id, random.document(), at: time)
                }
                _ = try store.apply(updates)
            case 4, 5:
                let edit: LocalEdit =
                    switch random.generator.below(4) {
                    case 0: .delete
                    case 1: .add(Int64(random.generator.below(9)))
                    case 2: .stamp
                    default: .set(Int64(random.generator.below(200)))
                    }
                let request = Self.request([(random.id(), edit), (random.id() + "z", .set(1))])
                pending.append(try store.enqueue(request, identity: Self.identity(time)).number)
            case 6 where !pending.isEmpty:
                let numbers = pending.prefix(1 + random.generator.below(3))
                pending.removeFirst(numbers.count)
                let results = [WriteResult(updateMicroseconds: time), WriteResult(updateMicroseconds: time)]
                _ = try store.settle(
                    numbers.map { number in
                        let isRejected = random.generator.oneIn(4)
                        return BatchReply(
                            number, isRejected ? .rejected : .acknowledged(results: results, commitMicroseconds: time))
                    })
            case 7 where random.generator.oneIn(3): _ = try store.collectGarbage()
            case 8 where random.generator.oneIn(4): _ = try store.forget([Self.name(random.id())])
            case 9 where random.generator.oneIn(10): try store.removeAllIndexes()
            case 9 where random.generator.oneIn(5): try store.setIndexes(try random.indexes())
            case 10 where random.generator.oneIn(6):
                // A restart, or a kill: the files as they are while the store is open.
                let copy = directory.path(of: "random-\(step)")
                if random.generator.oneIn(2) { store.close() }
                try copyOpenDirectory(path, to: copy)
                store.close()
                path = copy
                store = try Self.open(path, bytesMax: 60_000)
                pending = store.queue.map(\.number)
            default: if store.hasIndexWork { try store.stepIndexes(documentsMax: 60) }
            }
            for _ in 0..<4 {
                let plan = try random.plan()
                let explanation = try store.explain(plan)
                if explanation.contains("IndexScan") { used += 1 }
                let (fast, slow) = (try Self.names(store, plan), try Self.names(store, plan, usingIndexes: false))
                expectEqual(fast, slow, "seed \(seed), step \(step): \(explanation)")
            }
            let counted = try store.readEntryByteCount()
            expectEqual(store.entryByteCount, counted, "seed \(seed), step \(step)")
        }
        expect(used > 100, "seed \(seed): \(used) queries used an index")
        store.close()
    }
}

extension Value {
    fileprivate var isNoArray: Bool {
        if case .array = self { false } else { true }
    }
}
