public import Foundation

/// Controls the indexes of a persistent cache.
///
/// The cache of this client has no indexes besides the order of the documents: a query of the cache reads its
/// collection. So there is nothing to create and nothing to delete, and the methods return at once. They exist so that
/// programs written for the Apple SDK work unchanged.
public final class PersistentCacheIndexManager: NSObject, Sendable {
    /// Queries of the cache read their collection, also after this call.
    public func enableIndexAutoCreation() {}

    /// Queries of the cache read their collection.
    public func disableIndexAutoCreation() {}

    /// There are no indexes to delete.
    public func deleteAllIndexes() {}
}

extension Firestore {
    /// The manager of the persistent cache's indexes; nil if the settings ask for a cache in memory.
    public var persistentCacheIndexManager: PersistentCacheIndexManager? {
        checkUsable()
        return cacheDirectory == nil ? nil : PersistentCacheIndexManager()
    }
}
