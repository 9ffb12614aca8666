// When the memory of a memtable goes: not while a reader may look through it, and then.

import EngineTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

/// A set without runs.
private let noRuns = RunSet(Manifest(), generation: 1, open: [:])

@Suite(.timeLimit(.minutes(20))) struct MemtableRegistryTests {
    private static let key: Bytes = [1, 2, 3]

    /// A memtable that holds its number.
    private static func memtable(_ number: UInt64) throws -> Memtable {
        let memtable = try Memtable(reservedBytes: Memtable.bytesNeeded(count: 1, bytes: 16))
        key.withUnsafeBytes { key in
            withUnsafeBytes(of: number) { memtable.insert(key, version: 1, value: $0) }
        }
        return memtable
    }

    /// The number that a memtable holds.
    private static func number(in memtable: Memtable) -> UInt64? {
        let entry = key.withUnsafeBytes { memtable.find($0, atMost: 1) }
        return memtable.value(entry)?.loadUnaligned(as: UInt64.self)
    }

    @Test func `What no reader looks through goes at once`() throws {
        let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
        let (first, second) = (registry.viewForUpdate.active, try Self.memtable(2))
        registry.show(active: second, frozen: first, retiring: nil, runs: noRuns)
        registry.show(active: second, frozen: nil, retiring: first, runs: noRuns)
        expect(registry.reclaim())
        expectEqual(registry.generation, 3)
        expectNil(registry.viewForUpdate.frozen)
    }

    @Test func `A reader keeps the memtables of its view until it leaves`() throws {
        let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
        let slot = registry.makeSlot()
        let view = registry.enter(slot)
        expect(view.generation == 1 && registry.isInUse(slot))
        let second = try Self.memtable(2)
        registry.show(active: second, frozen: view.active, retiring: nil, runs: noRuns)
        registry.show(active: second, frozen: nil, retiring: view.active, runs: noRuns)
        expect(!registry.reclaim())
        expectEqual(Self.number(in: view.active), 1)
        registry.leave(slot)
        expect(!registry.isInUse(slot))
        expect(registry.reclaim())
    }

    @Test func `A reader that came later does not keep what it cannot see`() throws {
        let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
        let (early, late) = (registry.makeSlot(), registry.makeSlot())
        let first = registry.enter(early).active
        let second = try Self.memtable(2)
        registry.show(active: second, frozen: nil, retiring: first, runs: noRuns)
        let view = registry.enter(late)
        expect(view.generation == 2 && Self.number(in: view.active) == 2)
        expect(!registry.reclaim())
        registry.leave(early)
        // The late one is still there.
        expect(registry.reclaim())
        let third = try Self.memtable(3)
        registry.show(active: third, frozen: nil, retiring: second, runs: noRuns)
        expect(!registry.reclaim())
        expectEqual(Self.number(in: view.active), 2)
        registry.leave(late)
        expect(registry.reclaim())
    }

    @Test func `The oldest of several readers decides, in whatever order they leave`() throws {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
            let slots = (0..<3).map { _ in registry.makeSlot() }
            var views: [MemtableView] = []
            for (index, slot) in slots.enumerated() {
                views.append(registry.enter(slot))
                registry.show(
                    active: try Self.memtable(UInt64(index) + 2), frozen: nil, retiring: views[index].active,
                    runs: noRuns)
            }
            var left: Set<Int> = []
            for index in order {
                for reader in 0..<3 where !left.contains(reader) {
                    expectEqual(Self.number(in: views[reader].active), UInt64(reader) + 1)
                }
                registry.leave(slots[index])
                left.insert(index)
                expectEqual(registry.reclaim(), left.count == 3)
            }
        }
    }

    @Test func `A slot that is removed keeps nothing`() throws {
        let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
        let slot = registry.makeSlot()
        let first = registry.enter(slot).active
        registry.show(active: try Self.memtable(2), frozen: nil, retiring: first, runs: noRuns)
        expect(!registry.reclaim())
        registry.removeSlot(slot)
        expect(registry.reclaim())
    }

    private final class Readers: Sendable {
        let wrong = Atomic(0)
        let seen = Atomic(0)
        let isOver = Atomic(false)
        let finished = DispatchSemaphore(value: 0)
    }

    @Test func `Readers find whole memtables while the view changes`() throws {
        let registry = MemtableRegistry(active: try Self.memtable(1), runs: noRuns)
        let readers = Readers()
        for _ in 0..<2 {
            let slot = registry.makeSlot()
            Thread.detachNewThread {
                while !readers.isOver.load(ordering: .acquiring) {
                    let view = registry.enter(slot)
                    // The number of the active memtable is the generation, the frozen one is the one before.
                    let isRight =
                        Self.number(in: view.active) == view.generation
                        && view.frozen.map { Self.number(in: $0) == view.generation - 1 } ?? true
                    if !isRight { readers.wrong.add(1, ordering: .relaxed) }
                    readers.seen.add(1, ordering: .relaxed)
                    registry.leave(slot)
                }
                registry.removeSlot(slot)
                readers.finished.signal()
            }
        }
        var previous: Memtable?
        for number in 2...3_000 as ClosedRange<UInt64> {
            let active = registry.viewForUpdate.active
            registry.show(active: try Self.memtable(number), frozen: active, retiring: previous, runs: noRuns)
            previous = active
        }
        try waitUntil("the readers have read") { readers.seen.load(ordering: .relaxed) > 1_000 }
        readers.isOver.store(true, ordering: .releasing)
        for _ in 0..<2 { try readers.finished.wait(until: "a reader has finished") }
        expectEqual(readers.wrong.load(ordering: .relaxed), 0)
        expect(registry.reclaim())
    }
}
