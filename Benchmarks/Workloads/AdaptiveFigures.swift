// What indexes on demand cost and save, measured in process: the same documents and queries in stores that index every
// field, no field, and those that queries need.

import DocumentModel
import DocumentStore
import Foundation
import Indexing
import QueryEngine

struct AdaptiveFigures {
    /// An empty or missing directory; a store for each mode is made in it.
    let directory: String
    let documents: Int

    private static let modes: [(name: String, mode: AutomaticIndexes)] = [
        ("on", .on), ("adaptive", .adaptive), ("off", .off),
    ]
    /// How long the queries may take to become fast, and merges to end, in seconds.
    private static let patience = 300.0

    /// Prints a line for each mode, with tabs between the figures.
    func run() throws {
        for (name, mode) in Self.modes {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            let path = "\(directory)/\(name)"
            var configuration = StoreConfiguration(directory: path)
            configuration.automaticIndexes = mode
            // Leaves room to measure queries before the first index is made.
            configuration.adaptiveIndexes.documentsDemanded = 10_000
            let store = try DocumentStore.open(configuration)
            try measure(store, name, path, hasIndexes: mode != .off)
            store.close()
            try FileManager.default.removeItem(atPath: path)
        }
    }

    private func measure(_ store: DocumentStore, _ name: String, _ path: String, hasIndexes: Bool) throws {
        let started = Self.processorSeconds()
        let rate = try store.fill(documents) { number in
            (path: "books/\(UInt64(number) &* 0x9e37_79b9_7f4a_7c15)", fields: fields(number))
        }
        try settle(store)
        let loaded = Self.processorSeconds()
        let first = try Self.queries.map { try IndexFigures.latency($0, store, runs: 1).median }
        let begin = Date()
        // Waiting takes no processor time from the builds.
        while name == "adaptive", try !Self.areIndexed(store) {
            if Date().timeIntervalSince(begin) > Self.patience { fatalError("the queries stay slow") }
            Thread.sleep(forTimeInterval: 0.05)
        }
        let wait = Date().timeIntervalSince(begin)
        let after = try Self.queries.map { try IndexFigures.latency($0, store, runs: hasIndexes ? 300 : 3).median }
        try settle(store)
        let ended = Self.processorSeconds()
        func list(_ times: [Double]) -> String { times.map { "\(Int($0))" }.joined(separator: "/") }
        let figures = [
            name, "\(Int(rate)) documents/s", "load \(Self.text(loaded - started)) s CPU",
            "first query \(list(first)) us", "fast after \(Self.text(wait)) s", "then \(list(after)) us",
            "\(Self.bytes(of: path) >> 20) MiB", "all \(Self.text(ended - started)) s CPU",
        ]
        FileHandle.standardOutput.write(Data((figures.joined(separator: "\t") + "\n").utf8))
    }

    /// Whether an index is ready for each query.
    private static func areIndexed(_ store: DocumentStore) throws -> Bool {
        let database = try DatabaseName(project: "bench")
        return try store.indexListing(in: database).count { $0.state == .ready } >= queries.count
    }

    /// Three queries on three of the sixteen fields; each has at most 20 results.
    private static var queries: [StructuredQuery] {
        get throws {
            func query(_ filter: Filter?, _ order: [Order] = []) -> StructuredQuery {
                StructuredQuery(
                    from: [CollectionSelector(collectionID: "books")], filter: filter, orderBy: order, limit: 20)
            }
            return [
                query(.field(try FieldPath("author"), .equal, EncodedValue(.string("author 77")))),
                query(nil, [Order(field: try FieldPath("sold"), direction: .descending)]),
                query(.field(try FieldPath("tags"), .arrayContains, EncodedValue(.integer(5)))),
            ]
        }
    }

    /// Sixteen fields; `author` and `tags` have 20 documents for each value.
    private func fields(_ number: Int) -> [UInt8] {
        let mixed = UInt64(truncatingIfNeeded: number) &* 0x9e37_79b9_7f4a_7c15
        let spread = max(documents / 20, 1)
        var values: MapValue = [
            "author": .string("author \(number % spread)"), "sold": .integer(Int64(mixed >> 2)),
            "tags": .array([.integer(Int64(number % spread)), .string("print")]),
            "title": .string("A book about \(mixed % 100_000) things"), "inPrint": .boolean(number % 3 == 0),
        ]
        for field in 0..<11 { values["detail\(field)"] = .integer(Int64((mixed >> UInt64(field)) % 100_000)) }
        return values.documentBytes
    }

    /// Waits for a checkpoint and for merges.
    private func settle(_ store: DocumentStore) throws {
        try store.checkpoint()
        let end = Date().addingTimeInterval(Self.patience)
        while store.statistics.engine.mergePendingBytes > 0, Date() < end { Thread.sleep(forTimeInterval: 0.1) }
    }

    private static func text(_ seconds: Double) -> String { "\((seconds * 10).rounded() / 10)" }

    private static func processorSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let times = [usage.ru_utime, usage.ru_stime]
        return times.reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }

    private static func bytes(of directory: String) -> Int {
        let files = FileManager.default.enumerator(
            at: URL(fileURLWithPath: directory), includingPropertiesForKeys: [.fileSizeKey])
        var total = 0
        for case let file as URL in files ?? FileManager.DirectoryEnumerator() {
            total += (try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0
        }
        return total
    }
}
