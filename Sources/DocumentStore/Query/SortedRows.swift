// The first results of a sorted query, kept in bounded memory.
//
// A pass over the candidates offers each with its sort key; the rows kept are those with the smallest keys, as many as
// are wanted and as fit. What is wanted but does not fit is not lost: the rows say where they had to cut, and the run
// makes another pass for what lies behind the last row given out.

import DocumentModel

/// A result waiting for its turn.
struct SortedRow: Sendable {
    let key: [UInt8]
    /// The path, then the projected fields.
    let payload: [UInt8]
    let pathCount: Int
    let createMicroseconds: UInt64
    let updateMicroseconds: UInt64

    /// Memory that the row takes, about: bytes, two array headers, the row itself.
    var byteCount: Int { key.count + payload.count + 128 }

    func precedes(_ other: SortedRow) -> Bool { key.byteSpan.compareBytes(other.key.byteSpan) < 0 }

    /// Whether the row comes after a key.
    func follows(_ other: RawSpan) -> Bool { key.byteSpan.compareBytes(other) > 0 }
}

/// The rows with the smallest keys, in a heap with the largest on top.
struct SortedRows: Sendable {
    private var heap: [SortedRow] = []
    private let rowsMax: Int
    private let bytesMax: Int
    private var bytes = 0

    /// The smallest key that was left out for want of memory; everything from here on is left to the next pass.
    private(set) var cut: [UInt8]?

    /// - Parameters:
    ///   - rowsMax: rows wanted, at least 1.
    ///   - bytesMax: memory to stay within; one row is kept whatever its size.
    init(rowsMax: Int, bytesMax: Int) {
        self.rowsMax = rowsMax
        self.bytesMax = bytesMax
    }

    var count: Int { heap.count }

    /// Whether a row with this key would be kept. Ask before building the row.
    func wants(key: RawSpan) -> Bool {
        if let cut, key.compareBytes(cut.byteSpan) >= 0 { return false }
        if heap.count < rowsMax { return true }
        return heap[0].follows(key)
    }

    /// Takes a row that is wanted, and gives up the largest ones until the rest fits.
    mutating func insert(_ row: SortedRow) {
        bytes += row.byteCount
        heap.append(row)
        siftUp(heap.count - 1)
        if heap.count > rowsMax { _ = removeLargest() }
        while bytes > bytesMax, heap.count > 1 { cut = removeLargest().key }
    }

    /// The rows in order; afterwards there are none.
    mutating func takeSorted() -> [SortedRow] {
        var rows: [SortedRow] = []
        swap(&rows, &heap)
        bytes = 0
        rows.sort { $0.precedes($1) }
        return rows
    }

    private mutating func removeLargest() -> SortedRow {
        heap.swapAt(0, heap.count - 1)
        let largest = heap.removeLast()
        siftDown(0)
        bytes -= largest.byteCount
        return largest
    }

    private func isLess(_ left: Int, _ right: Int) -> Bool {
        heap[left].precedes(heap[right])
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard isLess(parent, index) else { return }
            heap.swapAt(parent, index)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var largest = index
            for child in 2 * index + 1...2 * index + 2 where child < heap.count && isLess(largest, child) {
                largest = child
            }
            if largest == index { return }
            heap.swapAt(index, largest)
            index = largest
        }
    }
}
