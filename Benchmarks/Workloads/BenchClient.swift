// What the benchmarks of the Swift client share: a client, a filled collection, times, lines of figures.

import FirebaseCore
import FirebaseFirestore
import Foundation

/// Where a client keeps its cache.
enum BenchCache {
    /// What a program has that changes no settings: in memory, without documents that no listener covers.
    case standard
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
        case .standard: break
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
    private let threadStart = Self.threadMilliseconds

    var elapsed: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
    }

    /// Processor time of all threads.
    var processor: Double { Double(clock() - processorStart) * 1e3 / Double(CLOCKS_PER_SEC) }

    /// Processor time of the thread that made it, which must be the calling one.
    var thread: Double { Self.threadMilliseconds - threadStart }

    private static var threadMilliseconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
    }
}

/// The memory of this process.
enum ProcessMemory {
    /// Resident bytes, files included.
    static var residentBytes: Int { pages(1) * 4096 }
    /// Resident bytes that no file has.
    static var anonymousBytes: Int { (pages(1) - pages(2)) * 4096 }

    /// A column of `/proc/self/statm`, in pages.
    private static func pages(_ column: Int) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let columns = text.split(separator: " ")
        return columns.indices.contains(column) ? Int(columns[column]) ?? 0 : 0
    }
}
