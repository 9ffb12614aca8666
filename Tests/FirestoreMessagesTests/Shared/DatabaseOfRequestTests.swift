// Where a request names its database.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DatabaseOfRequestTests {
    private static let name = "projects/p/databases/d/documents/c/x"

    private func found(_ method: FirestoreMessages.Method, _ request: [UInt8]) -> String? {
        method.nameRange(in: request.byteSpan).map { String(decoding: request[$0], as: UTF8.self) }
    }

    @Test(arguments: FirestoreMessages.Method.allCases)
    func `The name is the first field of nearly every request, the last one of its number`(
        method: FirestoreMessages.Method
    ) {
        var request = ByteBuffer()
        request.appendField(1, string: "another")
        request.appendField(7, string: "later")
        switch method {
        case .updateDocument, .updateField, .updateDatabase:
            request.withLengthPrefix(field: 1) { resource in
                resource.appendField(2, string: "more")
                resource.appendField(1, string: Self.name)
            }
        case .listOperations: request.appendField(4, string: Self.name)
        default: request.appendField(1, string: Self.name)
        }
        expectEqual(found(method, request.copyBytes()), Self.name)
    }

    @Test
    func `A listen request without a database is about that of its target`() {
        let root = "projects/p/databases/d/documents"
        let query = ListenTarget(.query(parent: root, StructuredQuery(from: [])), id: 1)
        expectEqual(found(.listen, ListenRequest(database: "", .add(query)).encodedBytes()), root)
        let documents = ListenTarget(.documents([Self.name]), id: 1)
        expectEqual(found(.listen, ListenRequest(database: "", .add(documents)).encodedBytes()), Self.name)
        let named = ListenRequest(database: "projects/p/databases/e", .add(documents))
        expectEqual(found(.listen, named.encodedBytes()), "projects/p/databases/e")
    }

    @Test
    func `Requests without a name, and malformed ones, have none`() {
        for method in FirestoreMessages.Method.allCases {
            expectNil(found(method, []))
            // A length beyond the end, a tag without a payload, an invalid tag, an empty name, a number in place of it.
            for bytes in [[0x0a, 0x7f, 0x41], [0x0a], [0xff], [0x0a, 0], [0x08, 1]] as [[UInt8]] {
                expectNil(found(method, bytes), "\(method) \(bytes)")
            }
        }
    }

    @Test
    func `The store of a question for its newest version is written and read`() throws {
        let request = NewestVersionRequest(store: "b")
        try expectEqual(NewestVersionRequest(wire: request.encodedBytes().byteSpan), request)
        expect(NewestVersionRequest(store: "").encodedBytes().isEmpty)
        let named = NewestVersionRequest(store: "", CalledStore(high: .max, low: 1))
        try expectEqual(NewestVersionRequest(wire: named.encodedBytes().byteSpan), named)
        let receiving = ReceiveDatabaseRequest(
            store: "b", CalledStore(high: 1, low: .max), database: "d", generation: 3, chunk: [4])
        try expectEqual(ReceiveDatabaseRequest(wire: receiving.encodedBytes().byteSpan), receiving)
        let head = ForwardedHead(method: .commit, caller: [1], store: CalledStore(high: 0, low: 7))
        let forwarded = head.request([2, 3].byteSpan)
        let view = try ForwardRequestView(forwarded.byteSpan)
        let (store, message) = (view.store, [UInt8](copying: view.message))
        expect(store == head.store && message == [2, 3])
    }
}
