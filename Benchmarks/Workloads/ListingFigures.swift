// What lists of documents and single writes cost a program: compared with Foundation's JSON coders over the same data.

import FirebaseFirestore
import Foundation

/// Writes and lists books.
struct ListingFigures {
    /// `HOST:PORT` of a server.
    let host: String
    let documents: Int

    private static let rounds = 5

    func run() async throws {
        let books = (0..<documents).map(Self.book)
        let firestore = Firestore.benchClient(app: "listing", host: host, cache: .standard)
        try await write(books, firestore)
        try await list(firestore, "")
        try decode(books, try await firestore.collection("listed").getDocuments())
        try await firestore.terminate()
        let caching = Firestore.benchClient(app: "cached listing", host: host, cache: .memory)
        try await list(caching, ", cached")
        try await caching.terminate()
    }

    private static func book(_ number: Int) -> Book {
        var book = Book.sample
        book.pages = number
        book.title = "\(book.title), copy \(number)"
        return book
    }

    // MARK: Writing

    private func write(_ books: [Book], _ firestore: Firestore) async throws {
        let collection = firestore.collection("listed")
        let writing = BenchStopwatch()
        for first in stride(from: 0, to: documents, by: 500) {
            let batch = firestore.batch()
            for number in first..<min(first + 500, documents) {
                try batch.setData(from: books[number], forDocument: collection.document("d\(number)"))
            }
            try await batch.commit()
        }
        row("\(documents) documents in batches of 500", writing.elapsed, "ms")
        row("\(documents) documents in batches of 500, processor time", writing.processor, "ms")
        let encoder = JSONEncoder()
        var ratios: [Double] = []
        for _ in 0..<Self.rounds {
            let encoding = BenchStopwatch()
            let reference = collection.document("d0")
            var batch = firestore.batch()
            for (index, book) in books.prefix(10_000).enumerated() {
                if index % 500 == 0 { batch = firestore.batch() }
                try batch.setData(from: book, forDocument: reference)
            }
            let time = encoding.thread
            let json = BenchStopwatch()
            for book in books.prefix(10_000) { _ = try encoder.encode(book) }
            ratios.append(json.thread / time)
            row("setData(from:) into a batch", time / Double(min(documents, 10_000)) * 1e3, "us")
        }
        row("JSONEncoder / setData(from:)", ratios.sorted()[ratios.count / 2], "times the time")
    }

    // MARK: Reading

    private func list(_ firestore: Firestore, _ place: String) async throws {
        let collection = firestore.collection("listed")
        _ = try await collection.limit(to: 1).getDocuments()
        let before = ProcessMemory.anonymousBytes
        var stopwatch = BenchStopwatch()
        let first = try await collection.getDocuments()
        row("first list of \(first.count) documents\(place)", stopwatch.elapsed, "ms")
        let after = ProcessMemory.anonymousBytes
        row("memory for each listed document\(place)", Double(after - before) / Double(first.count), "bytes")
        for _ in 0..<Self.rounds {
            stopwatch = BenchStopwatch()
            let snapshot = try await collection.getDocuments()
            let (elapsed, processor) = (stopwatch.elapsed, stopwatch.processor)
            row("list of \(snapshot.count) documents\(place)", elapsed, "ms")
            row("list of \(snapshot.count) documents\(place), processor time", processor, "ms")
            stopwatch = BenchStopwatch()
            let count = snapshot.documents.count
            row("and \(count) snapshots of single documents", stopwatch.thread, "ms")
            stopwatch = BenchStopwatch()
            var sum = 0
            for document in snapshot.documents { sum += document.get("pages") as? Int ?? 0 }
            guard sum == (0..<documents).reduce(0, +) else { fatalError("another result") }
            row("and a field of each", stopwatch.thread, "ms")
        }
    }

    /// The documents of a list as structures, and the same structures from JSON.
    private func decode(_ books: [Book], _ snapshot: QuerySnapshot) throws {
        let encoder = JSONEncoder()
        let single = try books.map { try encoder.encode($0) }
        let whole = try encoder.encode(books)
        let decoder = JSONDecoder()
        var (ratios, wholeRatios): ([Double], [Double]) = ([], [])
        for _ in 0..<Self.rounds {
            var stopwatch = BenchStopwatch()
            let decoded = try snapshot.documents.map { try $0.data(as: Book.self) }
            let time = stopwatch.thread
            guard decoded.count == documents else { fatalError("another result") }
            stopwatch = BenchStopwatch()
            let fromSingle = try single.map { try decoder.decode(Book.self, from: $0) }
            let singleTime = stopwatch.thread
            stopwatch = BenchStopwatch()
            let fromWhole = try decoder.decode([Book].self, from: whole)
            let wholeTime = stopwatch.thread
            guard Set(decoded.map(\.pages)) == Set(fromSingle.map(\.pages)), fromWhole.count == documents else {
                fatalError("another result")
            }
            ratios.append(singleTime / time)
            wholeRatios.append(wholeTime / time)
            row("\(documents) documents into structures", time, "ms")
        }
        row("JSONDecoder, a document at a time / structures", ratios.sorted()[ratios.count / 2], "times the time")
        row("JSONDecoder, one array / structures", wholeRatios.sorted()[wholeRatios.count / 2], "times the time")
    }

    private func row(_ name: String, _ value: Double, _ unit: String) {
        print("\(name)\t\(String(format: "%.2f", value))\t\(unit)")
    }
}
