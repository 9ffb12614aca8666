public import Foundation

/// Controls the indexes of a persistent cache.
///
/// Without indexes a query of the cache reads its collection. With automatic creation, a query that reads at least 100
/// documents which are not among its results, and at least twice as many as its results, begins to make the indexes
/// that it lacks: of its equalities, of a range, or of its order. They are built in the background, survive a restart
/// and include pending writes. Automatic creation is off at the start of the program. Thread-safe.
public final class PersistentCacheIndexManager: NSObject, Sendable {
    private let engine: SyncEngine?

    init(_ engine: SyncEngine?) { self.engine = engine }

    /// Queries of the cache begin to make the indexes that they lack.
    public func enableIndexAutoCreation() { engine?.setIndexAutoCreation(true) }

    /// Makes no more indexes. Those that exist are kept and used.
    public func disableIndexAutoCreation() { engine?.setIndexAutoCreation(false) }

    /// Removes all indexes. Automatic creation stays as it is.
    public func deleteAllIndexes() { engine?.deleteAllIndexes() }
}

extension Firestore {
    /// The manager of the persistent cache's indexes; nil if the settings ask for a cache in memory.
    ///
    /// Each access gives the same object. Opens the cache. If that is not possible, the manager's methods have no
    /// effect; other calls return the error.
    public var persistentCacheIndexManager: PersistentCacheIndexManager? {
        checkUsable()
        if cacheDirectory == nil { return nil }
        _ = try? engine()
        return indexManager ?? PersistentCacheIndexManager(nil)
    }
}
