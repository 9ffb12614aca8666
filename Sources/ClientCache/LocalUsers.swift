// Whose pending writes a client's store applies.

/// The user of a client's store, and the batches of its other users.
struct LocalUsers {
    /// Whose batches are applied; empty for nobody's.
    var current = ""
    /// Whether `current` is the program's user; until then it is the one of the last process.
    var isKnown = false
    /// Batches of this process from before the user was known: they are that user's.
    private(set) var unclaimed: Set<UInt64> = []
    /// The batches of other users by their numbers.
    var others: [UInt64: LocalBatch] = [:]

    /// There is a new batch of the current user.
    mutating func noteBatch(_ number: UInt64) {
        if !isKnown { unclaimed.insert(number) }
    }

    /// The program's user is known.
    ///
    /// - Returns: the batches that become this user's.
    mutating func becomeKnown() -> Set<UInt64> {
        defer { unclaimed = [] }
        isKnown = true
        return unclaimed
    }
}
