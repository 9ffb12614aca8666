// Sorting rows.

internal import Basics
internal import DocumentModel
internal import Expressions

/// An expression to sort by.
struct RowOrdering: Sendable {
    let expression: ExpressionID
    let isDescending: Bool
}

/// Rows in the order of their keys; rows of equal keys in the order in which they come.
///
/// Rows are collected in runs that are sorted one by one, and the runs are merged while rows are given out, so that no
/// step sorts everything. If only the first rows are wanted, no more than twice as many are held.
final class RowSort: PipelineOperator {
    private struct Keyed {
        let key: [UInt8]
        let row: PipelineRow

        var memoryBytes: Int { 32 + key.count + row.memoryBytes }
    }

    /// A sorted run and the next row of it.
    private struct Run {
        let rows: [Keyed]
        var position = 0
    }

    private let input: any PipelineOperator
    private let orderings: [RowOrdering]
    /// The number of first rows that are wanted.
    private let wanted: Int
    private let runRows: Int
    private var collected: [Keyed] = []
    private var runs: [Run] = []
    /// Indices of runs with rows left, as a heap: the run whose next row comes first is at the top.
    private var heap: [Int] = []
    private var hasCollected = false

    init(_ input: any PipelineOperator, _ orderings: [RowOrdering], wanted: Int = .max) {
        self.input = input
        self.orderings = orderings
        self.wanted = wanted
        runRows = wanted < 2048 ? max(2 * wanted, 256) : 4096
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while !hasCollected {
            let pulled = try next(input, work)
            switch pulled {
            case .row(let row): try collect(row, work)
            case .paused, .starved: return pulled
            case .finished: finishCollecting()
            }
        }
        return nextOfRuns().map { .row($0) } ?? .finished
    }

    private func collect(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        var writer = ByteBuffer(capacity: 64)
        for ordering in orderings {
            let value = try work.evaluator.value(of: ordering.expression, on: row)
            try work.appendKey(value, descending: ordering.isDescending, to: &writer)
        }
        let keyed = Keyed(key: writer.copyBytes(), row: row)
        try work.hold(keyed.memoryBytes, for: "sort")
        collected.append(keyed)
        guard collected.count >= runRows else { return }
        RowSort.sort(&collected)
        if wanted < 2048 {
            for dropped in collected[wanted...] { work.release(dropped.memoryBytes) }
            collected.removeLast(collected.count - wanted)
        } else {
            runs.append(Run(rows: collected))
            collected.removeAll()
        }
    }

    private func finishCollecting() {
        hasCollected = true
        RowSort.sort(&collected)
        if !collected.isEmpty { runs.append(Run(rows: collected)) }
        collected.removeAll()
        heap = Array(runs.indices)
        for index in heap.indices.reversed() { siftDown(index) }
    }

    /// Stable: equal keys keep their order.
    private static func sort(_ rows: inout [Keyed]) {
        let order = rows.indices.sorted { left, right in
            let (leftKey, rightKey) = (rows[left].key, rows[right].key)
            let comparison = leftKey.byteSpan.compareBytes(rightKey.byteSpan)
            return comparison != 0 ? comparison < 0 : left < right
        }
        rows = order.map { rows[$0] }
    }

    private func nextOfRuns() -> PipelineRow? {
        guard let top = heap.first else { return nil }
        let row = runs[top].rows[runs[top].position].row
        runs[top].position += 1
        if runs[top].position == runs[top].rows.count {
            let last = heap.removeLast()
            if !heap.isEmpty { heap[0] = last }
        }
        siftDown(0)
        return row
    }

    /// Whether the next row of a run comes before that of another; of equal keys that of the earlier run.
    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let leftKey = runs[left].rows[runs[left].position].key
        let rightKey = runs[right].rows[runs[right].position].key
        let comparison = leftKey.byteSpan.compareBytes(rightKey.byteSpan)
        return comparison != 0 ? comparison < 0 : left < right
    }

    private func siftDown(_ start: Int) {
        var place = start
        while 2 * place + 1 < heap.count {
            var child = 2 * place + 1
            if child + 1 < heap.count, isBefore(heap[child + 1], heap[child]) { child += 1 }
            if !isBefore(heap[child], heap[place]) { return }
            heap.swapAt(child, place)
            place = child
        }
    }

    var line: String { wanted == .max ? "Sort" : "TopK \(wanted)" }

    var inputs: [any PipelineOperator] { [input] }
}
