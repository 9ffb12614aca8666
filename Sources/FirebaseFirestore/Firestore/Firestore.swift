import Basics
import DocumentCoding
import DocumentModel
public import FirebaseCore
public import Foundation
import HearthClient
import Synchronization

/// A database of a Hearth server, or of a store in this process: the entry point of the SDK.
///
///     Firestore ── FirestoreSettings      the server or the data directory, the queue of the callbacks
///        │
///        ├── HearthClient                 created at first use: connections, retries, request identifiers
///        ├── SyncEngine                   created with it: the local cache, pending writes, listeners
///        ├── PendingWrites                counts the writes that are not acknowledged
///        └── CollectionReference, DocumentReference, Query, WriteBatch, Transaction: values that refer to it
///
/// There is one object for each app and database: equal arguments give the same object until `terminate`.
///
/// Thread-safe. The callbacks of its methods run on `settings.dispatchQueue`; the async forms do not need that queue.
public final class Firestore: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the constants are Sendable and the rest is in `state`.

    /// Encodes `Encodable` values into documents.
    public typealias Encoder = FirestoreEncoder
    /// Decodes `Decodable` values from documents.
    public typealias Decoder = FirestoreDecoder

    /// The app that this object belongs to.
    public let app: FirebaseApp
    let databaseName: DatabaseName
    /// `projects/P/databases/D/documents`.
    let documentsRoot: String
    let pendingWrites = PendingWrites()
    /// Bundles are loaded one after the other.
    let bundleQueue = DispatchQueue(label: "hearth.bundles")

    private struct State: @unchecked Sendable {
        // Unchecked: the settings object is a private copy.
        var settings: FirestoreSettings
        var client: HearthClient?
        var engine: SyncEngine?
        /// Closes the client and the cache; nil before `terminate`.
        var ending: Task<Void, Never>?
        var isTerminated: Bool { ending != nil }
        var isNetworkEnabled = true
        var indexManager: PersistentCacheIndexManager?
    }
    private let state: Mutex<State>

    init(app: FirebaseApp, databaseName: DatabaseName, settings: FirestoreSettings = FirestoreSettings()) {
        self.app = app
        self.databaseName = databaseName
        documentsRoot = databaseName.documentsRoot
        state = Mutex(State(settings: settings))
    }

    /// The settings. The getter returns a copy: assign a changed object back. Settings that differ from those in use
    /// after the first call are a programming error.
    public var settings: FirestoreSettings {
        get { state.withLock { UncheckedBox($0.settings.copy() as! FirestoreSettings) }.value }
        set {
            if let violation = newValue.violation { programmingError(violation) }
            let box = UncheckedBox(newValue.copy() as! FirestoreSettings)
            let isRefused = state.withLock { state in
                if state.client != nil { return !state.settings.isEqual(box.value) }
                state.settings = box.value
                return false
            }
            if isRefused { programmingError(Self.startedMessage) }
        }
    }

    /// Points the instance at a server and makes sure that the connection is a plain one. Only before first use.
    public func useEmulator(withHost host: String, port: Int) {
        if host.isEmpty { programmingError("Cannot pass nil or empty host when configuring the emulator") }
        let changed = settings
        changed.host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
        changed.isSSLEnabled = false
        settings = changed
    }

    private static let startedMessage = """
        Firestore instance has already been started and its settings can no longer be changed. You can only set \
        settings before calling any other methods on a Firestore instance.
        """

    // MARK: For calls

    /// The client, made now if this is the first use.
    ///
    /// - Throws: `RequestError` with `.failedPrecondition` after `terminate`, `.unimplemented` if the settings insist
    ///   on TLS, `.invalidArgument` if the host cannot be read, and what opening a store in this process throws.
    func client() throws(RequestError) -> HearthClient { try engine().client }

    /// The engine with its client and its cache, made now if this is the first use.
    ///
    /// - Throws: what `client()` throws; `.failedPrecondition` if another process uses the cache.
    func engine() throws(RequestError) -> SyncEngine {
        let result = state.withLock { state -> Result<SyncEngine, RequestError> in
            if let engine = state.engine { return .success(engine) }
            do throws(RequestError) {
                if state.isTerminated { throw RequestError.terminated }
                let place = CacheLocation(state.settings, app: app.name, database: databaseName)
                let engine = try SyncEngine(
                    place.configuration,
                    makeClient: { (userChanged) throws(RequestError) in
                        var configuration = try HearthClient.Configuration(state.settings)
                        configuration.userChanged = userChanged
                        let client = try HearthClient(configuration)
                        // Before the writes that an earlier process has left can be sent.
                        if !state.isNetworkEnabled { client.switchNetwork(false) }
                        return client
                    },
                    pendingWrites: pendingWrites
                ) { [weak self] body in self?.callBack(body) }
                state.client = engine.client
                state.engine = engine
                state.indexManager = place.directory.map { _ in PersistentCacheIndexManager(engine) }
                ExitFlush.enable()
                return .success(engine)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// The manager of the indexes of a persistent cache; nil before first use.
    var indexManager: PersistentCacheIndexManager? { state.withLock { $0.indexManager } }

    /// Traps after `terminate`: later calls are programming errors.
    func checkUsable() {
        if isTerminated { programmingError(RequestError.terminated.message) }
    }

    var isTerminated: Bool { state.withLock { $0.isTerminated } }

    /// Runs a callback of the user on the queue of the settings.
    func callBack(_ body: @escaping @Sendable () -> Void) {
        state.withLock { UncheckedBox($0.settings.dispatchQueue) }.value.async(execute: body)
    }

    // MARK: Network and shutdown

    /// Allows or forbids connections, in the order of such calls.
    func switchNetwork(_ isEnabled: Bool) {
        checkUsable()
        state.withLock {
            $0.isNetworkEnabled = isEnabled
            $0.client?.switchNetwork(isEnabled)
            if isEnabled { $0.engine?.networkEnabled() }
        }
    }

    /// Asks ``FirestoreSettings/tokenProvider`` again: the user has signed in or out. Hearth only.
    ///
    /// Returns at once; calls show the new token when the provider has given it. It has no effect without a provider,
    /// and before the first use.
    public func userDidChange() {
        checkUsable()
        state.withLock { $0.client }?.tokenMayHaveChanged()
    }

    /// Opens the cache, and returns when the network is as the last switch has it.
    func networkSwitched() async throws(RequestError) { try await client().networkSwitched() }

    /// Frees the instance's place, so that `firestore()` makes a new one, and begins to end the client.
    ///
    /// - Returns: the end, the same one for each call.
    @discardableResult
    func beginShutDown() -> Task<Void, Never> {
        let ending = state.withLock { state -> Task<Void, Never> in
            if let ending = state.ending { return ending }
            let ending = Task { [engine = state.engine] in await self.end(engine) }
            (state.ending, state.client, state.engine) = (ending, nil, nil)
            return ending
        }
        FirestoreInstances.shared.remove(self)
        return ending
    }

    private func end(_ engine: SyncEngine?) async {
        await engine?.prepareToClose()
        await engine?.client.close()
        await engine?.close()
    }

    /// Ends the client for good.
    func shutDown() async { await beginShutDown().value }

    /// The end of the client; nil before `terminate`.
    var ending: Task<Void, Never>? { state.withLock { $0.ending } }

    /// Closes the cache at the end of the process, so that the next start is quick.
    func closeCacheAtExit() { state.withLock { $0.engine }?.closeAtExit() }

    /// Where the cache of the settings is; nil for a cache in memory.
    var cacheDirectory: String? {
        state.withLock { CacheLocation($0.settings, app: app.name, database: databaseName).directory }
    }

    /// Closes the store in this process, if there is one, before the process ends.
    func closeStore(before deadline: DispatchTime) {
        state.withLock { $0.client }?.closeStore(before: deadline)
    }

    /// Whether writes of the user are pending. May wait for a moment; not for the thread of a callback of the engine.
    var hasPendingWrites: Bool { state.withLock { $0.engine }?.hasPendingWrites ?? false }

    /// Whether writes can leave: the network is not switched off, and the instance is in use.
    var canSend: Bool { state.withLock { $0.isNetworkEnabled && $0.client != nil } }

    /// The server of the settings.
    var host: String { state.withLock { $0.settings.host } }

    var isInUse: Bool { state.withLock { $0.client != nil && !$0.isTerminated } }
}

extension RequestError {
    /// What calls fail with after `terminate`, where they can fail.
    static let terminated = RequestError(.failedPrecondition, "The client has already been terminated.")
}

/// Carries a value that the compiler cannot see to be safe across one boundary; every use says why it is.
struct UncheckedBox<Value>: @unchecked Sendable {
    // Unchecked by design: used for private copies handed to one owner, and for callbacks that the API takes as plain
    // closures and calls on the user's queue.
    let value: Value
    init(_ value: Value) { self.value = value }
}
