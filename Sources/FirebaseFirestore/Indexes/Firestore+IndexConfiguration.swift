// Indexes of the cache from a file. In new programs, queries make the indexes that they need: see
// `PersistentCacheIndexManager`.

import Basics
import ClientCache
public import Foundation

extension Firestore {
    /// Replaces the indexes of the cache. Older form of `persistentCacheIndexManager`.
    ///
    /// The indexes are built in the background. Those that exist already are kept. Without a persistent cache there is
    /// no index, and the call only checks the text.
    ///
    /// - Parameters:
    ///   - json: the contents of a `firestore.indexes.json` file, at most 1 MiB. Of its indexes the cache keeps the
    ///     first 100 fields.
    ///   - completion: called on the queue of the settings when the configuration is stored; with `.invalidArgument`
    ///     for text in another format, which changes nothing.
    public func setIndexConfiguration(_ json: String, completion: (((any Error)?) -> Void)?) {
        configureIndexes(IndexConfigurationText(json), completion)
    }

    /// Replaces the indexes of the cache. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func setIndexConfiguration(_ json: String) { setIndexConfiguration(json, completion: nil) }

    /// Replaces the indexes of the cache, and returns when the configuration is stored.
    nonisolated(nonsending) public func setIndexConfiguration(_ json: String) async throws {
        try await configureIndexes(IndexConfigurationText(json))
    }

    /// Replaces the indexes of the cache by those of a stream. Older form of `persistentCacheIndexManager`.
    ///
    /// - Parameter stream: is opened, read and closed by the library.
    public func setIndexConfiguration(_ stream: InputStream, completion: (((any Error)?) -> Void)?) {
        configureIndexes(IndexConfigurationText(stream), completion)
    }

    /// Replaces the indexes of the cache by those of a stream. Returns at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    public func setIndexConfiguration(_ stream: InputStream) { setIndexConfiguration(stream, completion: nil) }

    /// Replaces the indexes of the cache by those of a stream, and returns when the configuration is stored.
    nonisolated(nonsending) public func setIndexConfiguration(_ stream: InputStream) async throws {
        try await configureIndexes(IndexConfigurationText(stream))
    }

    private func configureIndexes(_ text: IndexConfigurationText, _ completion: (((any Error)?) -> Void)?) {
        let box = UncheckedBox(completion)
        configureIndexes(text) { error in
            guard let completion = box.value else { return }
            let call = UncheckedBox(completion)
            self.callBack { call.value(error?.asNSError) }
        }
    }

    nonisolated(nonsending) private func configureIndexes(_ text: IndexConfigurationText) async throws {
        let error: RequestError? = await withUnsafeContinuation { continuation in
            configureIndexes(text) { continuation.resume(returning: $0) }
        }
        if let error { throw error.asNSError }
    }

    private func configureIndexes(
        _ text: IndexConfigurationText, _ completion: @escaping @Sendable (RequestError?) -> Void
    ) {
        checkUsable()
        let isPersistent = cacheDirectory != nil
        do throws(RequestError) {
            let engine = try engine()
            // A stream may block; calls take effect in their order.
            bundleQueue.async {
                do throws(RequestError) {
                    let indexes = try IndexConfiguration.indexes(try text.read())
                    if isPersistent { engine.setIndexes(indexes, completion) } else { completion(nil) }
                } catch {
                    completion(error)
                }
            }
        } catch {
            completion(error)
        }
    }
}

/// The text of a configuration, or the stream that it comes from.
private struct IndexConfigurationText: Sendable {
    private let source: any ByteSource

    init(_ json: String) { source = DataSource(Data(json.utf8)) }

    init(_ stream: InputStream) { source = StreamSource(stream) }

    /// The whole text, or its beginning if it is too long.
    func read() throws(RequestError) -> [UInt8] {
        var text: [UInt8] = []
        while text.count <= IndexConfiguration.bytesMax {
            let more = try source.read(64 << 10)
            if more.isEmpty { break }
            text += more
        }
        return text
    }
}
