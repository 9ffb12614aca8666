// Byte vectors of the messages: what each field number and type looks like on the wire, both ways.

import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

/// A message, its bytes in hexadecimal, and a name for the report.
struct Vector<Message: FirestoreMessage & Equatable & Sendable>: Sendable, CustomTestStringConvertible {
    let name: String
    let message: Message
    let hex: String

    var testDescription: String { name }

    func check() throws {
        expectEqual(Hex.encode(message.encodedBytes()), hex)
        let bytes = Hex.decode(hex)
        try expectEqual(Message(wire: bytes.span.bytes), message)
    }
}

/// Hexadecimal text; spaces are for the reader.
enum Hex {
    static func decode(_ text: String) -> [UInt8] {
        let digits = text.filter { $0 != " " }.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    static func encode(_ bytes: [UInt8]) -> String {
        bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }

    /// A length-delimited field of less than 128 bytes.
    static func field(_ number: Int, _ payload: String) -> String {
        encode([UInt8(number << 3 | 2), UInt8(payload.count / 2)]) + payload
    }

    static func text(_ string: String) -> String { encode(Array(string.utf8)) }
}

private let time = TimestampValue(seconds: 5, nanoseconds: 7_000)
/// 1: 5, 2: 7000.
private let timeHex = "080510d836"
/// One `fields` entry: key "a", value integer 1.
private let fields = Hex.decode("1207 0a0161 12021001")

@Suite(.timeLimit(.minutes(20)))
struct MessageVectorTests {
    @Test(arguments: [
        Vector(
            name: "name alone", message: GetDocumentRequest(name: "n"), hex: Hex.field(1, Hex.text("n"))),
        Vector(
            name: "an empty mask is sent", message: GetDocumentRequest(name: "n", mask: DocumentMask(paths: [])),
            hex: Hex.field(1, "6e") + "1200"),
        Vector(
            name: "transaction", message: GetDocumentRequest(name: "n", consistency: .transaction([1, 2])),
            hex: Hex.field(1, "6e") + "1a020102"),
        Vector(
            name: "read time", message: GetDocumentRequest(name: "n", consistency: .readTime(time)),
            hex: Hex.field(1, "6e") + Hex.field(5, timeHex)),
    ])
    func `A GetDocument request`(_ vector: Vector<GetDocumentRequest>) throws { try vector.check() }

    @Test(arguments: [
        Vector(
            name: "names", message: BatchGetDocumentsRequest(database: "d", documents: ["x", "y"]),
            hex: Hex.field(1, "64") + Hex.field(2, "78") + Hex.field(2, "79")),
        Vector(
            name: "transaction",
            message: BatchGetDocumentsRequest(database: "d", documents: [], consistency: .transaction([9])),
            hex: Hex.field(1, "64") + Hex.field(4, "09")),
        Vector(
            name: "new transaction, read-only",
            message: BatchGetDocumentsRequest(
                database: "d", documents: [], consistency: .newTransaction(.readOnly(readTime: nil))),
            hex: Hex.field(1, "64") + Hex.field(5, "1200")),
        Vector(
            name: "read time",
            message: BatchGetDocumentsRequest(database: "d", documents: [], consistency: .readTime(time)),
            hex: Hex.field(1, "64") + Hex.field(7, timeHex)),
    ])
    func `A BatchGetDocuments request`(_ vector: Vector<BatchGetDocumentsRequest>) throws { try vector.check() }

    @Test(arguments: [
        Vector(
            name: "found",
            message: BatchGetDocumentsResponse(
                result: .found(DocumentMessage(name: "n", fields: fields, createTime: time, updateTime: time)),
                readTime: time),
            hex: Hex.field(
                1,
                Hex.field(1, "6e") + Hex.encode(fields) + Hex.field(3, timeHex) + Hex.field(4, timeHex))
                + Hex.field(4, timeHex)),
        Vector(
            name: "missing, with a transaction",
            message: BatchGetDocumentsResponse(result: .missing("n"), transaction: [8], readTime: time),
            hex: Hex.field(2, "6e") + Hex.field(3, "08") + Hex.field(4, timeHex)),
    ])
    func `A BatchGetDocuments response`(_ vector: Vector<BatchGetDocumentsResponse>) throws { try vector.check() }

    @Test
    func `A ListDocuments request with every field`() throws {
        try Vector(
            name: "all",
            message: ListDocumentsRequest(
                parent: "p", collectionID: "c", pageSize: 3, pageToken: "t", orderBy: "o",
                mask: DocumentMask(paths: [try FieldPath("a")]), consistency: .transaction([1]), showMissing: true),
            hex: Hex.field(1, "70") + Hex.field(2, "63") + "1803" + Hex.field(4, "74") + Hex.field(6, "6f")
                + Hex.field(7, Hex.field(1, "61")) + Hex.field(8, "01") + "6001"
        ).check()
    }

