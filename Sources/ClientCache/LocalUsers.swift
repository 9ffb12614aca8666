// Whose pending writes a client's store applies.

internal import Basics
internal import DocumentModel

/// The user of a client's store, and the batches of its other users.
struct LocalUsers {
    /// Who has the batches that were written before their user was known.
    private struct Claim {
        /// Those with smaller numbers, which no earlier claim is about.
        let end: UInt64
        let user: String
    }

    /// Whose batches are applied; empty for nobody's.
    var current = ""
    /// Whether `current` is the program's user; until then it is the one of the last process.
    private(set) var isKnown = false
    /// Batches from before the user was known: they are that user's.
    private(set) var unclaimed: Set<UInt64> = []
    /// The batches of other users by their numbers.
    var others: [UInt64: LocalBatch] = [:]
    /// The batches themselves are not stored again. In the order of their ends.
    private var claims: [Claim] = []

    /// There is a batch of the current user.
    mutating func note(_ batch: LocalBatch) {
        if batch.isUnclaimed { unclaimed.insert(batch.number) }
    }

    /// The batches from before the user was known have a user.
    ///
    /// - Parameters:
    ///   - end: the number after the last one.
    ///   - oldest: the number of the oldest pending batch.
    mutating func claim(before end: UInt64, by user: String, oldest: UInt64) {
        unclaimed = []
        claims.removeAll { $0.end <= oldest }
        claims.append(Claim(end: end, user: user))
    }

    /// The program's user is known.
    mutating func become(_ user: String) {
        current = user
        isKnown = true
    }

    /// A stored batch as that of its user, if a user has claimed it.
    func claimed(_ batch: LocalBatch) -> LocalBatch {
        guard batch.isUnclaimed, let claim = claims.first(where: { batch.number < $0.end }) else { return batch }
        return batch.claimed(by: claim.user)
    }

    /// No batch that has no user yet may have a smaller number.
    var claimsEnd: UInt64 { claims.last?.end ?? 1 }

    // MARK: Storage

    func encodedClaims() -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        for claim in claims {
            writer.append(littleEndian: claim.end)
            writer.appendVarint(UInt64(claim.user.utf8.count))
            writer.append(utf8: claim.user)
        }
        return writer.copyBytes()
    }

    /// - Throws: DATA_LOSS for bytes that are none.
    mutating func readClaims(_ stored: [UInt8]) throws(RequestError) {
        var reader = WireReader(stored.byteSpan)
        do throws(InvalidDocument) {
            while !reader.isAtEnd {
                let end = try reader.fixed64()
                claims.append(Claim(end: end, user: String(repairingUTF8: try reader.lengthDelimited())))
            }
        } catch {
            throw RequestError(.dataLoss, "The users of pending writes in the cache are damaged.")
        }
    }
}
