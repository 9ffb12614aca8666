// What the Swift client costs: pending writes of one document, reads and queries of the cache, the time from a commit
// to the listener of another client, memory and disk of a cache.

import FirebaseFirestore
import Foundation

/// Figures of the client against a server.
struct ClientFigures {
    /// `HOST:PORT` of a server.
    let host: String
    /// Of the caches.
    let directory: String
    let documents: Int

    func run() async throws {
        for isPersistent in [false, true] {
            let place = isPersistent ? "cache on disk" : "cache in memory"
            try await pendingWrites(1000, place, isPersistent)
            try await pendingWrites(5000, place, isPersistent)
            try await cache(place, isPersistent)
        }
        try await listening()
    }

    private func make(_ name: String, isPersistent: Bool) -> Firestore {
        Firestore.benchClient(app: name, host: host, cache: isPersistent ? .disk("\(directory)/\(name)") : .memory)
    }

    // MARK: Pending writes

    /// Writes of one document while there is no connection, then their acknowledgements.
    private func pendingWrites(_ count: Int, _ place: String, _ isPersistent: Bool) async throws {
        let firestore = make("pending\(count)\(isPersistent)", isPersistent: isPersistent)
        try await firestore.disableNetwork()
        let reference = firestore.document("pending/d\(count)")
        var start = BenchStopwatch()
        for number in 0..<count { reference.setData(["n": number, "text": "x"], completion: nil) }
        _ = try await reference.getDocument(source: .cache)
        row("\(count) pending writes of a document, \(place): write", start.elapsed, "ms")
        start = BenchStopwatch()
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        row("\(count) pending writes of a document, \(place): send", start.elapsed, "ms")
        try await firestore.terminate()
    }

    // MARK: The cache

    private func cache(_ place: String, _ isPersistent: Bool) async throws {
        let name = "cache\(isPersistent)"
        let collection = "of\(name)"
        let writer = make("writer\(isPersistent)", isPersistent: false)
        try await writer.fill(collection, documents)
        try await writer.terminate()
        let firestore = make(name, isPersistent: isPersistent)
        let before = ProcessMemory.residentBytes
        for try await snapshot in firestore.collection(collection).snapshots(includeMetadataChanges: true)
        where !snapshot.metadata.isFromCache {
            row(
                "memory of \(snapshot.count) documents with a listener, \(place)",
                Double(ProcessMemory.residentBytes - before) / 1e6, "MB")
            break
        }
        try await firestore.disableNetwork()
        try await rate("reads of the cache, \(place)", count: 20_000) { number in
            _ = try await firestore.document("\(collection)/d\(number % documents)").getDocument(source: .cache)
        }
        try await rate("queries of 10 documents of the cache, \(place)", count: 200) { number in
            let query = firestore.collection(collection).whereField("n", isGreaterThan: number).limit(to: 10)
            guard try await query.getDocuments(source: .cache).count == 10 else { fatalError("another result") }
        }
        if isPersistent { row("directory while it is open", Self.megabytes(of: "\(directory)/\(name)"), "MB") }
        try await firestore.terminate()
        if !isPersistent { return }
        row("directory with \(documents) documents", Self.megabytes(of: "\(directory)/\(name)"), "MB")
    }

    private func rate(_ name: String, count: Int, _ call: (Int) async throws -> Void) async throws {
        let start = BenchStopwatch()
        for number in 0..<count { try await call(number) }
        row(name, Double(count) / start.elapsed * 1e3, "/s")
    }

    /// The blocks that the files of a directory occupy.
    private static func megabytes(of directory: String) -> Double {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["du", "-sk", directory]
        process.standardOutput = output
        guard (try? process.run()) != nil else { return .nan }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (Double(text.split(separator: "\t").first ?? "") ?? .nan) / 1e3
    }

    // MARK: Listeners

    /// From the call of a write to the snapshot of another client.
    private func listening() async throws {
        let (writer, reader) = (make("sender", isPersistent: false), make("receiver", isPersistent: false))
        var times: [Double] = []
        var number = 0
        var start = BenchStopwatch()
        for try await snapshot in reader.document("listened/d").snapshots where !snapshot.metadata.isFromCache {
            if number > 0, snapshot.get("n") as? Int == number { times.append(start.elapsed * 1e3) }
            if number == 2000 { break }
            number += 1
            start = BenchStopwatch()
            writer.document("listened/d").setData(["n": number], completion: nil)
        }
        times.sort()
        row("a write to another client's listener, p50", times[times.count / 2], "us")
        row("a write to another client's listener, p99", times[times.count * 99 / 100], "us")
        try await writer.terminate()
        try await reader.terminate()
    }

    private func row(_ name: String, _ value: Double, _ unit: String) {
        print("\(name)\t\(String(format: "%.1f", value))\t\(unit)")
    }
}
