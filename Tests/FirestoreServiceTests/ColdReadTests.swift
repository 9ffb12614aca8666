// Reads of documents that are not in memory: the call is parked, and the loop serves others.

import Basics
import DocumentModel
import DocumentStore
import EngineTestSupport
import FirestoreMessages
import FirestoreService
import Glibc
import MemoryEngine
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ColdReadTests {
    private static let count = 400

    private static func fields(_ number: Int) -> [UInt8] {
        let padding = number % 40 == 0 ? 6_000 : number % 60
        return Harness.fields([
            "n": .integer(Int64(number % 17)), "p": .string(String(repeating: "x", count: padding)),
        ])
    }

    /// A store whose documents are all in runs, and count as not in memory until they have been read.
    ///
    /// - Parameter fault: called before pages are read, on the thread that reads them; an error number or 0.
    private static func harness(_ fault: @escaping @Sendable () -> Int32 = { 0 }) throws -> Harness {
        let directory = TemporaryDirectory("cold")
        func configure(_ configuration: inout StoreConfiguration) {
            configuration.volume = nil
            configuration.engine.meetsPagesCold = true
            configuration.engine.idleCheckpointMicroseconds = 0
            configuration.engine.fault = { $0 == .readPages ? fault() : 0 }
        }
        do {
            let harness = try Harness(in: directory, configure: configure)
            for start in stride(from: 0, to: count, by: 100) {
                var writes = try harness.emptyWrites()
                for number in start..<start + 100 {
                    let fields = fields(number)
                    try name(number).withUTF8Span { try writes.update($0, fields: fields.byteSpan) }
                }
                try harness.commit(writes)
            }
            harness.store.close()
        }
        return try Harness(in: directory, configure: configure)
    }

    private static func name(_ number: Int) -> String { Harness.name(path(number)) }
    private static func path(_ number: Int) -> String { "c/d\(1_000 + number)" }

    private let collection = StructuredQuery(from: [CollectionSelector(collectionID: "c")])

    @Test
    func `Every method returns what it returns from memory`() throws {
        let reads = Atomic<Int>(0)
        let harness = try Self.harness {
            reads.add(1, ordering: .relaxed)
            return 0
        }
        let names = (0..<Self.count).map(Self.name)
        let batch: [BatchGetDocumentsResponse] = try harness.messages(
            .batchGetDocuments,
            BatchGetDocumentsRequest(database: Harness.database, documents: names + [Harness.name("c/none")]))
        let found = batch.compactMap { answer -> String? in
            if case .found(let document) = answer.result { document.name } else { nil }
        }
        expectEqual(found, names)
        expectEqual(batch.count, names.count + 1)
        expect(reads.load(ordering: .relaxed) > 0)
        for number in stride(from: 0, to: Self.count, by: 7) {
            try expectEqual(harness.get(Self.path(number))?.fields, Self.fields(number))
        }
        try expectNil(harness.get("c/none"))
    }

    @Test(arguments: ["name", "n", "n descending", "filter"])
    func `Queries and totals return what they return from memory`(order: String) throws {
        let harness = try Self.harness()
        var query = collection
        let field = try FieldPath("n")
        switch order {
        case "n": query.orderBy = [Order(field: field, direction: .ascending)]
        case "n descending": query.orderBy = [Order(field: field, direction: .descending)]
        case "filter": query.filter = .field(field, .equal, EncodedValue(.integer(3)))
        default: break
        }
        func run() throws -> [String] {
            try harness.messages(
                .runQuery, RunQueryRequest(parent: Harness.root, query: query), as: RunQueryResponse.self
            ).compactMap { $0.document?.name }
        }
        let first = try run()
        // Now everything is in memory.
        let second = try run()
        expectEqual(first, second)
        expectEqual(Set(first).count, first.count)
        expectEqual(first.count, order == "filter" ? (0..<Self.count).count { $0 % 17 == 3 } : Self.count)

        let cold = try Self.harness()
        let request = StructuredAggregationQuery(
            query: query, aggregations: [Aggregation(.count(upTo: nil)), Aggregation(.sum(field))])
        let answer: [RunAggregationQueryResponse] = try cold.messages(
            .runAggregationQuery, RunAggregationQueryRequest(parent: Harness.root, query: request))
        let numbers = (0..<Self.count).map { $0 % 17 }.filter { order != "filter" || $0 == 3 }
        expectEqual(
            answer.first?.totals.map(\.value),
            [EncodedValue(.integer(Int64(numbers.count))), EncodedValue(.integer(Int64(numbers.reduce(0, +))))])
    }

    @Test
    func `A loop serves others while a call waits for a page`() throws {
        let gate = Gate(isOpen: true)
        let harness = try Self.harness {
            gate.pass()
            return 0
        }
        let new = Harness.fields(["a": .integer(1)])
        try harness.set(["c/new": new])
        gate.close()
        let parked = begin(harness, Self.name(203))
        try gate.waitUntilReached()
        try expectEqual(harness.get("c/new")?.fields, new)
        expectNil(parked.answer.status)
        gate.open()
        expect(harness.loop.run { parked.answer.status != nil })
        expect(parked.answer.isOK)
        expectEqual(parked.answer.messages.count, 1)
    }

    @Test(arguments: ["query", "documents"])
    func `A listener waits for pages beside its loop, and gets every document once`(kind: String) throws {
        let gate = Gate(isOpen: true)
        let harness = try Self.harness {
            gate.pass()
            return 0
        }
        let new = Harness.fields(["a": .integer(1)])
        try harness.set(["d/new": new])
        gate.close()
        let names = (0..<Self.count).map(Self.name)
        let subject =
            kind == "query" ? ListenTarget.Kind.query(parent: Harness.root, collection) : .documents(names)
        let request = ListenRequest(database: Harness.database, .add(ListenTarget(subject, id: 1)))
        let listener = begin(harness, .listen, request.encodedBytes())
        try gate.waitUntilReached()
        try expectEqual(harness.get("d/new")?.fields, new)
        expect(Self.changed(listener).count < Self.count)
        gate.open()
        expect(harness.loop.run { Self.changed(listener).count >= Self.count })
        // A commit after it: the snapshot before it has come.
        try harness.set(["c/d1000": new])
        expect(harness.loop.run { Self.changed(listener).count > Self.count })
        expectEqual(Self.changed(listener), names + [Self.name(0)])
        listener.halfClose()
        expect(harness.loop.run { listener.answer.status != nil })
    }

    /// The names of the documents that a listener has been sent, in their order.
    private static func changed(_ listener: TestCall) -> [String] {
        listener.answer.messages.compactMap { message in
            guard case .documentChange(let change)? = try? ListenResponse(wire: message.byteSpan) else { return nil }
            return try? DocumentMessage(wire: change.document.byteSpan).name
        }
    }

    @Test
    func `A listener of pages that cannot be read is removed with the reason, and its stream continues`() throws {
        let isFailing = Atomic<Bool>(false)
        let harness = try Self.harness { isFailing.load(ordering: .sequentiallyConsistent) ? EIO : 0 }
        isFailing.store(true, ordering: .sequentiallyConsistent)
        let target = ListenTarget(.query(parent: Harness.root, collection), id: 1)
        let listener = begin(
            harness, .listen, ListenRequest(database: Harness.database, .add(target)).encodedBytes())
        func removals() -> [StatusCode?] {
            listener.answer.messages.compactMap { message -> StatusCode?? in
                guard case .targetChange(let change)? = try? ListenResponse(wire: message.byteSpan),
                    change.kind == .remove
                else { return nil }
                return .some(change.cause?.code)
            }
        }
        expect(harness.loop.run { !removals().isEmpty })
        expectEqual(removals(), [.dataLoss])
        expectNil(listener.answer.status)
        listener.halfClose()
    }

    @Test(arguments: ["", "n desc"])
    func `Listings return what they return from memory, page by page`(order: String) throws {
        let harness = try Self.harness()
        func list() throws -> [String] {
            var names: [String] = []
            var token = ""
            repeat {
                let request = ListDocumentsRequest(
                    parent: Harness.root, collectionID: "c", pageSize: 150, pageToken: token, orderBy: order)
                let page: ListDocumentsResponse = try harness.message(.listDocuments, request)
                names += page.documents.map(\.name)
                token = page.nextPageToken
            } while !token.isEmpty
            return names
        }
        let first = try list()
        try expectEqual(first, list())
        expectEqual(Set(first), Set((0..<Self.count).map(Self.name)))
        expectEqual(first.count, Self.count)
    }

    @Test
    func `A call that was cancelled while it waited is not answered`() throws {
        let gate = Gate(isOpen: true)
        let harness = try Self.harness {
            gate.pass()
            return 0
        }
        gate.close()
        let cancelled = begin(harness, Self.name(203))
        let other = begin(harness, Self.name(350))
        try gate.waitUntilReached()
        cancelled.cancel()
        gate.open()
        expect(harness.loop.run { other.answer.status != nil })
        expect(other.answer.isOK)
        expect(cancelled.answer.messages.isEmpty)
        try expectEqual(harness.get(Self.path(203))?.fields, Self.fields(203))
    }

    @Test
    func `A page that cannot be read fails the calls that need it, and no others`() throws {
        let isFailing = Atomic<Bool>(false)
        let harness = try Self.harness { isFailing.load(ordering: .sequentiallyConsistent) ? EIO : 0 }
        try expectEqual(harness.get(Self.path(203))?.fields, Self.fields(203))
        isFailing.store(true, ordering: .sequentiallyConsistent)
        let failed = begin(harness, Self.name(350))
        expect(harness.loop.run { failed.answer.status != nil })
        expectEqual(failed.answer.status, .dataLoss)
        let query = harness.call(.runQuery, RunQueryRequest(parent: Harness.root, query: collection))
        expectEqual(query.status, .dataLoss)
        try expectEqual(harness.get(Self.path(203))?.fields, Self.fields(203))
        isFailing.store(false, ordering: .sequentiallyConsistent)
        try expectEqual(harness.get(Self.path(350))?.fields, Self.fields(350))
    }

    @Test
    func `Commits of a connection keep their order while the first one's documents are read`() throws {
        let gate = Gate(isOpen: true)
        let harness = try Self.harness {
            gate.pass()
            return 0
        }
        gate.close()
        let connection = TestCall(loop: harness.loop, method: .commit)
        try commit(harness, connection, [Self.path(203), "c/new"], 1)
        try gate.waitUntilReached()
        // It could go at once, as nothing is stored under this name.
        try commit(harness, connection, ["c/new"], 2)
        expectNil(connection.answer.status)
        gate.open()
        expect(harness.loop.run { connection.answer.status != nil })
        try harness.set(["c/later": Harness.fields([:])])
        try expectEqual(harness.get("c/new")?.fields, Harness.fields(["n": .integer(2)]))
        try expectEqual(harness.get(Self.path(203))?.fields, Harness.fields(["n": .integer(1)]))
    }

    @Test
    func `A transaction waits beside its loop for what its validation compares`() throws {
        let coldKeys = HeldColdKeys(containing: "accounts")
        let harness = try Harness {
            $0.volume = MemoryVolume(replaysRecords: true)
            $0.engine.coldKeys = coldKeys
        }
        let one = Harness.fields(["n": .integer(1)])
        try harness.set(["accounts/a": one, "open/b": one])
        let begun: BeginTransactionResponse = try harness.message(
            .beginTransaction, BeginTransactionRequest(database: Harness.database))
        try expectEqual(harness.get("accounts/a", .transaction(begun.transaction))?.fields, one)
        coldKeys.hold()
        var writes = try harness.emptyWrites()
        try Harness.name("open/new").withUTF8Span { try writes.update($0, fields: one.byteSpan) }
        var request = ByteBuffer()
        request.append(CommitWrites(writes).request(transaction: begun.transaction))
        let waiting = begin(harness, .commit, request.copyBytes())
        try coldKeys.waitUntilReached()
        try expectEqual(harness.get("open/b")?.fields, one)
        expectNil(waiting.answer.status)
        coldKeys.release()
        expect(harness.loop.run { waiting.answer.status != nil })
        expect(waiting.answer.isOK, "\(waiting.answer.text)")
        try expectEqual(harness.get("open/new")?.fields, one)
    }

    @Test
    func `A collection group is cut where it is cut in memory, and its loop serves others meanwhile`() throws {
        let coldKeys = HeldColdKeys(containing: "cuts")
        let harness = try Harness {
            $0.volume = MemoryVolume(replaysRecords: true)
            $0.engine.coldKeys = coldKeys
        }
        let one = Harness.fields(["n": .integer(1)])
        var writes = try harness.emptyWrites()
        for number in 0..<400 {
            try Harness.name("cuts/d\(number)").withUTF8Span { try writes.update($0, fields: one.byteSpan) }
        }
        try harness.commit(writes)
        try harness.set(["open/a": one])
        let group = StructuredQuery(
            from: [CollectionSelector(collectionID: "cuts", allDescendants: true)],
            orderBy: [Order(field: .documentName, direction: .ascending)])
        let request = PartitionQueryRequest(parent: Harness.root, query: group, partitionCount: 2).encodedBytes()
        coldKeys.hold()
        let cold = begin(harness, .partitionQuery, request)
        try coldKeys.waitUntilReached()
        try expectEqual(harness.get("open/a")?.fields, one)
        expectNil(cold.answer.status)
        coldKeys.release()
        expect(harness.loop.run { cold.answer.status != nil })
        let warm = harness.call(.partitionQuery, request)
        expect(cold.answer.isOK && warm.isOK, "\(cold.answer.text)")
        expectEqual(cold.answer.messages, warm.messages)
        try expectEqual(PartitionQueryResponse(wireBytes: warm.messages.first).partitions.count, 2)
    }

    @Test
    func `A query that is explained and not run waits beside its loop for what its plan reads`() throws {
        let coldKeys = HeldColdKeys(containing: "")
        let harness = try Harness {
            $0.volume = MemoryVolume(replaysRecords: true)
            $0.engine.coldKeys = coldKeys
        }
        try harness.set(["c/a": Harness.fields(["n": .integer(1)])])
        var query = collection
        query.filter = .field(try FieldPath("n"), .equal, EncodedValue(Value.integer(1)))
        var request = RunQueryRequest(parent: Harness.root, query: query)
        request.explain = ExplainOptions(analyze: false)
        let warm = harness.call(.runQuery, request)
        coldKeys.hold()
        let cold = begin(harness, .runQuery, request.encodedBytes())
        try coldKeys.waitUntilReached()
        expectNil(cold.answer.status)
        coldKeys.release()
        expect(harness.loop.run { cold.answer.status != nil })
        expect(cold.answer.isOK && cold.answer.messages == warm.messages, "\(cold.answer.text)")
    }

    private func commit(_ harness: Harness, _ connection: TestCall, _ paths: [String], _ number: Int64) throws {
        var writes = try harness.emptyWrites()
        for path in paths {
            let fields = Harness.fields(["n": .integer(number)])
            try Harness.name(path).withUTF8Span { try writes.update($0, fields: fields.byteSpan) }
        }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: []))
        harness.service.begin(connection, writer.copyBytes())
    }

    @Test
    func `A store that is closed answers the calls that wait`() throws {
        let gate = Gate(isOpen: true)
        let harness = try Self.harness {
            gate.pass()
            return 0
        }
        gate.close()
        let parked = begin(harness, Self.name(203))
        try gate.waitUntilReached()
        let store = harness.store
        let closing = try SystemThread(name: "closing") { store.close() }
        gate.open()
        closing.join()
        expect(harness.loop.run { parked.answer.status != nil })
        expect(parked.answer.isOK || parked.answer.status == .unavailable)
    }

    // MARK: Calls

    private func begin(_ harness: Harness, _ name: String) -> TestCall {
        begin(harness, .getDocument, GetDocumentRequest(name: name).encodedBytes())
    }

    private func begin(_ harness: Harness, _ method: FirestoreMessages.Method, _ request: [UInt8]) -> TestCall {
        let call = TestCall(loop: harness.loop, method: method)
        harness.service.begin(call, request)
        return call
    }
}
