import Basics
import TestSupport
import Testing

@testable import ManagedExport

@Suite(.timeLimit(.minutes(20))) struct LogTests {
    private static func log(_ records: [[UInt8]]) -> [UInt8] {
        var writer = LevelDBLogWriter()
        var output = ByteBuffer()
        for record in records { writer.append(record.byteSpan, to: &output) }
        return output.copyBytes()
    }

    private static func record(_ count: Int, _ seed: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ seed) }
    }

    @Test
    func `The checksum is that of RFC 3720`() {
        let cases: [(UInt8, [UInt8], UInt32)] = [
            (0, [UInt8](repeating: 0, count: 31), 0x8A91_36AA), (0, (1..<32).map { UInt8($0) }, 0x46DD_794E),
            (UInt8(ascii: "1"), Array("23456789".utf8), 0xE306_9283),
        ]
        for (first, rest, expected) in cases {
            let checksum = CRC32C.checksum(first, rest.byteSpan)
            expectEqual(checksum, expected)
        }
    }

    @Test
    func `The bytes of the emulator's logs are read, and written again byte for byte`() {
        for golden in [GoldenExport.data, GoldenExport.overall] {
            var reader = LevelDBLogReader(golden)
            let (records, damage) = reader.records()
            expectNil(damage)
            expectEqual(reader.offset, golden.count)
            expectEqual(Self.log(records), golden)
        }
    }

    @Test
    func `A long record has fragments of 30,117, 32,761 and 7,182 bytes where the emulator has them`() {
        // The file of the facts: what is before the record fills the first block except for 30,124 bytes.
        let before = Self.record(LogFragment.blockBytes - 30_124 - 7, 1)
        let long = Self.record(70_060, 2)
        let log = Self.log([before, long])
        let lengths = [30_117, 32_761, 7_182]
        var offset = before.count + 7
        for (index, length) in lengths.enumerated() {
            expectEqual(Int(log[offset + 4]) | Int(log[offset + 5]) << 8, length)
            expectEqual(log[offset + 6], UInt8(index + 2))
            offset += 7 + length
        }
        expectEqual(offset, log.count)
        var reader = LevelDBLogReader(log)
        expectEqual(reader.records().records, [before, long])
    }

    @Test
    func `Records of every size around the ends of blocks come back, also from any record on`() {
        var records: [[UInt8]] = [[]]
        // Each leaves 0 to 16 bytes of a block.
        for left in 0...16 { records.append(Self.record(LogFragment.blockBytes - 14 - left, left)) }
        records.append(Self.record(2_100_000, 5))
        records.append(Self.record(1, 6))
        let log = Self.log(records)
        var reader = LevelDBLogReader(log)
        var offsets = [0]
        for record in records {
            var output = ByteBuffer()
            expectEqual(try? reader.next(into: &output), true)
            expectEqual(output.copyBytes(), record)
            offsets.append(reader.offset)
        }
        for (index, offset) in offsets.enumerated() {
            var later = LevelDBLogReader(log, from: offset)
            expectEqual(later.records().records, Array(records[index...]))
        }
    }

    @Test
    func `A block with room for a header alone ends with a first fragment without data`() {
        for left in 0...9 {
            let before = Self.record(LogFragment.blockBytes - 7 - left, 1)
            let records = [before, Self.record(100, 2), Self.record(40_000, 3)]
            let log = Self.log(records)
            var reader = LevelDBLogReader(log)
            let found = reader.records()
            expect(found.damage == nil && found.records == records, "\(left) bytes left")
            if left == 7 { expectEqual(log[LogFragment.blockBytes - 1], 2) }
        }
    }

    @Test
    func `Every changed byte is damage that keeps the records before it`() {
        let records = (0..<6).map { Self.record(40 * $0, $0) }
        let log = Self.log(records)
        for index in log.indices {
            var damaged = log
            damaged[index] ^= 0x10
            var reader = LevelDBLogReader(damaged)
            let (found, damage) = reader.records()
            expect(damage != nil, "byte \(index)")
            expectEqual(found, Array(records.prefix(found.count)), "byte \(index)")
        }
    }

    @Test
    func `A log that ends anywhere gives its whole records`() {
        let records = (0..<4).map { Self.record(20_000 * $0 + 3, $0) }
        let log = Self.log(records)
        var ends: Set<Int> = [0]
        var reader = LevelDBLogReader(log)
        var output = ByteBuffer()
        while (try? reader.next(into: &output)) == true { ends.insert(reader.offset) }
        for end in stride(from: 0, through: log.count, by: 1_009).map({ $0 }) + Array(ends) {
            var cut = LevelDBLogReader(Array(log.prefix(end)))
            let (found, damage) = cut.records()
            expectEqual(found, Array(records.prefix(found.count)))
            // The zeros at the end of a block belong to no record.
            let isWhole = ends.contains { $0 <= end && end - $0 < 7 && log[$0..<end].allSatisfy { $0 == 0 } }
            if ends.contains(end) { expectNil(damage, "\(end)") }
            if !isWhole { expectEqual(damage?.reason, .truncated, "\(end)") }
        }
    }

    @Test
    func `Fragments of a wrong type, in a wrong order or with a wrong length are refused`() {
        /// One fragment with a right checksum.
        func fragment(_ type: UInt8, _ data: [UInt8], length: Int? = nil) -> [UInt8] {
            var output = ByteBuffer()
            output.append(littleEndian: CRC32C.masked(CRC32C.checksum(type, data.byteSpan)))
            output.append(littleEndian: UInt16(length ?? data.count))
            output.append(byte: type)
            output.append(data)
            return output.copyBytes()
        }
        let cases: [([UInt8], LogDamage.Reason)] = [
            (fragment(0, [1]), .kind(0)), (fragment(5, [1]), .kind(5)), (fragment(3, [1]), .order),
            (fragment(4, [1]), .order), (fragment(2, [1]) + fragment(1, [2]), .order),
            (fragment(2, [1]) + fragment(2, [2]), .order), (fragment(2, [1]), .truncated),
            (fragment(1, [1], length: 40_000), .length), (fragment(1, [1], length: 2), .truncated),
            ([UInt8](repeating: 0, count: 100), .checksum),
        ]
        for (bytes, reason) in cases {
            var reader = LevelDBLogReader(fragment(1, [9]) + bytes)
            let (records, damage) = reader.records()
            expectEqual(records, [[9]])
            expectEqual(damage?.reason, reason)
        }
    }
}
