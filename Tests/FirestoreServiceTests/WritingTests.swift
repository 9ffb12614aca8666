// Commit, BatchWrite, CreateDocument, UpdateDocument and DeleteDocument.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WritingTests {
    private let one = Harness.fields(["a": .integer(1)])
    private let two = Harness.fields(["a": .integer(2)])

    @Test
    func `A commit answers one result for each write and a time above the last one`() throws {
        let harness = try Harness()
        let first = try harness.response(setting: ["c/x": one, "c/y": two])
        expectEqual(
            first.writeResults.map(\.updateMicroseconds),
            Array(repeating: UInt64(first.commitTime.microseconds), count: 2))
        var writes = try harness.emptyWrites()
        try Harness.name("c/x").withUTF8Span { try writes.delete($0) }
        let second = try harness.response(committing: writes)
        expectEqual(second.writeResults.map(\.updateMicroseconds), [nil])
        expect(second.commitTime > first.commitTime)
        try expectNil(harness.get("c/x"))
        try expectEqual(harness.get("c/y")?.fields, two)
    }

    @Test
    func `A commit without writes and without a transaction succeeds with a time`() throws {
        let harness = try Harness()
        let response = try harness.response(committing: try harness.emptyWrites())
        expect(response.writeResults.isEmpty)
        expect(response.commitTime.microseconds > 0)
    }

    @Test
    func `A commit of which one write fails changes nothing`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        try Harness.name("c/x").withUTF8Span { try writes.update($0, fields: one.span.bytes) }
        try Harness.name("c/y").withUTF8Span {
            try writes.update($0, fields: one.span.bytes, precondition: .exists(true))
        }
        let answer = harness.tryCommit(writes)
        expectEqual(answer.status, .notFound)
        expect(answer.text.hasPrefix("No document to update: "))
        expect(answer.text.contains("c/y"))
        try expectNil(harness.get("c/x"))
    }

    @Test
    func `A malformed write is refused with the document's name, and its neighbours with it`() throws {
        let harness = try Harness()
        // Document{name, fields: {"a": Value{}}}: a value without a type.
        var writer = ByteBuffer()
        writer.appendField(1, string: Harness.database)
        writer.withLengthPrefix(field: 2) { write in
            write.withLengthPrefix(field: 1) { document in
                document.appendField(1, string: Harness.name("c/x"))
                document.withLengthPrefix(field: 2) { entry in
                    entry.appendField(1, string: "a")
                    entry.withLengthPrefix(field: 2) { _ in }
                }
            }
        }
        let answer = harness.call(.commit, writer.copyBytes())
        expectEqual(answer.status, .invalidArgument)
        try expectNil(harness.get("c/x"))
    }

    @Test
    func `A repeated request id is applied once and answered alike`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        try Harness.name("c/x").withUTF8Span { name in
            try writes.update(
                name, fields: one.span.bytes, mask: DocumentMask(paths: []),
                transforms: [FieldTransform(path: try FieldPath("n"), operation: .increment(.integer(1)))])
        }
        let identifier = RequestIdentifier(sessionHigh: 1, sessionLow: 2, sequence: 1, oldestPending: 1)
        let first = harness.tryCommit(writes, identifier: identifier)
        let second = harness.tryCommit(writes, identifier: identifier)
        expect(first.isOK)
        expectEqual(first.messages, second.messages)
        try expectEqual(harness.get("c/x")?.fields, Harness.fields(["n": .integer(1)]))
    }

    @Test
    func `A batch write answers for each write on its own`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        try Harness.name("c/x").withUTF8Span { try writes.update($0, fields: one.span.bytes) }
        try Harness.name("c/y").withUTF8Span {
            try writes.update($0, fields: one.span.bytes, precondition: .exists(true))
        }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request())
        let answer = harness.call(.batchWrite, writer.copyBytes())
        expect(answer.isOK)
        let response = try BatchWriteResponse(wireBytes: answer.messages.first)
        expectEqual(response.statuses.map(\.code), [.ok, .notFound])
        expect(response.statuses[1].message.hasPrefix("No document to update: "))
        expectEqual(response.writeResults.count, 2)
        expect(response.writeResults[0].updateMicroseconds != nil)
        expectEqual(response.writeResults[1], WriteResult(updateMicroseconds: nil))
        try expectEqual(harness.get("c/x")?.fields, one)
    }

    @Test
    func `A batch write refuses a document written twice and too many writes`() throws {
        var limits = ServiceLimits()
        limits.batchWriteWrites = 2
        let harness = try Harness(limits: limits)
        func batch(_ paths: [String]) throws -> TestAnswer {
            var writes = try harness.emptyWrites()
            for path in paths { try Harness.name(path).withUTF8Span { try writes.update($0, fields: one.span.bytes) } }
            var writer = ByteBuffer()
            writer.append(CommitWrites(writes).request())
            return harness.call(.batchWrite, writer.copyBytes())
        }
        try expectEqual(batch(["c/x", "c/x"]).status, .invalidArgument)
        try expectEqual(batch(["c/x", "c/y", "c/z"]).status, .invalidArgument)
        try expect(batch(["c/x", "c/y"]).isOK)
    }

    @Test
    func `A document is created once, under its id or a random one`() throws {
        let harness = try Harness()
        var request = CreateDocumentRequest(
            parent: Harness.root, collectionID: "c", documentID: "x", document: DocumentMessage(name: "", fields: one))
        let created = try harness.message(.createDocument, request, as: DocumentMessage.self)
        expectEqual(created.name, Harness.name("c/x"))
        expectEqual(created.fields, one)
        expectEqual(created.createTime, created.updateTime)
        let again = harness.call(.createDocument, request)
        expectEqual(again.status, .alreadyExists)
        expectEqual(again.text, "Document already exists: \(Harness.name("c/x"))")
        request.documentID = ""
        let random = try harness.message(.createDocument, request, as: DocumentMessage.self)
        let id = random.name.split(separator: "/").last ?? ""
        expectEqual(id.count, 20)
        expect(id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
    }

    @Test
    func `Creating refuses a named document, no collection, and ids that lead elsewhere`() throws {
        let harness = try Harness()
        let document = DocumentMessage(name: "", fields: one)
        let requests = [
            CreateDocumentRequest(
                parent: Harness.root, collectionID: "c", document: DocumentMessage(name: "n", fields: one)),
            CreateDocumentRequest(parent: Harness.root, collectionID: "", documentID: "x", document: document),
            CreateDocumentRequest(parent: Harness.root, collectionID: "c", documentID: "x/d/y", document: document),
            CreateDocumentRequest(parent: Harness.root, collectionID: "c/x/d", documentID: "y", document: document),
            CreateDocumentRequest(parent: Harness.root, collectionID: "__id7__", documentID: "x", document: document),
            CreateDocumentRequest(parent: Harness.root, collectionID: "c", documentID: "__id0__", document: document),
            CreateDocumentRequest(parent: "nowhere", collectionID: "c", documentID: "x", document: document),
        ]
        for request in requests { expectEqual(harness.call(.createDocument, request).status, .invalidArgument) }
    }

    @Test
    func `Updating creates, merges by mask, and answers with what the read mask lets through`() throws {
        let harness = try Harness()
        let both = Harness.fields(["a": .integer(1), "b": .integer(5)])
        let created = try harness.message(
            .updateDocument, UpdateDocumentRequest(document: DocumentMessage(name: Harness.name("c/x"), fields: both)),
            as: DocumentMessage.self)
        expectEqual(created.fields, both)
        let merged = try harness.message(
            .updateDocument,
            UpdateDocumentRequest(
                document: DocumentMessage(name: Harness.name("c/x"), fields: two),
                updateMask: DocumentMask(paths: [try FieldPath("a")]), mask: DocumentMask(paths: [try FieldPath("a")])),
            as: DocumentMessage.self)
        expectEqual(merged.fields, two)
        expectEqual(merged.createTime, created.createTime)
        try expectEqual(harness.get("c/x")?.fields, Harness.fields(["a": .integer(2), "b": .integer(5)]))
    }

    @Test
    func `Deleting an absent document is fine unless it must exist`() throws {
        let harness = try Harness()
        expect(harness.call(.deleteDocument, DeleteDocumentRequest(name: Harness.name("c/x"))).isOK)
        let strict = DeleteDocumentRequest(name: Harness.name("c/x"), precondition: .exists(true))
        expectEqual(harness.call(.deleteDocument, strict).status, .notFound)
        try harness.set(["c/x": one])
        expect(harness.call(.deleteDocument, strict).isOK)
        try expectNil(harness.get("c/x"))
    }

    /// A commit of so many increments of a document of 1 MB.
    private func increments(_ harness: Harness, _ count: Int) throws -> WriteList {
        try harness.set(["c/x": Harness.fields(["b": .bytes([UInt8](repeating: 1, count: 1_000_000))])])
        var writes = try harness.emptyWrites()
        let increment = FieldTransform(path: try FieldPath("n"), operation: .increment(.integer(1)))
        for _ in 0..<count {
            try Harness.name("c/x").withUTF8Span {
                try writes.update($0, fields: RawSpan(), mask: DocumentMask(paths: []), transforms: [increment])
            }
        }
        return writes
    }

    @Test
    func `Many writes to one large document are one change of it`() throws {
        let harness = try Harness()
        let response = try harness.response(committing: try increments(harness, 150))
        expectEqual(response.writeResults.map(\.transformResults), (1...150).map { [EncodedValue(.integer($0))] })
        let mask = DocumentMask(paths: [try FieldPath("n")])
        let answer = harness.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x"), mask: mask))
        try expectEqual(DocumentMessage(wireBytes: answer.messages.first).fields, Harness.fields(["n": .integer(150)]))
    }

    @Test
    func `A commit that is too much work is refused and changes nothing`() throws {
        let harness = try Harness { $0.commitWorkBytesMax = 16 << 20 }
        let answer = harness.tryCommit(try increments(harness, 50))
        expectEqual(answer.status, .invalidArgument)
        expect(answer.text.contains("16777216 bytes of documents"))
        let mask = DocumentMask(paths: [try FieldPath("n")])
        let found = harness.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x"), mask: mask))
        try expectEqual(DocumentMessage(wireBytes: found.messages.first).fields, [])
        try harness.set(["c/y": one])
    }
}
