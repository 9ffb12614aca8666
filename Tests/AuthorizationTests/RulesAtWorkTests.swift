// Security rules over each method of Firestore.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesAtWorkTests {
    @Test
    func `A document is read by those whom its contents name`() throws {
        let store = try GuardedStore("match /notes/{id} { allow get: if resource.data.owner == request.auth.uid; }")
        try store.set("notes/a", ["owner": .string("alice")])
        expectEqual(store.get("notes/a"), .ok)
        expectEqual(store.get("notes/a", as: "bob"), .permissionDenied)
        expectEqual(store.get("notes/a", as: nil), .ok)
        // Whether it exists is not for those who may not read it.
        expectEqual(store.get("notes/none"), .permissionDenied)
        expectEqual(store.get("others/a"), .permissionDenied)
        let denied = store.log.lines.filter { $0.contains("access_denied") }
        expectEqual(denied.count, 3)
        expect(denied[0].contains("caller=bob") && denied[0].contains("path=notes/a"))
    }

    @Test
    func `Rules about the caller alone are asked once for a collection, and decide for no other caller`() throws {
        let store = try GuardedStore(
            """
            match /notes/{id} { allow get: if request.auth.uid == 'alice'; }
            match /notes/{id}/drafts/{draft} { allow get: if request.auth.uid == 'bob'; }
            match /users/alice { allow get: if request.auth.uid == 'alice'; }
            """)
        for path in ["notes/a", "notes/b", "users/alice", "users/bob", "notes/a/drafts/a"] {
            try store.set(path, ["n": .integer(1)])
        }
        for _ in 0..<2 {
            expect(store.get("notes/a") == .ok && store.get("notes/b") == .ok && store.get("notes/c") == .notFound)
            expectEqual(store.get("notes/a", as: "bob"), .permissionDenied)
            expect(store.get("users/alice") == .ok && store.get("users/bob") == .permissionDenied)
            expectEqual(store.get("notes/a/drafts/a"), .permissionDenied)
            expectEqual(store.get("notes/a/drafts/a", as: "bob"), .ok)
        }
        store.authorization.replace(
            store.authorization.state.authenticator,
            try TestAuthorization.ruleset("match /notes/b { allow get: if request.auth.uid == 'alice'; }"))
        expect(store.get("notes/a") == .permissionDenied && store.get("notes/b") == .ok)
    }

    @Test
    func `Many collections are asked for in turn`() throws {
        let store = try GuardedStore("match /{name}/{id} { allow get: if request.auth != null; }")
        for number in 0..<40 { expectEqual(store.get("c\(number % 20)/x"), .notFound) }
        expectEqual(store.get("c1/x/d/y"), .permissionDenied)
    }

    @Test
    func `A batch get succeeds if the caller may read all documents`() throws {
        let store = try GuardedStore("match /notes/{id} { allow get: if id == 'a' || id == 'b'; }")
        func status(_ ids: [String]) -> StatusCode? {
            let names = ids.map { Harness.name("notes/\($0)") }
            return store.call(
                .batchGetDocuments,
                BatchGetDocumentsRequest(database: Harness.database, documents: names).encodedBytes()
            ).status
        }
        expectEqual(status(["a", "b"]), .ok)
        expectEqual(status(["a", "c"]), .permissionDenied)
        expectEqual(status([]), .ok)
    }

    @Test
    func `A document that is written comes in the answer, also to those who may not read it`() throws {
        let store = try GuardedStore("match /inbox/{id} { allow create, update: if true; }")
        func create(in collection: String) -> TestAnswer {
            store.call(
                .createDocument,
                CreateDocumentRequest(
                    parent: Harness.root, collectionID: collection, documentID: "a",
                    document: DocumentMessage(name: "", fields: Harness.fields(["n": .integer(1)]))
                ).encodedBytes())
        }
        let created = create(in: "inbox")
        expectEqual(created.status, .ok)
        try expectEqual(DocumentMessage(wireBytes: created.messages.first).fields, Harness.fields(["n": .integer(1)]))
        let update = UpdateDocumentRequest(
            document: DocumentMessage(name: Harness.name("inbox/a"), fields: Harness.fields(["n": .integer(2)])))
        let updated = store.call(.updateDocument, update.encodedBytes())
        expectEqual(updated.status, .ok)
        try expectEqual(DocumentMessage(wireBytes: updated.messages.first).fields, Harness.fields(["n": .integer(2)]))
        expectEqual(store.get("inbox/a"), .permissionDenied)
        // What is refused is not applied.
        expect(create(in: "notes").status == .permissionDenied && store.get("notes/a", as: nil) == .notFound)
    }

    @Test
    func `A caller who may not read a document does not lock it`() throws {
        let store = try GuardedStore("match /notes/{id} { allow get: if request.auth.uid == 'bob'; }")
        try store.set("notes/a", ["n": .integer(1)])
        let pessimistic = TransactionOptions.readWrite(retryTransaction: [], concurrency: .pessimistic)
        func transaction(of uid: String) throws -> [UInt8] {
            let request = BeginTransactionRequest(database: Harness.database, options: pessimistic)
            let answer = store.call(.beginTransaction, request.encodedBytes(), as: uid)
            return try BeginTransactionResponse(wireBytes: answer.messages.first).transaction
        }
        func read(as uid: String, _ consistency: ReadConsistency) -> StatusCode? {
            store.call(
                .batchGetDocuments,
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("notes/a")], consistency: consistency
                ).encodedBytes(), as: uid
            ).status
        }
        /// What the locks take after a commit that needs none of them.
        func lockBytes() throws -> Int {
            for number in 0..<2 { try store.set("others/\(number)", ["n": .integer(1)]) }
            return store.harness.store.statistics.lockBytes
        }
        expectEqual(store.get("notes/a", .transaction(try transaction(of: "alice"))), .permissionDenied)
        expectEqual(read(as: "alice", .transaction(try transaction(of: "alice"))), .permissionDenied)
        expectEqual(read(as: "alice", .newTransaction(pessimistic)), .permissionDenied)
        try expectEqual(lockBytes(), 0)
        expectEqual(store.harness.store.statistics.transactionsOpen, 2)
        expectEqual(read(as: "bob", .newTransaction(pessimistic)), .ok)
        try expect(lockBytes() > 0)
    }

    @Test
    func `A query runs if everything that it could return may be read`() throws {
        let store = try GuardedStore(
            "match /notes/{id} { allow list: if resource.data.owner == request.auth.uid; }")
        try store.set("notes/a", ["owner": .string("alice")])
        let all = StructuredQuery(from: [CollectionSelector(collectionID: "notes")])
        var mine = all
        mine.filter = .field(FieldPath(fieldName: "owner"), .equal, EncodedValue(.string("alice")))
        expectEqual(store.query(mine).status, .ok)
        expectEqual(store.query(mine, as: "bob").status, .permissionDenied)
        expectEqual(store.query(all).status, .permissionDenied)
        expectEqual(store.query(all, as: nil).status, .ok)
        // A rule is about collections of one name.
        expectEqual(store.query(StructuredQuery()).status, .permissionDenied)
        let count = StructuredAggregationQuery(query: mine, aggregations: [Aggregation(.count(upTo: nil), alias: "n")])
        func total(_ query: StructuredAggregationQuery, as uid: String) -> StatusCode? {
            store.call(
                .runAggregationQuery, RunAggregationQueryRequest(parent: Harness.root, query: query).encodedBytes(),
                as: uid
            ).status
        }
        expectEqual(total(count, as: "alice"), .ok)
        expectEqual(total(count, as: "bob"), .permissionDenied)
    }

    @Test
    func `A pipeline runs if everything that its reads could return may be read`() throws {
        let store = try GuardedStore(
            """
            match /notes/{id} { allow list: if resource.data.owner == request.auth.uid; }
            match /open/{id} { allow get: if resource.data.owner == request.auth.uid; }
            """)
        try store.set("notes/a", ["owner": .string("alice")])
        try store.set("open/a", ["owner": .string("alice")])
        try store.set("open/b", ["owner": .string("bob")])
        func status(_ stages: [PipelineStage], as uid: String? = "alice") -> StatusCode? {
            let request = ExecutePipelineRequest(database: Harness.database, pipeline: PipelineStage.pipeline(stages))
            return store.call(.executePipeline, request.encodedBytes(), as: uid).status
        }
        let notes = PipelineStage.collection("notes")
        expectEqual(status([notes, .whereOwner("alice")]), .ok)
        expectEqual(status([notes, .whereOwner("alice"), .limit(1)]), .ok)
        expectEqual(status([notes, .whereOwner("alice")], as: "bob"), .permissionDenied)
        expectEqual(status([notes]), .permissionDenied)
        expectEqual(status([notes, .limit(1), .whereOwner("alice")]), .permissionDenied)
        expectEqual(status([PipelineStage("database")]), .permissionDenied)
        expectEqual(status([notes], as: nil), .ok)
        expectEqual(status([.documents(["open/a"])]), .ok)
        expectEqual(status([.documents(["open/a", "open/b"])]), .permissionDenied)
        let union = PipelineStage.union([notes])
        expectEqual(status([notes, .whereOwner("alice"), union]), .permissionDenied)
        expectEqual(status([.documents(["open/a"]), .union([notes, .whereOwner("alice")])]), .ok)
        expectEqual(
            status([.documents(["open/a"]), .union([PipelineStage("database")])], as: "bob"), .permissionDenied)
        let mine = PipelineStage.selectAll(of: [notes, .whereOwner("alice")])
        expectEqual(status([.documents(["open/a"]), mine]), .ok)
        expectEqual(status([.documents(["open/a"]), .selectAll(of: [notes])]), .permissionDenied)
    }

    @Test
    func `A pipeline writes what its caller may write`() throws {
        let store = try GuardedStore(
            """
            match /notes/{id} { allow list; allow delete: if resource.data.owner == request.auth.uid; }
            """)
        try store.set("notes/a", ["owner": .string("alice")])
        try store.set("notes/b", ["owner": .string("bob")])
        func status(_ stages: [PipelineStage], as uid: String? = "alice") -> StatusCode? {
            let request = ExecutePipelineRequest(database: Harness.database, pipeline: PipelineStage.pipeline(stages))
            return store.call(.executePipeline, request.encodedBytes(), as: uid).status
        }
        let (notes, delete) = (PipelineStage.collection("notes"), PipelineStage("delete"))
        expectEqual(status([notes, delete]), .permissionDenied)
        expectEqual(status([notes, .whereOwner("bob"), delete]), .permissionDenied)
        expectEqual(status([notes, .whereOwner("alice"), delete]), .ok)
        expectEqual(status([notes, .whereOwner("bob"), delete], as: "bob"), .ok)
    }

    @Test
    func `Listings are lists, and what no rule is about is for administrators`() throws {
        let store = try GuardedStore("match /notes/{id} { allow list: if request.query.limit <= 10; }")
        func list(_ change: (inout ListDocumentsRequest) -> Void) -> StatusCode? {
            var request = ListDocumentsRequest(parent: Harness.root, collectionID: "notes")
            change(&request)
            return store.call(.listDocuments, request.encodedBytes()).status
        }
        expectEqual(list { $0.pageSize = 10 }, .ok)
        expectEqual(list { $0.pageSize = 11 }, .permissionDenied)
        expectEqual(list { _ in }, .permissionDenied)
        expectEqual(list { ($0.pageSize, $0.showMissing) = (10, true) }, .permissionDenied)
        expectEqual(list { ($0.pageSize, $0.collectionID) = (10, "") }, .permissionDenied)
        let ids = ListCollectionIdsRequest(parent: Harness.root).encodedBytes()
        expectEqual(store.call(.listCollectionIds, ids).status, .permissionDenied)
        expectEqual(store.call(.listCollectionIds, ids, as: nil).status, .ok)
    }

    @Test
    func `The state before the commit decides between create, update and delete`() throws {
        let store = try GuardedStore(
            """
            match /made/{id} { allow create; }
            match /changed/{id} { allow update; }
            match /gone/{id} { allow delete; }
            """)
        let fields = Harness.fields(["n": .integer(1)])
        try expectEqual(store.commit { try $0.set("made/a", fields) }, .ok)
        try expectEqual(store.commit { try $0.set("made/a", Harness.fields(["n": .integer(2)])) }, .permissionDenied)
        try expectEqual(store.commit { try $0.set("changed/a", fields) }, .permissionDenied)
        try store.set("changed/a", ["n": .integer(0)])
        try expectEqual(store.commit { try $0.set("changed/a", fields) }, .ok)
        try expectEqual(store.commit { try $0.remove("changed/a") }, .permissionDenied)
        try expectEqual(store.commit { try $0.remove("gone/a") }, .ok)
        // A precondition says which it is; rules come before it.
        try expectEqual(store.commit { try $0.set("made/a", fields, precondition: .exists(false)) }, .alreadyExists)
        try expectEqual(store.commit { try $0.set("changed/b", fields, precondition: .exists(true)) }, .notFound)
        try expectEqual(store.commit { try $0.set("made/b", fields, precondition: .exists(true)) }, .permissionDenied)
        // One write that is denied denies all.
        try expectEqual(
            store.commit {
                try $0.set("made/c", fields)
                try $0.remove("made/a")
            }, .permissionDenied)
        expectEqual(store.get("made/c", as: nil), .notFound)
        try expectEqual(store.commit { _ in }, .ok)
    }

    @Test
    func `Rules see the fields that a write leaves, transforms included`() throws {
        let store = try GuardedStore(
            """
            match /posts/{id} {
              allow create: if request.resource.data.at == request.time && request.resource.data.n == 1;
              allow update: if request.resource.data.n == resource.data.n + 1
                && request.resource.data.title == resource.data.title;
            }
            """)
        func post(_ n: Int64, _ transforms: [FieldTransform]) throws -> StatusCode? {
            try store.commit { writes in
                try Harness.name("posts/a").withUTF8Span {
                    try writes.update($0, fields: Harness.fields(["n": .integer(n)]).span.bytes, transforms: transforms)
                }
            }
        }
        try expectEqual(post(1, []), .permissionDenied)
        let now = FieldTransform(path: FieldPath(fieldName: "at"), operation: .requestTime)
        try expectEqual(post(2, [now]), .permissionDenied)
        try expectEqual(post(1, [now]), .ok)
        try store.set("posts/a", ["n": .integer(1), "title": .string("t")])
        func increment(_ amount: Int64) throws -> StatusCode? {
            try store.commit { writes in
                let change = FieldTransform(path: FieldPath(fieldName: "n"), operation: .increment(.integer(amount)))
                try Harness.name("posts/a").withUTF8Span {
                    try writes.update($0, fields: RawSpan(), mask: DocumentMask(paths: []), transforms: [change])
                }
            }
        }
        try expectEqual(increment(2), .permissionDenied)
        try expectEqual(increment(1), .ok)
        try expectEqual(increment(1), .ok)
    }

    @Test
    func `Writes of one commit see each other through getAfter`() throws {
        let store = try GuardedStore(
            """
            match /orders/{id} {
              allow create: if getAfter(/databases/$(database)/documents/stock/$(id)).data.left >= 0
                && getAfter(/databases/$(database)/documents/stock/$(id)).data.left
                  == get(/databases/$(database)/documents/stock/$(id)).data.left - 1;
            }
            match /stock/{id} { allow update: if existsAfter(/databases/$(database)/documents/orders/$(id)); }
            """)
        try store.set("stock/a", ["left": .integer(1)])
        func order(_ left: Int64, withOrder: Bool = true) throws -> StatusCode? {
            try store.commit {
                if withOrder { try $0.set("orders/a", Harness.fields(["n": .integer(1)])) }
                try $0.set("stock/a", Harness.fields(["left": .integer(left)]))
            }
        }
        try expectEqual(order(1), .permissionDenied)
        try expectEqual(order(-1), .permissionDenied)
        try expectEqual(order(0, withOrder: false), .permissionDenied)
        try expectEqual(order(0), .ok)
    }

    @Test
    func `A repetition of a commit gets its first answer, whatever the rules say by then`() throws {
        let store = try GuardedStore("match /made/{id} { allow create; }")
        let identifier = RequestIdentifier(sessionHigh: 7, sessionLow: 8, sequence: 1, oldestPending: 1)
        let fields = Harness.fields(["n": .integer(1)])
        try expectEqual(store.commit(identifier: identifier) { try $0.set("made/a", fields) }, .ok)
        try expectEqual(store.commit(identifier: identifier) { try $0.set("made/a", fields) }, .ok)
        var next = identifier
        next.sequence = 2
        try expectEqual(store.commit(identifier: next) { try $0.set("made/a", fields) }, .permissionDenied)
    }

    /// The clock is twenty seconds late until it is corrected, or an hour ahead until it is set back.
    @Test(arguments: [-20_000_000, 3_600_000_000])
    func `A right that was taken away does not come back with a time of the past`(offset: Int64) throws {
        let clock = OtherClock(offset)
        let store = try GuardedStore(
            "match /rooms/{id} { allow get: if exists(/databases/$(database)/documents/members/$(request.auth.uid)); }",
            clock: clock)
        try store.set("members/alice", ["n": .integer(1)])
        try store.set("rooms/a", ["n": .integer(1)])
        let then = ReadConsistency.readTime(
            TimestampValue(microseconds: Int64(store.harness.store.currentReadTime)))
        try expectEqual(store.commit(as: nil) { try $0.remove("members/alice") }, .ok)
        // The rules say so for that time, and the time is the present one still.
        expectEqual(store.get("rooms/a"), .permissionDenied)
        clock.correct()
        expectEqual(store.get("rooms/a", then), .permissionDenied)
        expectEqual(store.get("rooms/a", as: nil, then), .ok)
        try store.set("members/alice", ["n": .integer(1)])
        expectEqual(store.get("rooms/a", then), .ok)
    }

    @Test
    func `Rules that are replaced decide over the next call`() throws {
        let store = try GuardedStore("match /notes/{id} { allow get; }")
        expectEqual(store.get("notes/a"), .notFound)
        let authenticator = store.authorization.state.authenticator
        store.authorization.replace(authenticator, try TestAuthorization.ruleset("match /notes/{id} { allow list; }"))
        expectEqual(store.get("notes/a"), .permissionDenied)
        store.authorization.replace(authenticator, nil)
        expectEqual(store.get("notes/a"), .notFound)
    }

    @Test
    func `Commits that change what rules rest on are judged in some order`() throws {
        // A counter that rules hold at 100 at most, and 150 that want one more, all at the same time.
        let store = try GuardedStore(
            """
            match /counters/a { allow update: if request.resource.data.n <= 20; }
            """)
        try store.set("counters/a", ["n": .integer(0)])
        var writes = WriteList(database: try DatabaseName(Harness.database))
        let change = FieldTransform(path: FieldPath(fieldName: "n"), operation: .increment(.integer(1)))
        try Harness.name("counters/a").withUTF8Span {
            try writes.update($0, fields: RawSpan(), mask: DocumentMask(paths: []), transforms: [change])
        }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: []))
        let request = writer.copyBytes()
        var succeeded = 0
        for _ in 0..<10 {
            let calls = (0..<6).map { _ in
                TestCall(
                    loop: store.harness.loop, method: .commit, authorization: TestAuthorization.user("alice"))
            }
            for call in calls { store.harness.service.begin(call, request) }
            for call in calls {
                expect(store.harness.loop.run { call.answer.status != nil })
                let status = call.answer.status
                expect([.ok, .aborted, .permissionDenied].contains(status))
                if status == .ok { succeeded += 1 }
            }
        }
        expect(succeeded >= 10)
        let fields = try #require(try store.count("counters/a", "n"))
        expect(fields == Int64(succeeded) && fields <= 20)
    }
}
