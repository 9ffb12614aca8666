// The writer of commits against the reader of the service.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct CommitWritesTests {
    private let database: DatabaseName
    private let name: String

    init() throws {
        database = try DatabaseName(project: "p")
        name = "\(database.documentsRoot)/books/b1"
    }

    private func fields(_ map: [(String, Value)]) -> [UInt8] {
        var writer = ByteBuffer()
        for (key, value) in map {
            writer.withLengthPrefix(field: 2) { writer in
                writer.appendField(1, string: key)
                writer.withLengthPrefix(field: 2) { value.encode(into: &$0) }
            }
        }
        return writer.copyBytes()
    }

    private func decode(_ request: [UInt8]) throws -> WriteList {
        var list = WriteList(database: database)
        let view = try CommitRequestView(request.span.bytes)
        expectEqual(String(validatingUTF8: view.database), database.description)
        try view.forEachWrite { try list.append(wire: $0) }
        return list
    }

    @Test
    func `Each kind of write arrives as it was meant`() throws {
        var writes = CommitWrites(database: database)
        let document = fields([("a", .integer(1)), ("b", .string("x"))])
        writes.set(name, fields: document)
        writes.set(name, fields: document, mask: ["a", "`c d`"], precondition: .exists(true))
        writes.set(name, fields: [], mask: [])
        writes.delete(name, precondition: .updateTime(TimestampValue(seconds: 7, nanoseconds: 1000)))
        writes.verify(name, precondition: .exists(false))
        expectEqual(writes.count, 5)
        let list = try decode(writes.request())
        expectEqual(list.writes.map(\.kind), [.update, .update, .update, .delete, .verify])
        expect(list.writes.allSatisfy { Array(list.bytes[$0.name]) == Array(name.utf8) })
        expectEqual(Array(list.bytes[list.writes[0].fields]), document)
        expectNil(list.writes[0].mask)
        expectEqual(list.writes[1].mask?.paths.map(\.segments), [["a"], ["c d"]])
        expectEqual(list.writes[1].precondition, .exists(true))
        expectEqual(list.writes[2].mask?.paths, [])
        expectEqual(list.writes[3].precondition, .updateTime(TimestampValue(seconds: 7, nanoseconds: 1000)))
        expectEqual(list.writes[4].precondition, .exists(false))
    }

    @Test
    func `Transforms travel with their write`() throws {
        var writes = CommitWrites(database: database)
        var operation = ByteBuffer()
        operation.appendField(2, varint: 1)
        writes.set(
            name, fields: [], transforms: [EncodedTransform(path: "at", operation: operation.copyBytes())])
        let list = try decode(writes.request())
        expectEqual(list.writes[0].transforms.map(\.operation), [.requestTime])
        expectEqual(list.writes[0].transforms.map(\.path.segments), [["at"]])
    }

    @Test
    func `The transaction is added at the end, and the writes can be sent again without it`() throws {
        var writes = CommitWrites(database: database)
        writes.delete(name)
        let request = writes.request(transaction: [1, 2, 3])
        let view = try CommitRequestView(request.span.bytes)
        expectEqual([UInt8](copying: view.transaction), [1, 2, 3])
        let plain = writes.request()
        let plainView = try CommitRequestView(plain.span.bytes)
        let isEmpty = plainView.transaction.isEmpty
        expect(isEmpty)
    }

    @Test
    func `Emptied writes keep their database and nothing else`() throws {
        var writes = CommitWrites(database: database)
        writes.delete(name)
        writes.removeAll()
        expect(writes.isEmpty)
        try expect(decode(writes.request()).isEmpty)
        expectEqual(writes.request(), CommitWrites(database: database).request())
    }
}
