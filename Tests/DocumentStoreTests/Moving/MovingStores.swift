// Two stores between which a database moves, and words for the steps.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore

/// The source and the target of a move; each has a separate clock.
final class MovingStores {
    var source: StoreHarness
    var target: StoreHarness
    var generation: UInt64
    /// Bytes of a chunk, about.
    var chunkBytes = 1 << 20

    var database: DatabaseName { source.database }

    init(generation: UInt64 = 1, configure: (inout StoreConfiguration) -> Void = { _ in }) throws {
        self.generation = generation
        source = try StoreHarness(configure: configure)
        target = try StoreHarness(configure: configure)
    }

    /// The database is to move back.
    func turn() {
        swap(&source, &target)
        generation += 1
    }

    func finish() throws {
        try source.finish()
        try target.finish()
    }

    // MARK: Steps

    typealias Step = (DocumentStore, @escaping DocumentStore.MoveCompletion) -> Void

    private static func run(
        _ harness: StoreHarness, _ step: Step
    ) async throws -> DatabaseTenure {
        try await withCheckedContinuation { continuation in
            step(harness.store) { continuation.resume(returning: $0) }
        }.get()
    }

    func receive() async throws -> DatabaseTenure {
        try await Self.run(target) { $0.receive(database, generation: generation, completion: $1) }
    }

    func release() async throws -> DatabaseTenure {
        try await Self.run(source) { $0.release(database, generation: generation, to: "target", completion: $1) }
    }

    func discard() async throws -> DatabaseTenure {
        try await Self.run(target) { $0.discardReceived(database, generation: generation, completion: $1) }
    }

    func deleteReleased() async throws -> DatabaseTenure {
        try await Self.run(source) { $0.deleteReleased(database, generation: generation, completion: $1) }
    }

    func chunk() throws -> MoveChunk {
        try source.store.moveChunk(
            of: database, generation: generation, after: target.store.tenure(of: database).progress,
            bytesMax: chunkBytes)
    }

    func apply(_ chunk: MoveChunk) async throws -> DatabaseTenure {
        try await Self.run(target) {
            $0.applyMove(chunk: chunk.bytes, to: database, generation: generation, completion: $1)
        }
    }

    /// Copies until nothing is left to send.
    func copy() async throws {
        while true {
            let chunk = try chunk()
            if chunk.bytes.isEmpty { return }
            _ = try await apply(chunk)
            if chunk.isLast { return }
        }
    }

    /// Moves the database without anything in between.
    func move() async throws {
        try await expectEqual(receive().state, .receiving)
        try await copy()
        try await expectEqual(release().state, .released)
        try await copy()
    }

    /// Waits until nothing is left of what a store had.
    static func waitUntilRemoved(_ harness: StoreHarness) async throws {
        try await eventually("the copy is removed") {
            harness.clock.advance(milliseconds: 1_000)
            harness.store.noticeTime()
            return !harness.store.tenure(of: harness.database).isCopyLeft
        }
    }
}

extension StoreHarness {
    /// The error of a read of the newest state; nil if it succeeds.
    func readError(_ path: String, _ selector: ReadSelector = .latest) -> RequestError? {
        do {
            _ = try get(path, selector)
            return nil
        } catch {
            return error as? RequestError
        }
    }
}
