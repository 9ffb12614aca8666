// Costs and gains of indexes, measured in process over a separate store: commits with and without them, queries over
// ten thousand and a million documents, the rate of a scan.

import Basics
import DocumentModel
import DocumentStore
import Foundation
import QueryEngine
import Synchronization

struct IndexFigures {
    /// An empty or missing directory; two stores are made in it.
    let directory: String
    /// Documents of the large collection.
    let documents: Int

    static let clients = 64
    private static let seconds = 5.0
    /// Different documents that clients commit, each under its own ids.
    private static let poolCount = 200_000

    /// Prints a line for each figure: name, value, goal, unit, with tabs between.
    func run() throws {
        for isIndexed in [false, true] {
            let store = try open("writes-\(isIndexed)", isIndexed: isIndexed)
            let burst = try commitRate(store, seconds: Self.seconds)
            row(
                "commits, 8 fields, \(isIndexed ? "indexed" : "bare")", Int(burst), isIndexed ? ">= 100000" : "",
                "docs/s")
            if !isIndexed { try scan(store) }
            store.close()
        }
        let store = try open("queries", isIndexed: true)
        defer { store.close() }
        let small = min(10_000, documents)
        let rate = try fill(store, "small", small)
        let largeRate = try fill(store, "large", documents)
        row("filling \(small) documents, batches of 500", Int(rate), "", "docs/s")
        row("filling \(documents) documents, batches of 500", Int(largeRate), "", "docs/s")
        let sustained = try commitRate(store, seconds: 4 * Self.seconds)
        row("commits into \(documents), over checkpoints", Int(sustained), ">= 30000", "docs/s")
        try store.checkpoint()
        for query in Self.queries(of: documents) { try measure(query, store, small: small) }
    }

    private func row(_ name: String, _ value: Int, _ goal: String, _ unit: String) {
        FileHandle.standardOutput.write(Data("\(name)\t\(value)\t\(goal)\t\(unit)\n".utf8))
    }

    private func open(_ name: String, isIndexed: Bool) throws -> DocumentStore {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var configuration = StoreConfiguration(directory: "\(directory)/\(name)")
        configuration.automaticIndexes = isIndexed ? .on : .off
        return try DocumentStore.open(configuration)
    }

    // MARK: Writing

    private static let database = try! DatabaseName(project: "bench")

    /// Eight fields; `group` has a twentieth of the documents in each value by `spread` of the number of documents.
    private static func fields(_ number: Int, spread: Int) -> [UInt8] {
        let mixed = UInt64(truncatingIfNeeded: number) &* 0x9e37_79b9_7f4a_7c15
        let values: MapValue = [
            "number": .integer(Int64(number)), "random": .integer(Int64(bitPattern: mixed)),
            "group": .integer(Int64(number % spread)), "other": .integer(Int64(number / 7 % spread)),
            "title": .string("title \(mixed % 100_000)"), "price": .double(Double(mixed % 10_000) / 100),
            "flag": .boolean(number % 2 == 0), "tags": .array([.integer(Int64(number % spread)), .string("t")]),
        ]
        return values.documentBytes
    }

    static func list(_ writes: [(path: String, fields: [UInt8])]) throws -> WriteList {
        var list = WriteList(database: database)
        for (path, fields) in writes {
            let name = Array("\(database.documentsRoot)/\(path)".utf8)
            try list.update(name.span.bytes, fields: fields.span.bytes)
        }
        return list
    }

    /// Documents a second that so many clients commit, each one at a time, with random ids and values.
    private func commitRate(_ store: DocumentStore, seconds: Double) throws -> Double {
        // Made beforehand: clients are elsewhere in life, and do not take the store's processors.
        let pool = (0..<Self.poolCount).map { _ in Self.fields(.random(in: 0..<Int.max / 2), spread: 100_000) }
        let clients = (0..<Self.clients).map { CommitClient(store, client: $0, pool: pool) }
        let start = Date()
        let end = start.addingTimeInterval(seconds)
        for client in clients { client.start(until: end) }
        for client in clients { client.finished.wait() }
        return Double(clients.reduce(0) { $0 + $1.committed.load(ordering: .relaxed) })
            / Date().timeIntervalSince(start)
    }

    /// Fills a collection; returns documents a second.
    private func fill(_ store: DocumentStore, _ collection: String, _ count: Int) throws -> Double {
        try store.fill(count) { number in
            (
                path: "\(collection)/\(String(UInt64(number) &* 0x9e37_79b9_7f4a_7c15, radix: 36))",
                fields: Self.fields(number, spread: max(count / 20, 1))
            )
        }
    }

    // MARK: Queries

    private struct Measured {
        let name: String
        let query: (_ collection: String, _ count: Int) throws -> StructuredQuery
    }

