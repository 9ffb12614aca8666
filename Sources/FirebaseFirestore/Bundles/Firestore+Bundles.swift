// Bundles: documents and queries in a file, and the names of their queries.

import Basics
import DocumentModel
public import Foundation

extension Firestore {
    /// Loads a bundle into the cache.
    ///
    /// A document does not replace a newer one of the cache. A bundle that was loaded before, or an older one with the
    /// same id, is not loaded again.
    ///
    /// - Parameters:
    ///   - bundleData: the bundle, at most 256 MiB.
    ///   - completion: called on the queue of the settings at the end: with the last progress; and with `.dataLoss` for
    ///     a damaged bundle, `.invalidArgument` for one of another database or with invalid contents, `.unknown` for an
    ///     empty one: then nothing of it is in the cache. With `.resourceExhausted` for one that is too large, or if
    ///     the disk is full: then some of its documents may be in the cache.
    @discardableResult
    public func loadBundle(
        _ bundleData: Data, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)?
    ) -> LoadBundleTask { load(DataSource(bundleData), completion) }

    /// Loads a bundle from a stream into the cache.
    ///
    /// - Parameter bundleStream: is opened, read and closed by the library.
    @discardableResult
    public func loadBundle(
        _ bundleStream: InputStream, completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)?
    ) -> LoadBundleTask { load(StreamSource(bundleStream), completion) }

    /// Loads a bundle into the cache. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    @discardableResult
    public func loadBundle(_ bundleData: Data) -> LoadBundleTask { load(DataSource(bundleData), nil) }

    /// Loads a bundle from a stream into the cache. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    @discardableResult
    public func loadBundle(_ bundleStream: InputStream) -> LoadBundleTask { load(StreamSource(bundleStream), nil) }

    /// Loads a bundle into the cache, and returns when it is there.
    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleData: Data) async throws -> LoadBundleTaskProgress {
        try await loading(load(DataSource(bundleData), nil))
    }

    /// Loads a bundle from a stream into the cache, and returns when it is there.
    @discardableResult
    nonisolated(nonsending) public func loadBundle(_ bundleStream: InputStream) async throws -> LoadBundleTaskProgress {
        try await loading(load(StreamSource(bundleStream), nil))
    }

    /// Looks up a query that a bundle has given a name.
    ///
    /// - Parameter completion: called on the queue of the settings; nil if no loaded bundle has this name.
    public func getQuery(named name: String, completion: @escaping (Query?) -> Void) {
        checkUsable()
        let box = UncheckedBox(completion)
        find(name) { query in self.callBack { box.value(query) } }
    }

    /// Looks up a query that a bundle has given a name; nil if no loaded bundle has it.
    @discardableResult
    nonisolated(nonsending) public func getQuery(named name: String) async -> Query? {
        checkUsable()
        return await withUnsafeContinuation { continuation in
            find(name) { continuation.resume(returning: $0) }
        }
    }

    private func find(_ name: String, _ completion: @escaping @Sendable (Query?) -> Void) {
        guard let engine = try? engine() else { return completion(nil) }
        engine.namedQuery(name) { definition in
            completion(definition.map { Query(firestore: self, definition: $0) })
        }
    }

    private func load(
        _ source: any ByteSource, _ completion: ((LoadBundleTaskProgress?, (any Error)?) -> Void)?
    ) -> LoadBundleTask {
        checkUsable()
        let task = LoadBundleTask { [self] body in callBack(body) }
        if let completion {
            let box = UncheckedBox(completion)
            task.whenFinished { [self, unowned task] result in
                let progress = task.progress
                callBack {
                    switch result {
                    case .success: box.value(progress, nil)
                    case .failure(let error): box.value(progress, error.asNSError)
                    }
                }
            }
        }
        do throws(RequestError) {
            BundleLoader.load(source, into: task, try engine(), on: bundleQueue)
        } catch {
            task.finish(.failure(error))
        }
        return task
    }

    nonisolated(nonsending) private func loading(_ task: LoadBundleTask) async throws -> LoadBundleTaskProgress {
        let result = await withUnsafeContinuation { continuation in
            task.whenFinished { continuation.resume(returning: $0) }
        }
        switch result {
        case .success(let progress): return progress
        case .failure(let error): throw error.asNSError
        }
    }
}
