// Targets that a judge denies, at once or when a document that the verdict rests on changes.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import TestSupport
import Testing

@testable import Listening

@Suite(.timeLimit(.minutes(20)))
struct ListenJudgementTests {
    private let harness: ListenHarness
    private let judge: TestJudge
    private let client: ListenClient

    private static let denied = "PERMISSION_DENIED: denied by the test"

    init() throws { try self.init(limits: ListenLimits()) }

    private init(
        limits: ListenLimits, isEndedByTime: Bool = false,
        configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        var limits = limits
        limits.judgementNanoseconds = isEndedByTime ? 0 : .max
        harness = try ListenHarness(limits: limits, configure: configure)
        judge = TestJudge(harness)
        client = ListenClient(harness)
        client.judge = judge
        try client.connect()
    }

    private static func query(_ collection: String, _ change: (inout StructuredQuery) -> Void = { _ in }) -> Subject {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: collection)])
        change(&query)
        return .query(query)
    }

    /// Sets the document that the verdicts on a collection rest on.
    private func rule(_ collection: String, _ isOK: Bool = true) throws {
        try harness.set("rules/\(collection)", ["ok": .boolean(isOK)])
    }

    /// The messages that have come since the last call, in words.
    private func messages() throws -> [String] {
        harness.hub.advance()
        try client.drain()
        return try client.takeMessages().map(harness.text)
    }

    /// Ends the session, after which nothing is left in the hub.
    private func finish() {
        client.disconnect()
        expectEqual(harness.hub.sessionCount, 0)
        expectEqual(harness.hub.targetBytes, 0)
        expectEqual(harness.hub.heldChanges, 0)
        expectEqual(harness.hub.judgedDocuments, 0)
    }

    // MARK: New targets

    @Test
    func `A target that is denied gets ADD and REMOVE, and the stream continues`() throws {
        try rule("d")
        try client.listen(1, to: Self.query("c"))
        try client.listen(2, to: Self.query("d"))
        try client.listen(3, to: .documents(["d/a", "c/a"]))
        try expectEqual(
            messages(),
            [
                "add [1]", "remove [1] \(Self.denied)", "add [2]", "current [2]", "add [3]",
                "remove [3] \(Self.denied)", "noChange []",
            ])
        try harness.set("d/a", [:])
        try harness.set("c/a", [:])
        try expectEqual(messages(), ["change d/a [2]", "noChange []"])
        finish()
    }

    @Test
    func `A target that was denied is added again`() throws {
        try harness.set("c/a", [:])
        try client.listen(1, to: Self.query("c"))
        try expectEqual(messages(), ["add [1]", "remove [1] \(Self.denied)"])
        try rule("c")
        try client.listen(1, to: Self.query("c"))
        try expectEqual(messages(), ["add [1]", "change c/a [1]", "current [1]", "noChange []"])
        finish()
    }

    @Test
    func `A target is judged at the version of its first snapshot`() throws {
        try rule("c")
        try client.listen(1, to: Self.query("c"))
        harness.hub.advance()
        try client.drain()
        let times = client.takeMessages().compactMap { message -> UInt64? in
            guard case .targetChange(let change) = message, change.kind == .current else { return nil }
            return change.readTime.map { UInt64($0.microseconds) }
        }
        expectEqual(judge.versions, times)
        finish()
    }

    @Test
    func `A token does not open what is denied by now`() throws {
        try rule("c")
        try rule("d")
        for path in ["c/a", "d/a"] { try harness.set(path, [:]) }
        try client.listen(1, to: Self.query("c"))
        try client.listen(2, to: Self.query("d"))
        _ = try messages()
        client.disconnect()
        try rule("c", false)
        for path in ["c/a", "d/a"] { try harness.set(path, ["n": .integer(1)]) }
        try harness.delete("c/a")
        try client.resume()
        try expectEqual(
            messages(),
            ["add [1]", "remove [1] \(Self.denied)", "add [2]", "change d/a [2]", "current [2]", "noChange []"])
        finish()
    }

    // MARK: Changes

    @Test(arguments: [true, false])
    func `A document that the verdict rests on changes: REMOVE, and nothing of the target after it`(isCreated: Bool)
        throws
    {
        try rule("c")
        try rule("d")
        try client.listen(1, to: Self.query("c"))
        try client.listen(2, to: Self.query("d"))
        _ = try messages()
        let change = isCreated ? "locks/c" : "rules/c"
        try harness.set("c/before", [:])
        _ = try harness.commit([("c/b", [:]), (change, [:]), ("d/b", [:])])
        try expectEqual(messages(), ["remove [1] \(Self.denied)", "change d/b [2]", "noChange []"])
        expectEqual(harness.hub.judgedDocuments, 2, "those of the other target")
        try harness.set("c/after", [:])
        try expectEqual(messages(), [])
        finish()
    }

    @Test
    func `A change that leaves the verdict as it was: the target continues`() throws {
        try rule("c")
        try client.listen(1, to: Self.query("c"))
        _ = try messages()
        let judgements = judge.versions.count
        _ = try harness.commit([("c/a", [:]), ("rules/c", ["ok": .boolean(true), "n": .integer(1)])])
        try expectEqual(messages(), ["change c/a [1]", "noChange []"])
        expectEqual(judge.versions.count, judgements + 1)
        expectEqual(judge.versions.last, harness.hub.position)
        // Denied and allowed again between two looks of the hub: nobody has seen the state between.
        try rule("c", false)
        try rule("c")
        try harness.set("c/b", [:])
        try expectEqual(messages(), ["change c/b [1]", "noChange []"])
        finish()
    }

    @Test
    func `The content of a document of a documents target decides`() throws {
        try rule("c")
        try harness.set("own/a", ["ok": .boolean(true)])
        try client.listen(1, to: .documents(["own/a", "c/a"]))
        try expectEqual(messages(), ["add [1]", "delete c/a [1]", "change own/a [1]", "current [1]", "noChange []"])
        try harness.set("own/a", ["ok": .boolean(true), "n": .integer(1)])
        try expectEqual(messages(), ["change own/a [1]", "noChange []"])
        try harness.set("own/a", ["secret": .integer(1)])
        try harness.set("c/a", [:])
        try expectEqual(messages(), ["remove [1] \(Self.denied)"])
        finish()
    }

    @Test
    func `Only the documents whose verdicts rest on a change are judged again`() throws {
        for id in 0..<10 { try harness.set("own/\(id)", ["ok": .boolean(true)]) }
        try client.listen(1, to: .documents((0..<10).map { "own/\($0)" }))
        _ = try messages()
        let judgements = judge.versions.count
        try harness.set("own/3", ["ok": .boolean(true), "n": .integer(1)])
        try expectEqual(messages(), ["change own/3 [1]", "noChange []"])
        expectEqual(judge.versions.count, judgements + 1)
        finish()
    }

    @Test(arguments: [true, false])
    func `After lost changes every target is judged again`(isDenied: Bool) throws {
        let test = try Self(limits: ListenLimits()) { $0.changeFeedBytesMax = 600 }
        try test.rule("c")
        try test.client.listen(1, to: Self.query("c"))
        _ = try test.messages()
        let judgements = test.judge.versions.count
        if isDenied { try test.rule("c", false) }
        for number in 0..<50 { try test.harness.set("c/a", ["n": .integer(Int64(number))]) }
        let expected = isDenied ? ["remove [1] \(Self.denied)"] : ["change c/a [1]", "noChange []"]
        let messages = try test.messages()
        expectEqual(messages.filter { !isDenied || $0 != "noChange []" }, expected)
        expectEqual(test.judge.versions.count, judgements + 1)
        test.finish()
    }

    @Test
    func `judgeAgain has all targets judged`() throws {
        try rule("c")
        try client.listen(1, to: Self.query("c"))
        try client.listen(2, to: .documents(["c/a", "c/b"]))
        _ = try messages()
        let session = try #require(client.session)
        let (judgements, wakes) = (judge.versions.count, client.wakes)
        session.judgeAgain()
        expect(client.wakes > wakes)
        try expectEqual(messages(), [])
        expectEqual(judge.versions.count, judgements + 3)
        judge.deniesAll = true
        session.judgeAgain()
        try expectEqual(messages().sorted(), ["remove [1] \(Self.denied)", "remove [2] \(Self.denied)"])
        // Without targets there is nothing to judge.
        session.judgeAgain()
        try expectEqual(messages(), [])
        finish()
    }

    @Test
    func `A target that the client removes leaves nothing to judge`() throws {
        try rule("c")
        try client.listen(1, to: .documents(["c/a", "c/b"]))
        _ = try messages()
        expectEqual(harness.hub.judgedDocuments, 2)
        let judgements = judge.versions.count
        try rule("c", false)
        harness.hub.advance()
        try client.stopListening(1)
        expectEqual(harness.hub.judgedDocuments, 0)
        expectEqual(harness.hub.targetBytes, 0)
        try expectEqual(messages(), ["remove [1]"])
        try rule("c")
        try expectEqual(messages(), [])
        expectEqual(judge.versions.count, judgements)
        finish()
    }

    // MARK: Slow clients

    @Test
    func `Messages that wait when a target is denied are not sent, except to other targets`() throws {
        try rule("c")
        try rule("d")
        let paths = (0..<4).map { "d/x/c/\($0)" }
        for path in paths { try harness.set(path, ["n": .integer(1)]) }
        let n = try FieldPath("n")
        try client.listen(
            1,
            to: Self.query("c") {
                $0.from[0].allDescendants = true
                $0.filter = .field(n, .greaterThan, EncodedValue(.integer(0)))
            })
        try client.listen(2, to: .documents(paths))
        _ = try messages()
        _ = try harness.commit([
            ("c/a", ["n": .integer(1)]), (paths[0], ["n": .integer(2)]), (paths[1], ["n": .integer(0)]),
            (paths[2], nil), ("c/b", ["n": .integer(1)]),
        ])
        harness.hub.advance()
        try client.drain(atMost: 1)
        expectEqual(client.session?.hasMessageReady, true)
        try rule("c", false)
        harness.hub.advance()
        expectEqual(client.session?.hasMessageReady, false)
        // The first message was sent before the change.
        let messages = try messages().dropFirst()
        expectEqual(messages.count, 5)
        expectEqual(messages.filter { $0.contains("1]") || $0.contains("[1") }, ["remove [1] \(Self.denied)"])
        let others = ["change \(paths[0]) [2]", "change \(paths[1]) [2]", "delete \(paths[2]) [2]", "noChange []"]
        for other in others { expect(messages.contains(other), "\(other) is missing in \(messages)") }
        finish()
    }

    @Test
    func `A message without a target keeps what it says to others`() throws {
        let name = Array(harness.name("c/a").utf8)
        let none: [UInt8] = []
        let parts = ListenResponseWriter.Name(prefix: none.byteSpan, path: name.byteSpan)
        var written: [[UInt8]] = []
        func write(_ body: (inout ByteBuffer) -> Void) {
            var buffer = ByteBuffer()
            body(&buffer)
            written.append(buffer.copyBytes())
        }
        func writeAll(of targets: [Int32], removed: [Int32]) {
            written = []
            write {
                ListenResponseWriter.appendChange(
                    parts, fields: none.byteSpan, createMicroseconds: 5, updateMicroseconds: 6, targets: targets,
                    removed: removed, to: &$0)
            }
            write { ListenResponseWriter.appendDelete(parts, removed: removed, at: 7, to: &$0) }
            write { ListenResponseWriter.appendRemove(parts, removed: removed, at: 8, to: &$0) }
        }
        func without(_ target: Int32) -> [[UInt8]?] {
            written.map {
                var buffer = ByteBuffer()
                let isKept = ListenResponseWriter.append($0.byteSpan, without: target, to: &buffer)
                expect(isKept || buffer.count == 0)
                return isKept ? buffer.copyBytes() : nil
            }
        }
        writeAll(of: [2], removed: [3])
        let wanted = written
        writeAll(of: [1, 2], removed: [1, 3])
        expectEqual(without(1), wanted)
        expectEqual(without(4), written)
        writeAll(of: [1], removed: [1])
        expectEqual(without(1), [nil, nil, nil])
        written = []
        for kind in [ListenResponse.TargetChange.Kind.add, .remove, .current, .reset] {
            write { ListenResponseWriter.append(kind, targets: [1], to: &$0) }
        }
        write { ListenResponseWriter.append(.noChange, targets: [], at: 9, to: &$0) }
        write { ListenResponseWriter.appendFilter(target: 1, count: 3, unchanged: nil, to: &$0) }
        expectEqual(without(1), [written[0], nil, nil, nil, written[4], nil])
        expectEqual(without(2), written)
    }

    // MARK: Slices

    /// A documents target of which only some documents are judged yet.
    private func listenToOwn(_ count: Int, except denied: Int? = nil) throws {
        judge.alwaysWaits = true
        let paths = (0..<count).map { "own/\($0 + 1_000)" }
        _ = try harness.commit(paths.indices.map { (paths[$0], ["ok": .boolean($0 != denied)]) })
        try client.listen(1, to: .documents(paths))
        try expectYield()
    }

    private func expectYield(after expected: Int = 64) throws {
        var output = ByteBuffer()
        let (judgements, steps) = (judge.versions.count, client.session?.steps ?? 0)
        guard case .yielding? = client.session?.next(into: &output) else {
            Issue.record("the session has not yielded")
            return
        }
        expectEqual(judge.versions.count, judgements + expected)
        expectEqual(client.session?.steps, steps + 1)
    }

    @Test
    func `Many documents are judged in steps`() throws {
        try listenToOwn(200)
        try expectYield()
        try expectYield()
        try expectEqual(messages().count, 203)
        expectEqual(judge.versions.count, 200)
        client.session?.judgeAgain()
        for _ in 0..<3 { try expectYield() }
        try expectEqual(messages(), [])
        expectEqual(judge.versions.count, 400)
        finish()
    }

    @Test
    func `Others have their turn when the time of a step is over`() throws {
        let test = try Self(limits: ListenLimits(), isEndedByTime: true)
        test.judge.alwaysWaits = true
        try test.rule("c")
        for id in 1...5 { try test.client.listen(Int32(id), to: Self.query("c")) }
        try expectEqual(test.messages().count { $0.hasPrefix("current") }, 5)
        try test.rule("c", false)
        test.harness.hub.advance()
        for _ in 0..<4 { try test.expectYield(after: 1) }
        try expectEqual(test.messages().count { $0.hasPrefix("remove") }, 5)
        test.finish()
    }

    // The last documents are judged in the first step.
    @Test(arguments: [(0, false), (0, true), (99, true)])
    func `A document is denied at the first snapshot, or by a change between two steps`(index: Int, isOK: Bool) throws {
        try listenToOwn(100, except: isOK ? nil : index)
        try harness.set("own/\(1_000 + index)", ["ok": .boolean(!isOK)])
        try expectEqual(messages(), ["add [1]", "remove [1] \(Self.denied)"])
        finish()
    }

    @Test
    func `A document that changes between two steps and stays allowed`() throws {
        try listenToOwn(100)
        try harness.set("own/1099", ["ok": .boolean(true), "n": .integer(1)])
        let messages = try messages()
        expectEqual(messages.count, 104)
        expectEqual(messages.suffix(2), ["change own/1099 [1]", "noChange []"])
        finish()
    }

    @Test
    func `A snapshot begins at a version at which all of it was judged`() throws {
        try listenToOwn(100)
        // What follows CURRENT is a snapshot at the newest version.
        try client.drain(atMost: 102)
        _ = try harness.commit(
            (0..<100).map { ("own/\($0 + 1_000)", ["ok": .boolean($0 > 0), "secret": .boolean(true)]) })
        try expectYield()
        try harness.set("own/1000", ["ok": .boolean(true)])
        // The version between, in which one document was not allowed, is not sent.
        _ = client.takeMessages()
        let messages = try messages()
        expectEqual(messages.count, 101)
        expectEqual(messages.filter { $0 == "change own/1000 [1]" }.count, 1)
        finish()
    }

    @Test
    func `Many sessions that rest on one document: each is judged when it is asked for its next message`() throws {
        try rule("c")
        let clients = (0..<100).map { _ in ListenClient(harness) }
        for client in clients {
            client.judge = judge
            try client.connect()
            try client.listen(1, to: Self.query("c"))
            try client.drain()
        }
        expectEqual(harness.hub.judgedDocuments, 2)
        let judgements = judge.versions.count
        let wakes = clients.map(\.wakes)
        try rule("c", false)
        harness.hub.advance()
        expectEqual(judge.versions.count, judgements)
        for (index, client) in clients.enumerated() {
            expect(client.wakes > wakes[index])
            _ = client.takeMessages()
            try client.drain()
            expectEqual(judge.versions.count, judgements + index + 1)
            try expectEqual(client.takeMessages().map(harness.text), ["remove [1] \(Self.denied)"])
        }
        for client in clients { client.disconnect() }
        finish()
    }

    // MARK: Limits

    @Test
    func `A verdict that rests on more documents than fit in memory removes the target`() throws {
        var limits = ListenLimits()
        limits.targetBytes = 20_000
        let test = try Self(limits: limits)
        try test.rule("c")
        try test.client.listen(1, to: Self.query("c"))
        _ = try test.messages()
        let bytes = test.harness.hub.targetBytes
        test.judge.furtherBasis = (0..<100).map { "further/\($0)" }
        try test.client.listen(2, to: Self.query("c"))
        let text = "RESOURCE_EXHAUSTED: The server has no memory for more listeners. Try again later."
        try expectEqual(test.messages(), ["add [2]", "remove [2] \(text)"])
        expectEqual(test.harness.hub.targetBytes, bytes)
        test.judge.furtherBasis = ["further/0"]
        test.client.session?.judgeAgain()
        try expectEqual(test.messages(), [])
        expect(test.harness.hub.targetBytes > bytes)
        expectEqual(test.harness.hub.judgedDocuments, 3)
        test.finish()
    }

    @Test
    func `The version of the first snapshot is older than the retention before all is judged: a later version`() throws
    {
        let test = try Self(limits: ListenLimits()) { $0.engine.retentionMicroseconds = 1_000 }
        try test.listenToOwn(100)
        let version = try #require(test.judge.versions.first)
        try waitUntil("the retention has passed") {
            test.harness.clock.advance(milliseconds: 1_000)
            try test.harness.set("x/a", ["n": .integer(Int64(test.harness.clock.nowMicroseconds))])
            try test.harness.store.checkpoint()
            return test.harness.store.oldestReadTime > version
        }
        let messages = try test.messages()
        expectEqual(messages.prefix(2), ["add [1]", "reset [1]"])
        expectEqual(messages.count, 104)
        expectEqual(messages.last, "noChange []")
        test.finish()
    }
}
