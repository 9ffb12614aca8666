// Bundles through the API: what is loaded, what is not, and how damage is reported.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct BundleTests {
    private let directory = TemporaryDirectory("bundles")

    private func firestore(cache: String? = nil) async throws -> Firestore {
        let firestore = TestFirestore.make(host: "127.0.0.1:1", project: "p", cache: cache)
        try await firestore.disableNetwork()
        return firestore
    }

    private static let root = "projects/p/databases/(default)/documents"

    /// Builds bundles as the public format defines them.
    struct Builder {
        var id = "b"
        var created = "2026-01-01T00:00:00Z"
        var elements: [String] = []
        var documentCount = 0
        /// Nil counts the elements.
        var claimedCount: Int?

        mutating func add(
            _ path: String, _ n: Int, updated: String = "2026-01-01T00:00:00Z", exists: Bool = true,
            queries: [String] = []
        ) {
            let name = "\(BundleTests.root)/\(path)"
            documentCount += 1
            let time = #"{"seconds":"1767225600","nanos":5000}"#
            elements.append(
                #"{"documentMetadata":{"name":"\#(name)","readTime":\#(time),"exists":\#(exists),"#
                    + #""queries":\#(queries)}}"#)
            guard exists else { return }
            elements.append(
                #"{"document":{"name":"\#(name)","createTime":"\#(updated)","updateTime":"\#(updated)","#
                    + #""fields":{"n":{"integerValue":"\#(n)"},"t":{"timestampValue":{"seconds":1,"nanos":2000}},"#
                    + #""m":{"mapValue":{"fields":{"é":{"stringValue":"\u00fc"}}}}}}}"#)
        }

        mutating func addQuery(
            _ name: String, _ query: String, limit: String = "FIRST", parent: String = BundleTests.root
        ) {
            let bundled =
                #"{"parent":"\#(parent)","structuredQuery":\#(query),"limitType":"\#(limit)"}"#
            elements.append(
                #"{"namedQuery":{"name":"\#(name)","readTime":"2026-01-01T00:00:00Z","bundledQuery":\#(bundled)}}"#)
        }

        private static func prefixed(_ element: String) -> String { "\(element.utf8.count)\(element)" }

        var data: Data {
            let body = elements.map(Self.prefixed).joined()
            let metadata =
                #"{"metadata":{"id":"\#(id)","createTime":"\#(created)","version":1,"#
                + #""totalDocuments":\#(claimedCount ?? documentCount),"totalBytes":"\#(body.utf8.count)"}}"#
            return Data((Self.prefixed(metadata) + body).utf8)
        }
    }

    private func code(_ body: () async throws -> Void) async -> FirestoreErrorCode.Code? {
        do {
            try await body()
            return nil
        } catch {
            return FirestoreErrorCode.Code(rawValue: (error as NSError).code)
        }
    }

    @Test(arguments: [false, true])
    func `Documents and named queries of a bundle are in the cache`(isPersistent: Bool) async throws {
        let cache = isPersistent ? directory.path(of: "cache") : nil
        var firestore = try await firestore(cache: cache)
        var builder = Builder()
        for number in 1...5 { builder.add("c/d\(number)", number) }
        builder.add("c/gone", 0, exists: false)
        builder.addQuery(
            "large",
            #"{"from":[{"collectionId":"c"}],"where":{"fieldFilter":{"field":{"fieldPath":"n"},"op":"GREATER_THAN","#
                + #""value":{"integerValue":2}}},"orderBy":[{"field":{"fieldPath":"n"},"direction":"DESCENDING"}]}"#)
        builder.addQuery(
            "last", #"{"from":[{"collectionId":"c"}],"orderBy":[{"field":{"fieldPath":"n"}}],"limit":{"value":2}}"#,
            limit: "LAST")
        let progress = try await firestore.loadBundle(builder.data)
        expectEqual(progress.state, .success)
        expect((progress.documentsLoaded, progress.totalDocuments) == (6, 6))
        expectEqual(progress.bytesLoaded, progress.totalBytes)
        if isPersistent {
            try await firestore.terminate()
            firestore = try await self.firestore(cache: cache)
        }
        let document = try await firestore.document("c/d3").getDocument(source: .cache)
        expect(document.get("n") as? Int == 3)
        expect(document.get("t") as? Timestamp == Timestamp(seconds: 1, nanoseconds: 2000))
        expect(document.get("m.é") as? String == "ü")
        try await expect(!firestore.document("c/gone").getDocument(source: .cache).exists)
        let large = try #require(await firestore.getQuery(named: "large"))
        expectEqual(large, firestore.collection("c").whereField("n", isGreaterThan: 2).order(by: "n", descending: true))
        let found = try await large.getDocuments(source: .cache)
        expectEqual(found.documents.map(\.documentID), ["d5", "d4", "d3"])
        let last = try #require(await firestore.getQuery(named: "last"))
        expectEqual(last, firestore.collection("c").order(by: "n").limit(toLast: 2))
        try await expectEqual(last.getDocuments(source: .cache).documents.map(\.documentID), ["d4", "d5"])
        await expectNil(firestore.getQuery(named: "none"))
        expectEqual(firestore.persistentCacheIndexManager != nil, isPersistent)
        try await firestore.terminate()
    }

    @Test
    func `Observers follow the loading, and a completion comes at the end; a listener sees the documents`() async throws
    {
        let firestore = try await firestore()
        let counts = Mutex<[Int]>([])
        firestore.collection("c").addSnapshotListener(
            options: SnapshotListenOptions().withSource(.cache)
        ) { snapshot, _ in counts.withLock { $0.append(snapshot?.count ?? -1) } }
        try await eventually("the first snapshot") { counts.withLock { $0 } == [0] }
        var builder = Builder()
        for number in 1...3 { builder.add("c/d\(number)", number) }
        let events = Mutex<[String]>([])
        let stream = HeldStream(data: builder.data)
        let task = firestore.loadBundle(stream) { progress, error in
            events.withLock { $0.append("end \(progress?.documentsLoaded ?? -1) \(error == nil)") }
        }
        let removed = task.addObserver { _ in events.withLock { $0.append("removed") } }
        task.removeObserverWith(handle: removed)
        task.addObserver { progress in
            if progress.state == .success { events.withLock { $0.append("success \(progress.documentsLoaded)") } }
        }
        stream.release()
        try await eventually("the end") { events.withLock { $0 }.count >= 2 }
        expectEqual(Set(events.withLock { $0 }), ["success 3", "end 3 true"])
        try await eventually("the listener's snapshot") { counts.withLock { $0 }.last == 3 }
        let late = Mutex<LoadBundleTaskState?>(nil)
        task.addObserver { progress in late.withLock { $0 = progress.state } }
        try await eventually("the last progress for a late observer") { late.withLock { $0 } == .success }
        try await firestore.terminate()
    }

    @Test
    func `A bundle is loaded once for each id and time; newer ones are, older ones are not`() async throws {
        let firestore = try await firestore()
        func load(_ n: Int, created: String) async throws -> Int? {
            var builder = Builder()
            builder.created = created
            builder.add("c/d", n, updated: "2026-01-0\(n)T00:00:00Z")
            let progress = try await firestore.loadBundle(builder.data)
            expect(progress.state == .success && progress.documentsLoaded == 1)
            return try await firestore.document("c/d").getDocument(source: .cache).get("n") as? Int
        }
        try await expectEqual(load(1, created: "2026-02-01T00:00:00Z"), 1)
        try await expectEqual(load(2, created: "2026-02-01T00:00:00Z"), 1)
        try await expectEqual(load(3, created: "2026-01-01T00:00:00Z"), 1)
        try await expectEqual(load(4, created: "2026-03-01T00:00:00Z"), 4)
        // A newer bundle with an older document.
        try await expectEqual(load(2, created: "2026-04-01T00:00:00Z"), 4)
        try await firestore.terminate()
    }

    @Test
    func `A listener to a query of a bundle continues from the bundle's read time, with the bundle's documents`()
        async throws
    {
        let firestore = try await firestore()
        var builder = Builder()
        builder.addQuery("q", #"{"from":[{"collectionId":"c"}]}"#)
        builder.add("c/a", 1, queries: ["q"])
        builder.add("c/b", 2)
        try await expectEqual(firestore.loadBundle(builder.data).state, .success)
        let engine = try firestore.engine()
        let query = try #require(await firestore.getQuery(named: "q"))
        let canonical = SyncEngine.Subject(query).canonical(engine.database)
        let seeded = try await engine.stored(canonical)
        let target = try #require(seeded.target)
        expectEqual(target.snapshotMicroseconds, 1_767_225_600_000_000)
        expect(!target.hasResult)
        expectEqual(Array(seeded.documents.times.keys), ["\(Self.root)/c/a"])
        expectEqual(
            engine.resumption(of: target, seeded.documents)?.place,
            .readTime(TimestampValue(microseconds: 1_767_225_600_000_000)))
        try await firestore.terminate()
    }

    @Test
    func `Pending writes stay over the documents of a bundle`() async throws {
        let firestore = try await firestore()
        firestore.document("c/d").setData(["own": 1], merge: true, completion: nil)
        var builder = Builder()
        builder.add("c/d", 7)
        _ = try await firestore.loadBundle(builder.data)
        let document = try await firestore.document("c/d").getDocument(source: .cache)
        expect(document.get("n") as? Int == 7 && document.get("own") as? Int == 1)
        expect(document.metadata.hasPendingWrites)
        try await firestore.terminate()
    }

    private static func damaged() -> [(String, Data, FirestoreErrorCode.Code)] {
        var good = Builder()
        good.add("c/d", 1)
        let data = good.data
        let text = String(decoding: data, as: UTF8.self)
        var cases: [(String, Data, FirestoreErrorCode.Code)] = [
            ("empty", Data(), .unknown),
            ("no bundle", Data("Hello".utf8), .dataLoss),
            ("a number alone", Data("12".utf8), .dataLoss),
            ("no metadata", Data(#"15{"document":{}}"#.utf8), .dataLoss),
            ("cut", data.dropLast(3), .dataLoss),
            (
                "cut between elements", Data(text[..<text.range(of: "}}}", options: .backwards)!.lowerBound].utf8),
                .dataLoss
            ),
            ("a long prefix", Data("99999999999{".utf8), .dataLoss),
            ("a large prefix", Data("999999999{".utf8), .resourceExhausted),
            ("an unknown element", Data(text.replacing(#"{"document":"#, with: #"{"documens":"#).utf8), .dataLoss),
            ("a broken time", Data(text.replacing("createTime", with: "createTyme").utf8), .dataLoss),
            ("another project", Data(text.replacing("projects/p/", with: "projects/q/").utf8), .invalidArgument),
            ("a collection's name", Data(text.replacing("/documents/c/d", with: "/documents/c/").utf8), .dataLoss),
            ("an unknown value", Data(text.replacing("integerValue", with: "integerValux").utf8), .invalidArgument),
            (
                "deep nesting", Data((text + "60001{\"document\":\(String(repeating: "[", count: 59_989))}").utf8),
                .dataLoss
            ),
        ]
        var builder = good
        builder.claimedCount = 2
        cases.append(("another number of documents", builder.data, .invalidArgument))
        builder = good
        builder.elements.removeLast()
        cases.append(("metadata without its document", builder.data, .dataLoss))
        builder = good
        builder.elements.removeFirst()
        cases.append(("a document without metadata", builder.data, .dataLoss))
        for (name, query, limit) in [
            ("two collections", #"{"from":[{"collectionId":"c"},{"collectionId":"d"}]}"#, "FIRST"),
            ("an offset", #"{"from":[{"collectionId":"c"}],"offset":3}"#, "FIRST"),
            ("a limit to the last without an order", #"{"from":[{"collectionId":"c"}],"limit":3}"#, "LAST"),
            ("a negative limit", #"{"from":[{"collectionId":"c"}],"limit":-3}"#, "FIRST"),
        ] {
            builder = good
            builder.addQuery("q", query, limit: limit)
            cases.append((name, builder.data, .invalidArgument))
        }
        return cases
    }

    @Test
    func `A bundle that is damaged or breaks a rule gives an error, and nothing of it is in the cache`() async throws {
        let firestore = try await firestore()
        for (name, data, expected) in Self.damaged() {
            let code = await code { _ = try await firestore.loadBundle(data) }
            expectEqual(code, expected, "\(name)")
            let isThere = await self.code { _ = try await firestore.document("c/d").getDocument(source: .cache) }
            expectEqual(isThere, .unavailable, "\(name)")
        }
        await expectNil(firestore.getQuery(named: "q"))
        var good = Builder()
        good.add("c/d", 1)
        _ = try await firestore.loadBundle(good.data)
        try await firestore.terminate()
    }

    @Test
    func `The completion of a bundle that fails gets the last progress and the error`() async throws {
        let firestore = try await firestore()
        var bundle = Builder()
        for number in 0..<3 { bundle.add("c/d\(number)", number) }
        bundle.claimedCount = 4
        let ends = Mutex<[(LoadBundleTaskProgress?, Int?)]>([])
        let seen = Mutex<[LoadBundleTaskProgress]>([])
        let task = firestore.loadBundle(bundle.data) { progress, error in
            ends.withLock { $0.append((progress, (error as NSError?)?.code)) }
        }
        task.addObserver { progress in seen.withLock { $0.append(progress) } }
        try await eventually("the end") { ends.withLock { $0.count } == 1 && seen.withLock { !$0.isEmpty } }
        let (progress, code) = ends.withLock { $0[0] }
        expectEqual(code, FirestoreErrorCode.invalidArgument.rawValue)
        expect(progress?.state == .error && progress?.documentsLoaded == 3 && progress?.totalDocuments == 4)
        expectEqual(progress, seen.withLock { $0.last })
        // One that fails before its metadata.
        firestore.loadBundle(Data()) { progress, error in
            ends.withLock { $0.append((progress, (error as NSError?)?.code)) }
        }
        try await eventually("the end") { ends.withLock { $0.count } == 2 }
        expectEqual(ends.withLock { $0[1].0?.state }, .error)
        try await firestore.terminate()
    }

    @Test
    func `Random changes of a bundle's bytes never end the program`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let firestore = try await firestore()
        for _ in 0..<300 {
            var builder = Builder()
            builder.id = "b\(generator.next())"
            builder.add("c/d1", 1)
            builder.add("c/d2", 2)
            builder.addQuery("q", #"{"from":[{"collectionId":"c"}],"orderBy":[{"field":{"fieldPath":"n"}}],"limit":2}"#)
            var bytes = [UInt8](builder.data)
            for _ in 0..<1 + generator.below(3) {
                let index = generator.below(bytes.count)
                switch generator.below(3) {
                case 0: bytes[index] = UInt8(truncatingIfNeeded: generator.next())
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8(truncatingIfNeeded: generator.next()), at: index)
                }
            }
            _ = await code { _ = try await firestore.loadBundle(Data(bytes)) }
            if let query = await firestore.getQuery(named: "q") { _ = try await query.getDocuments(source: .cache) }
        }
        try await firestore.terminate()
    }
}

extension SyncEngine {
    /// The stored target with these bytes and its documents.
    fileprivate func stored(_ canonical: [UInt8]) async throws -> (target: LocalTarget?, documents: TargetDocuments) {
        try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(
                    with: Result {
                        let target = try self.store.stored(target: canonical)
                        return (target, try target.map { try self.store.documents(of: $0.id) } ?? TargetDocuments())
                    })
            }
        }
    }
}

/// A stream that cannot be opened before it is released.
private final class HeldStream: InputStream {
    private let gate = DispatchSemaphore(value: 0)

    func release() { gate.signal() }

    override func open() {
        gate.wait()
        super.open()
    }
}
