import Basics
import ClientCache
import Dispatch
import DocumentModel
import Foundation

/// Loads one bundle: reads all of it, then applies it.
///
///     source ─► BundleReader ─► BundleElementReader ─► LocalBundle ─► SyncEngine
///                     └─────── progress ─────────► LoadBundleTask
struct BundleLoader: ~Copyable {
    private let task: LoadBundleTask
    private let engine: SyncEngine
    private var reader: BundleReader
    private var elements: BundleElementReader
    /// The metadata of a document that must be next.
    private var expected: BundleElement.DocumentMetadata?
    /// The documents of the bundle's queries, by the names of the queries.
    private var results: [UTF8Text: [String]] = [:]

    /// Loads a bundle on a serial queue, which no other work uses.
    static func load(
        _ source: any ByteSource, into task: LoadBundleTask, _ engine: SyncEngine, on queue: DispatchQueue
    ) {
        queue.async {
            var loader = BundleLoader(source, task, engine)
            do throws(RequestError) {
                task.finish(.success(try loader.load()))
            } catch {
                task.finish(.failure(error))
            }
        }
    }

    private init(_ source: any ByteSource, _ task: LoadBundleTask, _ engine: SyncEngine) {
        self.task = task
        self.engine = engine
        reader = BundleReader(source)
        elements = BundleElementReader(database: engine.database)
    }

    private mutating func load() throws(RequestError) -> LoadBundleTaskProgress {
        guard let first = try reader.next() else { throw RequestError(.unknown, "The bundle is empty.") }
        guard case .metadata(let metadata) = try elements.read(first) else {
            throw .damagedBundle("its first element is not its metadata")
        }
        let start = reader.byteCount
        if try engine.hasLoaded(metadata.id, createMicroseconds: metadata.createMicroseconds) {
            return LoadBundleTaskProgress(
                metadata, .success, documents: metadata.documentCount, bytes: metadata.byteCount)
        }
        task.update(LoadBundleTaskProgress(metadata, .inProgress, documents: 0, bytes: 0))
        var bundle = LocalBundle(id: metadata.id, createMicroseconds: metadata.createMicroseconds)
        while let json = try reader.next() {
            let before = bundle.documents.count
            try add(try elements.read(json), to: &bundle)
            if bundle.documents.count > before {
                task.update(
                    LoadBundleTaskProgress(
                        metadata, .inProgress, documents: bundle.documents.count,
                        bytes: reader.byteCount - start))
            }
        }
        if let expected {
            throw .damagedBundle("the document '\(expected.name)' is missing")
        }
        guard bundle.documents.count == metadata.documentCount else {
            throw .invalidArgument(
                "The bundle has \(bundle.documents.count) documents; its metadata names \(metadata.documentCount).")
        }
        for query in bundle.queries {
            bundle.results.append(
                LocalBundle.QueryResult(
                    canonical: try BundledQuery(stored: query.contents).canonical(in: engine.database),
                    readMicroseconds: query.readMicroseconds, documents: results[UTF8Text(query.name)] ?? []))
        }
        try engine.load(bundle)
        return LoadBundleTaskProgress(
            metadata, .success, documents: bundle.documents.count, bytes: reader.byteCount - start)
    }

    private mutating func add(_ element: BundleElement, to bundle: inout LocalBundle) throws(RequestError) {
        if let expected {
            guard case .document(let document) = element, document.name.hasSameUTF8(as: expected.name) else {
                throw .damagedBundle("the document '\(expected.name)' is missing")
            }
            self.expected = nil
            for query in expected.queries { results[UTF8Text(query), default: []].append(document.name) }
            bundle.documents[UTF8Text(document.name)] = .found(
                fields: document.fields, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds)
            return
        }
        switch element {
        case .metadata: throw .damagedBundle("it has two elements with metadata")
        case .document(let document):
            throw .damagedBundle("'\(document.name)' has no metadata")
        case .namedQuery(let query): bundle.queries.append(query)
        case .documentMetadata(let metadata):
            if metadata.exists {
                expected = metadata
            } else {
                bundle.documents[UTF8Text(metadata.name)] = .missing(readMicroseconds: metadata.readMicroseconds)
            }
        }
    }
}

extension SyncEngine {
    /// Whether this bundle, or a newer one with its id, was loaded. Blocks.
    func hasLoaded(_ id: String, createMicroseconds: UInt64) throws(RequestError) -> Bool {
        try waitFor { (store) throws(RequestError) in
            (try store.bundleCreateMicroseconds(id)).map { $0 >= createMicroseconds } ?? false
        }
    }

    /// Applies a bundle, and shows it to the listeners. Blocks.
    func load(_ bundle: LocalBundle) throws(RequestError) {
        try waitFor { (store) throws(RequestError) in
            var changes: [LocalChange] = []
            defer {
                self.broadcast(changes)
                self.resolveLimbo()
            }
            try store.load(bundle, changing: &changes)
        }
    }

    /// The query that a bundle has given a name.
    ///
    /// - Parameter completion: called on the engine's queue.
    func namedQuery(_ name: String, completion: @escaping @Sendable (QueryDescription?) -> Void) {
        queue.async {
            do throws(RequestError) {
                if self.isClosed { return completion(nil) }
                guard let named = try self.store.namedQuery(name) else { return completion(nil) }
                completion(try BundledQuery(stored: named.contents).description(in: self.database))
            } catch {
                self.report(error)
                completion(nil)
            }
        }
    }

    /// Runs a block on the engine's queue and waits for it. Not to be called on that queue.
    private func waitFor<Value: Sendable>(
        _ body: @escaping @Sendable (LocalStore) throws(RequestError) -> Value
    ) throws(RequestError) -> Value {
        let result = Monitor<Result<Value, RequestError>?>(nil)
        queue.sync {
            let outcome: Result<Value, RequestError>
            if self.isClosed {
                outcome = .failure(RequestError(.cancelled, "The client is closed."))
            } else {
                do throws(RequestError) {
                    outcome = .success(try body(self.store))
                } catch {
                    outcome = .failure(error)
                }
            }
            result.withLock { $0 = outcome }
        }
        guard let outcome = result.withLock({ $0 }) else { preconditionFailure("the block has run") }
        return try outcome.get()
    }
}