    private static func queries(of documents: Int) -> [Measured] {
        func query(
            _ collection: String, _ filter: Filter? = nil, _ order: [Order] = [], isGroup: Bool = false
        ) -> StructuredQuery {
            StructuredQuery(
                from: [CollectionSelector(collectionID: collection, allDescendants: isGroup)], filter: filter,
                orderBy: order, limit: 20)
        }
        func equal(_ field: String, _ value: Value) throws -> Filter {
            .field(try FieldPath(field), .equal, EncodedValue(value))
        }
        return [
            Measured(name: "equality") { collection, _ in query(collection, try equal("group", 3)) },
            Measured(name: "range") { collection, count in
                query(
                    collection, .field(try FieldPath("number"), .greaterThan, EncodedValue(.integer(Int64(count / 2)))))
            },
            Measured(name: "two equalities") { collection, count in
                query(collection, .and([try equal("group", 3), try equal("other", .integer(Int64(3 / 7)))]))
            },
            Measured(name: "order, limit 20") { collection, _ in
                query(collection, nil, [Order(field: try FieldPath("random"), direction: .descending)])
            },
            Measured(name: "array-contains") { collection, _ in
                query(collection, .field(try FieldPath("tags"), .arrayContains, EncodedValue(.integer(5))))
            },
            Measured(name: "in") { collection, _ in
                query(collection, .field(try FieldPath("group"), .isIn, EncodedValue(.array([1, 2, 3]))))
            },
            Measured(name: "collection group, equality") { collection, _ in
                query(collection, try equal("group", 3), isGroup: true)
            },
            Measured(name: "OR") { collection, _ in
                query(collection, .or([try equal("group", 3), try equal("other", 4)]))
            },
        ]
    }

    static func latency(_ query: StructuredQuery, _ store: DocumentStore, runs: Int) throws -> (
        median: Double, read: Int
    ) {
        let reader = store.makeReader()
        let root = Array(Self.database.documentsRoot.utf8)
        var times: [Double] = []
        var read = 0
        for _ in 0..<runs {
            let start = DispatchTime.now().uptimeNanoseconds
            let plan = try QueryPlan(query, parent: root.span.bytes)
            let point = try reader.readPoint(.latest, in: Self.database)
            var run = QueryExecution(plan)
            let source = try reader.source(at: point)
            var bytes = 0
            while try run.next(
                from: source,
                emit: { (result) throws(RequestError) in
                    bytes += result.fields.byteCount
                    return .more
                }) != .finished
            {}
            times.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000)
            read = run.scannedDocuments + run.scannedEntries
        }
        return (times.sorted()[times.count / 2], read)
    }

    private func measure(_ measured: Measured, _ store: DocumentStore, small: Int) throws {
        let smallTime = try Self.latency(measured.query("small", small), store, runs: 500)
        let largeTime = try Self.latency(measured.query("large", documents), store, runs: 500)
        let ratio = Int(largeTime.median / smallTime.median * 100)
        let times = "\(Int(smallTime.median)) us, \(Int(largeTime.median)) us"
        row("\(measured.name): \(times), \(largeTime.read) read, ratio x100", ratio, "< 200", "%")
    }

    /// A scan with a filter in a store without indexes, one core.
    private func scan(_ store: DocumentStore) throws {
        _ = try fill(store, "large", documents)
        try store.checkpoint()
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "large")],
            filter: .field(try FieldPath("price"), .lessThan, EncodedValue(.double(-1))))
        let time = try Self.latency(query, store, runs: 3)
        row("scan with a filter on one field", Int(Double(documents) / time.median * 1_000_000), ">= 2500000", "docs/s")
    }
}

/// A client that commits one document at a time, the next when the last is complete.
private final class CommitClient: Sendable {
    private let store: DocumentStore
    private let pool: [[UInt8]]
    /// Touched by one commit after the other.
    private nonisolated(unsafe) var next: Int
    private static let root = "\(try! DatabaseName(project: "bench").documentsRoot)/writes/"
    private static let database = try! DatabaseName(project: "bench")
    let committed = Atomic<Int>(0)
    let finished = DispatchSemaphore(value: 0)

    init(_ store: DocumentStore, client: Int, pool: [[UInt8]]) {
        self.store = store
        self.pool = pool
        next = client
    }

    func start(until end: Date) { Self.queue.async { self.commit(until: end) } }

    private func commit(until end: Date) {
        guard Date() < end else {
            finished.signal()
            return
        }
        next += IndexFigures.clients
        var list = WriteList(database: Self.database)
        let name = Array((Self.root + String(UInt64.random(in: 0...UInt64.max), radix: 36)).utf8)
        let fields = pool[next % pool.count]
        try! list.update(name.span.bytes, fields: fields.span.bytes)
        store.commit(CommitRequest(writes: list)) { result in
            if case .failure(let error) = result { fatalError("\(error)") }
            self.committed.add(1, ordering: .relaxed)
            // The store's own thread only hands over.
            Self.queue.async { self.commit(until: end) }
        }
    }

    private static let queue = DispatchQueue(label: "clients")
}
