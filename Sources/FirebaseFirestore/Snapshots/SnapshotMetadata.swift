// Where a snapshot's content comes from.

public import Foundation

/// Whether a snapshot comes from the cache or contains writes that are not acknowledged.
public final class SnapshotMetadata: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; both properties are constants.

    /// Whether the snapshot contains writes of this client that the server has not acknowledged.
    public let hasPendingWrites: Bool
    /// Whether the snapshot was made from cached data.
    public let isFromCache: Bool

    static let fromCache = SnapshotMetadata(hasPendingWrites: false, isFromCache: true)
    static let fromServer = SnapshotMetadata(hasPendingWrites: false, isFromCache: false)
    private static let pendingFromCache = SnapshotMetadata(hasPendingWrites: true, isFromCache: true)
    private static let pendingFromServer = SnapshotMetadata(hasPendingWrites: true, isFromCache: false)

    /// One of four shared objects.
    static func of(hasPendingWrites: Bool, isFromCache: Bool) -> SnapshotMetadata {
        switch (hasPendingWrites, isFromCache) {
        case (false, false): fromServer
        case (false, true): fromCache
        case (true, false): pendingFromServer
        case (true, true): pendingFromCache
        }
    }

    init(hasPendingWrites: Bool, isFromCache: Bool) {
        self.hasPendingWrites = hasPendingWrites
        self.isFromCache = isFromCache
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? SnapshotMetadata else { return false }
        return hasPendingWrites == other.hasPendingWrites && isFromCache == other.isFromCache
    }

    public override var hash: Int { (hasPendingWrites ? 2 : 0) | (isFromCache ? 1 : 0) }
}
