// Times of the cache of the Swift client: to open, to give the first snapshot of a listener, to write. Elapsed time,
// and processor time of all threads.

import FirebaseFirestore
import Foundation

/// Fills a cache through a server, then listens without one.
struct CacheFigures {
    /// `HOST:PORT` of a server.
    let host: String
    let directory: String
    let documents: Int

    func run() async throws {
        var firestore = make()
        try await firestore.fill("cached", documents)
        _ = try await snapshot(firestore.collection("cached").order(by: "n"), isFromCache: false)
        try await firestore.terminate()
        for round in 0..<3 {
            firestore = make()
            var start = BenchStopwatch()
            try await firestore.disableNetwork()
            row("opened", start)
            start = BenchStopwatch()
            let named = try await snapshot(firestore.collection("cached"), isFromCache: true)
            row("first snapshot of \(named.count) documents", start)
            start = BenchStopwatch()
            let sorted = try await snapshot(firestore.collection("cached").order(by: "n"), isFromCache: true)
            row("first snapshot, sorted by a field", start)
            start = BenchStopwatch()
            var sum = 0
            for document in sorted.documents { sum += document.get("n") as? Int ?? 0 }
            row("a field of each document (\(sum))", start)
            start = BenchStopwatch()
            for number in 0..<1000 {
                firestore.document("pending/d\(round)-\(number)").setData(["n": number], completion: nil)
            }
            _ = try await firestore.document("pending/d\(round)-999").getDocument(source: .cache)
            row("1,000 local writes", start)
            start = BenchStopwatch()
            try await firestore.terminate()
            row("closed", start)
        }
    }

    private func make() -> Firestore { Firestore.benchClient(host: host, cache: .disk(directory)) }

    /// The first snapshot of a listener with this source.
    private func snapshot(_ query: Query, isFromCache: Bool) async throws -> QuerySnapshot {
        for try await snapshot in query.snapshots(includeMetadataChanges: true)
        where snapshot.metadata.isFromCache == isFromCache { return snapshot }
        throw CancellationError()
    }

    private func row(_ name: String, _ stopwatch: BenchStopwatch) {
        let (elapsed, processor) = (stopwatch.elapsed, stopwatch.processor)
        print("\(name)\t\(String(format: "%.1f ms\t%.1f", elapsed, processor))\tms CPU")
    }
}
