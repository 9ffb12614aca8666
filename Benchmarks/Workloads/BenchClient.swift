// What the benchmarks of the Swift client share: a client, a filled collection, times, lines of figures.

import FirebaseCore
import FirebaseFirestore
import Foundation

/// Where a client keeps its cache.
enum BenchCache {
    case memory
    /// A directory.
    case disk(String)
}

extension Firestore {
    /// A client of the server at `host`, whose cache has no limit of size.
    ///
    /// - Parameter app: the name of a new app, or nil for the default one.
    static func benchClient(app: String? = nil, host: String, cache: BenchCache) -> Firestore {
        let firestore: Firestore
        if let app {
            let options = FirebaseOptions(googleAppID: "", gcmSenderID: "")
            options.projectID = "bench"
            FirebaseApp.configure(name: app, options: options)
            firestore = Firestore.firestore(app: FirebaseApp.app(name: app)!)
        } else {
            firestore = Firestore.firestore()
        }
        let settings = firestore.settings
        settings.host = host
        settings.dispatchQueue = DispatchQueue(label: "callbacks")
        let size = NSNumber(value: FirestoreCacheSizeUnlimited)
        switch cache {
        case .memory:
            settings.cacheSettings = MemoryCacheSettings(
                garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: size))
        case .disk(let directory):
            settings.cacheSettings = PersistentCacheSettings(sizeBytes: size)
            settings.cacheDirectory = directory
        }
        firestore.settings = settings
        return firestore
    }

    /// Commits documents of about 400 bytes in batches: `d0`, `d1` and so on, with their numbers in the field `n`.
    func fill(_ collection: String, _ count: Int) async throws {
        for first in stride(from: 0, to: count, by: 500) {
            let batch = batch()
            for number in first..<min(first + 500, count) {
                batch.setData(
                    ["title": String(repeating: "x", count: 400), "n": number],
                    forDocument: document("\(collection)/d\(number)"))
            }
            try await batch.commit()
        }
    }
}

/// Milliseconds since it was made.
struct BenchStopwatch {
    private let start = ContinuousClock.now
    private let processorStart = clock()

    var elapsed: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }

    /// Processor time of all threads.
    var processor: Double { Double(clock() - processorStart) * 1e3 / Double(CLOCKS_PER_SEC) }
}
