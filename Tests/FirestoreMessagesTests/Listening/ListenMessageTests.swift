// Byte vectors of the Listen messages, both ways; the generated protobuf-c code reads every response as a second
// opinion.

import Basics
import CFirestoreProto
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

/// A response: how it is written, what it is read as, and its bytes.
private struct Response: Sendable, CustomTestStringConvertible {
    let name: String
    let message: ListenResponse
    let hex: String
    let append: @Sendable (inout ByteBuffer) -> Void

    var testDescription: String { name }
}

@Suite(.timeLimit(.minutes(20)))
struct ListenMessageTests {
    private static let time = TimestampValue(seconds: 5, nanoseconds: 7_000)
    private static let timeHex = "080510d836"

    @Test(arguments: [
        Vector(
            name: "documents",
            message: ListenRequest(database: "d", .add(ListenTarget(.documents(["a", "b"]), id: 3))),
            hex: Hex.field(1, "64") + Hex.field(2, Hex.field(3, "120161120162") + "2803")),
        Vector(
            name: "documents without names, once",
            message: ListenRequest(database: "d", .add(ListenTarget(.documents([]), id: 0, once: true))),
            hex: Hex.field(1, "64") + Hex.field(2, "1a003001")),
        Vector(
            name: "an empty query, with a token and a count",
            message: ListenRequest(
                database: "",
                .add(
                    ListenTarget(
                        .query(parent: "p", StructuredQuery()), id: 1, resume: .token([9]), expectedCount: 0))),
            hex: Hex.field(2, Hex.field(2, "0a01701200") + "220109" + "2801" + "6200")),
        Vector(
            name: "a read time",
            message: ListenRequest(
                database: "",
                .add(ListenTarget(.documents(["a"]), id: 1, resume: .readTime(time), expectedCount: 2))),
            hex: Hex.field(2, Hex.field(3, "120161") + "2801" + Hex.field(11, timeHex) + "62020802")),
        Vector(
            name: "remove", message: ListenRequest(database: "d", .remove(7)), hex: Hex.field(1, "64") + "1807"),
        Vector(name: "nothing", message: ListenRequest(database: "d", nil), hex: Hex.field(1, "64")),
    ])
    func `A request`(vector: Vector<ListenRequest>) throws {
        try vector.check()
    }

    @Test
    func `Labels are skipped, and a pipeline target is known as one`() throws {
        let labels = Hex.decode("1807" + Hex.field(4, "0a0161120162"))
        try expectEqual(ListenRequest(wire: labels.span.bytes), ListenRequest(database: "", .remove(7)))
        let pipeline = Hex.decode(Hex.field(2, "6a00" + "2801"))
        let target = ListenTarget(.pipeline, id: 1)
        try expectEqual(ListenRequest(wire: pipeline.span.bytes), ListenRequest(database: "", .add(target)))
    }

    @Test
    func `A query that breaks a rule is read as its error, and the message with it`() throws {
        // An order by the field path "a..b".
        let query = Hex.field(4, Hex.field(1, Hex.field(2, Hex.text("a..b"))))
        let bytes = Hex.decode(Hex.field(2, Hex.field(2, "0a0170" + Hex.field(2, query)) + "2803"))
        let request = try ListenRequest(wire: bytes.span.bytes)
        guard case .add(let target) = request.change, case .invalidQuery("p", let error) = target.kind else {
            Issue.record("\(request)")
            return
        }
        expectEqual(target.id, 3)
        expectEqual(error.code, .invalidArgument)
    }

    private static let fields = Hex.decode("1207 0a0161 12021001")
    private static let documentHex = Hex.field(1, Hex.text("p/c/d")) + "12070a016112021001" + "1a020801" + "22020802"

