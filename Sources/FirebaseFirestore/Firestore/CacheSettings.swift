// The cache settings of the SDK. `CacheLocation` reads them.

import DocumentCoding
public import Foundation

/// The cache size that means "never collect garbage": -1.
public let FirestoreCacheSizeUnlimited: Int64 = -1

/// The sizes a cache may have, in bytes.
enum CacheSize {
    static let standard: Int64 = 100 * 1024 * 1024
    static let minimum: Int64 = 1024 * 1024

    /// The broken rule, or `nil` for a size that is allowed: unlimited or at least 1 MiB.
    static func violation(of size: Int64) -> String? {
        size == FirestoreCacheSizeUnlimited || size >= minimum
            ? nil : "Cache size must be set to at least \(minimum) bytes"
    }
}

/// Marks the two kinds of cache settings.
public protocol LocalCacheSettings {}

/// Marks the two kinds of garbage collection of a memory cache.
public protocol MemoryGarbageCollectorSettings {}

/// A cache on disk with a soft target size.
public final class PersistentCacheSettings: NSObject, LocalCacheSettings, NSCopying, @unchecked Sendable {
    // Unchecked: immutable; NSObject is what keeps the compiler from seeing it. So for the classes below.

    /// The target size in bytes, -1 for unlimited.
    let sizeBytes: Int64

    public override convenience init() { self.init(size: CacheSize.standard) }

    /// - Parameter sizeBytes: at least 1 MiB, or `FirestoreCacheSizeUnlimited`; anything else is a programming error.
    public convenience init(sizeBytes: NSNumber) {
        if let violation = CacheSize.violation(of: sizeBytes.int64Value) { programmingError(violation) }
        self.init(size: sizeBytes.int64Value)
    }

    init(size: Int64) { sizeBytes = size }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? PersistentCacheSettings)?.sizeBytes == sizeBytes
    }
    public override var hash: Int { sizeBytes.hashValue }
    public func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A cache in memory that ends with the process.
public final class MemoryCacheSettings: NSObject, LocalCacheSettings, NSCopying, @unchecked Sendable {
    let garbageCollectorSettings: any MemoryGarbageCollectorSettings & NSObjectProtocol

    /// A cache that keeps documents, see ``MemoryLRUGCSettings``.
    public override convenience init() { self.init(garbageCollectorSettings: MemoryLRUGCSettings()) }

    /// Creates settings with a garbage collector.
    public init(garbageCollectorSettings: any MemoryGarbageCollectorSettings & NSObjectProtocol) {
        self.garbageCollectorSettings = garbageCollectorSettings
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? MemoryCacheSettings else { return false }
        return other.garbageCollectorSettings.isEqual(garbageCollectorSettings)
    }
    public override var hash: Int { garbageCollectorSettings.hash }
    public func copy(with zone: NSZone? = nil) -> Any { self }
}

/// Drops documents as soon as no listener covers them.
public final class MemoryEagerGCSetting: NSObject, MemoryGarbageCollectorSettings, NSCopying, @unchecked Sendable {
    public override func isEqual(_ object: Any?) -> Bool { object is MemoryEagerGCSetting }
    public override var hash: Int { 1 }
    public func copy(with zone: NSZone? = nil) -> Any { self }
}

/// Drops the least recently used documents past a soft target size.
public final class MemoryLRUGCSettings: NSObject, MemoryGarbageCollectorSettings, NSCopying, @unchecked Sendable {
    /// The target size in bytes, -1 for unlimited.
    let sizeBytes: Int64

    public override convenience init() { self.init(size: CacheSize.standard) }

    /// - Parameter sizeBytes: at least 1 MiB, or `FirestoreCacheSizeUnlimited`; anything else is a programming error.
    public convenience init(sizeBytes: NSNumber) {
        if let violation = CacheSize.violation(of: sizeBytes.int64Value) { programmingError(violation) }
        self.init(size: sizeBytes.int64Value)
    }

    init(size: Int64) { sizeBytes = size }

    public override func isEqual(_ object: Any?) -> Bool { (object as? MemoryLRUGCSettings)?.sizeBytes == sizeBytes }
    public override var hash: Int { sizeBytes.hashValue }
    public func copy(with zone: NSZone? = nil) -> Any { self }
}
