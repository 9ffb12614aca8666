/// A snapshot that is being sent: what has changed for all targets of a stream, up to one version.
struct Snapshot: ~Copyable {
    /// A target of which two states are compared.
    struct Comparison {
        let target: Target
        /// The version of what the client has.
        let base: UInt64
        /// The comparison for all targets of the query; nil if the target is compared alone.
        let shared: WindowComparison?
    }

    /// The version, in microseconds.
    let version: UInt64
    /// A version of the client's state before the snapshot.
    let base: UInt64
    /// Whether it is sent even if nothing has changed.
    let isRequired: Bool
    /// Targets that are still to be compared, the next one last.
    var comparisons: [Comparison]
    /// The comparison that is under way.
    var reading: TargetReading?
    var entries: [PendingChanges.Entry]
    var nextEntry = 0
    /// The queue's count of messages when the snapshot began.
    let messagesBefore: Int

    init(
        version: UInt64, base: UInt64, isRequired: Bool, comparisons: [Comparison], entries: [PendingChanges.Entry],
        messagesBefore: Int
    ) {
        self.version = version
        self.base = base
        self.isRequired = isRequired
        self.comparisons = comparisons
        self.entries = entries
        self.messagesBefore = messagesBefore
    }
}
