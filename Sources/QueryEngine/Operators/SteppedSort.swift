// Sorting in steps: a merge sort from the bottom up over positions, which stops after any comparison.
//
//     pass 1     pairs of elements become runs of two
//     pass 2     pairs of runs become runs of four, and so on; each pass looks at each element once

/// The order of a list that is being sorted. The sort is stable.
struct SteppedSort: Sendable {
    /// The positions of the elements. Those of the sorted list once the sort is done.
    private(set) var order: [Int]
    /// The runs that this pass has made.
    private var merged: [Int]
    /// The length of the runs that are merged.
    private var width = 1
    /// Where the pair begins that is being merged, and what is next of its two runs.
    private var (start, left, right) = (0, 0, 1)

    /// Comparisons that take as long as a look at a document.
    static let comparisonsPerDocument = 8

    init(count: Int) {
        order = Array(0..<count)
        merged = order
    }

    var isDone: Bool { width >= order.count }

    /// Sorts until a budget is spent, at least a little.
    ///
    /// - Parameters:
    ///   - budget: in looks at documents; what was done is taken off.
    ///   - precedes: whether the element at a position of the list comes before that at another one.
    /// - Returns: whether the sort is done.
    mutating func advance(_ budget: inout Int, by precedes: (Int, Int) -> Bool) -> Bool {
        if isDone { return true }
        // More than any list has.
        let most = min(max(budget, 1), 1 << 40) * Self.comparisonsPerDocument
        var rest = most
        while !isDone, rest > 0 { mergePair(&rest, by: precedes) }
        budget -= (most - rest + Self.comparisonsPerDocument - 1) / Self.comparisonsPerDocument
        return isDone
    }

    /// Merges two runs, or a part of them, and then turns to the next two.
    private mutating func mergePair(_ comparisons: inout Int, by precedes: (Int, Int) -> Bool) {
        let middle = min(start + width, order.count)
        let end = min(middle + width, order.count)
        for place in (left + right - middle)..<end {
            if comparisons == 0 { return }
            comparisons -= 1
            if left == middle || right < end && precedes(order[right], order[left]) {
                merged[place] = order[right]
                right += 1
            } else {
                merged[place] = order[left]
                left += 1
            }
        }
        start = end
        if end == order.count {
            swap(&order, &merged)
            width *= 2
            start = 0
        }
        (left, right) = (start, min(start + width, order.count))
    }
}
