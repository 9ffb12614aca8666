// The local store without a server: the queue, overlays, targets, garbage collection, restarts.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import QueryEngine
import TestSupport
import Testing

@testable import ClientCache

@Suite(.timeLimit(.minutes(20)))
struct LocalStoreTests: LocalStoreFixture {
    let directory = TemporaryDirectory("local-store")

    // MARK: Tests

    @Test
    func `A write is visible at once; an acknowledgement keeps it, a rejection undoes it`() throws {
        let store = try Self.open()
        _ = try store.apply([Self.found("a", 1, at: 10)])
        let (first, changes) = try store.enqueue(
            Self.request([("a", .set(2)), ("b", .set(3))]), identity: Self.identity(1))
        expectEqual(Set(changes.map(\.name)), [Self.name("a"), Self.name("b")])
        try expectEqual(store.state(of: Self.name("a")).document?.hasPendingWrites, true)
        let (second, _) = try store.enqueue(Self.request([("a", .add(5))]), identity: Self.identity(2))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 7)
        let results = [WriteResult(updateMicroseconds: 20), WriteResult(updateMicroseconds: 20)]
        _ = try store.acknowledge(first, results: results, commitMicroseconds: 20)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 7)
        try expectEqual(store.state(of: Self.name("b")).document?.hasPendingWrites, false)
        _ = try store.reject(second)
        let state = try store.state(of: Self.name("a"))
        expectEqual(Self.number(state), 2)
        expectEqual(state.document?.updateMicroseconds, 20)
        expect(store.isQueueEmpty)
    }

    @Test
    func `An increment counts once when the server's document has it before the acknowledgement`() throws {
        let store = try Self.open()
        _ = try store.apply([Self.found("a", 1, at: 10)])
        let (number, _) = try store.enqueue(Self.request([("a", .add(5))]), identity: Self.identity(1))
        _ = try store.apply([Self.found("a", 6, at: 20)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 6)
        let result = WriteResult(updateMicroseconds: 20, transformResults: [EncodedValue(.integer(6))])
        _ = try store.acknowledge(number, results: [result], commitMicroseconds: 20)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 6)
    }

    @Test(
        arguments: [
            ([.stamp, .add(5)], 6), ([.add(2), .add(3)], 6), ([.add(2), .stamp, .add(3)], 6), ([.set(2), .add(3)], 5),
            ([.add(2), .set(1), .add(3)], 4), ([.delete, .add(3)], 3),
        ] as [([LocalEdit], Int64)])
    func `All increments of a document in one batch count once when the server's document has them`(
        edits: [LocalEdit], result: Int64
    ) throws {
        let store = try Self.open()
        _ = try store.apply([Self.found("a", 1, at: 10)])
        _ = try store.enqueue(Self.request(edits.map { ("a", $0) }), identity: Self.identity(1))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), result)
        _ = try store.apply([Self.found("a", result, at: 20)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), result)
    }

    @Test
    func `An increment of a document that did not exist counts once when the server's document has it`() throws {
        let store = try Self.open()
        _ = try store.apply([RemoteUpdate(name: Self.name("a"), content: .missing(readMicroseconds: 10))])
        _ = try store.enqueue(Self.request([("a", .add(5))]), identity: Self.identity(1))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 5)
        _ = try store.apply([Self.found("a", 5, at: 20)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 5)
    }

    @Test(arguments: [false, true])
    func `An increment of an unknown document counts once when the server's document has it`(mustExist: Bool) throws {
        let store = try Self.open()
        let request = Self.request([("a", .add(5))], mustExist: mustExist)
        let (number, _) = try store.enqueue(request, identity: Self.identity(1))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), mustExist ? nil : 5)
        // As in the Apple SDK: based on nothing, whatever the server's document has.
        _ = try store.apply([Self.found("a", 6, at: 20)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 5)
        let result = WriteResult(updateMicroseconds: 20, transformResults: [EncodedValue(.integer(6))])
        _ = try store.acknowledge(number, results: [result], commitMicroseconds: 20)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 6)
    }

    @Test
    func `An area of fields overlaps with what is in one of them, or around it`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        func path() throws -> FieldPath {
            try FieldPath(segments: (0..<1 + random.below(4)).map { _ in random.pick(["a", "b", "c"]) })
        }
        for _ in 0..<500 {
            let paths = try (0..<random.below(4)).map { _ in try path() }
            var area = FieldArea()
            for path in paths { area.insert(path) }
            for _ in 0..<20 {
                let other = try path()
                let overlaps = paths.contains { $0.isPrefix(of: other) || other.isPrefix(of: $0) }
                expectEqual(area.overlaps(other), overlaps, "\(paths), \(other)")
            }
        }
    }

    @Test
    func `Older states of a document do not replace newer ones; the server's replaces a provisional one`() throws {
        let store = try Self.open()
        _ = try store.apply([Self.found("a", 1, at: 10)])
        let (number, _) = try store.enqueue(Self.request([("a", .set(2))]), identity: Self.identity(1))
        _ = try store.acknowledge(number, results: [WriteResult(updateMicroseconds: 30)], commitMicroseconds: 30)
        try expect(store.apply([Self.found("a", 9, at: 20)]).isEmpty)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 2)
        try expectEqual(store.state(of: Self.name("a")).document?.isProvisional, true)
        _ = try store.apply([Self.found("a", 3, at: 30)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 3)
        _ = try store.apply([RemoteUpdate(name: Self.name("a"), content: .missing(readMicroseconds: 40))])
        try expectEqual(store.state(of: Self.name("a")), .missing(microseconds: 40, isProvisional: false))
        try expect(store.apply([Self.found("a", 3, at: 30)]).isEmpty)
    }

    @Test
    func `What a server that was restored has lost is replaced by what it has`() throws {
        let store = try Self.open()
        func older(readAt time: UInt64) -> RemoteUpdate {
            var update = Self.found("a", 1, at: 20)
            update.readMicroseconds = time
            return update
        }
        _ = try store.apply([Self.found("a", 2, at: 30)])
        // The answer to an earlier read that has come later.
        try expect(store.apply([older(readAt: 29)]).isEmpty)
        try expect(store.isNewer(Self.name("a"), than: 20))
        try expectEqual(store.apply([older(readAt: 40)]).count, 1)
        try expect(!store.isNewer(Self.name("a"), than: 20))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 1)
        // A known absence too.
        _ = try store.apply([RemoteUpdate(name: Self.name("b"), content: .missing(readMicroseconds: 30))])
        var found = Self.found("b", 1, at: 10)
        found.readMicroseconds = 40
        try expectEqual(store.apply([found]).count, 1)
    }

    @Test
    func `An update of an unknown document, or one that breaks a rule, changes nothing; sets and deletions do`() throws
    {
        let store = try Self.open()
        _ = try store.enqueue(Self.request([("a", .add(1))], mustExist: true), identity: Self.identity(1))
        try expectEqual(store.state(of: Self.name("a")), .unknown)
        _ = try store.enqueue([0xff, 0xff], identity: Self.identity(2))
        _ = try store.enqueue(Self.request([("b", .set(1)), ("c", .delete)]), identity: Self.identity(3))
        expectEqual(Self.number(try store.state(of: Self.name("b"))), 1)
        guard case .missing = try store.state(of: Self.name("c")) else {
            Issue.record("the deleted document is not missing")
            return
        }
        try expectEqual(store.state(of: "projects/other/databases/(default)/documents/c/a"), .unknown)
    }

    @Test
    func `Pending server timestamps read as an estimate, null or the previous value`() throws {
        let store = try Self.open()
        _ = try store.enqueue(Self.request([("a", .set(1))]), identity: Self.identity(1))
        _ = try store.enqueue(Self.request([("a", .stamp)]), identity: Self.identity(2))
        let path = try FieldPath("at")
        let document = try #require(try store.state(of: Self.name("a")).document)
        expectEqual(document.estimates, [PendingTimestamp(path: path, previous: nil)])
        let (estimate, null) = (Self.value(path, document.fields), document.fields(readingTimestampsAs: .null))
        guard case .timestamp = estimate else {
            Issue.record("the estimate is \(String(describing: estimate))")
            return
        }
        expectEqual(Self.value(path, null), .null)
        _ = try store.enqueue(Self.request([("a", .set(2))]), identity: Self.identity(3))
        try expectEqual(store.state(of: Self.name("a")).document?.estimates.isEmpty, true)
    }

    @Test
    func `Many pending writes of a document, which are acknowledged, rejected, and changed by others`() throws {
        let store = try Self.open()
        _ = try store.apply([Self.found("a", 100, at: 1)])
        let count = 300
        var numbers: [UInt64] = []
        for number in 1...count {
            // Sets, increments and server timestamps.
            let edit: LocalEdit = number % 50 == 0 ? .set(100 + Int64(number)) : number % 70 == 0 ? .stamp : .add(1)
            numbers.append(
                try store.enqueue(Self.request([("a", edit)]), identity: Self.identity(UInt64(number))).number)
        }
        let last = Self.number(try store.state(of: Self.name("a")))
        expectEqual(last, 100 + Int64(count))
        try expectEqual(store.staleOverlays(), [])
        var value: Int64 = 100
        for number in 1...200 {
            var result = WriteResult(updateMicroseconds: UInt64(number + 10))
            if number % 50 == 0 {
                value = 100 + Int64(number)
            } else if number % 70 != 0 {
                value += 1
                result.transformResults = [EncodedValue(.integer(value))]
            } else {
                result.transformResults = [EncodedValue(.timestamp(TimestampValue(microseconds: Int64(number + 10))))]
            }
            _ = try store.acknowledge(numbers[number - 1], results: [result], commitMicroseconds: UInt64(number + 10))
            // The server's listener sends the same state.
            if number % 3 == 0 { _ = try store.apply([Self.found("a", value, at: UInt64(number + 10))]) }
            try expectEqual(store.staleOverlays(), [], "after \(number)")
        }
        _ = try store.apply([Self.found("a", 5, at: 1000)])
        try expectEqual(store.staleOverlays(), [])
        for number in stride(from: count, to: 200, by: -1) {
            _ = try store.reject(numbers[number - 1])
            try expectEqual(store.staleOverlays(), [], "without \(number)")
        }
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 5)
        try expectEqual(store.state(of: Self.name("a")).document?.hasPendingWrites, false)
    }

    @Test
    func `A group of calls is visible call by call, and on the disk as a whole`() throws {
        let path = directory.path(of: "group")
        var store = try Self.open(path)
        store.beginGroup()
        let first = try store.enqueue(Self.request([("a", .set(1))]), identity: Self.identity(1)).number
        _ = try store.enqueue(Self.request([("a", .add(2))]), identity: Self.identity(2))
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 3)
        _ = try store.acknowledge(
            first, results: [WriteResult(updateMicroseconds: 10)], commitMicroseconds: 10)
        try store.endGroup()
        store.close()
        store = try Self.open(path)
        expectEqual(store.queue.map(\.identity), [Self.identity(2)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 3)
        try expectEqual(store.staleOverlays(), [])
    }

    @Test
    func `A batch, its rejection and a bundle may be larger than a commit of the engine`() throws {
        let store = try Self.open()
        // A log record has 128 MiB at most.
        let text = Value.string(String(repeating: "x", count: 1_000_000))
        var bundle = LocalBundle(id: "b", createMicroseconds: 1)
        for id in 0..<140 {
            let update = Self.found("d\(id)", ["n": .integer(1), "text": text], at: 10)
            bundle.documents[UTF8Text(update.name)] = update.content
        }
        try expectEqual(store.load(bundle).count, 140)
        let request = Self.request((0..<140).map { ("d\($0)", .add(1)) })
        let (number, changes) = try store.enqueue(request, identity: Self.identity(1))
        expect(changes.count == 140 && changes.allSatisfy { Self.number($0.state) == 2 })
        try expectEqual(store.reject(number).count, 140)
        try expectEqual(Self.number(store.state(of: Self.name("d139"))), 1)
    }

    @Test
    func `A bundle's documents do not replace newer ones; the bundle and its queries are there after a restart`() throws
    {
        let path = directory.path(of: "bundle")
        var store = try Self.open(path)
        _ = try store.apply([Self.found("old", 1, at: 5), Self.found("new", 1, at: 50)])
        var bundle = LocalBundle(id: "b", createMicroseconds: 20)
        for id in ["old", "new", "other"] {
            bundle.documents[UTF8Text(Self.name(id))] = Self.found(id, 2, at: 20).content
        }
        bundle.documents[UTF8Text(Self.name("gone"))] = .missing(readMicroseconds: 20)
        bundle.queries = [LocalNamedQuery(name: "q", readMicroseconds: 20, contents: [1, 2, 3])]
        let changes = try store.load(bundle)
        expectEqual(Set(changes.map(\.name)), Set(["old", "other", "gone"].map(Self.name)))
        store.close()
        store = try Self.open(path, bytesMax: 1)
        try expectEqual(store.bundleCreateMicroseconds("b"), 20)
        try expectNil(store.bundleCreateMicroseconds("c"))
        try expectEqual(store.namedQuery("q")?.contents, [1, 2, 3])
        try expectNil(store.namedQuery("r"))
        try expectEqual(
            ["old", "new", "other", "gone"].map { Self.number(try store.state(of: Self.name($0))) },
            [
                2, 1, 2, nil,
            ])
        guard case .missing = try store.state(of: Self.name("gone")) else {
            Issue.record("a document that the bundle names as missing is known to be missing")
            return
        }
        // The bundle is collected like a query that nobody listens to, and its documents after it.
        _ = try store.collectGarbage()
        try expectEqual(store.state(of: Self.name("other")), .unknown)
    }

    @Test
    func `A newer version of a bundle keeps its own documents in the cache, and no more those of the older one`() throws
    {
        let store = try Self.open(isEager: true)
        func load(_ ids: [String], missing: [String] = [], at time: UInt64) throws {
            var bundle = LocalBundle(id: "b", createMicroseconds: time)
            for id in ids { bundle.documents[UTF8Text(Self.name(id))] = Self.found(id, 1, at: time).content }
            for id in missing { bundle.documents[UTF8Text(Self.name(id))] = .missing(readMicroseconds: time) }
            _ = try store.load(bundle)
            try store.collectEagerly { _ in .none }
        }
        func cached() throws -> [String] {
            try Self.names(store, try Self.plan()).map { String($0.suffix(1)) }.sorted()
        }
        try load(["a", "b", "c"], at: 10)
        try expectEqual(cached(), ["a", "b", "c"])
        try load(["a", "d"], missing: ["c"], at: 20)
        try expectEqual(cached(), ["a", "d"])
        try load(["d"], at: 30)
        try expectEqual(cached(), ["d"])
    }

    @Test
    func `Documents whose ids are the same text in other bytes are different documents`() throws {
        let store = try Self.open()
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let target = try store.use(target: [1])
        var update = TargetUpdate(id: target.id, token: [7], snapshotMicroseconds: 10)
        update.added = [composed, decomposed].map(Self.name)
        _ = try store.apply([Self.found(composed, 1, at: 10), Self.found(decomposed, 2, at: 10)], targets: [update])
        try expectEqual(store.documents(of: target.id).times.count, 2)
        let (first, _) = try store.enqueue(
            Self.request([(composed, .add(10)), (decomposed, .add(20))]), identity: Self.identity(1))
        expectEqual(store.pendingNames(from: first).count, 2)
        try expectEqual(Self.results(store, try Self.plan()), [11, 22])
        _ = try store.reject(first)
        _ = try store.enqueue(Self.request([(composed, .set(5))]), identity: Self.identity(2))
        expect(store.isPending(Self.name(composed)) && !store.isPending(Self.name(decomposed)))
        var bundle = LocalBundle(id: "b", createMicroseconds: 20)
        for id in [composed, decomposed] {
            bundle.documents[UTF8Text(Self.name(id))] = Self.found(id, 9, at: 20).content
        }
        try expectEqual(store.load(bundle).count, 2)
    }

    @Test
    func `The directory of one database is not opened for another`() throws {
        let path = directory.path(of: "owned")
        let store = try Self.open(path)
        _ = try store.apply([Self.found("a", 1, at: 10)])
        store.close()
        let other = LocalStore.Configuration(database: try DatabaseName(project: "other"), directory: path)
        do throws(RequestError) {
            let opened = try LocalStore(other) { _ in }
            Issue.record("opened, with \(try opened.state(of: "\(other.database.documentsRoot)/c/a"))")
        } catch {
            expectEqual(error.code, .failedPrecondition)
            expect(error.message.contains("\(Self.database)"))
        }
        expectEqual(Self.number(try Self.open(path).state(of: Self.name("a"))), 1)
    }

    @Test
    func `Removals at once all succeed, and a store that opens meanwhile has its directory to itself`() throws {
        let path = directory.path(of: "removed")
        @Sendable func use() throws {
            let store = try Self.open(path)
            _ = try store.enqueue(Self.request([("a", .set(1))]), identity: Self.identity(1))
            expectEqual(Self.number(try store.state(of: Self.name("a"))), 1)
            store.close()
        }
        for _ in 0..<50 {
            try use()
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                do {
                    if thread < 3 { try LocalStore.remove(directory: path) } else { try use() }
                } catch let error as RequestError where error.code == .failedPrecondition {
                    // The store is open, or its directory is being removed.
                } catch {
                    Issue.record(error)
                }
            }
        }
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            #expect(throws: Never.self) { try LocalStore.remove(directory: path) }
        }
        expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test
    func `A document may be newer than an answer without a time that it does not exist`() throws {
        let store = try Self.open()
        try expect(!store.isNewer(Self.name("a"), than: nil))
        _ = try store.apply([Self.found("a", 1, at: 10)])
        try expect(store.isNewer(Self.name("a"), than: nil))
        _ = try store.enqueue(Self.request([("a", .delete)]), identity: Self.identity(1))
        try expect(store.isNewer(Self.name("a"), than: nil))
        _ = try store.apply([RemoteUpdate(name: Self.name("a"), content: .missing(readMicroseconds: 20))])
        try expect(!store.isNewer(Self.name("a"), than: nil))
    }

    @Test
    func `Queries see cached documents with the pending writes applied`() throws {
        let store = try Self.open()
        _ = try store.apply((1...5).map { Self.found("d\($0)", $0, at: 10) })
        _ = try store.enqueue(
            Self.request([("d1", .set(9)), ("d2", .delete), ("new", .set(0))]), identity: Self.identity(1))
        try expectEqual(Self.results(store, try Self.plan()), [0, 3, 4, 5, 9])
        try expectEqual(Self.results(store, try Self.plan(2)), [0, 3])
    }

    @Test
    func `A directory has the queue, the documents and the targets after a restart`() throws {
        let path = directory.path(of: "store")
        var store = try Self.open(path)
        let target = try store.use(target: [1, 2, 3])
        let longID = String(repeating: "x", count: 400)
        var update = TargetUpdate(id: target.id, token: [7], snapshotMicroseconds: 10)
        update.added = [Self.name("a"), Self.name(longID)]
        _ = try store.apply([Self.found("a", 1, at: 10), Self.found(longID, 2, at: 10)], targets: [update])
        _ = try store.enqueue(Self.request([("a", .add(5))]), identity: Self.identity(1))
        #expect(throws: RequestError.self) { _ = try Self.open(path) }
        store.close()
        store = try Self.open(path)
        expectEqual(store.queue.map(\.identity), [Self.identity(1)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 6)
        let again = try store.use(target: [1, 2, 3])
        expectEqual(again.token, [7])
        expectEqual(again.id, target.id)
        try expectEqual(
            store.documents(of: again.id).times, [UTF8Text(Self.name("a")): 10, UTF8Text(Self.name(longID)): 10])
        let result = WriteResult(updateMicroseconds: 20, transformResults: [EncodedValue(.integer(16))])
        _ = try store.acknowledge(store.queue[0].number, results: [result], commitMicroseconds: 20)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 16)
        store.close()
        store = try Self.open(path)
        expect(store.isQueueEmpty)
        try expectEqual(store.state(of: Self.name("a")).document?.isProvisional, true)
        store.close()
        try LocalStore.remove(directory: path)
        store = try Self.open(path)
        try expectEqual(store.state(of: Self.name("a")), .unknown)
        store.close()
    }

    @Test
    func `Garbage collection removes what is used by nothing, and keeps pending writes and active targets`() throws {
        let store = try Self.open(bytesMax: 2000)
        let (active, idle) = (try store.use(target: [1]), try store.use(target: [2]))
        var updates: [RemoteUpdate] = []
        var targets = [
            TargetUpdate(id: active.id, token: [1], snapshotMicroseconds: 10),
            TargetUpdate(id: idle.id, token: [1], snapshotMicroseconds: 10),
        ]
        for number in 0..<100 {
            updates.append(Self.found("d\(number)", Int64(number), at: 10))
            if number < 10 { targets[0].added.append(Self.name("d\(number)")) }
            if number >= 90 { targets[1].added.append(Self.name("d\(number)")) }
        }
        _ = try store.apply(updates, targets: targets)
        _ = try store.enqueue(Self.request([("d50", .add(1))]), identity: Self.identity(1))
        try store.release(target: [2])
        expect(store.isTooLarge)
        let result = try store.collectGarbage()
        expect(result.documents > 0)
        expect(!store.isTooLarge)
        for number in [0, 5, 9, 50] {
            try expect(store.state(of: Self.name("d\(number)")).document != nil)
        }
        let remaining = try Self.results(store, try Self.plan()).count
        expectEqual(remaining, 100 - result.documents)
    }

    @Test
    func `With eager garbage collection a document goes with the last target that covers it`() throws {
        let store = try Self.open(isEager: true)
        let target = try store.use(target: [1])
        var update = TargetUpdate(id: target.id, token: [1], snapshotMicroseconds: 10)
        update.added = [Self.name("a")]
        _ = try store.apply([Self.found("a", 1, at: 10), Self.found("b", 2, at: 10)], targets: [update])
        let (number, _) = try store.enqueue(Self.request([("c", .set(3))]), identity: Self.identity(1))
        func isCovered(_ name: String) -> Bool { name == Self.name("a") }
        try store.collectEagerly { isCovered($0) ? .covered : .none }
        try expectEqual(Self.results(store, try Self.plan()), [1, 3])
        _ = try store.acknowledge(number, results: [WriteResult(updateMicroseconds: 20)], commitMicroseconds: 20)
        // The acknowledged write is shown by a listener until the server sends the document.
        try store.collectEagerly { isCovered($0) ? .covered : $0 == Self.name("c") ? .shown : .none }
        try expectEqual(Self.results(store, try Self.plan()), [1, 3])
        try store.collectEagerly { isCovered($0) ? .covered : .none }
        try expectEqual(Self.results(store, try Self.plan()), [1])
        try store.release(target: [1])
        try store.collectEagerly { _ in .none }
        try expect(Self.results(store, try Self.plan()).isEmpty)
        expectEqual(store.byteCount, 0)
    }

    @Test
    func `With eager garbage collection a change costs the same, however many targets are in use`() throws {
        let store = try Self.open(isEager: true)
        for number in 0..<100 { _ = try store.use(target: [1, UInt8(number)]) }
        _ = try store.apply([Self.found("a", 1, at: 10)])
        try store.collectEagerly { _ in .none }
        try expect(Self.results(store, try Self.plan()).isEmpty)
        expectEqual(store.eagerLookUpCount, 0)
    }

    // MARK: Random

    private struct PendingBatch {
        let number: UInt64
        let edits: [(String, LocalEdit)]
        let mustExist: Bool
    }

    /// A server of numbers.
    private struct Model {
        var documents: [String: (number: Int64, time: UInt64)] = [:]
        var time: UInt64 = 100

        /// Applies a batch as the server would; nil if it is rejected.
        mutating func commit(_ edits: [(String, LocalEdit)], mustExist: Bool) -> [WriteResult]? {
            time += 1
            var next = documents
            var results: [WriteResult] = []
            for (id, edit) in edits {
                switch edit {
                case .set(let number): next[id] = (number, time)
                case .delete: next[id] = nil
                case .add(let number):
                    if mustExist, next[id] == nil { return nil }
                    next[id] = ((next[id]?.number ?? 0) + number, time)
                case .stamp: break
                }
                var result = WriteResult(updateMicroseconds: next[id]?.time)
                if case .add = edit { result.transformResults = [EncodedValue(.integer(next[id]?.number ?? 0))] }
                results.append(result)
            }
            // A set to the same number has no effect.
            documents = next
            return results
        }

        /// What the server replies to a batch.
        mutating func reply(to batch: PendingBatch) -> BatchReply {
            guard let results = commit(batch.edits, mustExist: batch.mustExist) else {
                return BatchReply(batch.number, .rejected)
            }
            return BatchReply(batch.number, .acknowledged(results: results, commitMicroseconds: time))
        }
    }

    @Test(arguments: [false, true])
    func `Random writes, acknowledgements, remote changes and restarts end in the server's state`(isPersistent: Bool)
        throws
    {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let path = isPersistent ? directory.path(of: "random") : nil
        var store = try Self.open(path)
        var model = Model()
        var pending: [PendingBatch] = []
        let ids = ["a", "b", "c", "d"]
        for step in 0..<400 {
            switch generator.below(8) {
            case 0, 1, 2:
                let edits = (0..<1 + generator.below(2)).map { index in
                    let id = ids[(generator.below(2) + index * 2) % 4]
                    let edit: LocalEdit =
                        switch generator.below(4) {
                        case 0: .delete
                        case 1: .add(Int64(generator.below(9)))
                        default: .set(Int64(generator.below(1000)))
                        }
                    return (id, edit)
                }
                let mustExist = generator.oneIn(2)
                let request = Self.request(edits, mustExist: mustExist)
                let (number, _) = try store.enqueue(request, identity: Self.identity(UInt64(step)))
                pending.append(PendingBatch(number: number, edits: edits, mustExist: mustExist))
            case 3 where !pending.isEmpty, 4 where !pending.isEmpty:
                // One reply, or several at a time.
                let count = min(pending.count, generator.oneIn(2) ? 1 : 1 + generator.below(4))
                _ = try store.settle((0..<count).map { _ in model.reply(to: pending.removeFirst()) })
            case 5: _ = model.commit([(generator.pick(ids), .set(Int64(generator.below(1000))))], mustExist: false)
            case 6:
                // The server sends its state of some documents.
                let updates = ids.filter { _ in generator.oneIn(2) }.map { Self.update($0, model) }
                _ = try store.apply(updates)
            case 7 where isPersistent && generator.oneIn(4):
                store.close()
                store = try Self.open(path)
                expectEqual(store.queue.map(\.number), pending.map(\.number), "seed \(seed)")
            default: break
            }
            try expectEqual(store.staleOverlays(), [], "seed \(seed), step \(step)")
        }
        while !pending.isEmpty {
            _ = try store.settle([model.reply(to: pending.removeFirst())])
            try expectEqual(store.staleOverlays(), [], "seed \(seed)")
        }
        model.time += 1
        _ = try store.apply(ids.map { Self.update($0, model) })
        for id in ids {
            let state = try store.state(of: Self.name(id))
            expectEqual(Self.number(state), model.documents[id]?.number, "seed \(seed), \(id)")
            expectEqual(state.document?.hasPendingWrites ?? false, false, "seed \(seed), \(id)")
            expectEqual(state.document?.isProvisional ?? false, false, "seed \(seed), \(id)")
        }
        let expected = model.documents.values.map(\.number).sorted()
        try expectEqual(Self.results(store, try Self.plan()), expected, "seed \(seed)")
    }

    private static func update(_ id: String, _ model: Model) -> RemoteUpdate {
        guard let document = model.documents[id] else {
            return RemoteUpdate(name: name(id), content: .missing(readMicroseconds: model.time))
        }
        return found(id, document.number, at: document.time)
    }
}
