import Basics
import DocumentModel
public import Foundation
import Synchronization

/// Names an observer of a ``LoadBundleTask``.
public typealias LoadBundleObserverHandle = Int

/// What a ``LoadBundleTask`` is doing.
public enum LoadBundleTaskState: Int, Sendable {
    /// The bundle was not loaded.
    case error
    /// The bundle is being read.
    case inProgress
    /// The bundle is in the cache.
    case success
}

/// How much of a bundle was read.
public final class LoadBundleTaskProgress: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants.

    /// Documents that were read so far.
    public let documentsLoaded: Int
    /// Documents of the bundle.
    public let totalDocuments: Int
    /// Bytes that were read so far, without the element with the bundle's metadata.
    public let bytesLoaded: Int
    /// Bytes of the bundle, as its metadata states them.
    public let totalBytes: Int
    /// What the task is doing.
    public let state: LoadBundleTaskState

    init(documentsLoaded: Int, totalDocuments: Int, bytesLoaded: Int, totalBytes: Int, state: LoadBundleTaskState) {
        self.documentsLoaded = documentsLoaded
        self.totalDocuments = totalDocuments
        self.bytesLoaded = bytesLoaded
        self.totalBytes = totalBytes
        self.state = state
    }

    convenience init(_ metadata: BundleElement.Metadata, _ state: LoadBundleTaskState, documents: Int, bytes: Int) {
        self.init(
            documentsLoaded: documents, totalDocuments: metadata.documentCount, bytesLoaded: bytes,
            totalBytes: metadata.byteCount, state: state)
    }

    /// The same progress as that of a failed task.
    var failed: LoadBundleTaskProgress {
        LoadBundleTaskProgress(
            documentsLoaded: documentsLoaded, totalDocuments: totalDocuments, bytesLoaded: bytesLoaded,
            totalBytes: totalBytes, state: .error)
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? LoadBundleTaskProgress else { return false }
        return documentsLoaded == other.documentsLoaded && totalDocuments == other.totalDocuments
            && bytesLoaded == other.bytesLoaded && totalBytes == other.totalBytes && state == other.state
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(documentsLoaded)
        hasher.combine(bytesLoaded)
        hasher.combine(state)
        return hasher.finalize()
    }
}

/// The loading of a bundle, which observers can follow.
///
/// Observers are called on the queue of the settings, in the order in which they were added. An observer that is added
/// after the end gets the last progress. Thread-safe.
public final class LoadBundleTask: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the state is in `state`.

    private struct State: Sendable {
        var progress = LoadBundleTaskProgress(
            documentsLoaded: 0, totalDocuments: 0, bytesLoaded: 0, totalBytes: 0, state: .inProgress)
        var observers: [(handle: LoadBundleObserverHandle, body: UncheckedBox<(LoadBundleTaskProgress) -> Void>)] = []
        var nextHandle = 1
        var completions: [@Sendable (Result<LoadBundleTaskProgress, RequestError>) -> Void] = []
        var result: Result<LoadBundleTaskProgress, RequestError>?
    }

    private let state = Mutex(State())
    private let callBack: @Sendable (@escaping @Sendable () -> Void) -> Void

    init(callBack: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) { self.callBack = callBack }

    /// Adds an observer.
    ///
    /// - Parameter observer: called when documents were read, and at the end.
    /// - Returns: the handle that removes it.
    @discardableResult
    public func addObserver(_ observer: @escaping (LoadBundleTaskProgress) -> Void) -> LoadBundleObserverHandle {
        let body = UncheckedBox(observer)
        return state.withLock { state in
            defer { state.nextHandle += 1 }
            if state.result == nil {
                state.observers.append((state.nextHandle, body))
            } else {
                let progress = state.progress
                callBack { body.value(progress) }
            }
            return state.nextHandle
        }
    }

    /// Removes an observer. An unknown handle has no effect.
    public func removeObserverWith(handle: LoadBundleObserverHandle) {
        state.withLock { $0.observers.removeAll { $0.handle == handle } }
    }

    /// Removes all observers.
    public func removeAllObservers() { state.withLock { $0.observers = [] } }

    // MARK: The loader

    /// The last progress.
    var progress: LoadBundleTaskProgress { state.withLock { $0.progress } }

    func update(_ progress: LoadBundleTaskProgress) {
        state.withLock { state in
            state.progress = progress
            notify(state)
        }
    }

    func finish(_ result: Result<LoadBundleTaskProgress, RequestError>) {
        let completions = state.withLock { state in
            if state.result != nil { return [] as [@Sendable (Result<LoadBundleTaskProgress, RequestError>) -> Void] }
            state.result = result
            if case .success(let progress) = result {
                state.progress = progress
            } else {
                state.progress = state.progress.failed
            }
            notify(state)
            state.observers = []
            defer { state.completions = [] }
            return state.completions
        }
        for completion in completions { completion(result) }
    }

    /// Calls a completion at the end, on a thread of the library, after the observers were called.
    func whenFinished(_ completion: @escaping @Sendable (Result<LoadBundleTaskProgress, RequestError>) -> Void) {
        let result = state.withLock { state in
            if state.result == nil { state.completions.append(completion) }
            return state.result
        }
        if let result { completion(result) }
    }

    /// Under the lock, so that the calls have the order of the changes.
    private func notify(_ state: borrowing State) {
        let progress = state.progress
        for (handle, body) in state.observers {
            callBack { [weak self] in
                // Not after its removal.
                let isThere = self?.state.withLock { $0.result != nil || $0.observers.contains { $0.handle == handle } }
                if isThere ?? true { body.value(progress) }
            }
        }
    }
}
