// Reads and writes by collection, estimated from a sample.
//
// A look-up in a table for each document would cost more than a point read has to spare. So one document in 64 is
// looked at, after gaps of random lengths, and stands for 64. The counters that exist anyway tell when the next one is
// due: a document that is not looked at costs a load and a comparison.

internal import Basics
internal import DocumentModel
internal import Synchronization

/// About the documents that were read and written in the collections with one id.
package struct CollectionUse: Equatable, Sendable {
    /// `projects/P/databases/D`
    package let database: String
    /// The last segment of the paths of the collections.
    package let collectionID: String
    package var reads: UInt64 = 0
    package var writes: UInt64 = 0
}

/// The samples of one loop. Notes come from the loop's thread; any thread reads.
final class CollectionSamples: Sendable {
    /// Documents for which a sampled one stands: the mean of the gaps.
    static let weight: UInt64 = 64
    /// Ids that are kept; the one with the least use gives way.
    static let entriesMax = 400

    private let entries = Mutex<[[UInt8]: CollectionUse]>([:])

    /// Notes samples of one collection.
    ///
    /// - Parameters:
    ///   - path: of a document, below `documents`.
    ///   - count: the number of samples.
    func note(database: String, path: RawSpan, count: UInt64, isWrite: Bool) {
        let id = RelativePath.lastSegment(DocumentPathParts.collection(ofDocument: path))
        let key = Array(database.utf8) + [0] + [UInt8](copying: id)
        entries.withLock { entries in
            var use =
                entries[key] ?? CollectionUse(database: database, collectionID: String(repairingUTF8: id))
            if isWrite { use.writes += count * Self.weight } else { use.reads += count * Self.weight }
            if entries[key] == nil, entries.count >= Self.entriesMax,
                let least = entries.min(by: { $0.value.total < $1.value.total })?.key
            {
                entries[least] = nil
            }
            entries[key] = use
        }
    }

    var all: [CollectionUse] { entries.withLock { Array($0.values) } }
}

extension CollectionUse {
    package var total: UInt64 { reads &+ writes }

    /// The uses that loops have noted, added up; those with the most use, at most so many.
    package static func most(_ loops: [ServiceCounters], max: Int) -> [CollectionUse] {
        var sums: [String: CollectionUse] = [:]
        for use in loops.flatMap(\.collectionUse) {
            let key = "\(use.database) \(use.collectionID)"
            sums[key]?.reads += use.reads
            sums[key]?.writes += use.writes
            if sums[key] == nil { sums[key] = use }
        }
        return Array(sums.values.sorted { ($0.total, $1.collectionID) > ($1.total, $0.collectionID) }.prefix(max))
    }
}

/// Parts of the path of a document.
private enum DocumentPathParts {
    /// The path of the collection; empty for a path without a slash.
    @_lifetime(copy path)
    static func collection(ofDocument path: RawSpan) -> RawSpan {
        path.extracting(0..<max(0, path.byteCount - RelativePath.lastSegment(path).byteCount - 1))
    }
}

/// When the next document is looked at. Confined to a loop, like the counters beside it.
struct SamplePoint: ~Copyable, Sendable {
    /// The value of the counter at which the next one is due.
    private let next = Counter()
    /// State of a generator of random numbers (xorshift).
    private let state = Counter()

    init(seed: UInt64) {
        state.add(seed | 1)
        next.add(gap())
    }

    /// Whether a counter has reached the next one.
    @inline(__always)
    func isDue(_ counter: borrowing Counter) -> Bool { counter.value >= next.value }

    /// How far the counter is beyond the next one, which was due; chooses another.
    func take(_ counter: borrowing Counter) -> UInt64 {
        let beyond = counter.value &- next.value
        next.add(gap())
        return beyond
    }

    /// One to twice the weight less one, each as likely.
    private func gap() -> UInt64 {
        var bits = state.value
        bits ^= bits << 13
        bits ^= bits >> 7
        bits ^= bits << 17
        state.add(bits &- state.value)
        return 1 + (bits >> 11) % (2 * CollectionSamples.weight - 1)
    }
}
