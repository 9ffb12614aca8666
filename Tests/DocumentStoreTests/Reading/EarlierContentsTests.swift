// Documents that earlier versions stored under rules that have become stricter since.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

/// What earlier versions accepted and requests cannot write any more.
@Suite(.timeLimit(.minutes(20))) struct EarlierContentsTests {
    private let damaged: MapValue = ["l": [.vector([1])], "v": .vector([.nan])]

    private func store(_ harness: StoreHarness) async throws {
        var list = WriteList(database: harness.database, rules: .stored)
        let bytes = damaged.documentBytes
        for path in ["__id7__/x", "c/__id0__", "c/d/__id-1__/y"] {
            let name = Array(harness.name(path).utf8)
            try list.update(name.byteSpan, fields: bytes.byteSpan)
        }
        _ = try await harness.outcome(CommitRequest(writes: list)).get()
        for path in ["__id7__/x", "c/__id0__"] {
            #expect(throws: RequestError.self) { try harness.list([.set(path, [:])], rules: .request) }
        }
        #expect(throws: RequestError.self) { try harness.list([.set("c/a", damaged)], rules: .request) }
    }

    @Test func `They are found after a restart and pass the check`() async throws {
        let first = try StoreHarness()
        try await store(first)
        let harness = try first.reopened()
        for path in ["__id7__/x", "c/__id0__", "c/d/__id-1__/y"] {
            let seen = try harness.get(path)
            expectEqual(seen?.fields.documentBytes, damaged.documentBytes, "\(path)")
        }
        try harness.finish()
    }

    @Test func `A change of other fields leaves them as they are`() async throws {
        let harness = try StoreHarness()
        var list = WriteList(database: harness.database, rules: .stored)
        let bytes = damaged.documentBytes
        let name = Array(harness.name("c/a").utf8)
        try list.update(name.byteSpan, fields: bytes.byteSpan)
        _ = try await harness.outcome(CommitRequest(writes: list)).get()
        try await harness.commit([.merge("c/a", ["n": 1], mask: ["n"])])
        let expected: MapValue = ["l": [.vector([1])], "n": 1, "v": .vector([.nan])]
        try expectEqual(harness.get("c/a")?.fields.documentBytes, expected.documentBytes)
        try harness.finish()
    }
}
