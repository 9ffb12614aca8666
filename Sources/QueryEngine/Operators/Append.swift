// Concatenates the rows of several index accesses: of different alternatives of a filter, or of the collections of a
// group.

import Basics
import DocumentModel

/// The rows of the inputs, one input after the other. One input alone is passed through.
struct Append: QueryOperator {
    private var inputs: [Fetch]
    /// The number of collections of a group whose own indexes are read.
    let collectionCount: Int?
    /// The direction in which indexes are read.
    let direction: SortDirection
    /// Rows come in the order of the query.
    let isOrdered: Bool
    /// Inputs of the first collection; those of the others are alike.
    private let shownCount: Int
    // The resume token, beside those of the inputs.
    private var position = 0
    /// Of each input; empty unless they are measured.
    private var figures: [OperatorFigures] = []

    /// - Parameter shownCount: how many of the inputs explain shows.
    init(
        _ inputs: [Fetch], direction: SortDirection, isOrdered: Bool, collectionCount: Int?, shownCount: Int,
        measures: Bool = false
    ) {
        self.inputs = inputs
        self.direction = direction
        self.isOrdered = isOrdered
        self.collectionCount = collectionCount
        self.shownCount = shownCount
        if measures { figures = inputs.map { _ in OperatorFigures() } }
    }

    var isFinished: Bool { position == inputs.count }

    /// See `Fetch.orderLostAfter`.
    var orderLostAfter: [UInt8]? { isFinished ? nil : inputs[position].orderLostAfter }

    mutating func restart() {
        position = 0
        for input in inputs.indices { inputs[input].restart() }
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        while position < inputs.count {
            if figures.isEmpty {
                try inputs[position].next(from: source, &work, into: page)
            } else {
                try figures[position].measure(&inputs[position], from: source, &work, into: page)
            }
            guard inputs[position].isFinished else { return }
            position += 1
        }
    }

    // MARK: Explain

    var tree: PlanTree {
        if inputs.isEmpty { return PlanTree(line: "Nothing") }
        let shown = (0..<min(shownCount, inputs.count)).map(shownTree)
        if let collectionCount, !isOrdered {
            return PlanTree(line: "Append of \(collectionCount) collections, each by", inputs: shown)
        }
        return shown.count == 1 ? shown[0] : PlanTree(line: "Append", inputs: shown)
    }

    /// An input of the first collection, with the figures of those that are alike.
    private func shownTree(_ position: Int) -> PlanTree {
        var tree = inputs[position].tree
        guard !figures.isEmpty else { return tree }
        for other in stride(from: position + shownCount, to: inputs.count, by: shownCount) {
            tree.addFigures(of: inputs[other].tree)
        }
        let all = stride(from: position, to: inputs.count, by: shownCount).map { figures[$0] }
        tree.figures = all.reduce(OperatorFigures(), +)
        return tree
    }

    /// The indexes in use, each once.
    var indexes: [IndexUse] {
        var indexes: [IndexUse] = []
        for index in inputs.prefix(shownCount).flatMap(\.indexes) where !indexes.contains(index) {
            indexes.append(index)
        }
        return indexes
    }
}
