import ClientCache
import DocumentModel
import Foundation
import HearthClient

/// Where the cache of an instance is, and how large it may be.
///
///     settings                                   cache
///     ---------                                  -----
///     nothing set                                in memory, unless HEARTH_CACHE names a directory
///     PersistentCacheSettings,                   in settings.cacheDirectory, else below HEARTH_CACHE,
///     isPersistenceEnabled = true                  else below $XDG_CACHE_HOME/hearth, else below ~/.cache/hearth
///     MemoryCacheSettings,                       in memory
///     isPersistenceEnabled = false
///     a store in this process                    in memory, without documents that no listener covers
///
/// Below these directories each app and database has its directory: `APP/PROJECT/DATABASE`.
struct CacheLocation {
    /// The environment variable with the directory of persistent caches.
    static let variable = "HEARTH_CACHE"

    /// Nil for a cache in memory.
    let directory: String?
    let configuration: LocalStore.Configuration

    /// - Parameter app: the name of the app.
    init(
        _ settings: FirestoreSettings, app: String, database: DatabaseName,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        let isInProcess = (try? HearthClient.Configuration(address: settings.host))?.store != nil
        let wantsPersistence = settings.explicitPersistence ?? (Self.nonEmpty(environment[Self.variable]) != nil)
        let isPersistent = wantsPersistence && !isInProcess
        directory = isPersistent ? settings.cacheDirectory ?? Self.directory(app, database, environment) : nil
        var configuration = LocalStore.Configuration(database: database, directory: directory)
        if isInProcess {
            configuration.isEager = true
            self.configuration = configuration
            return
        }
        switch settings.cacheSettings {
        case let memory as MemoryCacheSettings where !isPersistent:
            if let collector = memory.garbageCollectorSettings as? MemoryLRUGCSettings {
                configuration.bytesMax = Self.bytesMax(collector.sizeBytes)
            } else {
                configuration.isEager = true
            }
        case let persistent as PersistentCacheSettings:
            configuration.bytesMax = Self.bytesMax(persistent.sizeBytes)
        default: configuration.bytesMax = Self.bytesMax(CacheSize.standard)
        }
        self.configuration = configuration
    }

    private static func bytesMax(_ size: Int64) -> Int? {
        size == FirestoreCacheSizeUnlimited ? nil : Int(size)
    }

    private static func nonEmpty(_ text: String?) -> String? { text?.isEmpty ?? true ? nil : text }

    private static func directory(_ app: String, _ database: DatabaseName, _ environment: [String: String]) -> String {
        let parts = "\(database)".split(separator: "/")
        // projects/{project}/databases/{database}
        let path = [app, String(parts[1]), String(parts[3])].map(escaped).joined(separator: "/")
        return "\(root(environment))/\(path)"
    }

    private static func root(_ environment: [String: String]) -> String {
        if let root = nonEmpty(environment[variable]) { return root }
        if let cache = nonEmpty(environment["XDG_CACHE_HOME"]) { return "\(cache)/hearth" }
        return "\(nonEmpty(environment["HOME"]) ?? "/tmp")/.cache/hearth"
    }

    /// A name as one component of a path.
    private static func escaped(_ name: String) -> String {
        var result = ""
        for byte in name.utf8 {
            let isPlain =
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
            if isPlain {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += String(format: "%%%02X", byte)
            }
        }
        return result
    }
}
