// Log records come back from their bytes as they were.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct LogRecordTests {
    @Test
    func `A log record gives back its items in order`() throws {
        let identifier = RequestIdentifier(sessionHigh: 1, sessionLow: .max, sequence: 300, oldestPending: 299)
        let database = try DatabaseName(project: "p")
        var writer = LogRecordWriter()
        writer.begin(database: 300, newDatabaseName: database)
        writer.append(.created, "a/b", fields: [1, 2])
        writer.append(.updated, "a/c", createMicroseconds: 5, fields: [])
        writer.append(.deleted, "a/d", fields: [])
        writer.append(.answer, "", fields: [9], identifier: identifier)
        writer.append(.answerInSlot, "", fields: [8], identifier: identifier, slot: 300)
        writer.append(.copied, "a/e", createMicroseconds: 6, updateMicroseconds: 7, fields: [4])
        writer.append(.copiedAgain, "a/f", createMicroseconds: 8, updateMicroseconds: 9, fields: [])
        expectEqual(writer.itemCount, 7)

        var reader = try LogRecordReader(writer.bytes)
        let (number, name) = (reader.database, [UInt8](copying: reader.newDatabaseName))
        expectEqual(number, 300)
        expectEqual(name, database.utf8)
        var seen: [String] = []
        while let item = try reader.next() {
            let path = String(repairingUTF8: item.path)
            seen.append("\(item.kind) \(path) \([UInt8](copying: item.payload)) \(item.createMicroseconds)")
            if item.kind == .answer || item.kind == .answerInSlot { expectEqual(item.identifier, identifier) }
            expectEqual(item.updateMicroseconds, item.kind.isCopy ? item.createMicroseconds + 1 : 0)
            expectEqual(item.slot, item.kind == .answerInSlot ? 300 : nil)
        }
        let documents = ["created a/b [1, 2] 0", "updated a/c [] 5", "deleted a/d [] 0"]
        let copies = ["copied a/e [4] 6", "copiedAgain a/f [] 8"]
        expectEqual(seen, documents + ["answer  [9] 0", "answerInSlot  [8] 0"] + copies)
    }

    @Test
    func `A record cut anywhere is malformed or shorter, never a trap`() throws {
        var writer = LogRecordWriter()
        writer.begin(database: 1, newDatabaseName: nil)
        writer.append(.created, "a/b", fields: [1, 2])
        writer.append(.updated, "a/c", createMicroseconds: 5, fields: [3])
        let whole = [UInt8](copying: writer.bytes)
        var complete = 0
        for length in 0...whole.count {
            let bytes = Array(whole[..<length])
            do throws(LogRecord.Malformed) {
                var reader = try LogRecordReader(bytes.byteSpan)
                while try reader.next() != nil {}
                complete += 1
            } catch {
                expect(error.offset <= length)
            }
        }
        // After the header, after the first item, after the second.
        expectEqual(complete, 3)
    }

    @Test(arguments: ["", "a", "/a"])
    func `A path of one segment is malformed`(path: String) throws {
        var writer = LogRecordWriter()
        writer.begin(database: 1, newDatabaseName: nil)
        writer.append(.deleted, path, fields: [])
        var reader = try LogRecordReader(writer.bytes)
        do {
            while try reader.next() != nil {}
            Issue.record("the record was read")
        } catch {}
    }

    @Test
    func `A record of sessions gives them back, and is malformed if it is cut`() throws {
        let names = [SessionTable.SessionName(high: 1, low: .max), SessionTable.SessionName(high: 7, low: 0)]
        var writer = ByteBuffer()
        SessionsRecord.write(names, into: &writer)
        let whole = writer.copyBytes()
        try expectEqual(SessionsRecord.read(whole.byteSpan), names)
        for length in 2..<whole.count where length != 17 {
            #expect(throws: StorageError.self) { try SessionsRecord.read(Array(whole[..<length]).byteSpan) }
        }
    }
}
