// The messages of a stream, one situation after the other.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import Listening
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct ListenSessionTests {
    private let harness: ListenHarness
    private let client: ListenClient

    init() throws {
        harness = try ListenHarness()
        client = ListenClient(harness)
        try client.connect()
    }

    private static func query(_ collection: String = "c", _ change: (inout StructuredQuery) -> Void = { _ in })
        -> Subject
    {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: collection)])
        change(&query)
        return .query(query)
    }

    /// The messages that have come since the last call, in words.
    private func messages() throws -> [String] {
        harness.hub.advance()
        try client.drain()
        return try client.takeMessages().map(text)
    }

    private func text(_ message: ListenResponse) throws -> String { try harness.text(message) }

    // MARK: Targets

    @Test
    func `A query: its documents, CURRENT, a snapshot; then only changes`() throws {
        try harness.set("c/a", ["n": .integer(1)])
        try client.listen(1, to: Self.query { $0.filter = .field(n, .greaterThan, EncodedValue(.integer(0))) })
        try expectEqual(messages(), ["add [1]", "change c/a [1]", "current [1]", "noChange []"])
        try harness.set("c/b", ["n": .integer(2)])
        try expectEqual(messages(), ["change c/b [1]", "noChange []"])
        try harness.set("c/a", ["n": .integer(0)])
        try expectEqual(messages(), ["change c/a [] removed [1]", "noChange []"])
        try harness.set("c/a", ["n": .integer(-1)])
        try harness.set("d/a", ["n": .integer(1)])
        try expectEqual(messages(), [], "a change that concerns no target")
        try harness.delete("c/b")
        try expectEqual(messages(), ["delete c/b [1]", "noChange []"])
    }

    /// The client that wrote it holds its write until the server says something of the document.
    @Test
    func `A document that enters and leaves between two snapshots is sent as one that left`() throws {
        try client.listen(1, to: Self.query { $0.filter = .field(n, .greaterThan, EncodedValue(.integer(0))) })
        try client.listen(2, to: Self.query())
        _ = try messages()
        try harness.set("c/a", ["n": .integer(1)])
        try harness.delete("c/a")
        try expectEqual(messages(), ["delete c/a [1, 2]", "noChange []"])
        try harness.set("c/b", ["n": .integer(1)])
        try harness.set("c/b", ["n": .integer(0)])
        try expectEqual(messages(), ["change c/b [2] removed [1]", "noChange []"])
        // What no target has ever matched.
        try harness.set("d/a", ["n": .integer(1)])
        try harness.delete("d/a")
        try expectEqual(messages(), [])
    }

    private let n = try! FieldPath("n")

    @Test
    func `A deleted database ends its targets with NOT_FOUND, those that wait included; the stream continues`() throws {
        try harness.set("c/a", ["n": .integer(1)])
        try client.listen(1, to: Self.query())
        try client.listen(2, to: .documents(["c/a"]))
        _ = try messages()
        try client.listen(3, to: Self.query("d"))
        try harness.deleteDatabase()
        harness.hub.advance()
        try client.drain()
        let causes = client.takeMessages().compactMap { message -> String? in
            guard case .targetChange(let change) = message, change.kind == .remove else { return nil }
            return "\(change.targets) \(change.cause.map { "\($0.code)" } ?? "")"
        }
        expectEqual(causes.sorted(), ["[1] NOT_FOUND", "[2] NOT_FOUND", "[3] NOT_FOUND"])
        expect(harness.hub.targetBytes == 0 && harness.hub.heldChanges == 0)
        // The database is empty until it is written to again.
        try client.listen(4, to: Self.query())
        try expectEqual(messages(), ["add [4]", "current [4]", "noChange []"])
        try harness.waitUntilDatabaseIsRemoved()
        try harness.set("c/b", ["n": .integer(2)])
        try expectEqual(messages(), ["change c/b [4]", "noChange []"])
    }

    /// Over one document, over several, a query that requires one value, one that requires one of several, and one
    /// that requires none. All have `c/a` with an `n` of 1.
    private func subject(_ number: Int) -> Subject {
        let own = Int64(number)
        return switch number % 5 {
        case 0: .documents(["c/a"])
        case 1: .documents(["c/0", "c/a", "c/b\(number % 3)"])
        case 2:
            Self.query {
                $0.filter = .field(n, .equal, EncodedValue(.integer(1)))
                $0.limit = Int32(1 + number)
            }
        case 3: Self.query { $0.filter = .field(n, .isIn, EncodedValue(.array([.integer(own + 9), .integer(1)]))) }
        default: Self.query { $0.filter = .field(n, .greaterThan, EncodedValue(.integer(-own))) }
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `Targets that leave in any order leave the others where changes find them`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try harness.set("c/a", ["n": .integer(1)])
        var open = try (0..<50).map { number in
            let client = ListenClient(harness)
            try client.connect()
            try client.listen(1, to: subject(number))
            try client.drain()
            _ = client.takeMessages()
            return client
        }
        while !open.isEmpty {
            for _ in 0...random.below(6) where !open.isEmpty {
                open.remove(at: random.below(open.count)).disconnect()
            }
            try harness.set("c/a", ["n": .integer(1), "left": .integer(Int64(open.count))])
            harness.hub.advance()
            for client in open {
                try client.drain()
                try expectEqual(client.takeMessages().map(text), ["change c/a [1]", "noChange []"])
            }
        }
    }

    @Test
    func `A deleted database ends a target once that the client had removed before its turn came`() throws {
        try setLongTexts()
        try client.listen(1, to: Self.query())
        // The first target is being sent, and the others wait.
        try client.drain(atMost: 2)
        try client.listen(2, to: Self.query("d"))
        try client.stopListening(2)
        try client.listen(2, to: Self.query("e"))
        try harness.deleteDatabase()
        harness.hub.advance()
        try client.drain()
        let ends = try client.takeMessages().map(text).filter { $0.contains("[2]") }
        expectEqual(ends.count, 4)
        expectEqual(ends.prefix(3), ["add [2]", "remove [2]", "add [2]"])
        expectEqual(ends.last?.hasPrefix("remove [2] NOT_FOUND"), true)
        expectEqual(harness.hub.targetBytes, 0)
    }

    /// Writes ten documents that take more than a page of messages.
    private func setLongTexts(_ harness: ListenHarness? = nil) throws {
        let text = Value.string(String(repeating: "x", count: 20_000))
        _ = try (harness ?? self.harness).commit((0..<10).map { ("c/\($0)", ["n": .integer(1), "text": text]) })
    }

    @Test
    func `A write without effect sends nothing`() throws {
        try harness.set("c/a", ["n": .integer(1)])
        try client.listen(1, to: Self.query())
        _ = try messages()
        try harness.set("c/a", ["n": .integer(1)])
        try harness.delete("c/none")
        try expectEqual(messages(), [])
    }

    @Test
    func `A commit over several targets is one snapshot; a document in two targets is sent once`() throws {
        try client.listen(1, to: Self.query())
        try client.listen(2, to: .documents(["c/a", "d/a"]))
        _ = try messages()
        _ = try harness.commit([("c/a", ["n": .integer(1)]), ("d/a", [:]), ("c/b", [:])])
        try expectEqual(messages().sorted(), ["change c/a [2, 1]", "change c/b [1]", "change d/a [2]", "noChange []"])
        expectEqual(client.snapshots, 2)
    }

    @Test
    func `Documents: in the order of names, each once, missing ones as deleted`() throws {
        try harness.set("c/b", [:])
        try client.listen(7, to: .documents(["c/z", "c/b", "c/b", "c/a"]))
        try expectEqual(
            messages(), ["add [7]", "delete c/a [7]", "change c/b [7]", "delete c/z [7]", "current [7]", "noChange []"])
        try harness.delete("c/b")
        try harness.set("c/a", [:])
        try expectEqual(messages().sorted(), ["change c/a [7]", "delete c/b [7]", "noChange []"])
    }

    @Test
    func `A limit: the next document takes the place of one that leaves`() throws {
        for id in ["a", "b", "c"] { try harness.set("c/\(id)", [:]) }
        try client.listen(1, to: Self.query { $0.limit = 2 })
        try expectEqual(messages(), ["add [1]", "change c/a [1]", "change c/b [1]", "current [1]", "noChange []"])
        try harness.set("c/d", [:])
        try expectEqual(messages(), [], "after the window")
        try harness.delete("c/a")
        try expectEqual(messages(), ["change c/c [1]", "delete c/a [1]", "noChange []"])
        try harness.set("c/0", [:])
        try expectEqual(messages(), ["change c/0 [1]", "remove c/c [1]", "noChange []"])
    }

    @Test
    func `A projection sends the selected fields, also of what changes`() throws {
        try client.listen(1, to: Self.query { $0.select = Projection(fields: [n]) })
        _ = try messages()
        try harness.set("c/a", ["n": .integer(1), "secret": .string("s")])
        harness.hub.advance()
        try client.drain()
        let message = try #require(client.takeMessages().first)
        guard case .documentChange(let change) = message else {
            Issue.record("\(message)")
            return
        }
        let document = try DocumentMessage(wire: change.document.byteSpan)
        expect(String(decoding: document.fields, as: UTF8.self).contains("n"))
        expect(!String(decoding: document.fields, as: UTF8.self).contains("secret"))
    }

    @Test
    func `once: REMOVE after the first snapshot`() throws {
        try client.send(3, Self.query(), resume: nil, expectedCount: nil, once: true)
        try expectEqual(messages(), ["add [3]", "current [3]", "noChange []", "remove [3]"])
        try harness.set("c/a", [:])
        try expectEqual(messages(), [])
        try client.send(3, Self.query(), resume: nil, expectedCount: nil)
        try expectEqual(messages().first, "add [3]", "the id is free again")
    }

    @Test
    func `Removing a target, and adding one with the same id at once`() throws {
        try client.listen(1, to: Self.query())
        _ = try messages()
        try client.stopListening(1)
        try client.listen(1, to: .documents(["c/x"]))
        try client.receive(.remove(99))
        try expectEqual(
            messages(), ["remove [1]", "add [1]", "delete c/x [1]", "current [1]", "remove [99]", "noChange []"])
        try harness.set("c/a", [:])
        try expectEqual(messages(), [])
    }

    @Test
    func `The server chooses ids if the client sends 0, for all targets of the stream`() throws {
        for _ in 0..<2 { try client.send(0, Self.query(), resume: nil, expectedCount: nil) }
        try expectEqual(messages().filter { $0.hasPrefix("add") }, ["add [1]", "add [2]"])
        try client.send(5, Self.query(), resume: nil, expectedCount: nil)
        try expectEqual(messages().last?.contains("Either all targets of a stream have ids, or none."), true)
    }

    // MARK: Errors

    @Test
    func `A bad target is removed with its error; the others continue`() throws {
        try client.listen(1, to: Self.query())
        _ = try messages()
        let bad: [(Subject, String)] = [
            (.query(StructuredQuery(from: [])), "All-collection queries are not supported by real-time queries."),
            (Self.query { $0.limit = -1 }, "limit is negative"),
            (.documents(["c"]), "is not the name of a document"),
        ]
        for (id, (subject, text)) in bad.enumerated() {
            try client.send(Int32(id + 10), subject, resume: nil, expectedCount: nil)
            let answer = try messages()
            expectEqual(answer.first, "add [\(id + 10)]")
            expectEqual(answer.last?.hasPrefix("remove [\(id + 10)] INVALID_ARGUMENT"), true)
            expectEqual(answer.last?.contains(text), true, "\(answer)")
        }
        try client.receive(.add(ListenTarget(.pipeline, id: 20)))
        try expectEqual(messages().last?.hasPrefix("remove [20] UNIMPLEMENTED"), true)
        try client.receive(.add(ListenTarget(nil, id: 21)))
        try expectEqual(messages().last?.hasPrefix("remove [21] INVALID_ARGUMENT"), true)
        let elsewhere = ListenTarget(.documents(["projects/p/databases/other/documents/c/a"]), id: 22)
        try client.receive(.add(elsewhere))
        try expectEqual(messages().last?.contains("is not in the stream's database"), true)
        try harness.set("c/a", [:])
        try expectEqual(messages(), ["change c/a [1]", "noChange []"])
    }

    @Test
    func `Requests that end the stream`() throws {
        try client.listen(1, to: Self.query())
        #expect(throws: RequestError.self) { try client.receive(nil) }
        #expect(throws: RequestError.self) { try client.send(1, Self.query(), resume: nil, expectedCount: nil) }
        let session = try #require(client.session)
        #expect(throws: RequestError.self) {
            try session.receive(ListenRequest(database: "projects/p/databases/x", .remove(1)))
        }
    }

    @Test
    func `A stream has a bounded number of targets, and a target a bounded number of documents`() throws {
        var limits = ListenLimits()
        limits.targets = 2
        limits.documents = 2
        let client = ListenClient(try ListenHarness(limits: limits))
        try client.connect()
        for id: Int32 in 1...3 { try client.send(id, Self.query(), resume: nil, expectedCount: nil) }
        try client.drain()
        let text = try text(
            try #require(client.takeMessages().last { if case .targetChange = $0 { true } else { false } }))
        expect(text.hasPrefix("noChange") || text.hasPrefix("remove [3] RESOURCE_EXHAUSTED"))
        try client.receive(.remove(1))
        try client.send(4, .documents(["c/1", "c/2", "c/3"]), resume: nil, expectedCount: nil)
        try client.drain()
        let last = try client.takeMessages().map(self.text).first { $0.hasPrefix("remove [4]") }
        expectEqual(last?.contains("INVALID_ARGUMENT"), true)
        client.disconnect()
    }

    @Test
    func `The offsets of all targets are bounded; equal queries that share a comparison count once`() throws {
        var limits = ListenLimits()
        limits.offsets = 10
        let harness = try ListenHarness(limits: limits)
        let clients = (0..<2).map { _ in ListenClient(harness) }
        for client in clients { try client.connect() }
        func add(_ client: ListenClient, _ id: Int32, offset: Int32, limit: Int32?) throws -> Bool {
            let target = Self.query {
                $0.offset = offset
                $0.limit = limit
            }
            try client.send(id, target, resume: nil, expectedCount: nil)
            try client.drain()
            let refusal = try client.takeMessages().map(text).first { $0.hasPrefix("remove [\(id)]") }
            expect(refusal?.contains("RESOURCE_EXHAUSTED") ?? true)
            return refusal == nil
        }
        try expect(add(clients[0], 1, offset: 6, limit: 5))
        try expect(!add(clients[0], 2, offset: 6, limit: 7))
        try expect(add(clients[1], 3, offset: 6, limit: 5))
        try expect(add(clients[1], 4, offset: 0, limit: 5))
        try expect(add(clients[1], 5, offset: 4, limit: nil))
        // Without a limit nothing is shared.
        try expect(!add(clients[1], 6, offset: 4, limit: nil))
        try clients[1].receive(.remove(5))
        try expect(add(clients[1], 7, offset: 4, limit: 5))
        // The last target of a query makes room.
        try clients[0].receive(.remove(1))
        try expect(!add(clients[0], 8, offset: 1, limit: 5))
        try clients[1].receive(.remove(3))
        try expect(add(clients[0], 9, offset: 6, limit: 8))
        clients[1].disconnect()
        try expect(add(clients[0], 10, offset: 4, limit: 8))
        try expect(!add(clients[0], 11, offset: 1, limit: 8))
        clients[0].disconnect()
    }

    @Test
    func `The memory of all targets is bounded; targets that are removed make room`() throws {
        var limits = ListenLimits()
        limits.targetBytes = 10_000
        let harness = try ListenHarness(limits: limits)
        let clients = (0..<2).map { _ in ListenClient(harness) }
        for client in clients { try client.connect() }
        func add(_ client: ListenClient, _ id: Int32) throws -> String? {
            try client.send(id, .documents((0..<20).map { "c/\($0)" }), resume: nil, expectedCount: nil)
            try client.drain()
            return try client.takeMessages().map(text).first { $0.hasPrefix("remove [\(id)]") }
        }
        try expectNil(add(clients[0], 1))
        try expectNil(add(clients[1], 1))
        try expectEqual(add(clients[0], 2)?.contains("RESOURCE_EXHAUSTED"), true)
        clients[1].disconnect()
        try expectNil(add(clients[0], 3))
        try clients[0].receive(.remove(1))
        try expectNil(add(clients[0], 4))
        clients[0].disconnect()
    }

    // MARK: Resuming

    @Test
    func `A token: only what has changed since, then CURRENT`() throws {
        for id in ["a", "b", "c"] { try harness.set("c/\(id)", [:]) }
        try client.listen(1, to: Self.query())
        _ = try messages()
        client.disconnect()
        try harness.set("c/b", ["n": .integer(1)])
        try harness.delete("c/c")
        try client.resume()
        try expectEqual(messages(), ["add [1]", "change c/b [1]", "delete c/c [1]", "current [1]", "noChange []"])
    }

    @Test
    func `read_time resumes as a token does`() throws {
        try harness.set("c/a", [:])
        let time = harness.store.currentReadTime
        harness.clock.advance(milliseconds: 1)
        try harness.set("c/b", [:])
        let resume = ListenTarget.Resume.readTime(TimestampValue(microseconds: Int64(time)))
        try client.send(1, Self.query(), resume: resume, expectedCount: nil)
        try expectEqual(messages(), ["add [1]", "change c/b [1]", "current [1]", "noChange []"])
    }

    @Test(arguments: [true, false])
    func `A token of the future, and one that is none: RESET and everything`(isToken: Bool) throws {
        try harness.set("c/a", [:])
        var writer = ByteBuffer()
        ResumeToken(microseconds: .max / 2).encode(into: &writer)
        let token = isToken ? writer.copyBytes() : [1, 2, 3]
        try client.send(1, Self.query(), resume: .token(token), expectedCount: nil)
        try expectEqual(messages(), ["add [1]", "reset [1]", "change c/a [1]", "current [1]", "noChange []"])
    }

    @Test
    func `A token from before the retention: RESET and everything`() throws {
        let harness = try ListenHarness { $0.engine.retentionMicroseconds = 1_000 }
        let client = ListenClient(harness)
        try client.connect()
        try client.listen(1, to: Self.query())
        try harness.set("c/a", [:])
        harness.hub.advance()
        try client.drain()
        client.disconnect()
        _ = client.takeMessages()
        try waitUntil("the retention has passed") {
            harness.clock.advance(milliseconds: 1_000)
            try harness.set("c/b", ["n": .integer(Int64(harness.clock.nowMicroseconds))])
            try harness.store.checkpoint()
            return harness.store.oldestReadTime > client.readTime
        }
        try client.resume()
        try client.drain()
        try expectEqual(
            client.takeMessages().map(text),
            ["add [1]", "reset [1]", "change c/a [1]", "change c/b [1]", "current [1]", "noChange []"])
        client.disconnect()
    }

    /// The kinds of the messages about targets.
    private static func kinds(_ messages: [ListenResponse]) -> [ListenResponse.TargetChange.Kind] {
        messages.compactMap { if case .targetChange(let change) = $0 { change.kind } else { nil } }
    }

    @Test
    func `A state that leaves the retention while what has changed since is sent: RESET and everything`() throws {
        let harness = try ListenHarness { $0.engine.retentionMicroseconds = 10_000_000 }
        let client = ListenClient(harness)
        try client.connect()
        try harness.set("c/gone", ["n": .integer(1)])
        try client.listen(1, to: Self.query())
        try client.drain()
        client.disconnect()
        _ = client.takeMessages()
        harness.clock.advance(milliseconds: 9_000)
        try setLongTexts(harness)
        try harness.delete("c/gone")
        try client.resume()
        try client.drain(atMost: 2)
        let since = harness.store.currentReadTime
        harness.clock.advance(milliseconds: 2_000)
        try waitUntil("the client's state is not readable any more") {
            try harness.set("d/a", ["n": .integer(Int64(harness.clock.nowMicroseconds))])
            try harness.store.checkpoint()
            return harness.store.oldestReadTime > client.readTime
        }
        expect(harness.store.oldestReadTime <= since)
        try client.drain()
        expectEqual(Self.kinds(client.takeMessages()), [.add, .reset, .current, .noChange])
        expectEqual(client.targets[1]?.documents.count, 10)
        client.disconnect()
    }

    @Test
    func `What was noted for a target that is loaded from the start again is not sent`() throws {
        let harness = try ListenHarness { $0.engine.retentionMicroseconds = 1_000 }
        let client = ListenClient(harness)
        try client.connect()
        try setLongTexts(harness)
        try client.listen(1, to: Self.query { $0.filter = .field(n, .greaterThan, EncodedValue(.integer(0))) })
        try client.listen(2, to: .documents(["c/x"]))
        try client.drain(atMost: 2)
        try harness.set("c/x", ["n": .integer(1)])
        harness.hub.advance()
        let noted = harness.store.currentReadTime
        try waitUntil("the version of the first snapshot is not readable any more") {
            harness.clock.advance(milliseconds: 1_000)
            try harness.set("d/a", ["n": .integer(Int64(harness.clock.nowMicroseconds))])
            try harness.store.checkpoint()
            return harness.store.oldestReadTime > noted
        }
        try harness.set("c/x", ["n": .integer(0)])
        // The client compares every snapshot with the query.
        try client.drain()
        expectEqual(Self.kinds(client.takeMessages()).prefix(3), [.add, .reset, .current])
        expectEqual(client.targets[1]?.documents.count, 10)
        expectEqual(client.targets[2]?.documents.count, 1)
        expectEqual(harness.hub.heldChanges, 0)
        client.disconnect()
    }

    @Test
    func `A client that stops reading within a snapshot until the retention has passed: RESET and everything`() throws {
        let harness = try ListenHarness { $0.engine.retentionMicroseconds = 1_000 }
        let client = ListenClient(harness)
        try client.connect()
        try client.listen(1, to: Self.query())
        try client.drain()
        // More than a page of messages.
        let text = Value.string(String(repeating: "x", count: 20_000))
        _ = try harness.commit((0..<10).map { ("c/\($0)", ["text": text]) })
        harness.hub.advance()
        try client.drain(atMost: 1)
        let version = harness.store.currentReadTime
        try waitUntil("the retention has passed") {
            harness.clock.advance(milliseconds: 1_000)
            try harness.set("c/0", ["n": .integer(Int64(harness.clock.nowMicroseconds))])
            try harness.store.checkpoint()
            return harness.store.oldestReadTime > version
        }
        try harness.delete("c/5")
        harness.hub.advance()
        try client.drain()
        let kinds = client.takeMessages().compactMap { message -> ListenResponse.TargetChange.Kind? in
            if case .targetChange(let change) = message { change.kind } else { nil }
        }
        expectEqual(kinds, [.add, .current, .noChange, .reset, .current, .noChange])
        expectEqual(client.targets[1]?.documents.count, 9)
        client.disconnect()
    }

    @Test
    func `Another expected_count: an existence filter that has the names of all documents that match now`() throws {
        for id in ["a", "b", "c"] { try harness.set("c/\(id)", [:]) }
        try client.listen(1, to: Self.query())
        _ = try messages()
        var writer = ByteBuffer()
        ResumeToken(microseconds: client.readTime).encode(into: &writer)
        client.disconnect()
        harness.clock.advance(milliseconds: 1)
        try harness.set("c/c", ["n": .integer(1)])
        try harness.delete("c/b")
        try harness.set("c/e", [:])
        let other = ListenClient(harness)
        try other.connect()
        try other.send(1, Self.query(), resume: .token(writer.copyBytes()), expectedCount: 3)
        try other.send(2, Self.query(), resume: .token(writer.copyBytes()), expectedCount: 5)
        try other.drain()
        let messages = other.takeMessages()
        try expectEqual(
            messages.map(text),
            [
                "add [1]", "change c/c [1]", "change c/e [1]", "delete c/b [1]", "current [1]", "add [2]",
                "change c/c [2]", "change c/e [2]", "delete c/b [2]", "filter 2 3 with names", "current [2]",
                "noChange []",
            ])
        for case .filter(let filter) in messages {
            // A client drops all documents that are not in it, those that were sent just now too.
            let names = try #require(filter.unchangedNames)
            for path in ["c/a", "c/c", "c/e"] { expect(names.contains(harness.name(path)), "\(path)") }
            for path in ["c/b", "c/d"] { expect(!names.contains(harness.name(path)), "\(path)") }
        }
        other.disconnect()
    }

    // MARK: Liveness

    @Test
    func `A silent stream gets a heartbeat with a later read time; a stream without a current target gets none`() throws
    {
        let other = ListenClient(harness)
        try other.connect()
        try client.listen(1, to: Self.query())
        _ = try messages()
        let before = client.readTime
        harness.clock.advance(milliseconds: 50_000)
        for _ in 0..<9 { harness.hub.tick() }
        try expectEqual(messages(), ["noChange []"])
        expect(client.readTime > before)
        try other.drain()
        expect(other.takeMessages().isEmpty)
        other.disconnect()
    }

    @Test
    func `A session is woken by a change that concerns it, once, and not by others`() throws {
        try client.listen(1, to: .documents(["c/a"]))
        _ = try messages()
        let before = client.wakes
        try harness.set("c/b", [:])
        harness.hub.advance()
        expectEqual(client.wakes, before)
        _ = try harness.commit([("c/a", [:])])
        _ = try harness.commit([("c/a", ["n": .integer(1)])])
        let notified = harness.wakeUps.count
        expect(notified > 0)
        harness.hub.advance()
        expectEqual(client.wakes, before + 1)
        try expectEqual(messages(), ["change c/a [1]", "noChange []"])
    }

    @Test
    func `Equal queries are compared once, and each of their listeners gets the changes, also after others have left`()
        throws
    {
        let clients = (0..<4).map { _ in ListenClient(harness) }
        for client in clients {
            try client.connect()
            try client.listen(1, to: Self.query { $0.filter = .field(n, .equal, EncodedValue(.integer(1))) })
        }
        for client in clients { try client.drain() }
        clients[0].disconnect()
        clients[2].disconnect()
        try harness.set("c/a", ["n": .double(1)])
        harness.hub.advance()
        for client in [clients[1], clients[3]] {
            try client.drain()
            try expectEqual(client.takeMessages().map(text).suffix(2), ["change c/a [1]", "noChange []"])
            client.disconnect()
        }
    }
}

extension BloomFilter {
    /// Whether a name may be in the set, by the published algorithm.
    fileprivate func contains(_ name: String) -> Bool {
        let digest = MD5.digest(Array(name.utf8))
        func half(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        let (first, second) = (half(digest[0..<8]), half(digest[8..<16]))
        let bits = UInt64(bitmap.count * 8) - UInt64(padding)
        return (0..<UInt64(hashCount)).allSatisfy { index in
            let bit = (first &+ index &* second) % bits
            return bitmap[Int(bit / 8)] & (1 << UInt8(bit % 8)) != 0
        }
    }
}
