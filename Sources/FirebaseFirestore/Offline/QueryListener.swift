/// Decides which snapshots of a view a listener of the program gets. Without I/O.
struct QueryListener {
    /// Whether changes of metadata alone are reported.
    let includesMetadataChanges: Bool
    /// Whether the listener asked for the cache alone.
    let isOfCache: Bool
    private var hasReported = false
    private var latest: ViewSnapshot?
    private var reportedPending = false

    init(includesMetadataChanges: Bool, isOfCache: Bool) {
        self.includesMetadataChanges = includesMetadataChanges
        self.isOfCache = isOfCache
    }

    /// Takes a snapshot of the view.
    ///
    /// - Returns: what the listener gets; nil if nothing.
    mutating func take(_ snapshot: ViewSnapshot, isOffline: Bool) -> ViewSnapshot? {
        var snapshot = snapshot
        if !includesMetadataChanges { snapshot.changes?.removeAll { $0.isMetadata } }
        latest = snapshot
        guard hasReported else { return reportFirst(isOffline: isOffline) }
        let hasOtherPending = reportedPending != snapshot.hasPendingWrites
        reportedPending = snapshot.hasPendingWrites
        if let changes = snapshot.changes, changes.isEmpty {
            return (snapshot.hasNewSource || hasOtherPending) && includesMetadataChanges ? snapshot : nil
        }
        return snapshot
    }

    /// The server cannot be reached, or can be again.
    ///
    /// - Returns: what the listener gets; nil if nothing.
    mutating func connectionChanged(isOffline: Bool) -> ViewSnapshot? {
        hasReported ? nil : reportFirst(isOffline: isOffline)
    }

    private mutating func reportFirst(isOffline: Bool) -> ViewSnapshot? {
        guard var snapshot = latest else { return nil }
        let isReady =
            !snapshot.isFromCache || isOfCache || !snapshot.rows.isEmpty || snapshot.hasCachedResult || isOffline
        guard isReady else { return nil }
        hasReported = true
        reportedPending = snapshot.hasPendingWrites
        // All documents are new to the listener.
        snapshot.changes = nil
        return snapshot
    }
}
