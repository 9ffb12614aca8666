// What holds for every method: malformed requests, authorisation, what is not implemented, counting.

import Basics
import Calls
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ServiceTests {
    private static let implemented = FirestoreMessages.Method.ofFirestore

    @Test(arguments: implemented)
    func `Malformed bytes are INVALID_ARGUMENT`(_ method: FirestoreMessages.Method) throws {
        let harness = try Harness()
        let broken: [[UInt8]] = [
            [0x0A, 0x05, 0x01], [0xFF], [0x0B], [0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x00],
        ]
        for bytes in broken { expectEqual(harness.call(method, bytes).status, .invalidArgument, "\(bytes)") }
    }

    @Test(arguments: implemented)
    func `An empty request gets a status and does not crash the server`(_ method: FirestoreMessages.Method) throws {
        let harness = try Harness()
        expectEqual(harness.call(method, []).status, .invalidArgument)
    }

    @Test(arguments: implemented)
    func `Random requests get a status`(_ method: FirestoreMessages.Method) throws {
        let harness = try Harness()
        let seed = UInt64.random(in: 0 ... .max)
        var state = seed
        for _ in 0..<200 {
            var bytes: [UInt8] = []
            for _ in 0..<32 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                bytes.append(UInt8(truncatingIfNeeded: state >> 33))
            }
            expect(harness.call(method, bytes).status != nil, "seed \(seed)")
        }
    }

    /// Permits everything to `owner`, and nothing to others.
    private final class Denial: AccessControl {
        let admitsEveryone = false
        let generation = 0

        func admit(
            _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName,
            reusing last: (any CallAccess)?
        ) throws(RequestError) -> (any CallAccess)? {
            if call.authorization == "Bearer owner" { return nil }
            throw RequestError(.permissionDenied, "\(method.name) on \(database) is not allowed.")
        }

        func retry(_ call: Call, after error: RequestError, _ then: @escaping @Sendable () -> Void) -> Bool { false }
    }

    /// Refuses everyone until the keys of their tokens have come, which takes as long as a test wants.
    private final class AwaitedKeys: AccessControl, @unchecked Sendable {
        // Sendable: used on the test's thread only.
        let admitsEveryone = false
        let generation = 0
        var haveCome = false
        var waiters: [@Sendable () -> Void] = []

        func admit(
            _ call: Call, _ method: FirestoreMessages.Method, in database: DatabaseName,
            reusing last: (any CallAccess)?
        ) throws(RequestError) -> (any CallAccess)? {
            if haveCome { return nil }
            throw RequestError(.unauthenticated, "the token's key (kid) is not known")
        }

        func retry(_ call: Call, after error: RequestError, _ then: @escaping @Sendable () -> Void) -> Bool {
            waiters.append(then)
            return true
        }
    }

    @Test
    func `Requests that wait for the keys of their tokens hold a bounded number of bytes`() throws {
        let access = AwaitedKeys()
        let harness = try Harness(accessControl: access)
        var writes = WriteList(database: try DatabaseName(Harness.database))
        let text = Harness.fields(["t": .string(String(repeating: "x", count: 900_000))])
        for number in 0..<5 {
            try Harness.name("c/\(number)").withUTF8Span { try writes.update($0, fields: text.span.bytes) }
        }
        let request = CommitWrites(writes).request()
        func calls(_ count: Int) -> [TestCall] {
            (0..<count).map { _ in
                let call = TestCall(loop: harness.loop, method: .commit)
                harness.service.begin(call, request)
                return call
            }
        }
        // Each has 4.5 MB, and all together may have 16 MiB.
        let first = calls(5)
        expectEqual(first.map(\.answer.status), [nil, nil, nil, .unauthenticated, .unauthenticated])
        access.haveCome = true
        for waiter in access.waiters { waiter() }
        expect(harness.loop.run { first[..<3].allSatisfy { $0.answer.status != nil } })
        expect(first[..<3].allSatisfy { $0.answer.isOK })
        // Their room is free again.
        access.haveCome = false
        expectEqual(calls(5).map(\.answer.status), [nil, nil, nil, .unauthenticated, .unauthenticated])
    }

    /// A request of each method that is right in itself.
    private static func request(_ method: FirestoreMessages.Method) throws -> [UInt8] {
        let document = DocumentMessage(name: Harness.name("c/x"), fields: [])
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        var writer = ByteBuffer()
        let writes = WriteList(database: try DatabaseName(Harness.database))
        switch method {
        case .getDocument: GetDocumentRequest(name: Harness.name("c/x")).encode(into: &writer)
        case .listDocuments: ListDocumentsRequest(parent: Harness.root, collectionID: "c").encode(into: &writer)
        case .createDocument:
            CreateDocumentRequest(
                parent: Harness.root, collectionID: "c", document: DocumentMessage(name: "", fields: [])
            ).encode(into: &writer)
        case .updateDocument: UpdateDocumentRequest(document: document).encode(into: &writer)
        case .deleteDocument: DeleteDocumentRequest(name: Harness.name("c/x")).encode(into: &writer)
        case .batchGetDocuments:
            BatchGetDocumentsRequest(database: Harness.database, documents: []).encode(into: &writer)
        case .beginTransaction: BeginTransactionRequest(database: Harness.database).encode(into: &writer)
        case .commit: writer.append(CommitWrites(writes).request())
        case .rollback: RollbackRequest(database: Harness.database, transaction: [1]).encode(into: &writer)
        case .runQuery: RunQueryRequest(parent: Harness.root, query: query).encode(into: &writer)
        case .runAggregationQuery:
            RunAggregationQueryRequest(
                parent: Harness.root,
                query: StructuredAggregationQuery(
                    query: query, aggregations: [Aggregation(.count(upTo: nil), alias: "n")])
            ).encode(into: &writer)
        case .executePipeline:
            ExecutePipelineRequest(database: Harness.database, pipeline: []).encode(into: &writer)
        case .listCollectionIds: ListCollectionIdsRequest(parent: Harness.root).encode(into: &writer)
        case .batchWrite: writer.append(CommitWrites(writes).request())
        case .partitionQuery:
            let group = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: true)])
            PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: 2).encode(into: &writer)
        case .listen:
            ListenRequest(database: Harness.database, .add(ListenTarget(.documents([Harness.name("c/x")]), id: 1)))
                .encode(into: &writer)
        case .write: WriteRequestMessage(database: Harness.database).encode(into: &writer)
        default: break
        }
        return writer.copyBytes()
    }

    @Test(arguments: implemented)
    func `The access control is asked before anything is done`(_ method: FirestoreMessages.Method) throws {
        let harness = try Harness(accessControl: Denial())
        let request = try Self.request(method)
        let denied = harness.call(method, request)
        expectEqual(denied.status, .permissionDenied)
        expect(denied.text.hasPrefix("\(method.name) on projects/p/databases/d"))
        let reader = harness.store.makeReader()
        var collections = CollectionIDListing(below: nil, after: nil)
        _ = try reader.list(
            &collections, limit: 10, at: reader.readPoint(.latest, in: DatabaseName(Harness.database)))
        expect(collections.ids.isEmpty)
        let allowed = harness.call(method, request, authorization: "Bearer owner")
        expect(allowed.status != .permissionDenied)
    }

    @Test
    func `Calls, documents and writes are counted`() throws {
        let harness = try Harness()
        try harness.set(["c/x": Harness.fields(["a": .integer(1)])])
        _ = try harness.get("c/x")
        _ = try harness.get("c/none")
        let totals = CounterTotals([harness.service.counters])
        expectEqual(totals["calls_started"], 3)
        expectEqual(totals["calls_succeeded"], 2)
        expectEqual(totals["calls_failed"], 1)
        expectEqual(totals["calls_broken"], 0)
        expectEqual(totals["documents_read"], 1)
        expectEqual(totals["documents_missing"], 1)
        expectEqual(totals["writes_submitted"], 1)
    }
}
