// Scans, searches and listings agree with plain sorted lists, for names of every kind and length.

import Basics
import DocumentModel
import Storage
import StoreFormat
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct ScanTests {
    /// Ids that share prefixes of the length at which keys are cut, or are ordinary.
    private func id(_ random: inout RandomDocuments) -> String {
        switch random.generator.below(4) {
        case 0:
            let prefix = random.generator.pick([
                String(repeating: "p", count: 213), String(repeating: "p", count: 214),
                String(repeating: "q", count: 1_400),
                String(repeating: "\u{0}", count: 107), String(repeating: "é", count: 107),
            ])
            return prefix + random.generator.pick(["", "a", "b", "ab", "\u{0}", "\u{1}", "z", "é"])
                + String(random.generator.below(30))
        default: return random.id()
        }
    }

    private func sorted(_ ids: some Sequence<String>) -> [String] {
        ids.sorted { left, right in
            let (left, right) = (Array(left.utf8), Array(right.utf8))
            return ResourceID.compare(left.byteSpan, right.byteSpan) < 0
        }
    }

    @Test(arguments: [UInt64(71), 72])
    func `A collection comes in name order, from any id to any id, both ways, before and after a checkpoint`(
        seed: UInt64
    ) async throws {
        print("seed \(seed)")
        var random = RandomDocuments(seed: seed)
        let harness = try StoreHarness()
        var model: Set<[UInt8]> = []
        for _ in 0..<40 {
            var writes: [StepWrite] = []
            for _ in 0..<20 {
                let id = id(&random)
                if random.generator.oneIn(5) {
                    writes.append(.delete("c/\(id)"))
                    model.remove(Array(id.utf8))
                } else {
                    writes.append(.set("c/\(id)", fields(1)))
                    model.insert(Array(id.utf8))
                }
            }
            // Neighbours that must not be met.
            writes.append(.set("c/\(id(&random))/sub/\(id(&random))", fields(2)))
            writes.append(.set("cc/\(id(&random))", fields(2)))
            try await harness.commit(writes)
            if random.generator.oneIn(10) { try harness.store.checkpoint() }
        }
        let all = sorted(model.map { String(decoding: $0, as: UTF8.self) })
        try expectEqual(harness.ids("c").map { Array($0.utf8) }, all.map { Array($0.utf8) })
        try expectEqual(
            harness.ids("c", direction: .descending).map { Array($0.utf8) }, all.reversed().map { Array($0.utf8) })
        try expectEqual(harness.store.makeReader().count("c", harness), all.count)
        for _ in 0..<150 {
            let range = DocumentIDRange(
                lower: random.generator.oneIn(4) ? nil : bound(all, &random),
                upper: random.generator.oneIn(4) ? nil : bound(all, &random))
            let direction: SortDirection = random.generator.oneIn(2) ? .ascending : .descending
            let limit = 1 + random.generator.below(30)
            var expected = all.filter { isIn($0, range) }
            if direction == .descending { expected.reverse() }
            let found = try harness.ids("c", range, direction: direction, limit: limit)
            expectEqual(found.map { Array($0.utf8) }, expected.prefix(limit).map { Array($0.utf8) })
        }
        try harness.finish()
    }

    private func bound(_ all: [String], _ random: inout RandomDocuments) -> DocumentIDBound {
        let id = random.generator.oneIn(2) ? random.generator.pick(all) : self.id(&random)
        return DocumentIDBound(id: Array(id.utf8), isInclusive: random.generator.oneIn(2))
    }

    private func isIn(_ id: String, _ range: DocumentIDRange) -> Bool {
        let id = Array(id.utf8)
        if let lower = range.lower {
            let order = ResourceID.compare(id.byteSpan, lower.id.byteSpan)
            if order < 0 || (order == 0 && !lower.isInclusive) { return false }
        }
        if let upper = range.upper {
            let order = ResourceID.compare(id.byteSpan, upper.id.byteSpan)
            if order > 0 || (order == 0 && !upper.isInclusive) { return false }
        }
        return true
    }

    @Test
    func `A thousand ids of 1500 bytes that differ in the last three come in order`() async throws {
        let harness = try StoreHarness()
        let prefix = String(repeating: "x", count: 1_497)
        let ids = (0..<1_000).map { prefix + String(1_000 + $0).dropFirst() }
        for start in stride(from: 0, to: 1_000, by: 250) {
            try await harness.commit(ids[start..<(start + 250)].shuffled().map { .set("c/\($0)", fields(1)) })
        }
        try expectEqual(harness.ids("c"), ids)
        try expectEqual(harness.ids("c", direction: .descending, limit: 700), Array(ids.reversed().prefix(700)))
        try expect(harness.get("c/\(ids[500])") != nil)
        try harness.finish()
    }

    @Test
    func `The longest names can be written, read, found and deleted`() async throws {
        let harness = try StoreHarness()
        let id = String(repeating: "n", count: 1_499)
        let root = harness.database.documentsRoot.utf8.count
        // As near to 6 KiB as four segments come.
        let rest = min(Limits.documentNameBytes - root - 4 - 2 * 1_500 - 1_499, 1_500)
        let path = "\(id)a/\(id)b/\(String(repeating: "m", count: 1_499))/\(String(repeating: "k", count: rest))"
        expect(harness.name(path).utf8.count > Limits.documentNameBytes - 150)
        try await harness.commit([
            .set(path, fields(1)), .set("\(id)a/\(id)b", fields(2)), .set("\(id)a/\(id)c", fields(3)),
        ])
        try expectEqual(harness.integer(path), 1)
        try expectEqual(harness.ids("\(id)a"), ["\(id)b", "\(id)c"])
        let reader = harness.store.makeReader()
        let point = try reader.readPoint(.latest, in: harness.database)
        try expectEqual(reader.collectionIDs(below: nil, after: nil, limit: 10, at: point), ["\(id)a"])
        let parent = try DocumentPath(harness.name("\(id)a/\(id)b"))
        try expectEqual(
            reader.collectionIDs(below: parent, after: nil, limit: 10, at: point),
            [String(repeating: "m", count: 1_499)])
        try harness.store.checkpoint()
        let again = try harness.crashed()
        try await again.commit([.delete(path)])
        try expectNil(again.get(path))
        try again.finish()
        try harness.finish()
    }

    @Test(arguments: [UInt64(81), 82, 83])
    func `Collections are found in path order, anywhere, at any version`(seed: UInt64) async throws {
        print("seed \(seed)")
        var random = RandomDocuments(seed: seed)
        let harness = try StoreHarness()
        var collections: Set<[UInt8]> = []
        let names = ["a", "b", "posts", "é", "__id7__", "__id-7__", String(repeating: "L", count: 120), "z\u{0}"]
        var documents: [String] = []
        for _ in 0..<150 {
            var path = random.generator.pick(names)
            for _ in 0..<random.generator.below(4) {
                path += "/\(random.generator.pick(names + ["x", "y"]))/\(random.generator.pick(names))"
            }
            collections.insert(Array(path.utf8))
            documents.append("\(path)/\(random.generator.pick(["d", "e"]))")
        }
        try await harness.commit(Set(documents).map { .set($0, fields(1)) })
        let before = try harness.store.makeReader().readPoint(.latest, in: harness.database).readTime
        let all = collections.sorted { ResourcePath.compare($0.byteSpan, $1.byteSpan) < 0 }

        let reader = harness.store.makeReader()
        func walk(_ selector: ReadSelector, below parent: [UInt8], id: [UInt8]?) throws -> [[UInt8]] {
            let source = try reader.source(at: try harness.readPoint(reader, selector))
            var found: [[UInt8]] = []
            var position: [UInt8] = []
            while true {
                guard let next = try source.nextCollection(after: position, below: parent, collectionID: id) else {
                    return found
                }
                found.append(next)
                position = next
            }
        }
        func expected(below parent: [UInt8], id: [UInt8]?) -> [[UInt8]] {
            all.filter { path in
                (parent.isEmpty || path.starts(with: parent + [UInt8(ascii: "/")]))
                    && (id == nil || path == id || path.suffix(id!.count + 1) == [UInt8(ascii: "/")] + id!)
            }
        }
        try expectEqual(walk(.latest, below: [], id: nil), all)
        for name in names {
            try expectEqual(walk(.latest, below: [], id: Array(name.utf8)), expected(below: [], id: Array(name.utf8)))
        }
        for document in documents.prefix(20) {
            let parent = Array(document.utf8)
            try expectEqual(walk(.latest, below: parent, id: nil), expected(below: parent, id: nil))
        }
        // Ids below each document that has something below it.
        let point = try reader.readPoint(.latest, in: harness.database)
        func children(_ parent: [UInt8]) -> [String] {
            var ids: [String] = []
            for path in expected(below: parent, id: nil) {
                let id = String(decoding: ChildPath.firstSegment(of: path, below: parent), as: UTF8.self)
                if ids.last.map({ Array($0.utf8) }) != Array(id.utf8) { ids.append(id) }
            }
            return ids
        }
        try expectEqual(reader.collectionIDs(below: nil, after: nil, limit: 100, at: point), children([]))
        for document in documents.prefix(30) {
            let parent = try DocumentPath(harness.name(document))
            let ids = children(parent.utf8)
            try expectEqual(reader.collectionIDs(below: parent, after: nil, limit: 100, at: point), ids)
            if let first = ids.first {
                try expectEqual(
                    reader.collectionIDs(below: parent, after: first, limit: 100, at: point), Array(ids.dropFirst()))
                try expectEqual(reader.collectionIDs(below: parent, after: nil, limit: 1, at: point), [first])
            }
        }
        // Everything goes; the past stays.
        try await harness.commit(Set(documents).map { .delete($0) })
        try expectEqual(walk(.latest, below: [], id: nil), [])
        try expectEqual(walk(.time(before), below: [], id: nil), all)
        try harness.finish()
    }

    @Test(arguments: [UInt64(91), 92])
    func `A listing with missing documents names every id that has a document or something below it`(seed: UInt64)
        async throws
    {
        print("seed \(seed)")
        var random = RandomDocuments(seed: seed)
        let harness = try StoreHarness()
        var present: Set<[UInt8]> = []
        var parents: Set<[UInt8]> = []
        for _ in 0..<60 {
            let id = id(&random)
            if random.generator.oneIn(2) {
                try await harness.commit([.set("c/\(id)", fields(1))])
                present.insert(Array(id.utf8))
            }
            if random.generator.oneIn(2) {
                try await harness.commit([.set("c/\(id)/s/x", fields(1)), .set("c/\(id)/t/x/u/y", fields(1))])
                parents.insert(Array(id.utf8))
            }
        }
        let collection = try CollectionPath("\(harness.database.documentsRoot)/c")
        let reader = harness.store.makeReader()
        let point = try reader.readPoint(.latest, in: harness.database)
        let everything = sorted(present.union(parents).map { String(decoding: $0, as: UTF8.self) })
        for _ in 0..<40 {
            let lower = random.generator.oneIn(3) ? nil : bound(everything, &random)
            let range = DocumentIDRange(lower: lower)
            let limit = 1 + random.generator.below(40)
            var listed: [[UInt8]] = []
            try reader.listDocuments(in: collection, ids: range, showMissing: true, at: point) { id, document in
                let bytes = [UInt8](copying: id)
                listed.append(bytes)
                let isThere = document != nil
                expectEqual(isThere, present.contains(bytes))
                return listed.count < limit ? .more : .stop
            }
            expectEqual(listed, everything.filter { isIn($0, range) }.prefix(limit).map { Array($0.utf8) })
        }
        try harness.finish()
    }

    @Test(arguments: [false, true])
    func `A step of a listing passes few deleted documents`(isCheckpointed: Bool) async throws {
        let harness = try StoreHarness()
        let deleted = (100..<400).map { "b/\($0)" } + (100..<400).map { "a/x/c/\($0)" }
        let left = ["a/x/c/500", "b/500", "d/1"]
        try await harness.commit((deleted + left).map { .set($0, fields(1)) })
        if isCheckpointed { try harness.store.checkpoint() }
        try await harness.commit(deleted.map { .delete($0) })
        if isCheckpointed { try harness.store.checkpoint() }
        let reader = harness.store.makeReader()
        let point = try reader.readPoint(.latest, in: harness.database)

        var collections = CollectionIDListing(below: nil, after: nil)
        var steps = 1
        while try !reader.list(&collections, limit: 10, at: point, documentsMax: 5) { steps += 1 }
        expectEqual(collections.ids, ["a", "b", "d"])
        expect(steps >= 20, "\(steps) steps")

        // Documents that were deleted, and places of documents below which others were.
        for (collection, listed) in [("b", ["500"]), ("a", ["x"])] {
            let path = try CollectionPath("\(harness.database.documentsRoot)/\(collection)")
            var listing = DocumentListing(of: path, showMissing: true)
            var (ids, steps): ([String], Int) = ([], 0)
            while !listing.isFinished {
                try reader.list(&listing, at: point, documentsMax: 5) { (id, _) throws(RequestError) in
                    ids.append(String(repairingUTF8: id))
                    return .more
                }
                steps += 1
            }
            expectEqual(ids, listed)
            expect(steps >= 10, "\(collection): \(steps) steps")
        }
        try harness.finish()
    }
}
