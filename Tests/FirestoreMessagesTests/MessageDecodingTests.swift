// Decoding what no well-behaved peer sends: unknown fields, doubled fields, scattered fields, broken bytes.

import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct MessageDecodingTests {
    @Test
    func `Unknown fields of every wire type are skipped`() throws {
        // 15: varint 300, 14: fixed64, 13: fixed32, 12: two bytes; then name.
        let bytes = Hex.decode("78ac02 710102030405060708 6d01020304 62020102") + Hex.decode(Hex.field(1, "6e"))
        try expectEqual(GetDocumentRequest(wire: bytes.span.bytes), GetDocumentRequest(name: "n"))
    }

    @Test
    func `The last of a doubled field and of a oneof wins`() throws {
        let bytes = Hex.decode(Hex.field(1, "61") + Hex.field(3, "01") + Hex.field(5, "0801") + Hex.field(1, "62"))
        let expected = GetDocumentRequest(
            name: "b", consistency: .readTime(TimestampValue(seconds: 1, nanoseconds: 0)))
        try expectEqual(GetDocumentRequest(wire: bytes.span.bytes), expected)
    }

    @Test
    func `An empty transaction id is kept, for the server to refuse it`() throws {
        let bytes = Hex.decode(Hex.field(1, "61") + "1a00")
        try expectEqual(GetDocumentRequest(wire: bytes.span.bytes).consistency, .transaction([]))
    }

    @Test
    func `Document fields that other fields interrupt are joined in order`() throws {
        let first = Hex.field(2, Hex.field(1, "61") + Hex.field(2, "1001"))
        let second = Hex.field(2, Hex.field(1, "62") + Hex.field(2, "1002"))
        let third = Hex.field(2, Hex.field(1, "63") + Hex.field(2, "1003"))
        let bytes = Hex.decode(first + Hex.field(1, "6e") + second + third + Hex.field(3, "0801"))
        let view = try DocumentMessageView(bytes.span.bytes)
        let isFragmented = view.isFragmented
        expect(isFragmented)
        expectEqual(Hex.encode(view.copyFields()), first + second + third)
        try expectEqual(DocumentMessage(wire: bytes.span.bytes).fields, Hex.decode(first + second + third))
    }

    @Test
    func `Document fields in one run are lent as they stand`() throws {
        let run = Hex.field(2, Hex.field(1, "61") + Hex.field(2, "1001")) + Hex.field(2, Hex.field(1, "62"))
        let bytes = Hex.decode(Hex.field(1, "6e") + run + Hex.field(4, "0802"))
        let view = try DocumentMessageView(bytes.span.bytes)
        let (isFragmented, lent) = (view.isFragmented, [UInt8](copying: view.fieldsRun))
        expect(!isFragmented)
        expectEqual(lent, Hex.decode(run))
        let updateTime = view.updateTime
        expectEqual(updateTime, TimestampValue(seconds: 2, nanoseconds: 0))
    }

    @Test
    func `A batch get lends every name in order, doubles included`() throws {
        let request = BatchGetDocumentsRequest(database: "d", documents: ["x", "y", "x"])
        let bytes = request.encodedBytes()
        let view = try BatchGetDocumentsRequestView(bytes.span.bytes)
        var names: [String] = []
        view.forEachDocument { names.append(String(repairingUTF8: $0)) }
        let count = view.documentCount
        expectEqual(names, ["x", "y", "x"])
        expectEqual(count, 3)
    }

    @Test
    func `A commit lends the bytes of its writes`() throws {
        let bytes = Hex.decode(
            Hex.field(1, "64") + Hex.field(2, "12016e") + Hex.field(3, "09") + Hex.field(2, "12016d"))
        let view = try CommitRequestView(bytes.span.bytes)
        var writes: [String] = []
        view.forEachWrite { writes.append(Hex.encode([UInt8](copying: $0))) }
        let (count, transaction) = (view.writeCount, [UInt8](copying: view.transaction))
        expectEqual(writes, ["12016e", "12016d"])
        expectEqual(count, 2)
        expectEqual(transaction, [9])
    }

    @Test(arguments: ["0863", "08ffffffffffffffffff01"])
    func `A status code that does not exist reads as UNKNOWN`(_ hex: String) throws {
        let bytes = Hex.decode(hex)
        try expectEqual(StatusMessage(wire: bytes.span.bytes).code, .unknown)
    }

    @Test
    func `A name that is not UTF-8 is refused`() {
        let bytes = Hex.decode(Hex.field(1, "ff"))
        #expect(throws: InvalidDocument.self) { try GetDocumentRequest(wire: bytes.span.bytes) }
    }
}