    private static let responses = [
        Response(
            name: "target added", message: .targetChange(.init(.add, targets: [1])), hex: Hex.field(2, "0801120101")
        ) { ListenResponseWriter.append(.add, targets: [1], to: &$0) },
        Response(
            name: "snapshot",
            message: {
                var change = ListenResponse.TargetChange(.noChange)
                change.readTime = time
                change.resumeToken = Hex.decode("0a0508c796b102")
                return .targetChange(change)
            }(), hex: Hex.field(2, Hex.field(4, "0a0508c796b102") + Hex.field(6, timeHex))
        ) { ListenResponseWriter.append(.noChange, targets: [], at: 5_000_007, to: &$0) },
        Response(
            name: "target removed with a cause",
            message: {
                var change = ListenResponse.TargetChange(.remove, targets: [2, 300])
                change.cause = StatusMessage(code: .invalidArgument, message: "m")
                return .targetChange(change)
            }(), hex: Hex.field(2, "0802" + "120302ac02" + Hex.field(3, "080312016d"))
        ) {
            ListenResponseWriter.append(
                .remove, targets: [2, 300], cause: StatusMessage(code: .invalidArgument, message: "m"), to: &$0)
        },
        Response(
            name: "document",
            message: .documentChange(
                .init(document: Hex.decode(documentHex), targets: [1], removedTargets: [2])),
            hex: Hex.field(3, Hex.field(1, documentHex) + "2a0101" + "320102")
        ) { writer in
            name { name in
                ListenResponseWriter.appendChange(
                    name, fields: fields.span.bytes, createMicroseconds: 1_000_000, updateMicroseconds: 2_000_000,
                    targets: [1], removed: [2], to: &writer)
            }
        },
        Response(
            name: "deleted", message: .documentDelete(.init(name: "p/c/d", removedTargets: [1], readTime: time)),
            hex: Hex.field(4, Hex.field(1, Hex.text("p/c/d")) + Hex.field(4, timeHex) + "320101")
        ) { writer in
            name { ListenResponseWriter.appendDelete($0, removed: [1], at: 5_000_007, to: &writer) }
        },
        Response(
            name: "removed", message: .documentRemove(.init(name: "p/c/d", removedTargets: [1], readTime: time)),
            hex: Hex.field(6, Hex.field(1, Hex.text("p/c/d")) + "120101" + Hex.field(4, timeHex))
        ) { writer in
            name { ListenResponseWriter.appendRemove($0, removed: [1], at: 5_000_007, to: &writer) }
        },
        Response(
            name: "filter",
            message: .filter(
                .init(target: 1, count: 2, unchangedNames: BloomFilter(bitmap: [255, 1], padding: 7, hashCount: 3))),
            hex: Hex.field(5, "08011002" + Hex.field(3, Hex.field(1, "0a02ff011007") + "1003"))
        ) {
            ListenResponseWriter.appendFilter(
                target: 1, count: 2, unchanged: BloomFilter(bitmap: [255, 1], padding: 7, hashCount: 3), to: &$0)
        },
    ]

    private static func name(_ body: (borrowing ListenResponseWriter.Name) -> Void) {
        let (prefix, path) = (Array("p/".utf8), Array("c/d".utf8))
        body(ListenResponseWriter.Name(prefix: prefix.span.bytes, path: path.span.bytes))
    }

    @Test(arguments: responses)
    private func `A response`(response: Response) throws {
        var writer = ByteBuffer()
        response.append(&writer)
        let bytes = writer.copyBytes()
        expectEqual(Hex.encode(bytes), response.hex)
        try expectEqual(ListenResponse(wire: bytes.span.bytes), response.message)
        try withUnsafePointer(to: google__firestore__v1__listen_response__descriptor) { descriptor in
            let unpacked = try #require(protobuf_c_message_unpack(descriptor, nil, bytes.count, bytes))
            expectEqual(protobuf_c_message_get_packed_size(unpacked), bytes.count)
            protobuf_c_message_free_unpacked(unpacked, nil)
        }
    }

    @Test
    func `A change type that does not exist is refused; an unknown response is skipped`() throws {
        let unknownKind = Hex.decode(Hex.field(2, "0809"))
        #expect(throws: InvalidDocument.self) { try ListenResponse(wire: unknownKind.span.bytes) }
        let other = Hex.decode("4a00")
        try expectEqual(ListenResponse(wire: other.span.bytes), .unknown)
    }

    @Test
    func `A resume token is a time, and other bytes are none`() {
        var writer = ByteBuffer()
        ResumeToken(microseconds: 1_700_000_000_000_000).encode(into: &writer)
        let bytes = writer.copyBytes()
        expectEqual(Hex.encode(bytes), "0a0908" + "8080f9c0c1c48203")
        expectEqual(ResumeToken(bytes: bytes.span.bytes)?.microseconds, 1_700_000_000_000_000)
        for hex in ["", "0a", "0a00", "ff", "0a0208", "1202", "0a021001", "0a0108ff"] {
            expectNil(ResumeToken(bytes: Hex.decode(hex).span.bytes))
        }
    }
}
