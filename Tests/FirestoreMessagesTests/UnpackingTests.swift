// Messages that protobuf-c unpacks: the bounds that are checked before it, and what its form could lose.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct UnpackingTests {
    private func error(_ read: () throws -> Void) -> InvalidDocument? {
        do {
            try read()
        } catch {
            return error as? InvalidDocument
        }
        return nil
    }

    private func read<Message: FirestoreMessage>(_ type: Message.Type, _ bytes: [UInt8]) throws -> Message {
        try Message(wire: bytes.span.bytes)
    }

    private func field(_ number: Int, _ payload: [UInt8]) -> [UInt8] {
        var writer = ByteBuffer()
        writer.appendField(number, bytes: payload)
        return writer.copyBytes()
    }

    @Test
    func `Strings keep NUL, which ends strings in C`() throws {
        let request = CreateDocumentRequest(
            parent: "p\0q", collectionID: "c", documentID: "a\0", document: DocumentMessage(name: "", fields: []))
        try expectEqual(read(CreateDocumentRequest.self, request.encodedBytes()), request)
    }

    @Test
    func `An empty message differs from an absent one, and the last of several counts`() throws {
        let name = field(FieldNumber.DeleteDocumentRequest.name, [0x6E])
        let absent = try read(ListDocumentsRequest.self, name)
        expectNil(absent.mask)
        let empty = try read(ListDocumentsRequest.self, name + field(FieldNumber.ListDocumentsRequest.mask, []))
        expectEqual(empty.mask, DocumentMask(paths: []))
        let twice =
            field(FieldNumber.ListDocumentsRequest.mask, field(FieldNumber.DocumentMask.fieldPaths, [0x61]))
            + field(FieldNumber.ListDocumentsRequest.mask, field(FieldNumber.DocumentMask.fieldPaths, [0x62]))
        try expectEqual(read(ListDocumentsRequest.self, twice).mask?.paths, [try FieldPath("b")])
    }

    @Test
    func `Text that is not UTF-8 is refused as by the other readers, with the place of the field`() {
        let database = FieldNumber.RollbackRequest.database
        let bytes = field(database, [0x64]) + field(database, [0xFF])
        expectEqual(error { _ = try read(RollbackRequest.self, bytes) }, InvalidDocument(.invalidUTF8, offset: 4))
        // The transaction is bytes.
        let transaction = field(FieldNumber.RollbackRequest.transaction, [0xFF])
        expectNil(error { _ = try read(RollbackRequest.self, transaction) })
    }

    @Test
    func `A number in the place of a text is refused as by the other readers`() {
        let bytes: [UInt8] = [UInt8(FieldNumber.RollbackRequest.database << 3), 1]
        expectEqual(error { _ = try read(RollbackRequest.self, bytes) }, InvalidDocument(.wrongWireType, offset: 1))
    }

    @Test
    func `Unknown fields are skipped, also inside of messages`() throws {
        var options = ByteBuffer()
        options.appendField(900, bytes: [UInt8](repeating: 7, count: 100))
        var writer = ByteBuffer()
        writer.appendField(FieldNumber.RollbackRequest.database, string: "d")
        writer.appendField(FieldNumber.RollbackRequest.requestOptions, bytes: options.bytes)
        writer.appendField(901, double: 1)
        let read = try RollbackRequest(wire: writer.bytes)
        expectEqual(read, RollbackRequest(database: "d", transaction: []))
    }

    @Test
    func `The number of fields is bounded, known and unknown, nested and not`() throws {
        let tiny = field(FieldNumber.ListCollectionIdsResponse.collectionIds, [])
        let most = Array(repeatElement(tiny, count: 65_536).joined())
        try expectEqual(read(ListCollectionIdsResponse.self, most).collectionIDs.count, 65_536)
        let more = most + tiny
        expectEqual(error { _ = try read(ListCollectionIdsResponse.self, more) }?.reason, .tooManyFields)
        let unknown = Array(repeatElement(field(15, []), count: 65_537).joined())
        expectEqual(error { _ = try read(RollbackRequest.self, unknown) }?.reason, .tooManyFields)
        let tags = Array(repeatElement(field(FieldNumber.RequestOptions.requestTags, []), count: 65_536).joined())
        let nested = field(FieldNumber.RollbackRequest.requestOptions, tags)
        expectEqual(error { _ = try read(RollbackRequest.self, nested) }?.reason, .tooManyFields)
    }

    @Test
    func `Messages that would be merged again and again are refused`() throws {
        let options = field(
            FieldNumber.RollbackRequest.requestOptions, field(FieldNumber.RequestOptions.requestTags, [0x61]))
        let most = Array(repeatElement(options, count: 17).joined())
        try expectEqual(read(RollbackRequest.self, most), RollbackRequest(database: "", transaction: []))
        let more = most + options
        expectEqual(error { _ = try read(RollbackRequest.self, more) }?.reason, .tooManyFields)
    }

    @Test
    func `Nesting ends where the messages of the schema end`() throws {
        var bytes: [UInt8] = []
        for _ in 0..<10_000 { bytes = field(FieldNumber.RollbackRequest.requestOptions, bytes) }
        // Request options hold no messages, so that all deeper levels are the bytes of an unknown field.
        _ = try read(RollbackRequest.self, bytes)
    }

    @Test
    func `What is larger than the arena's first blocks is read and written whole`() throws {
        let ids = (0..<20_000).map { "collection-\($0)-\(String(repeating: "x", count: $0 % 50))" }
        let response = ListCollectionIdsResponse(collectionIDs: ids, nextPageToken: "next")
        try expectEqual(read(ListCollectionIdsResponse.self, response.encodedBytes()), response)
        let large = RollbackRequest(database: "d", transaction: [UInt8](repeating: 9, count: 5 << 20))
        try expectEqual(read(RollbackRequest.self, large.encodedBytes()), large)
    }

    @Test
    func `Mutated messages are refused, or survive being written and read again`() {
        var generator = SystemRandomNumberGenerator()
        let time = TimestampValue(seconds: 1_700_000_000, nanoseconds: 5_000)
        let document = DocumentMessage(name: "n", fields: Hex.decode("1207 0a0161 12021001"), createTime: time)
        let samples: [[UInt8]] = [
            [0] + BeginTransactionRequest(database: "d", options: .readOnly(readTime: time)).encodedBytes(),
            [2] + RollbackRequest(database: "d", transaction: [1, 2]).encodedBytes(),
            [3] + ListCollectionIdsRequest(parent: "p", pageSize: 3, consistency: .readTime(time)).encodedBytes(),
            [5]
                + ListDocumentsRequest(
                    parent: "p", collectionID: "c", mask: DocumentMask(paths: []), consistency: .transaction([9])
                ).encodedBytes(),
            [6] + CreateDocumentRequest(parent: "p", collectionID: "c", document: document).encodedBytes(),
            [7] + UpdateDocumentRequest(document: document, precondition: .updateTime(time)).encodedBytes(),
        ]
        for sample in samples {
            expectNil(MessageReadingCheck.violation(sample.span.bytes))
            for _ in 0..<500 {
                var bytes = sample
                for _ in 0..<Int.random(in: 1...4, using: &generator) {
                    let place = Int.random(in: 1..<bytes.count, using: &generator)
                    bytes[place] = .random(in: .min ... .max, using: &generator)
                }
                expectNil(MessageReadingCheck.violation(bytes.span.bytes), "\(Hex.encode(bytes))")
            }
        }
    }

    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("MessageReading", over: 17) { MessageReadingCheck.violation($0.span.bytes) }
    }
}
