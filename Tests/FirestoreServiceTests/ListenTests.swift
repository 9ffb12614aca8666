// The Listen stream through the service: its ends, and changes by every kind of call.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ListenTests {
    private let harness: Harness
    private let call: TestCall

    init() throws {
        harness = try Harness()
        call = TestCall(loop: harness.loop, method: .listen)
    }

    private func request(_ change: ListenRequest.Change?, database: String = Harness.database) -> [UInt8] {
        ListenRequest(database: database, change).encodedBytes()
    }

    private func begin() throws {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let target = ListenTarget(.query(parent: Harness.root, query), id: 1)
        harness.service.begin(call, request(.add(target)))
        try expectEqual(snapshots(1), 1)
    }

    /// Waits until so many consistent snapshots have come.
    private func snapshots(_ count: Int) throws -> Int {
        func isSnapshot(_ message: [UInt8]) -> Bool {
            guard case .targetChange(let change) = try? ListenResponse(wire: message.span.bytes) else { return false }
            return change.kind == .noChange && change.targets.isEmpty
        }
        expect(
            harness.loop.run {
                call.answer.messages.count { isSnapshot($0) } >= count || call.answer.status != nil
            })
        return call.answer.messages.count { isSnapshot($0) }
    }

    /// The bytes of a request to listen to a pipeline.
    private func pipelineRequest(_ stages: [(String, Value)]) -> [UInt8] {
        var writer = ByteBuffer()
        writer.appendField(FieldNumber.ListenRequest.database, string: Harness.database)
        writer.withLengthPrefix(field: FieldNumber.ListenRequest.addTarget) { target in
            target.withLengthPrefix(field: FieldNumber.Target.pipelineQuery) { query in
                query.withLengthPrefix(field: FieldNumber.Target.PipelineQueryTarget.structuredPipeline) { structured in
                    structured.withLengthPrefix(field: FieldNumber.StructuredPipeline.pipeline) { pipeline in
                        for (name, argument) in stages {
                            pipeline.withLengthPrefix(field: FieldNumber.Pipeline.stages) { stage in
                                stage.appendField(FieldNumber.Pipeline.Stage.name, string: name)
                                stage.withLengthPrefix(field: FieldNumber.Pipeline.Stage.args) {
                                    argument.encode(into: &$0)
                                }
                            }
                        }
                    }
                }
            }
            target.appendField(FieldNumber.Target.targetId, varint: 1)
        }
        return writer.copyBytes()
    }

    @Test
    func `A pipeline that a query says is listened to, another is refused and the stream continues`() throws {
        try harness.set(["c/a": [], "c/b": [], "c/d": []])
        harness.service.begin(call, pipelineRequest([("collection", .reference("/c")), ("limit", .integer(2))]))
        try expectEqual(snapshots(1), 1)
        let changes = call.answer.messages.count { message in
            if case .documentChange = try? ListenResponse(wire: message.span.bytes) { true } else { false }
        }
        expectEqual(changes, 2)
        try harness.delete("c/a")
        try expectEqual(snapshots(2), 2)

        let refused = TestCall(loop: harness.loop, method: .listen)
        let bounds: [(String, Value)] = [("limit", .integer(2)), ("offset", .integer(1)), ("limit", .integer(1))]
        harness.service.begin(refused, pipelineRequest([("collection", .reference("/c"))] + bounds))
        func cause(_ message: [UInt8]) -> StatusCode? {
            guard case .targetChange(let change) = try? ListenResponse(wire: message.span.bytes) else { return nil }
            return change.kind == .remove ? change.cause?.code : nil
        }
        expect(harness.loop.run { refused.answer.messages.contains { cause($0) != nil } })
        expect(refused.answer.messages.compactMap(cause) == [.unimplemented] && refused.answer.status == nil)
    }

    private var streamsOpen: UInt64? { CounterTotals([harness.service.counters])["streams_open"] }

    @Test
    func `A commit, a batch write, an update and a deletion`() throws {
        try begin()
        try harness.set(["c/a": Harness.fields(["n": .integer(1)])])
        try expectEqual(snapshots(2), 2)
        var writes = try harness.emptyWrites()
        try Harness.name("c/b").withUTF8Span { try writes.update($0, fields: [UInt8]().span.bytes) }
        expect(harness.call(.batchWrite, CommitWrites(writes).request()).isOK)
        try expectEqual(snapshots(3), 3)
        let document = DocumentMessage(name: Harness.name("c/a"), fields: Harness.fields(["n": .integer(2)]))
        expect(harness.call(.updateDocument, UpdateDocumentRequest(document: document)).isOK)
        try expectEqual(snapshots(4), 4)
        expect(harness.call(.deleteDocument, DeleteDocumentRequest(name: Harness.name("c/a"))).isOK)
        try expectEqual(snapshots(5), 5)
        expectNil(call.answer.status)
        call.halfClose()
        expect(harness.loop.run { call.answer.status != nil })
        expectEqual(call.answer.status, .ok)
        expectEqual(streamsOpen, 0)
    }

    @Test(arguments: [true, false])
    func `A request that is none, and one for another database, end the stream with INVALID_ARGUMENT`(isEmpty: Bool)
        throws
    {
        try begin()
        call.send(isEmpty ? request(nil) : request(.remove(1), database: "projects/p/databases/other"))
        expect(harness.loop.run { call.answer.status != nil })
        expectEqual(call.answer.status, .invalidArgument)
        expectEqual(streamsOpen, 0)
        // The session is closed: a change does not reach it.
        let count = call.answer.messages.count
        try harness.set(["c/a": []])
        expectEqual(call.answer.messages.count, count)
    }

    @Test
    func `The database of a first request that names none is that of its target`() throws {
        let target = ListenTarget(.documents([Harness.name("c/a")]), id: 1)
        harness.service.begin(call, request(.add(target), database: ""))
        try expectEqual(snapshots(1), 1)
        try harness.set(["c/a": []])
        try expectEqual(snapshots(2), 2)
        call.halfClose()
    }

    @Test
    func `Many requests are held back until the client has taken messages`() throws {
        let call = TestCall(loop: harness.loop, method: .listen, pausesAt: 1)
        let target = { (id: Int32) in ListenTarget(.documents([Harness.name("c/a")]), id: id) }
        harness.service.begin(call, request(.add(target(1))))
        for id: Int32 in 2...400 { call.send(request(.add(target(id)))) }
        expect(call.answer.isPaused)
        call.takeMore()
        expect(harness.loop.run { !call.answer.isPaused })
        call.halfClose()
    }
}
