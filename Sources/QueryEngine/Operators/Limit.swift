// Offset and limit.

import Basics
package import DocumentModel

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
    var counts: (skipped: Int, returned: Int) { (skipped, returned) }

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
        var last: LastResult?
        try input.next(from: source, &work) { (row) throws(RequestError) in
            guard window.admit() else { return .more }
            if window.isClosed, let narrowing { last = LastResult(row, narrowing) }
            let control = try page(row)
            return window.isClosed ? .full : control
        }
        if let last { source.noteEnd(at: last) }
    }

    var tree: PlanTree {
        var parts: [String] = []
        if let limit { parts.append("Limit \(limit)") }
        if offset > 0 { parts.append(limit == nil ? "Offset \(offset)" : "offset \(offset)") }
        return parts.isEmpty ? input.tree : PlanTree(line: parts.joined(separator: ", "), inputs: [input.tree])
    }
}

/// The result at which a query ended because of its limit.
package struct LastResult: Sendable {
    /// The result's path below `documents`.
    package let path: [UInt8]
    /// The orders that the results came in.
    package let orders: [Order]
    /// The `SortKey` of the result by these orders.
    let sortKey: [UInt8]

    /// - Returns: nil if the row lacks an ordered field.
    fileprivate init?(_ row: borrowing QueryRow, _ orders: [Order]) {
        path = [UInt8](copying: row.path)
        self.orders = orders
        guard row.sortKey.byteCount == 0 else {
            sortKey = [UInt8](copying: row.sortKey)
            return
        }
        var key = ByteBuffer(capacity: 128)
        guard SortKey.append(path: row.path, fields: row.fields, order: orders, into: &key) else { return nil }
        sortKey = key.copyBytes()
    }

    /// Whether a document of the results' scope sorts after this result.
    package func precedes(path: RawSpan, fields: RawSpan) -> Bool {
        var key = ByteBuffer(capacity: 128)
        guard SortKey.append(path: path, fields: fields, order: orders, into: &key) else { return true }
        return key.bytes.compareBytes(sortKey.byteSpan) > 0
    }

    /// The keys among which are all documents of the scope that do not sort after this result; nil if keys do not tell:
    /// the results are of several collections, or came in another order than that of names.
    package func passedKeys(of scope: QueryScope, database: UInt32) -> (lower: [UInt8], upper: [UInt8])? {
        guard case .collection(let collection) = scope, let order = orders.first, order.field.isDocumentName else {
            return nil
        }
        let bound = DocumentIDBound(id: Array(path.dropFirst(collection.count + 1)), isInclusive: true)
        let isUpper = order.direction == .ascending
        let ids = DocumentIDRange(lower: isUpper ? nil : bound, upper: isUpper ? bound : nil)
        let keys = CollectionKeys(collection.byteSpan, ids, database: database)
        return (keys.lower, keys.upper)
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
