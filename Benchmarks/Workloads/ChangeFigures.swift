// What one change costs a client that listens: processor time of the process, by the size of what is listened to.

import Basics
import FirebaseFirestore
import Foundation
import Synchronization

/// Figures of listeners against a server.
struct ChangeFigures {
    /// `HOST:PORT` of a server.
    let host: String

    private static let changes = 500

    func run() async throws {
        for count in [1000, 10_000, 100_000] {
            let name = "changes\(count)"
            let writer = make("\(name)-writer")
            try await writer.fill(name, count)
            let client = make(name)
            let query = client.collection(name)
            try await measure("a listener of \(count) documents", [query], writer, client, name, count)
            try await client.terminate()
            if count == 100_000 { try await limited(writer, name, count) }
            try await writer.terminate()
        }
        try await many(listeners: 1000, documents: 100)
    }

    private func make(_ name: String) -> Firestore { Firestore.benchClient(app: name, host: host, cache: .memory) }

    /// The first 50 documents of a collection that is in the cache.
    private func limited(_ writer: Firestore, _ collection: String, _ count: Int) async throws {
        let client = make("limited")
        _ = try await client.collection(collection).getDocuments()
        let query = client.collection(collection).order(by: "n").limit(to: 50)
        try await measure("a listener of 50 of \(count) cached documents", [query], writer, client, collection, 50)
        try await client.terminate()
    }

    private func many(listeners: Int, documents: Int) async throws {
        let (writer, client) = (make("many-writer"), make("many"))
        var queries: [Query] = []
        for number in 0..<listeners {
            try await writer.fill("many\(number)", documents)
            queries.append(client.collection("many\(number)"))
        }
        let name = "\(listeners) listeners of \(documents) documents"
        try await measure(name, queries, writer, client, "many0", documents)
        try await client.terminate()
        try await writer.terminate()
    }

    /// Changes by another client, then by the client that listens.
    ///
    /// - Parameter count: documents that change, one after the other.
    private func measure(
        _ name: String, _ queries: [Query], _ writer: Firestore, _ client: Firestore, _ collection: String, _ count: Int
    ) async throws {
        let (changes, arrivals) = AsyncStream<Int>.makeStream()
        let current = Mutex(0)
        let isCounting = Atomic(false)
        for query in queries {
            var wasCurrent = false
            query.addSnapshotListener(includeMetadataChanges: true) { snapshot, error in
                guard let snapshot else { fatalError("\(error!)") }
                if !wasCurrent, !snapshot.metadata.isFromCache {
                    wasCurrent = true
                    current.withLock { $0 += 1 }
                }
                guard isCounting.load(ordering: .relaxed), !snapshot.metadata.hasPendingWrites else { return }
                for change in snapshot.documentChanges(includeMetadataChanges: true) {
                    arrivals.yield(change.document.get("version") as? Int ?? -1)
                }
            }
        }
        while current.withLock({ $0 }) < queries.count { try await Task.sleep(for: .milliseconds(10)) }
        // The processing of the first results ends.
        try await Task.sleep(for: .seconds(1))
        isCounting.store(true, ordering: .relaxed)
        var iterator = changes.makeAsyncIterator()
        // A value that no document has: writing the one that is there changes nothing.
        var first = Int(SystemClock.wallNanoseconds() / 1_000_000)
        for (author, source) in [("another client's", writer), ("an own", client)] {
            func change(_ version: Int) async throws {
                let document = source.document("\(collection)/d\(version * 7 % count)")
                document.updateData(["version": version], completion: nil)
                while let arrived = await iterator.next(), arrived != version {}
            }
            first += Self.changes + 1
            // The first change makes documents known by their names.
            try await change(first)
            let start = BenchStopwatch()
            for number in 1...Self.changes { try await change(first + number) }
            let figure = String(format: "%.3f", start.processor / Double(Self.changes))
            print("\(author) change, \(name)\t\(figure)\tms of processor time")
        }
    }
}
