public import Dispatch
import DocumentCoding
public import Foundation
import HearthClient

/// Settings of a ``Firestore`` instance: the server or the data directory, the queue of the callbacks, and the cache
/// settings.
///
/// An instance keeps a copy, and its getter returns a copy: change a copy and assign it. Not thread-safe while being
/// changed.
public final class FirestoreSettings: NSObject, NSCopying {
    /// The environment variables that name the server as `HOST:PORT`, the first that is set and not empty wins.
    static let hostVariables = ["HEARTH_ADDRESS", "FIRESTORE_EMULATOR_HOST"]
    /// The environment variable that names a data directory to open in this process, if no server is named.
    static let directoryVariable = "HEARTH_DATA"
    /// The environment variable that names a file of authorities, as `hearth` reads it too.
    static let authoritiesVariable = "HEARTH_TLS_CA"
    /// The server when nothing names one.
    static let fallbackHost = "127.0.0.1:8080"

    /// The server as `HOST:PORT`, IPv6 addresses in brackets, or as `unix:PATH` if it listens on a Unix socket; or a
    /// store in this process: `file:///PATH` for a data directory, `file::memory:` or `file::memory:NAME` for memory.
    ///
    /// Starts as the environment says (`HEARTH_ADDRESS`, `FIRESTORE_EMULATOR_HOST`, or the directory of `HEARTH_DATA`),
    /// else `127.0.0.1:8080`. Empty is a programming error.
    public var host: String {
        didSet { if host.isEmpty { programmingError("Host setting may not be null or empty.") } }
    }

    /// Whether the connection is encrypted with TLS, and the server's certificate verified.
    ///
    /// The default reads as `true`, as in the Apple SDK, but has no effect: a server on the own machine has plain text.
    /// Set it to `true` for a server with TLS, but not for a Unix socket. `HEARTH_TLS_CA` sets it too.
    public var isSSLEnabled: Bool {
        get { explicitSSL ?? true }
        set { explicitSSL = newValue }
    }
    private var explicitSSL: Bool?
    var usesTLS: Bool { explicitSSL ?? (certificateAuthorities != nil) }

    /// The path of a file of authorities, PEM, that the server's certificate must lead to; `nil` = those of the system.
    /// Hearth only. Starts as `HEARTH_TLS_CA` says.
    public var certificateAuthorities: String?

    /// Gives the token of the user, which every call shows to the server; `nil`, as the setting and from the provider,
    /// stands for no user. Hearth only.
    ///
    /// It is called on any thread, one call at a time: before a connection opens, again before the token expires if it
    /// is a JSON Web Token, and with `forceRefresh` if the server has refused the token. With Firebase Auth it is
    /// `{ try await Auth.auth().currentUser?.getIDTokenResult(forcingRefresh: $0).token }`. If it throws, calls that
    /// need its answer fail with `.unauthenticated`; writes wait. Call ``Firestore/userDidChange()`` when the user
    /// signs in or out.
    public var tokenProvider: (@Sendable (_ forceRefresh: Bool) async throws -> String?)? {
        get { tokenSource?.provider }
        set { tokenSource = newValue.map(TokenSource.init) }
    }
    private var tokenSource: TokenSource?

    /// A provider with an identity: functions cannot be compared.
    private final class TokenSource: Sendable {
        let provider: @Sendable (Bool) async throws -> String?
        init(_ provider: @escaping @Sendable (Bool) async throws -> String?) { self.provider = provider }
    }

    /// The queue of all callbacks; the main queue unless set.
    public var dispatchQueue: DispatchQueue = .main

    /// The kind of cache. Cannot be mixed with the two older properties below (a programming error).
    public var cacheSettings: any LocalCacheSettings & NSObjectProtocol {
        get { explicitCacheSettings ?? legacyCacheSettings }
        set { explicitCacheSettings = newValue }
    }
    private var explicitCacheSettings: (any LocalCacheSettings & NSObjectProtocol)?

    /// The directory of a persistent cache. Hearth only.
    ///
    /// `nil` is the directory of the app, project and database below `HEARTH_CACHE`, or else below the user's cache
    /// directory. One process at a time can use a directory.
    public var cacheDirectory: String?

    /// Whether the cache is kept on disk. Older form of `cacheSettings`.
    public var isPersistenceEnabled: Bool {
        get { legacyPersistence ?? true }
        set { legacyPersistence = newValue }
    }
    private var legacyPersistence: Bool?

    /// Whether the program has asked for a cache on disk or for one in memory; nil if it has asked for neither.
    var explicitPersistence: Bool? {
        if let explicitCacheSettings { return explicitCacheSettings is PersistentCacheSettings }
        return legacyPersistence
    }

    /// The target size of the cache in bytes, at least 1 MiB or `FirestoreCacheSizeUnlimited`; anything else is a
    /// programming error. Older form of `cacheSettings`.
    public var cacheSizeBytes: Int64 {
        get { legacyCacheSize ?? CacheSize.standard }
        set {
            if let violation = CacheSize.violation(of: newValue) { programmingError(violation) }
            legacyCacheSize = newValue
        }
    }
    private var legacyCacheSize: Int64?

    public override convenience init() { self.init(environment: ProcessInfo.processInfo.environment) }

    init(environment: [String: String]) {
        let server = Self.hostVariables.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        let directory = environment[Self.directoryVariable].flatMap { path in
            path.isEmpty ? nil : StoreLocation.isLocation(path) ? path : StoreLocation.host(ofDirectory: path)
        }
        host = server ?? directory ?? Self.fallbackHost
        certificateAuthorities = environment[Self.authoritiesVariable].flatMap { $0.isEmpty ? nil : $0 }
    }

    private var legacyCacheSettings: any LocalCacheSettings & NSObjectProtocol {
        isPersistenceEnabled
            ? PersistentCacheSettings(size: cacheSizeBytes)
            : MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings(size: cacheSizeBytes))
    }

    /// The broken rule that keeps these settings from being assigned to an instance, or `nil`.
    var violation: String? {
        explicitCacheSettings != nil && (legacyPersistence != nil || legacyCacheSize != nil)
            ? "Cannot use both cacheSettings and the deprecated isPersistenceEnabled or cacheSizeBytes." : nil
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = FirestoreSettings(environment: [:])
        copy.host = host
        copy.explicitSSL = explicitSSL
        copy.certificateAuthorities = certificateAuthorities
        copy.tokenSource = tokenSource
        copy.dispatchQueue = dispatchQueue
        copy.explicitCacheSettings = explicitCacheSettings
        copy.legacyPersistence = legacyPersistence
        copy.legacyCacheSize = legacyCacheSize
        copy.cacheDirectory = cacheDirectory
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? FirestoreSettings else { return false }
        return host == other.host && usesTLS == other.usesTLS
            && certificateAuthorities == other.certificateAuthorities && tokenSource === other.tokenSource
            && Self.areSame(dispatchQueue, other.dispatchQueue) && cacheSettings.isEqual(other.cacheSettings)
            && cacheDirectory == other.cacheDirectory
    }

    /// `DispatchQueue.main` is another object each time on Linux.
    private static func areSame(_ left: DispatchQueue, _ right: DispatchQueue) -> Bool {
        left === right || (left.label == right.label && left.label == DispatchQueue.main.label)
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(host)
        hasher.combine(usesTLS)
        return hasher.finalize()
    }
}
