// Offset and limit.

import Basics
import DocumentModel

/// The rows of the input after the first `offset`, at most `limit` of them.
struct Limit<Input: QueryOperator>: QueryOperator {
    var input: Input
    private let offset: Int
    private let limit: Int?
    /// What the rows are ordered by; nil if a transaction gains nothing by knowing the last row.
    private let orders: [Order]?
    // The resume token.
    private var window: ResultWindow

    /// - Parameters:
    ///   - limit: nil is unlimited.
    ///   - orders: the orders that the rows come in, if documents after the last row do not matter to a transaction.
    init(_ input: Input, offset: Int, limit: Int?, orders: [Order]?) {
        self.input = input
        self.offset = offset
        self.limit = limit
        self.orders = orders
        window = ResultWindow(offset: offset, limit: limit)
    }

    /// Continues with another input.
    init<Other>(_ input: Input, continuing other: Limit<Other>) {
        self.input = input
        offset = other.offset
        limit = other.limit
        orders = other.orders
        window = other.window
    }

    /// Rows skipped and returned so far.
    var skipped: Int { window.skipped }
    var returned: Int { window.returned }

    var isFinished: Bool { window.isClosed || input.isFinished }

    mutating func restart() {
        input.restart()
        window = ResultWindow(offset: offset, limit: limit)
    }

    /// Rows still needed, those to skip included; a bound for sorting.
    var wanted: Int { window.wanted }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        if window.isClosed { return }
        var window = window
        defer { self.window = window }
        let narrowing = source.notesReads ? orders : nil
        var lastKey: [UInt8]?
        try input.next(from: source, &work) { (row) throws(RequestError) in
            guard window.admit() else { return .more }
            if window.isClosed, let narrowing { lastKey = SortKey.key(of: row, narrowing) }
            let control = try page(row)
            return window.isClosed ? .full : control
        }
        if let lastKey, let narrowing { source.noteEnd(at: lastKey, narrowing) }
    }

    var tree: PlanTree {
        var parts: [String] = []
        if let limit { parts.append("Limit \(limit)") }
        if offset > 0 { parts.append(limit == nil ? "Offset \(offset)" : "offset \(offset)") }
        return parts.isEmpty ? input.tree : PlanTree(line: parts.joined(separator: ", "), inputs: [input.tree])
    }
}

extension SortKey {
    /// The key of a row; nil if it lacks an ordered field.
    fileprivate static func key(of row: borrowing QueryRow, _ orders: [Order]) -> [UInt8]? {
        if row.sortKey.byteCount > 0 { return [UInt8](copying: row.sortKey) }
        var key = WireWriter(capacity: 128)
        guard append(path: row.path, fields: row.fields, order: orders, into: &key) else { return nil }
        return key.copyBytes()
    }
}

/// Offset and limit as counters.
struct ResultWindow: Sendable {
    private var toSkip: Int
    /// Results still to return; nil is unlimited.
    private var toReturn: Int?
    private(set) var skipped = 0
    private(set) var returned = 0
    /// Whether nothing more will be returned.
    private(set) var isClosed: Bool

    init(offset: Int, limit: Int?) {
        toSkip = offset
        toReturn = limit
        isClosed = limit == 0
    }

    /// Counts the next result; true if it is to be returned.
    mutating func admit() -> Bool {
        if toSkip > 0 {
            toSkip -= 1
            skipped += 1
            return false
        }
        returned += 1
        if let left = toReturn {
            toReturn = left - 1
            if left == 1 { isClosed = true }
        }
        return true
    }

    /// Results that are still needed, those to skip included.
    var wanted: Int {
        guard let toReturn else { return .max }
        return toSkip + toReturn
    }
}
