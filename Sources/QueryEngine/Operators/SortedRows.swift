// The first results of a sorted query, kept in bounded memory.
//
// A pass over the candidates offers each with its sort key; the rows kept are those with the smallest keys, as many as
// are wanted and as fit. What is wanted but does not fit is not lost: the rows say where they had to cut, and the run
// makes another pass for the rows after the last one given out.

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

/// The rows with the smallest keys.
///
/// A plain list until something must be given up; from then on a heap with the largest on top.
struct SortedRows: Sendable {
    private var rows: [SortedRow] = []
    private var isHeap = false
    private let rowsMax: Int
    private let bytesMax: Int
    private var bytes = 0

    /// The smallest key that was left out for lack of memory; the next pass takes the rows from here on.
    private(set) var cut: [UInt8]?

    /// - Parameters:
    ///   - rowsMax: rows wanted, at least 1.
    ///   - bytesMax: memory to stay within; one row is kept whatever its size.
    init(rowsMax: Int, bytesMax: Int) {
        self.rowsMax = rowsMax
        self.bytesMax = bytesMax
    }

    /// Whether a row with this key would be kept. Ask before building the row.
    func wants(key: RawSpan) -> Bool {
        if let cut, key.compareBytes(cut.byteSpan) >= 0 { return false }
        return rows.count < rowsMax || rows[0].follows(key)
    }

    /// Takes a row that is wanted, and gives up the largest ones until the rest fits.
    mutating func insert(_ row: SortedRow) {
        bytes += row.byteCount
        rows.append(row)
        if isHeap { siftUp(rows.count - 1) }
        // `wants` looks at the largest row once there are as many as wanted.
        if rows.count >= rowsMax || bytes > bytesMax { makeHeap() }
        if rows.count > rowsMax { _ = removeLargest() }
        while bytes > bytesMax, rows.count > 1 { cut = removeLargest().key }
    }

    /// The rows, to be put in order.
    consuming func ordered() -> OrderedRows { OrderedRows(rows) }

    private mutating func makeHeap() {
        if isHeap { return }
        isHeap = true
        for index in stride(from: rows.count / 2 - 1, through: 0, by: -1) { siftDown(index) }
    }

    private mutating func removeLargest() -> SortedRow {
        rows.swapAt(0, rows.count - 1)
        let largest = rows.removeLast()
        siftDown(0)
        bytes -= largest.byteCount
        return largest
    }

    private func isLess(_ left: Int, _ right: Int) -> Bool {
        rows[left].precedes(rows[right])
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard isLess(parent, index) else { return }
            rows.swapAt(parent, index)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var largest = index
            for child in 2 * index + 1...2 * index + 2 where child < rows.count && isLess(largest, child) {
                largest = child
            }
            if largest == index { return }
            rows.swapAt(index, largest)
            index = largest
        }
    }
}

/// Rows that are put in order in steps, and then given out.
struct OrderedRows: Sendable {
    private var rows: [SortedRow]
    private var sort: SteppedSort
    private var position = 0

    init(_ rows: [SortedRow] = []) {
        self.rows = rows
        sort = SteppedSort(count: rows.count)
    }

    /// The rows that have not been given out.
    var count: Int { rows.count - position }

    /// Continues the sort. Rows can be given out when it is done.
    /// - Returns: whether it is.
    mutating func advance(_ work: inout StepWork) -> Bool {
        let rows = rows
        return sort.advance(&work.budget) { rows[$0].precedes(rows[$1]) }
    }

    /// The next row; nil after the last.
    var first: SortedRow? { count == 0 ? nil : rows[sort.order[position]] }

    /// Moves to the next row.
    mutating func skipFirst() { position += 1 }

    /// The next row, whose memory is the caller's; nil after the last.
    mutating func takeFirst() -> SortedRow? {
        if count == 0 { return nil }
        var row = SortedRow.none
        swap(&row, &rows[sort.order[position]])
        position += 1
        return row
    }
}

extension SortedRow {
    /// Stands where a row was.
    fileprivate static let none = SortedRow(
        key: [], payload: [], pathCount: 0, createMicroseconds: 0, updateMicroseconds: 0)
}
