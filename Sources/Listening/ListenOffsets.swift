import Basics
import DocumentModel
internal import QueryEngine

/// What the targets of a hub skip with the offsets of their queries. Confined to the thread of the hub.
///
/// No index leads to the n-th result, so every comparison of a query reads all results that it skips. Targets of equal
/// queries that share their comparisons count once.
struct ListenOffsets {
    /// Results that are skipped by all together.
    private(set) var total = 0
    /// The number of targets of each shared query.
    private var shared: [[UInt8]: Int] = [:]

    /// - Parameter limit: the most results that all targets together may skip.
    /// - Throws: `RESOURCE_EXHAUSTED` above the limit; nothing is added then.
    mutating func add(_ target: Target, limit: Int) throws(RequestError) {
        guard let query = target.windowQuery, query.plan.offset > 0 else { return }
        if query.sharesComparisons, let count = shared[query.identity] {
            shared[query.identity] = count + 1
            return
        }
        // The sum of two limits fits: an offset has 31 bits.
        if total + query.plan.offset > limit {
            throw RequestError(
                .resourceExhausted,
                "The offsets of real-time queries are too large: together they may skip \(limit) results. "
                    + "Use a cursor instead of an offset.")
        }
        total += query.plan.offset
        if query.sharesComparisons { shared[query.identity] = 1 }
    }

    /// Removes a target that was added.
    mutating func remove(_ target: Target) {
        guard let query = target.windowQuery, query.plan.offset > 0 else { return }
        if query.sharesComparisons, let count = shared[query.identity], count > 1 {
            shared[query.identity] = count - 1
            return
        }
        shared[query.identity] = nil
        total -= query.plan.offset
    }
}
