// Document files: what liblmdb writes is what the engine's own reader finds, whatever the sizes of keys and values; and
// damage to any page is reported.

import Basics
import EngineTestSupport
import FileSystem
import Foundation
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct DocumentFileTests {
    let directory = TemporaryDirectory()
    /// The space that keeps the latest value only.
    private static let latestOnly: Set<UInt8> = [1]

    private func write(_ entries: [RunEntry], number: UInt64 = 1) throws -> TestRun {
        try TestRun(
            entries, in: directory.path, number: number, kind: .documents, latestOnly: Self.latestOnly)
    }

    private func path(_ number: UInt64 = 1) -> String { directory.path(of: RunFormat.fileNames(number, .documents)[0]) }
    private func sidePath(_ number: UInt64 = 1) -> String {
        directory.path(of: RunFormat.fileNames(number, .documents)[1])
    }

    /// What liblmdb reads.
    private func readWithLMDB(_ number: UInt64 = 1) throws -> [RunEntry] {
        var entries: [RunEntry] = []
        try LMDBReader.forEach(path(number)) { key, data in
            let hasVersion = !Self.latestOnly.contains(key[0])
            let version = (0..<8).reduce(UInt64(0)) { $0 | UInt64(data[4 + $1]) << UInt64(8 * $1) }
            let value = data[12] == 0 ? nil : Bytes(data[13...])
            entries.append(
                RunEntry(key: Bytes(hasVersion ? key.dropLast(8) : key[...]), version: version, value: value))
            return true
        }
        return entries
    }

    private func value(_ count: Int, _ random: inout SeededGenerator) -> Bytes {
        let start = random.below(256)
        if count > 64 << 10 { return Bytes(repeating: UInt8(start), count: count) }
        return steppedBytes(from: start, count: count)
    }

    /// Documents with history, whose keys are not prefixes of each other, and what keeps the latest value only, whose
    /// keys may be.
    private func entries(_ count: Int, _ random: inout SeededGenerator) -> [RunEntry] {
        var entries: [RunEntry] = []
        while entries.count < count {
            if random.oneIn(4) {
                let key = [1] + (0..<random.below(6)).map { _ in random.pick([0, 1, 255] as Bytes) }
                if entries.contains(where: { $0.key == key }) { continue }
                let length = random.oneIn(9) ? 1_000 + random.below(9_000) : random.below(60)
                entries.append(RunEntry(key: key, version: 1 + UInt64(random.below(90)), value: value(length, &random)))
                continue
            }
            let length = random.oneIn(10) ? 400 + random.below(99) : 1 + random.below(8)
            let key = [0x10] + (0..<length).map { _ in random.pick([1, 97, 255] as Bytes) } + [0]
            for _ in 0..<(random.oneIn(20) ? 1 + random.below(60) : 1 + random.below(2)) {
                let length = random.oneIn(12) ? 1_000 + random.below(9_000) : random.below(500)
                entries.append(
                    RunEntry(
                        key: key, version: 1 + UInt64(random.below(90)),
                        value: random.oneIn(6) ? nil : value(length, &random)))
            }
        }
        return EntryGenerator.ordered(entries)
    }

    private func seen(_ entries: [RunEntry], at version: UInt64) -> [RunEntry] {
        var seen: [RunEntry] = []
        for entry in entries where entry.version <= version || Self.latestOnly.contains(entry.key[0]) {
            if seen.last?.key != entry.key { seen.append(entry) }
        }
        return seen
    }

    @Test(arguments: CaseShare.of(UInt64(1)...8, 3))
    func `Random files read as they were written, and as liblmdb reads them`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let entries = entries([1, 30, 2_000, 9_000][Int(seed % 4)], &random)
        let run = try write(entries)
        try expectEqual(run.entries(), entries)
        try expectEqual(readWithLMDB(), entries)
        for version in [0, 1, 45, 90, .max] as [UInt64] {
            let expected = seen(entries, at: version)
            try expectEqual(run.walk(version, from: nil, .forward, latestOnly: Self.latestOnly), expected)
            try expectEqual(run.walk(version, from: nil, .backward, latestOnly: Self.latestOnly), expected.reversed())
            for _ in 0..<60 {
                var key = random.pick(entries).key
                if random.oneIn(3) { key[random.below(key.count)] = UInt8(random.below(256)) }
                if random.oneIn(3) { key.removeLast(random.below(key.count)) }
                let isLatest = Self.latestOnly.contains(key[0])
                let found = try run.find(key, isLatest ? .max : version)
                expectEqual(found, expected.first { $0.key == key })
                let after = expected.filter { !$0.key.lexicographicallyPrecedes(key) }
                let walked = try run.walk(version, from: key, .forward, latestOnly: Self.latestOnly)
                expectEqual(walked.prefix(5), after.prefix(5))
                let before = Array(expected.filter { $0.key.lexicographicallyPrecedes(key) }.reversed())
                let back = try run.walk(
                    version, from: key, .backward, inclusive: false, latestOnly: Self.latestOnly)
                expectEqual(back.prefix(5), before.prefix(5))
            }
        }
    }

    @Test
    func `Values at the bounds of a page, of several pages, and of an engine, and the longest keys`() throws {
        var random = SeededGenerator(seed: 1)
        // A node of 2,038 bytes is the largest that stays on the page of its key.
        let lengths =
            Array(0...2) + Array(1_000...1_050) + Array(1_980...2_040) + Array(4_040...4_100) + Array(8_130...8_190)
            + [1 << 20, EngineLimits.valueBytesMax]
        let keys: [(UInt64, Bytes)] = [(1, [0x10]), (2, [0x10] + Bytes(repeating: 0xFE, count: 498))]
        for (number, prefix) in keys {
            let entries = lengths.enumerated().map { index, length in
                RunEntry(
                    key: prefix + [UInt8(index >> 8), UInt8(index & 255), 0], version: 7, value: value(length, &random))
            }
            let run = try write(entries, number: number)
            for entry in entries { try expectEqual(run.find(entry.key, 7), entry, "\(entry)") }
            try expectEqual(run.entries(), entries)
            try expectEqual(readWithLMDB(number), entries)
        }
    }

    @Test(arguments: CaseShare.of(UInt64(1)...3, 1))
    func `A flipped bit in any page is damage, and never a wrong value`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let entries = entries(600, &random)
        _ = try write(entries)
        for path in [path(), sidePath()] {
            let whole = Files.read(path)
            for start in stride(from: 0, to: whole.count, by: 4096) {
                var bytes = whole
                bytes[start + random.below(min(4096, whole.count - start))] ^= 1 << random.below(8)
                Files.write(bytes, to: path)
                let found = look(entries)
                expect(found.isHonest, "\(path), page \(start / 4096): a wrong entry")
                expect(found.isDamaged, "\(path), page \(start / 4096): the damage was not found")
            }
            Files.write(whole, to: path)
        }
        let found = look(entries)
        expect(found.isHonest && !found.isDamaged)
    }

    /// Walks and looks keys up in the file as it is now, and verifies all pages.
    private func look(_ entries: [RunEntry]) -> (isHonest: Bool, isDamaged: Bool) {
        do {
            let run = TestRun([try RunFile(directory: directory.path, number: 1, kind: .documents)])
            var isHonest = true
            var isDamaged = false
            do { isHonest = try run.entries() == entries } catch { isDamaged = true }
            for entry in entries {
                do { isHonest = try run.find(entry.key, entry.version) == entry && isHonest } catch { isDamaged = true }
            }
            do {
                try run.files[0].part.verifyHashIndex()
                try run.files[0].part.verifyPages()
            } catch {
                isDamaged = true
            }
            return (isHonest, isDamaged)
        } catch {
            return (true, true)
        }
    }

    private static let rounds = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 400 : 100_000

    @Test
    func `A page that is wrong and has a right sum never ends the process`() throws {
        let seed =
            ProcessInfo.processInfo.environment["HEARTH_SEED"].flatMap(UInt64.init) ?? UInt64.random(in: 0..<1 << 32)
        print("document files: HEARTH_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let entries = entries(300, &random)
        let run = try write(entries)
        let footer = run.files[0].footer
        let records = Int(try #require(footer.documents).recordsOffset)
        let (whole, side) = (Files.read(path()), Files.read(sidePath()))
        for _ in 0..<Self.rounds {
            var (bytes, sums) = (whole, side)
            let page = random.below(whole.count / 4096)
            for _ in 0...random.below(4) {
                // Mostly in the header and the offsets of nodes.
                let place = page * 4096 + (random.oneIn(2) ? random.below(64) : random.below(4096))
                bytes[place] = random.oneIn(2) ? UInt8(random.below(256)) : bytes[place] ^ 1 << random.below(8)
            }
            forge(&sums, page, of: bytes, records: records, identity: footer.identity)
            Files.write(bytes, to: path())
            Files.write(sums, to: sidePath())
            _ = look(entries)
        }
    }

    /// Gives a page the sum that it should have, and the page of records its checksum.
    private func forge(_ side: inout Bytes, _ page: Int, of bytes: Bytes, records: Int, identity: UInt64) {
        func put(_ sum: UInt64, at place: Int) {
            for index in 0..<8 { side[place + index] = UInt8(truncatingIfNeeded: sum >> UInt64(8 * index)) }
        }
        let perPage = DocumentFormat.recordsPerPage
        let start = records + page / perPage * DocumentFormat.recordsPageBytes
        let sum = bytes.withUnsafeBytes {
            RunFormat.sum($0.baseAddress! + page * 4096, 4096, identity: identity, offset: page * 4096)
        }
        put(sum, at: start + 8 + page % perPage * DocumentFormat.recordBytes)
        let all = records + DocumentFormat.recordsBytes(pages: bytes.count / 4096)
        let end = min(start + DocumentFormat.recordsPageBytes, all)
        let whole = side.withUnsafeBytes {
            RunFormat.sum($0.baseAddress! + start + 8, end - start - 8, identity: identity, offset: start)
        }
        put(whole, at: start)
    }

    @Test(
        arguments: CaseShare.of([0, 30, 470, 1_400, 1_510, 2_000, 2_100, 4_200], 3),
        [0, 490])
    func `A file takes at most what was reserved for it`(valueBytes: Int, furtherKeyBytes: Int) throws {
        var random = SeededGenerator(seed: UInt64(valueBytes))
        var batch = MutationBatch()
        var entries: [RunEntry] = []
        for number in 0..<3_000 {
            let key = [0x10] + Bytes(repeating: 7, count: furtherKeyBytes) + Bytes("\(10_000 + number)".utf8)
            // A small value between two large ones wastes most.
            let length = number % 2 == 0 ? valueBytes : random.below(valueBytes + 1)
            let bytes = value(length, &random)
            entries.append(RunEntry(key: key, version: 1, value: bytes))
            batch.put(key: key.span.bytes, value: bytes.span.bytes)
        }
        let memory = Memtable.bytesNeeded(count: entries.count, bytes: entries.reduce(0) { $0 + $1.key.count })
        let reserved = Memtable.runBytesMax(
            byteCount: memory + entries.reduce(0) { $0 + $1.value!.count }, documentBytes: batch.documentBytes)
        let run = try write(entries)
        expect(run.files[0].byteCount <= reserved + 128 << 10)
    }

    @Test
    func `A disk without space ends the writing with full, and the files can be written again`() throws {
        let disk = try TemporaryDisk(megabytes: 4)
        var random = SeededGenerator(seed: 9)
        let entries = (0..<3_000).map { number in
            RunEntry(key: Bytes("\u{10}\(10_000 + number)".utf8), version: 1, value: value(4_200, &random))
        }
        let error = #expect(throws: StorageError.self) {
            try TestRun.write(entries, in: disk.path(of: "."), number: 1, kind: .documents)
        }
        expectEqual(error?.code, .full)
        try TestRun.write(Array(entries.prefix(100)), in: disk.path(of: "."), number: 1, kind: .documents)
    }
}
