// Stored records come back from their bytes as they were.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct StoredRecordTests {
    @Test(
        arguments: [
            (nil, nil, false), (UInt64(7), nil, false), (nil, nil, true), (UInt64(7), nil, true),
            (UInt64(7), UInt64(8), false), (UInt64(7), UInt64(8), true),
        ] as [(UInt64?, UInt64?, Bool)])
    func `A stored record gives back times, path and fields`(created: UInt64?, updated: UInt64?, isCut: Bool) throws {
        let path = Array("users/alice".utf8)
        var writer = ByteBuffer()
        StoredRecord.writeHeader(
            createMicroseconds: created, updateMicroseconds: updated, path: path.byteSpan, isCut: isCut, into: &writer)
        if created == nil && !isCut { expectEqual(writer.count, 1) }
        writer.append([1, 2, 3])
        guard let view = StoredRecordView(writer.bytes, versionMicroseconds: 99) else {
            Issue.record("no record")
            return
        }
        let (create, update) = (view.createMicroseconds, view.updateMicroseconds)
        expectEqual(create, created ?? 99)
        expectEqual(update, updated ?? 99)
        let (storedPath, fields) = ([UInt8](copying: view.path), [UInt8](copying: view.fields))
        expectEqual(storedPath, isCut ? path : [])
        expectEqual(fields, [1, 2, 3])
    }

    @Test(
        arguments: [
            [], [4], [1, 2, 3], [2, 0x85], [2, 5, 1], [8], [4, 1, 2, 3, 4, 5, 6, 7, 8],
            [5, 1, 2, 3, 4, 5, 6, 7, 8, 1],
        ] as [[UInt8]])
    func `Bytes that are not a record are refused`(bytes: [UInt8]) {
        let isRecord = StoredRecordView(bytes.byteSpan, versionMicroseconds: 1) != nil
        expect(!isRecord)
    }
}
