// Collections of garbage against a model of uses; the disk space that they give back.

import Basics
import ClientCache
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct GarbageTests: LocalStoreFixture {
    private let directory = TemporaryDirectory("garbage")
    /// All documents of a test have about one size.
    private static let padding = String(repeating: "x", count: 2000)

    private static func padded(_ id: String, at time: UInt64) -> RemoteUpdate {
        found(id, ["n": .integer(Int64(time)), "text": .string(padding)], at: time)
    }

    private static func isCached(_ id: String, in store: LocalStore) throws -> Bool {
        try store.state(of: name(id)).document != nil
    }

    @Test
    func `What was read in one minute goes in the order of its use, and no more than the bound asks for`() throws {
        let store = try Self.open(bytesMax: 2 << 20)
        let ids = (0..<1500).map { "d\($0 + 1000)" }
        for start in stride(from: 0, to: ids.count, by: 100) {
            _ = try store.apply(ids[start..<start + 100].map { Self.padded($0, at: 10) })
        }
        // The first ones are read again.
        store.noteUse(of: ids[..<100].map { Self.name($0) })
        let documentBytes = store.byteCount / ids.count
        expect(store.isTooLarge)
        let result = try store.collectGarbage()
        expect(!store.isTooLarge)
        expect(store.byteCount > 2 << 20 - 2 * documentBytes, "as little as possible goes")
        let kept = try ids.filter { try Self.isCached($0, in: store) }
        expectEqual(kept.count, ids.count - result.documents)
        expectEqual(kept, Array(ids[..<100]) + Array(ids[(100 + result.documents)...]))
        try expectEqual(store.collectGarbage().documents, 0)
    }

    @Test
    func `Queries without documents do not grow the cache without end`() throws {
        var store = try Self.open(directory.path(of: "targets"), bytesMax: 1 << 20)
        let count = 4000
        func query(_ number: Int) -> [UInt8] { Array("query \(number) \(Self.padding.prefix(200))".utf8) }
        for number in 0..<count {
            let canonical = query(number)
            let target = try store.use(target: canonical)
            _ = try store.apply([], targets: [TargetUpdate(id: target.id, token: [1], snapshotMicroseconds: 5)])
            try store.release(target: canonical)
        }
        func kept() throws -> Int {
            try (0..<count).count { try store.stored(target: query($0)) != nil }
        }
        store.close()
        store = try Self.open(directory.path(of: "targets"), bytesMax: 1 << 20)
        let removed = try store.collectGarbage().targets
        expect(removed > 0)
        try expectEqual(kept(), count - removed)
        try expect(store.stored(target: query(count - 1)) != nil, "the last ones stay")
        try expectEqual(store.collectGarbage().targets, 0)
    }

    // MARK: A model

    /// What a model knows of a store: the moments of the uses, which grow.
    private struct Model {
        struct Target {
            var use: Int
            var isActive: Bool
            var members: Set<String> = []
        }

        var time = 0
        var documents: [String: Int] = [:]
        /// Uses that a restart forgets.
        var reads: [String: Int] = [:]
        var targets: [UInt8: Target] = [:]
        var pending: Set<String> = []
        var shown: Set<String> = []

        func isKept(_ id: String) -> Bool {
            pending.contains(id) || shown.contains(id)
                || targets.values.contains { $0.isActive && $0.members.contains(id) }
        }

        func use(of id: String) -> Int {
            let byTargets = targets.values.filter { $0.members.contains(id) }.map(\.use)
            return max(documents[id] ?? 0, reads[id] ?? 0, byTargets.max() ?? 0)
        }
    }

    @Test
    func `Random uses: what was used last is kept, the bound is met and not undercut, what is in use stays`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let path = directory.path(of: "random")
        let bytesMax = 40 * 2100
        var store = try Self.open(path, bytesMax: bytesMax)
        var model = Model()
        let ids = (0..<120).map { "d\($0 + 100)" }
        var ends: [UInt64: String] = [:]
        for step in 0..<600 {
            model.time += 1
            let some = Array(ids.shuffled(using: &generator).prefix(1 + generator.below(12)))
            let number = UInt8(1 + generator.below(6))
            switch generator.below(12) {
            case 0, 1, 2, 3:
                _ = try store.apply(some.map { Self.padded($0, at: UInt64(1000 + model.time)) })
                for id in some where !model.pending.contains(id) { model.documents[id] = model.time }
            case 4, 5:
                let read = try some.filter { try Self.isCached($0, in: store) }
                store.noteUse(of: read.map { Self.name($0) })
                for id in read { model.reads[id] = model.time }
            case 6:
                if model.targets[number]?.isActive ?? false { break }
                let target = try store.use(target: [number])
                var update = TargetUpdate(id: target.id, token: [1], snapshotMicroseconds: UInt64(1000 + model.time))
                let cached = try some.filter { try Self.isCached($0, in: store) }
                update.added = cached.map { Self.name($0) }
                _ = try store.apply([], targets: [update])
                let members = model.targets[number]?.members ?? []
                model.targets[number] = Model.Target(
                    use: model.time, isActive: true, members: members.union(cached))
            case 7:
                guard model.targets[number]?.isActive ?? false else { break }
                try store.release(target: [number])
                model.targets[number]?.isActive = false
                model.targets[number]?.use = model.time
            case 8:
                guard let id = some.first(where: { !model.pending.contains($0) }) else { break }
                let (batch, _) = try store.enqueue(
                    Self.request([(id, .set(1))]), identity: Self.identity(UInt64(step)))
                ends[batch] = id
                model.pending.insert(id)
            case 9:
                guard let (batch, id) = ends.first else { break }
                let time = UInt64(1000 + model.time)
                _ = try store.acknowledge(
                    batch, results: [WriteResult(updateMicroseconds: time)], commitMicroseconds: time)
                _ = try store.apply([Self.padded(id, at: time + 1)])
                ends[batch] = nil
                model.pending.remove(id)
                model.documents[id] = model.time
            case 10 where generator.oneIn(4):
                store.close()
                store = try Self.open(path, bytesMax: bytesMax)
                model.reads = [:]
                for number in model.targets.keys { model.targets[number]?.isActive = false }
            case 10: model.shown = Set(some.prefix(3))
            default: try Self.collect(store, &model, ids, bytesMax, "seed \(seed), step \(step)")
            }
        }
        store.close()
    }

    /// Collects and compares.
    private static func collect(
        _ store: LocalStore, _ model: inout Model, _ ids: [String], _ bytesMax: Int, _ place: Comment
    ) throws {
        let before = try ids.filter { try isCached($0, in: store) }
        let wasTooLarge = store.isTooLarge
        let result = try store.collectGarbage { name in model.shown.contains { Self.name($0) == name } }
        let after = try Set(ids.filter { try isCached($0, in: store) })
        let removed = before.filter { !after.contains($0) }
        expectEqual(removed.count, result.documents, place)
        expect(wasTooLarge || removed.isEmpty, place)
        expectEqual(removed.filter { model.isKept($0) }, [], place)
        let removable = after.filter { !model.isKept($0) }
        expect(!store.isTooLarge || removable.isEmpty, place)
        let lastRemoved = removed.map { model.use(of: $0) }.max() ?? 0
        expectEqual(removable.filter { model.use(of: $0) < lastRemoved }, [], place)
        // One document less would have been too few.
        if !removed.isEmpty { expect(store.byteCount + store.targetByteCount + 2200 > bytesMax, place) }
        for id in removed {
            model.documents[id] = nil
            model.reads[id] = nil
        }
        // Queries whose documents have gone have gone before.
        for (number, target) in model.targets {
            let isStored = try store.stored(target: [number]) != nil
            expect(isStored || !target.isActive, place)
            expect(!isStored || target.members.isDisjoint(with: removed), place)
            if !isStored { model.targets[number] = nil }
        }
    }

    // MARK: The disk

    /// The blocks of the files below a directory, in bytes.
    private static func allocatedBytes(of directory: String) throws -> Int {
        let files = FileManager.default.enumerator(atPath: directory)
        var sum = 0
        while let name = files?.nextObject() as? String {
            var status = stat()
            if stat("\(directory)/\(name)", &status) == 0 { sum += Int(status.st_blocks) * 512 }
        }
        return sum
    }

    @Test(arguments: [1, 40])
    func `The disk space of removed documents is given back, whatever their size`(documentFactor: Int) throws {
        let path = directory.path(of: "space")
        var configuration = LocalStore.Configuration(database: Self.database, directory: path, bytesMax: 2 << 20)
        configuration.isEager = false
        let deliveries = Mutex<[@Sendable () -> Void]>([])
        let store = try LocalStore(configuration) { body in deliveries.withLock { $0.append(body) } }
        let values: [String: Value] = ["text": .string(String(repeating: "x", count: 1000 * documentFactor))]
        var number = 0
        while store.byteCount < 24 << 20 {
            let updates = (number..<number + 200 / documentFactor).map { Self.found("d\($0)", values, at: 10) }
            _ = try store.apply(updates)
            number += updates.count
        }
        expectNil(store.makeSpaceReclamation(), "nothing was removed")
        _ = try store.collectGarbage()
        let reclaim = try #require(store.makeSpaceReclamation())
        let isReclaimed = Atomic(false)
        let thread = Thread {
            reclaim()
            isReclaimed.store(true, ordering: .releasing)
        }
        thread.start()
        // Meanwhile the store works.
        try waitUntil("the space is given back") {
            let due = deliveries.withLock { all in
                defer { all = [] }
                return all
            }
            for body in due { body() }
            return isReclaimed.load(ordering: .acquiring)
        }
        expectNil(store.makeSpaceReclamation())
        store.close()
        // The documents, and what the engine keeps for its next writes.
        try expect(Self.allocatedBytes(of: path) < 10 << 20)
        // After the store is closed there is nothing to do, and no error.
        reclaim()
        let again = try LocalStore(configuration) { _ in }
        expect(again.byteCount <= 2 << 20)
        again.close()
    }
}
