// Whose pending writes a client's store applies.

/// The user of a client's store, and the batches of its other users.
struct LocalUsers {
    /// Whose batches are applied; empty for nobody's.
    var current = ""
    /// Whether `current` is the program's user; until then it is the one of the last process.
    private(set) var isKnown = false
    /// Batches from before the user was known: they are that user's.
    private(set) var unclaimed: Set<UInt64> = []
    /// The batches of other users by their numbers.
    var others: [UInt64: LocalBatch] = [:]

    /// There is a batch of the current user.
    mutating func note(_ batch: LocalBatch) {
        if batch.isUnclaimed { unclaimed.insert(batch.number) }
    }

    /// The program's user is known, and has the batches from before that.
    mutating func become(_ user: String) {
        current = user
        isKnown = true
        unclaimed = []
    }
}
