// The pending batches of one document.

internal import Basics

/// The numbers of the batches that change a document, in their order, and whether their local result can be kept when
/// the state that they are applied to changes.
struct PendingDocument {
    private var all: [UInt64] = []
    /// Numbers before this index are gone.
    private var head = 0
    /// Whether every batch applies, and none deletes the document or depends on its times. Then the visible fields
    /// follow from the fields before the batches alone. False if it is not known.
    var isRegular = false

    var numbers: ArraySlice<UInt64> { all[head...] }
    var isEmpty: Bool { head == all.count }

    /// The numbers of batches by the paths of their documents, in their order.
    static func numbers(of batches: [LocalBatch]) -> [[UInt8]: [UInt64]] {
        var numbers: [[UInt8]: [UInt64]] = [:]
        for batch in batches { for path in batch.paths { numbers[path, default: []].append(batch.number) } }
        return numbers
    }

    /// - Parameter number: above all others.
    mutating func append(_ number: UInt64) { all.append(number) }

    /// Adds a batch anywhere. What was known of the local result is not known any more.
    mutating func insert(_ number: UInt64) {
        all.insert(number, at: all[head...].partitioningIndex { $0 > number })
        isRegular = false
    }

    /// Removes a batch. The first one costs constant time on average.
    mutating func remove(_ number: UInt64) {
        guard number == all[head...].first else {
            if let index = all[head...].firstIndex(of: number) { all.remove(at: index) }
            return
        }
        head += 1
        if head > all.count / 2 {
            all.removeFirst(head)
            head = 0
        }
    }
}
