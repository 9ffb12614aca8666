// Stored records and log records come back from their bytes as they were.

import DocumentModel
import KeyValueStore
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite("Records", .timeLimit(.minutes(20)))
struct RecordTests {
    @Test(
        "A stored record gives back times, path and fields",
        arguments: [
            (nil, false), (UInt64(7), false), (nil, true), (UInt64(7), true),
        ] as [(UInt64?, Bool)])
    func stored(created: UInt64?, isCut: Bool) throws {
        let path = Array("users/alice".utf8)
        var writer = WireWriter()
        StoredRecord.writeHeader(createMicroseconds: created, path: path.byteSpan, isCut: isCut, into: &writer)
        if created == nil && !isCut { #expect(writer.count == 1) }
        writer.append([1, 2, 3])
        guard let view = StoredRecordView(writer.bytes, versionMicroseconds: 99) else {
            Issue.record("no record")
            return
        }
        let (create, update) = (view.createMicroseconds, view.updateMicroseconds)
        #expect(create == created ?? 99)
        #expect(update == 99)
        let (storedPath, fields) = ([UInt8](copying: view.path), [UInt8](copying: view.fields))
        #expect(storedPath == (isCut ? path : []))
        #expect(fields == [1, 2, 3])
    }

    @Test(
        "Bytes that are no record are refused", arguments: [[], [4], [1, 2, 3], [2, 0x85], [2, 5, 1]] as [[UInt8]])
    func notStored(bytes: [UInt8]) {
        let isRecord = StoredRecordView(bytes.byteSpan, versionMicroseconds: 1) != nil
        #expect(!isRecord)
    }

    @Test("A log record gives back its items in order")
    func log() throws {
        let identifier = RequestIdentifier(sessionHigh: 1, sessionLow: .max, sequence: 300, oldestPending: 299)
        let database = try DatabaseName(project: "p")
        var writer = LogRecordWriter()
        writer.begin(database: 300, newDatabaseName: database)
        writer.append(.created, "a/b", fields: [1, 2])
        writer.append(.updated, "a/c", createMicroseconds: 5, fields: [])
        writer.append(.deleted, "a/d", fields: [])
        writer.append(.answer, "", fields: [9], identifier: identifier)
        #expect(writer.itemCount == 4)

        var reader = try LogRecordReader(writer.bytes)
        let (number, name) = (reader.database, [UInt8](copying: reader.newDatabaseName))
        #expect(number == 300)
        #expect(name == database.utf8)
        var seen: [String] = []
        while let item = try reader.next() {
            let path = String(repairingUTF8: item.path)
            seen.append("\(item.kind) \(path) \([UInt8](copying: item.payload)) \(item.createMicroseconds)")
            if item.kind == .answer { #expect(item.identifier == identifier) }
        }
        #expect(seen == ["created a/b [1, 2] 0", "updated a/c [] 5", "deleted a/d [] 0", "answer  [9] 0"])
    }

    @Test("A record cut anywhere is malformed or shorter, never a trap")
    func cutLog() throws {
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
                #expect(error.offset <= length)
            }
        }
        // After the header, after the first item, after the second.
        #expect(complete == 3)
    }

    @Test("A path of one segment is malformed", arguments: ["", "a", "/a"])
    func badPath(path: String) throws {
        var writer = LogRecordWriter()
        writer.begin(database: 1, newDatabaseName: nil)
        writer.append(.deleted, path, fields: [])
        var reader = try LogRecordReader(writer.bytes)
        do {
            while try reader.next() != nil {}
            Issue.record("the record was read")
        } catch {}
    }

    @Test("A record of sessions gives them back, and is malformed if it is cut")
    func sessions() throws {
        let names = [SessionTable.SessionName(high: 1, low: .max), SessionTable.SessionName(high: 7, low: 0)]
        var writer = WireWriter()
        SessionsRecord.write(names, into: &writer)
        let whole = writer.copyBytes()
        #expect(try SessionsRecord.read(whole.byteSpan) == names)
        for length in 2..<whole.count where length != 17 {
            #expect(throws: StorageError.self) { try SessionsRecord.read(Array(whole[..<length]).byteSpan) }
        }
    }
}
