// Calls at a follower that the server which takes the writes answers.

import Basics
import Calls
import Dispatch
import DocumentModel
import FirestoreMessages
import FirestoreService
import NativeProtocol
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct ForwardingTests {
    private static let documents = "/v1/projects/p/databases/d/documents"

    @Test
    func `A commit at a follower is there when its reply comes, and the reply comes not before`() throws {
        let pair = try ServerPair()
        for number in 1...20 {
            try expectEqual(pair.follower.commit("c/x", Int64(number)).code, .ok)
            try expectEqual(pair.follower.number("c/x"), Int64(number))
            try expectEqual(pair.source.number("c/x"), Int64(number))
        }
        pair.cut(true)
        let answered = DispatchSemaphore(value: 0)
        let fields = Harness.fields(["a": .integer(21)])
        pair.follower.connection.unary(
            FirestoreMessages.Method.commit.rpc, try LiveDatabaseServer.commitRequest("c/x", fields)
        ) { outcome, _ in
            expectEqual(outcome.code, .ok)
            answered.signal()
        }
        while try pair.source.number("c/x") != 21 {}
        try expectEqual(pair.follower.number("c/x"), 20)
        expectEqual(answered.wait(timeout: .now()), .timedOut)
        pair.cut(false)
        try answered.wait(until: "the commit has its reply")
        try expectEqual(pair.follower.number("c/x"), 21)
    }

    @Test
    func `REST writes at a follower, with ids that the server chooses`() throws {
        let pair = try ServerPair()
        let http = HTTPTestClient(port: Int(pair.follower.gateway.port))
        let created = try #require(http.request("POST", Self.documents + "/c", body: "{\"fields\":{}}"))
        expectEqual(created.status, 200, "\(created.body)")
        let path = Self.documents + "/c/x"
        let integer = "{\"fields\":{\"a\":{\"integerValue\":\"7\"}}}"
        expectEqual(http.request("PATCH", path, body: integer)?.status, 200)
        try expectEqual(pair.follower.number("c/x"), 7)
        expectEqual(http.request("POST", Self.documents + "/c?documentId=x", body: "{}")?.status, 409)
        let list = try #require(http.request("GET", Self.documents + "/c"))
        expectEqual(list.body.components(separatedBy: "\"createTime\"").count, 3, "\(list.body)")
        expectEqual(http.request("DELETE", path)?.status, 200)
        expectEqual(http.request("GET", path)?.status, 404)
        try expectNil(pair.source.number("c/x"))
    }

    @Test
    func `A transaction at a follower reads and commits at the source, and loses there`() throws {
        let pair = try ServerPair()
        try expectEqual(pair.source.commit("c/x", 1).code, .ok)
        let first = try pair.follower.begin(.readWrite)
        let second = try pair.follower.begin(.readWrite)
        try expectEqual(pair.follower.number("c/x", .transaction(first)), 1)
        try expectEqual(pair.source.number("c/x", .transaction(second)), 1)
        try expectEqual(pair.follower.commit("c/x", 2, in: second).code, .ok)
        try expectEqual(pair.follower.commit("c/x", 3, in: first).code, .aborted)
        try expectEqual(pair.follower.number("c/x"), 2)
        let rollback = RollbackRequest(database: Harness.database, transaction: first)
        expectEqual(pair.follower.call(.rollback, rollback.encodedBytes()).outcome.code, .ok)
        // A query that begins one.
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let (outcome, messages) = pair.follower.stream(
            .runQuery,
            RunQueryRequest(parent: Harness.root, query: query, consistency: .newTransaction(.readWrite))
                .encodedBytes())
        expectEqual(outcome.code, .ok)
        let message = try #require(messages.first)
        let third = [UInt8](copying: try RunQueryResponseView(message.byteSpan).transaction)
        try expectEqual(pair.source.commit("c/x", 4).code, .ok)
        try expectEqual(pair.follower.commit("c/x", 5, in: third).code, .aborted)
    }

    @Test
    func `A transaction that only reads is served at any server, and ends at any`() throws {
        let pair = try ServerPair()
        try expectEqual(pair.follower.commit("c/x", 1).code, .ok)
        for (begins, reads) in [(pair.source, pair.follower), (pair.follower, pair.source)] {
            let before = try begins.number("c/x")
            let transaction = try begins.begin(.readOnly(readTime: nil))
            try expectEqual(pair.follower.commit("c/x", (before ?? 0) + 1).code, .ok)
            try expectEqual(reads.number("c/x", .transaction(transaction)), before)
            try expectEqual(begins.number("c/x", .transaction(transaction)), before)
            try expectEqual(reads.commit("c/x", 9, in: transaction).code, .invalidArgument)
            // The refused commit has ended it, where it is known.
            let another = try begins.begin(.readOnly(readTime: nil))
            let end = CommitWrites(WriteList(database: try DatabaseName(Harness.database)))
            var writer = ByteBuffer()
            writer.append(end.request(transaction: another))
            expectEqual(reads.call(.commit, writer.copyBytes()).outcome.code, .ok)
        }
    }

    @Test
    func `A strict read sees what was acknowledged at the source; another one need not`() throws {
        let pair = try ServerPair(readsAreStrict: true)
        for number in 1...20 {
            try expectEqual(pair.source.commit("c/x", Int64(number)).code, .ok)
            try expectEqual(pair.follower.number("c/x"), Int64(number))
        }
        pair.cut(true)
        try expectEqual(pair.source.commit("c/x", 21).code, .ok)
        let read = DispatchSemaphore(value: 0)
        let found = Mutex<[UInt8]>([])
        pair.follower.connection.unary(
            FirestoreMessages.Method.getDocument.rpc, GetDocumentRequest(name: Harness.name("c/x")).encodedBytes()
        ) { outcome, reply in
            expectEqual(outcome.code, .ok, "\(outcome.message)")
            let copy = [UInt8](copying: reply)
            found.withLock { $0 = copy }
            read.signal()
        }
        // A read at a time of the past needs nobody.
        let past = TimestampValue(microseconds: Int64(pair.follower.gateway.store.publishedVersion.microseconds))
        try expectEqual(pair.follower.number("c/x", .readTime(past)), 20)
        expectEqual(read.wait(timeout: .now()), .timedOut)
        pair.cut(false)
        try read.wait(until: "the strict read has its reply")
        let reply = found.withLock { $0 }
        let fields = try DocumentMessage(wire: reply.byteSpan).fields
        expectEqual(fields, Harness.field("a", .integer(21)))
    }

    @Test
    func `A strict read waits while its server may have a commit that the source has not acknowledged`() throws {
        let pair = try ServerPair(readsAreStrict: true)
        try expectEqual(pair.source.commit("c/x", 1).code, .ok)
        try expectEqual(pair.follower.number("c/x"), 1)
        let replication = pair.follower.gateway.store.replication
        // As if the next commit had been read from the log before the source knows that it is durable.
        replication.noteReadBeforeLeader(through: pair.source.gateway.store.publishedVersion.microseconds + 1)
        let read = DispatchSemaphore(value: 0)
        pair.follower.connection.unary(
            FirestoreMessages.Method.getDocument.rpc, GetDocumentRequest(name: Harness.name("c/x")).encodedBytes()
        ) { outcome, _ in
            expectEqual(outcome.code, .ok, "\(outcome.message)")
            read.signal()
        }
        for _ in 0..<20 { try expectEqual(pair.source.number("c/x"), 1) }
        expect(replication.mayBeBeforeLeader)
        expectEqual(read.wait(timeout: .now()), .timedOut)
        try expectEqual(pair.source.commit("c/x", 2).code, .ok)
        try read.wait(until: "the strict read has its reply")
        expect(!replication.mayBeBeforeLeader)
    }

    @Test
    func `A write stream at a follower continues after its connection is lost`() throws {
        let pair = try ServerPair()
        let listener = MessageListener()
        let stream = pair.follower.connection.stream(
            FirestoreMessages.Method.write.rpc,
            Self.bytes(WriteRequestMessage(database: Harness.database)), isComplete: false, handler: listener)
        try listener.came.wait(until: "the stream is open")
        var answers = try Self.answers(listener)
        expect(!answers[0].streamID.isEmpty)
        for number in 1...12 {
            let writes = try Self.increment("c/n")
            let last = try #require(answers.last)
            stream.send(Self.bytes(WriteRequestMessage(writes: writes, streamToken: last.streamToken)))
            // The connection to the source ends now and then, before or after the commit.
            if number % 3 == 0 { pair.leader.move(to: pair.leader.location) }
            try listener.came.wait(until: "write \(number) has its reply")
            answers = try Self.answers(listener)
            expectEqual(answers.count, number + 1)
            try expectEqual(pair.follower.number("c/n"), Int64(number))
        }
        stream.finishSending()
        try listener.ended.wait(until: "the stream has ended")
        expectEqual(listener.state.withLock { $0.outcome.code }, .ok)
    }

    @Test
    func `A write stream whose answer is not visible at a follower ends when the store there is closed`() throws {
        let pair = try ServerPair()
        let listener = MessageListener()
        let stream = pair.follower.connection.stream(
            FirestoreMessages.Method.write.rpc,
            Self.bytes(WriteRequestMessage(database: Harness.database)), isComplete: false, handler: listener)
        try listener.came.wait(until: "the stream is open")
        pair.cut(true)
        let token = try #require(try Self.answers(listener).last).streamToken
        stream.send(Self.bytes(WriteRequestMessage(writes: try Self.increment("c/n"), streamToken: token)))
        try waitUntil("its answer waits for the commit") { pair.follower.gateway.store.versions.waitCount == 1 }
        try pair.follower.gateway.stores[0].close()
        try listener.ended.wait(until: "the stream has ended")
        expectEqual(listener.state.withLock { $0.outcome.code }, .unavailable)
        try expectEqual(pair.source.number("c/n"), 1)
        try expectEqual(Self.answers(listener).count, 1)
    }

    private static func increment(_ path: String) throws -> WriteList {
        var writes = WriteList(database: try DatabaseName(Harness.database))
        let transform = FieldTransform(path: try FieldPath("a"), operation: .increment(.integer(1)))
        let nothing: [UInt8] = []
        try Harness.name(path).withUTF8Span { (name) throws(RequestError) in
            try writes.update(name, fields: nothing.byteSpan, mask: DocumentMask(paths: []), transforms: [transform])
        }
        return writes
    }

    private static func bytes(_ message: WriteRequestMessage) -> [UInt8] {
        var writer = ByteBuffer()
        message.encode(into: &writer)
        return writer.copyBytes()
    }

    private static func answers(_ listener: MessageListener) throws -> [WriteResponse] {
        try listener.state.withLock { $0.messages }.map { try WriteResponse(wire: $0.byteSpan) }
    }

    @Test
    func `Increments at a follower whose connection is lost again and again are applied once`() throws {
        let pair = try ServerPair()
        let count = 200
        let answered = DispatchSemaphore(value: 0)
        for number in 0..<count {
            let writes = try Self.increment("c/n")
            var writer = ByteBuffer()
            writer.append(CommitWrites(writes).request())
            pair.follower.connection.unary(FirestoreMessages.Method.commit.rpc, writer.copyBytes()) { outcome, _ in
                expectEqual(outcome.code, .ok, "\(outcome.message)")
                answered.signal()
            }
            if number % 10 == 9 { pair.leader.move(to: pair.leader.location) }
        }
        for _ in 0..<count { try answered.wait(until: "a commit has its reply") }
        try expectEqual(pair.follower.number("c/n"), Int64(count))
        try expectEqual(pair.source.number("c/n"), Int64(count))
    }

    @Test
    func `A call without a server that takes the writes waits for one, until its deadline`() throws {
        let pair = try ServerPair()
        let location = pair.leader.location
        pair.leader.move(to: .unknown)
        let refused = DispatchSemaphore(value: 0)
        let fields = Harness.fields(["a": .integer(1)])
        let request = try LiveDatabaseServer.commitRequest("c/x", fields)
        pair.follower.connection.unary(
            FirestoreMessages.Method.commit.rpc, request, RequestOptions(deadlineMilliseconds: 300)
        ) { outcome, _ in
            expect(outcome.code == .unavailable || outcome.code == .deadlineExceeded)
            refused.signal()
        }
        try refused.wait(until: "the call has ended")
        let answered = DispatchSemaphore(value: 0)
        pair.follower.connection.unary(FirestoreMessages.Method.commit.rpc, request) { outcome, _ in
            expectEqual(outcome.code, .ok, "\(outcome.message)")
            answered.signal()
        }
        pair.leader.move(to: location)
        try answered.wait(until: "the commit has its reply")
        try expectEqual(pair.follower.number("c/x"), 1)
    }

    @Test
    func `A server that does not take the writes refuses a forwarded call, and forwards it no further`() throws {
        let pair = try ServerPair()
        let head = ForwardedHead(method: .commit, caller: Array("{}".utf8))
        let fields = Harness.fields(["a": .integer(1)])
        let message = try LiveDatabaseServer.commitRequest("c/x", fields)
        let (outcome, _) = pair.follower.stream(.adminForward, head.request(message.byteSpan))
        expectEqual(outcome.code, .unavailable)
        try expectNil(pair.source.number("c/x"))
        let unserved = ForwardedHead(method: .adminStepDown, caller: Array("{}".utf8))
        let refused = pair.source.stream(.adminForward, unserved.request(message.byteSpan)).outcome
        expectEqual(refused.code, .unimplemented)
    }

    @Test
    func `A call that its client cancels at a follower is cancelled at the source`() throws {
        let pair = try ServerPair(source: { $0.store.concurrencyMode = .pessimistic })
        try expectEqual(pair.source.commit("c/x", 1).code, .ok)
        let transaction = try pair.source.begin(.readWrite)
        try expectEqual(pair.source.number("c/x", .transaction(transaction)), 1)
        // It waits for the lock of the transaction.
        let started = pair.source.gateway.totals["calls_started"] ?? 0
        let listener = MessageListener()
        let fields = Harness.fields(["a": .integer(2)])
        let call = pair.follower.connection.stream(
            FirestoreMessages.Method.commit.rpc, try LiveDatabaseServer.commitRequest("c/x", fields), isComplete: true,
            handler: listener)
        try waitUntil("the source has the call") { (pair.source.gateway.totals["calls_started"] ?? 0) > started }
        expectEqual(pair.source.gateway.totals["calls_abandoned"], 0)
        call.cancel()
        try listener.ended.wait(until: "the call has ended")
        expectEqual(listener.state.withLock { $0.outcome.code }, .cancelled)
        try waitUntil("the source has no call") { pair.source.gateway.totals["calls_abandoned"] == 1 }
        let rollback = RollbackRequest(database: Harness.database, transaction: transaction)
        expectEqual(pair.source.call(.rollback, rollback.encodedBytes()).outcome.code, .ok)
        try expectEqual(pair.follower.commit("c/x", 3).code, .ok)
        try expectEqual(pair.follower.number("c/x"), 3)
    }

    @Test
    func `A page writes through a session at a follower, also when the connection to the source is lost`() throws {
        let pair = try ServerPair()
        let page = WebPage(pair.follower)
        try expectEqual(page.open().status, 200)
        _ = try page.listen()
        _ = try page.frame(with: "streamId")
        for number in 0..<12 {
            _ = try page.set("c/w\(number)")
            if number % 3 == 0 { pair.leader.move(to: pair.leader.location) }
            try expect(page.frame(with: "commitTime").contains("writeResults"))
            // It is at both servers when the page hears of it.
            for server in [pair.follower, pair.source] {
                let request = GetDocumentRequest(name: Harness.name("c/w\(number)"))
                expectEqual(server.call(.getDocument, request.encodedBytes()).outcome.code, .ok)
            }
        }
        // The session is this server's alone.
        let other = WebPage(pair.source)
        expectEqual(other.request("POST", "&SID=\(page.id)&RID=9", body: "count=0")?.body, "Unknown SID")
        expectEqual(page.request("POST", "&SID=\(page.id)&RID=9&TYPE=terminate", body: "")?.status, 200)
        for server in [pair.follower, pair.source] {
            try waitUntil("the call has ended") { server.gateway.totals["streams_open"] == 0 }
        }
    }
}
