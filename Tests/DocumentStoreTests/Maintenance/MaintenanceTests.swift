// Backup, and a check that finds what is wrong.

import Basics
import DocumentModel
import Foundation
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct MaintenanceTests {
    @Test(.needsFiles)
    func `A backup taken while commits continue opens, is clean and is one moment`() async throws {
        let harness = try StoreHarness()
        try await harness.commit((0..<100).map { .set("c/\($0)", fields(0)) })
        let backups = TemporaryDirectory("hearth-backup")
        let stop = SharedFlag()
        async let writing: Void = {
            var round: Int64 = 0
            while !stop.isSet {
                round += 1
                try await harness.commit((0..<100).map { .set("c/\($0)", fields(round)) })
            }
        }()
        try harness.store.backup(to: backups.path(of: "data"))
        stop.set()
        try await writing
        let copy = try StoreHarness(in: backups)
        var values: Set<Int64> = []
        for number in 0..<100 { values.insert(try #require(try copy.integer("c/\(number)"))) }
        expectEqual(values.count, 1)
        try await copy.commit([.set("c/new", fields(1))])
        try copy.finish()
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A damaged document ends in DATA_LOSS with its name and no file's; others are served, and the check finds it`()
        async throws
    {
        let harness = try StoreHarness()
        try await harness.commit([.set("m/x", fields(0x0123_4567_89AB_CDEF))])
        // A damaged entry takes its block with it: others are before and after it, in other blocks.
        for round in 0..<10 {
            try await harness.commit((0..<100).map { .set("a/\(round)-\($0)", fields(1)) })
            try await harness.commit((0..<100).map { .set("z/\(round)-\($0)", fields(1)) })
        }
        try harness.finish()
        // The number as a varint; every place where it is stored.
        let number = Data([0xEF, 0x9B, 0xAF, 0xCD, 0xF8, 0xAC, 0xD1, 0x91, 0x01])
        let runs = harness.configuration.directory + "/runs/"
        var damaged: [String] = []
        for name in try FileManager.default.contentsOfDirectory(atPath: runs) where name.hasSuffix(".mdb") {
            let path = runs + name
            var run = try Data(contentsOf: URL(filePath: path))
            var searched = run.startIndex
            while let found = run.range(of: number, in: searched..<run.endIndex) {
                run[found.lowerBound + 3] ^= 4
                damaged.append(path)
                searched = found.upperBound
            }
            try run.write(to: URL(filePath: path))
        }
        expect(!damaged.isEmpty)

        let again = try StoreHarness(in: harness.directory)
        let error = #expect(throws: RequestError.self) { try again.integer("m/x") }
        expectEqual(error?.code, .dataLoss)
        expectEqual(error?.message, "The stored document \(again.database)/documents/m/x is damaged.")
        expect(damaged.contains { error?.details?.contains($0) == true })
        try expectEqual(again.integer("z/7-7"), 1)
        _ = again.store.close()
        try expect(!StoreCheck.run(again.configuration).problems.isEmpty)
    }

    @Test(.needsFiles)
    func `The check names what is wrong`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("c/b", fields(2))])
        expectNil(harness.store.close())

        /// Changes keys without the store's knowledge, then checks.
        func problems(_ change: (inout MutationBatch) -> Void) throws -> [String] {
            try harness.check(changing: change).problems
        }
        var key = ByteBuffer()
        let path = Array("c/x".utf8)
        DocumentKey.write(path.byteSpan, database: 1, into: &key)
        let document = key.copyBytes()
        try expectEqual(problems { _ in }, [])
        let uncounted = try problems { batch in
            let bytes: [UInt8] = [0]
            batch.put(key: document.byteSpan, value: bytes.byteSpan)
        }
        expect(uncounted.count == 1 && uncounted[0].contains("counts 2 documents where there are 3"))
        let irregular = try problems { batch in
            let bytes: [UInt8] = [0, 0x12, 0x7f]
            batch.put(key: document.byteSpan, value: bytes.byteSpan)
        }
        expect(irregular.contains { $0.contains("c/x is not valid") })
        let strange = try problems { batch in
            let (key, value): ([UInt8], [UInt8]) = ([0x77, 1], [1])
            batch.put(key: key.byteSpan, value: value.byteSpan)
        }
        expect(strange.count == 1 && strange[0].contains("unknown key space"))
        DocumentKey.write(path.byteSpan, database: 9, into: &key)
        let orphaned = key.copyBytes()
        let unknown = try problems { batch in
            let bytes: [UInt8] = [0]
            batch.put(key: orphaned.byteSpan, value: bytes.byteSpan)
        }
        expect(unknown.contains { $0.contains("unknown database") })
        expect(unknown.contains { $0.contains("not in the catalogue") })
        func listed(_ id: String) -> [UInt8] {
            DocumentKey.writeCatalogue(Array(id.utf8).byteSpan, database: 1, into: &key)
            return GroupKey.key(of: key.bytes, path: [UInt8]().byteSpan)
        }
        let (known, other) = (listed("c"), listed("d"))
        let unlisted = try problems { batch in batch.delete(key: known.byteSpan) }
        expect(unlisted.count == 1 && unlisted[0].contains("missing in the list of its group"))
        let listedTwice = try problems { batch in
            let nothing: [UInt8] = []
            batch.put(key: other.byteSpan, value: nothing.byteSpan)
        }
        expectEqual(listedTwice, ["the lists of groups have 2 collections, 1 of which are in the catalogue"])
    }
}
