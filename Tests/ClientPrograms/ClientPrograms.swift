// Small programs that use the library and end, each in its own way. Tests start them and look at what they leave: the
// exit status, the documents, standard error.
//
// usage: client-programs PROGRAM HOST [COUNT]

import FirebaseFirestore

@main struct ClientPrograms {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3, let program = Program(rawValue: arguments[1]) else {
            FileHandle.standardError.write(Data("usage: client-programs PROGRAM HOST [COUNT]\n".utf8))
            exit(64)
        }
        let firestore = Firestore.firestore()
        let settings = firestore.settings
        settings.host = arguments[2]
        if let cache = ProcessInfo.processInfo.environment["CACHE"] {
            settings.cacheSettings = PersistentCacheSettings()
            settings.cacheDirectory = cache
        }
        firestore.settings = settings
        try await program.run(firestore.collection("programs"), count: arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1)
    }
}

/// What a program does before it ends.
enum Program: String {
    /// Begins reads, then returns from main.
    case returns
    /// Begins reads, then calls `exit`.
    case exits
    /// Awaits calls in many tasks, one of which calls `exit`.
    case exitsInTask
    /// Calls `exit` on several threads at once, with calls in flight.
    case exitsOnThreads
    /// Begins writes, then returns from main.
    case writes
    /// Begins writes, then calls `exit` on another thread.
    case writesAndExits
    /// Awaits a write.
    case awaits
    /// Increments a document and prints a line for each acknowledgement.
    case counts
    /// Awaits a write with the log switched on.
    case logs
    /// Writes at random, online and offline, until it is killed.
    case edits
    /// Waits for the pending writes, and writes what its listeners show.
    case drains

    func run(_ collection: CollectionReference, count: Int) async throws {
        switch self {
        case .returns: Self.beginReads(collection, count)
        case .exits:
            Self.beginReads(collection, count)
            exit(0)
        case .exitsInTask:
            for number in 0..<count {
                Task { _ = try? await collection.document("d\(number)").getDocument() }
                Task { try? await collection.document("d\(number)").setData(["n": number]) }
            }
            Task { exit(0) }
            // The other thread ends the program before.
            try await Task.sleep(for: .seconds(600))
        case .exitsOnThreads:
            Self.beginReads(collection, count)
            for _ in 0..<4 { Thread.detachNewThread { exit(0) } }
            // The other thread ends the program before.
            try await Task.sleep(for: .seconds(600))
        case .writes: Self.beginWrites(collection, count)
        case .writesAndExits:
            Self.beginWrites(collection, count)
            Thread.detachNewThread { exit(0) }
            // The other thread ends the program before.
            try await Task.sleep(for: .seconds(600))
        case .awaits: try await collection.document("d").setData(["n": 1])
        case .counts:
            for number in 0..<count {
                try await collection.document("counter").setData(["n": FieldValue.increment(Int64(1))], merge: true)
                FileHandle.standardOutput.write(Data("\(number)\n".utf8))
            }
        case .logs:
            Firestore.enableLogging(true)
            try await collection.document("d").setData(["n": 1])
        case .edits: try await OfflineEditor(collection.firestore).run()
        case .drains: try await OfflineEditor(collection.firestore).drain()
        }
    }

    private static func beginReads(_ collection: CollectionReference, _ count: Int) {
        for number in 0..<count { collection.document("d\(number)").getDocument { _, _ in } }
    }

    private static func beginWrites(_ collection: CollectionReference, _ count: Int) {
        for number in 0..<count { collection.document("d\(number)").setData(["n": number]) }
    }
}