    @Test
    func `A ListDocuments response, a ListCollectionIds request and its response`() throws {
        try Vector(
            name: "documents",
            message: ListDocumentsResponse(
                documents: [DocumentMessage(name: "n", fields: [])], nextPageToken: "t"),
            hex: Hex.field(1, Hex.field(1, "6e")) + Hex.field(2, "74")
        ).check()
        try Vector(
            name: "ids request",
            message: ListCollectionIdsRequest(parent: "p", pageSize: 2, pageToken: "t", consistency: .readTime(time)),
            hex: Hex.field(1, "70") + "1002" + Hex.field(3, "74") + Hex.field(4, timeHex)
        ).check()
        try Vector(
            name: "ids response", message: ListCollectionIdsResponse(collectionIDs: ["a", "b"], nextPageToken: ""),
            hex: Hex.field(1, "61") + Hex.field(1, "62")
        ).check()
    }

    @Test
    func `Writing requests for single documents`() throws {
        let document = DocumentMessage(name: "", fields: fields)
        try Vector(
            name: "create",
            message: CreateDocumentRequest(
                parent: "p", collectionID: "c", documentID: "i", document: document, mask: DocumentMask(paths: [])),
            hex: Hex.field(1, "70") + Hex.field(2, "63") + Hex.field(3, "69") + Hex.field(4, Hex.encode(fields))
                + "2a00"
        ).check()
        try Vector(
            name: "update",
            message: UpdateDocumentRequest(
                document: document, updateMask: DocumentMask(paths: []), precondition: .exists(true)),
            hex: Hex.field(1, Hex.encode(fields)) + "1200" + Hex.field(4, "0801")
        ).check()
        try Vector(
            name: "delete", message: DeleteDocumentRequest(name: "n", precondition: .exists(false)),
            hex: Hex.field(1, "6e") + Hex.field(2, "0800")
        ).check()
    }

    @Test
    func `Transaction messages`() throws {
        try Vector(
            name: "begin", message: BeginTransactionRequest(database: "d"), hex: Hex.field(1, "64")
        ).check()
        try Vector(
            name: "begin again",
            message: BeginTransactionRequest(
                database: "d", options: .readWrite(retryTransaction: [7], concurrency: .unspecified)),
            hex: Hex.field(1, "64") + Hex.field(2, Hex.field(3, Hex.field(1, "07")))
        ).check()
        try Vector(
            name: "begun", message: BeginTransactionResponse(transaction: [1, 2]), hex: Hex.field(1, "0102")
        ).check()
        try Vector(
            name: "rollback", message: RollbackRequest(database: "d", transaction: [1]),
            hex: Hex.field(1, "64") + Hex.field(2, "01")
        ).check()
    }

    @Test
    func `Query messages`() throws {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        try Vector(
            name: "run", message: RunQueryRequest(parent: "p", query: query, consistency: .transaction([1])),
            hex: Hex.field(1, "70") + Hex.field(2, Hex.field(2, Hex.field(2, "63"))) + Hex.field(5, "01")
        ).check()
        try Vector(
            name: "result",
            message: RunQueryResponse(
                document: DocumentMessage(name: "n", fields: []), transaction: [1], readTime: time, skippedResults: 2,
                isDone: true),
            hex: Hex.field(1, Hex.field(1, "6e")) + Hex.field(2, "01") + Hex.field(3, timeHex) + "20023001"
        ).check()
        try Vector(
            name: "an empty document is a document",
            message: RunQueryResponse(document: DocumentMessage(name: "", fields: []), readTime: nil), hex: "0a00"
        ).check()
    }

    @Test
    func `Results of writes`() throws {
        let result = WriteResult(updateMicroseconds: 5_000_007)
        try Vector(
            name: "commit", message: CommitResponse(writeResults: [result], commitTime: time),
            hex: Hex.field(1, Hex.field(1, timeHex)) + Hex.field(2, timeHex)
        ).check()
        try Vector(
            name: "batch write",
            message: BatchWriteResponse(
                writeResults: [result, WriteResult(updateMicroseconds: nil)],
                statuses: [StatusMessage(code: .ok), StatusMessage(code: .notFound, message: "m")]),
            hex: Hex.field(1, Hex.field(1, timeHex)) + "0a00" + "1200" + Hex.field(2, "0805" + Hex.field(2, "6d"))
        ).check()
    }
}
