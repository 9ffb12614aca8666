// How long the cache of the Swift client takes: to open, to give the first snapshot of a listener, to write. Times on the
// clock, and processor time of all threads.

import FirebaseCore
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
        let collection = firestore.collection("cached")
        for start in stride(from: 0, to: documents, by: 500) {
            let batch = firestore.batch()
            for number in start..<min(start + 500, documents) {
                batch.setData(
                    ["title": String(repeating: "x", count: 400), "n": number],
                    forDocument: collection.document("d\(number)"))
            }
            try await batch.commit()
        }
        _ = try await snapshot(firestore.collection("cached").order(by: "n"), isFromCache: false)
        try await firestore.terminate()
        for round in 0..<3 {
            firestore = make()
            var start = Stopwatch()
            try await firestore.disableNetwork()
            row("opened", start)
            start = Stopwatch()
            let named = try await snapshot(firestore.collection("cached"), isFromCache: true)
            row("first snapshot of \(named.count) documents", start)
            start = Stopwatch()
            let sorted = try await snapshot(firestore.collection("cached").order(by: "n"), isFromCache: true)
            row("first snapshot, sorted by a field", start)
            start = Stopwatch()
            var sum = 0
            for document in sorted.documents { sum += document.get("n") as? Int ?? 0 }
            row("a field of each document (\(sum))", start)
            start = Stopwatch()
            for number in 0..<1000 {
                firestore.document("pending/d\(round)-\(number)").setData(["n": number], completion: nil)
            }
            _ = try await firestore.document("pending/d\(round)-999").getDocument(source: .cache)
            row("1,000 local writes", start)
            start = Stopwatch()
            try await firestore.terminate()
            row("closed", start)
        }
    }

    private func make() -> Firestore {
        let firestore = Firestore.firestore()
        let settings = firestore.settings
        settings.host = host
        settings.dispatchQueue = DispatchQueue(label: "callbacks")
        settings.cacheSettings = PersistentCacheSettings(sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited))
        settings.cacheDirectory = directory
        firestore.settings = settings
        return firestore
    }

    /// The first snapshot of a listener with this source.
    private func snapshot(_ query: Query, isFromCache: Bool) async throws -> QuerySnapshot {
        for try await snapshot in query.snapshots(includeMetadataChanges: true)
        where snapshot.metadata.isFromCache == isFromCache { return snapshot }
        throw CancellationError()
    }

    private func row(_ name: String, _ stopwatch: Stopwatch) {
        let (elapsed, processor) = (stopwatch.elapsed, stopwatch.processor)
        print("\(name)\t\(String(format: "%.1f ms\t%.1f", elapsed, processor))\tms CPU")
    }

    /// Milliseconds since it was made.
    private struct Stopwatch {
        private let start = ContinuousClock.now
        private let processorStart = clock()

        var elapsed: Double {
            let (seconds, attoseconds) = (ContinuousClock.now - start).components
            return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
        }

        var processor: Double { Double(clock() - processorStart) * 1e3 / Double(CLOCKS_PER_SEC) }
    }
}
