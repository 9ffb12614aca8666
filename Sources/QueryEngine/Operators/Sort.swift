// Sorts rows in bounded memory.
//
//     input -> first rows by sort key -> in order -> page
//       ^---- another pass, if not everything fitted ----'
//
// Each pass reads the whole input and keeps the rows with the smallest keys: as many as are wanted, and as fit in
// memory. If rows that are wanted did not fit, those kept are given out, and another pass over the same state collects
// the rows after the last one. The keys are those of the query's orders (`SortKey`), or the distance from a vector
// (`NearestSearch`).

import Basics
import DocumentModel

/// The rows of the input, sorted.
struct Sort<Input: QueryOperator>: QueryOperator {
    var input: Input
    private let ranking: Ranking
    /// The fields to keep of each row; nil keeps all.
    private let selection: FieldSelection?
    private let bytesMax: Int
    private let start: [UInt8]?
    private let total: Int

    // The resume token.
    /// Rows that are still wanted.
    private var wanted: Int
    /// The key of the last row given out by the passes before; the rows after it are wanted.
    private var after: [UInt8]?
    /// The rows of the pass that reads the input; nil between passes.
    private var pass: SortedRows?
    /// The rows of the last pass.
    private var sorted = OrderedRows()
    /// Whether no further pass can yield anything.
    private var isExhausted = false

    /// - Parameters:
    ///   - wanted: the most rows that are needed; `Int.max` is all.
    ///   - selection: the fields to keep of each row; nil keeps all.
    ///   - start: the sort key after which rows are wanted; nil is the beginning.
    init(
        _ input: Input, by ranking: Ranking, wanted: Int, keeping selection: FieldSelection?, bytesMax: Int,
        after start: [UInt8]? = nil
    ) {
        self.input = input
        self.ranking = ranking
        self.selection = selection
        self.bytesMax = bytesMax
        self.start = start
        total = wanted
        self.wanted = wanted
        after = start
    }

    var isFinished: Bool { isExhausted && sorted.count == 0 }

    mutating func restart() {
        input.restart()
        wanted = total
        after = start
        pass = nil
        sorted = OrderedRows()
        isExhausted = false
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        while true {
            if try emitSorted(&work, page) == .full || isExhausted { return }
            try collect(source, &work)
            guard input.isFinished else { return }
            endPass()
        }
    }

    /// Puts the rows of the last pass in order, and gives them out.
    /// - Returns: `full` also if the step's budget is spent.
    private mutating func emitSorted(
        _ work: inout StepWork, _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        guard sorted.advance(&work) else { return .full }
        while let row = sorted.takeFirst() {
            after = row.key
            if try row.lend(page) == .full { return .full }
        }
        return .more
    }

    /// Reads the input, and keeps the rows that come first.
    private mutating func collect<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: inout StepWork
    ) throws(RequestError) {
        if pass == nil, input.isFinished { input.restart() }
        var rows = pass ?? SortedRows(rowsMax: wanted, bytesMax: bytesMax)
        pass = nil
        defer { pass = rows }
        let (ranking, selection, after) = (ranking, selection, after)
        var key = ByteBuffer()
        var payload = ByteBuffer()
        try input.next(from: source, &work) { (row) throws(RequestError) in
            key.reset(keeping: 1 << 16)
            guard let rank = ranking.appendKey(of: row, into: &key) else { return .more }
            if let after, key.bytes.compareBytes(after.byteSpan) <= 0 { return .more }
            guard rows.wants(key: key.bytes) else { return .more }
            payload.reset(keeping: 1 << 20)
            payload.append(row.path)
            ranking.appendFields(of: row, rank, selection, into: &payload)
            rows.insert(
                SortedRow(
                    key: key.copyBytes(), payload: payload.copyBytes(), pathCount: row.path.byteCount,
                    createMicroseconds: row.createMicroseconds, updateMicroseconds: row.updateMicroseconds))
            return .more
        }
    }

    /// Ends a pass: its rows are ready to be put in order.
    private mutating func endPass() {
        guard let rows = pass else { return }
        pass = nil
        let isComplete = rows.cut == nil
        sorted = rows.ordered()
        if wanted < .max { wanted -= sorted.count }
        isExhausted = isComplete || wanted == 0
    }

    var tree: PlanTree { PlanTree(line: ranking.line(wanted: total), inputs: [input.tree]) }
}

/// What rows are sorted by.
enum Ranking: Sendable {
    case orders([Order])
    case nearest(NearestSearch)

    /// Appends a row's sort key.
    /// - Returns: the row's distance, or 0 where there is none; nil if the row is not a result.
    func appendKey(of row: borrowing QueryRow, into key: inout ByteBuffer) -> Double? {
        switch self {
        case .orders(let orders):
            return SortKey.append(path: row.path, fields: row.fields, order: orders, into: &key) ? 0 : nil
        case .nearest(let search):
            guard let distance = search.distance(of: row.fields) else { return nil }
            return search.appendKey(distance, of: row, into: &key) ? distance : nil
        }
    }

    /// Appends the fields to keep of a row.
    func appendFields(
        of row: borrowing QueryRow, _ rank: Double, _ selection: FieldSelection?, into payload: inout ByteBuffer
    ) {
        if case .nearest(let search) = self, search.addsField {
            let fields = search.fields(row.fields, with: rank)
            append(fields.byteSpan, selection, into: &payload)
        } else {
            append(row.fields, selection, into: &payload)
        }
    }

    private func append(_ fields: RawSpan, _ selection: FieldSelection?, into payload: inout ByteBuffer) {
        if let selection { selection.append(fields, into: &payload) } else { payload.append(fields) }
    }

    func line(wanted: Int) -> String {
        switch self {
        case .nearest(let search): return "FindNearest \(search)"
        case .orders(let orders):
            let names = orders.map(\.description).joined(separator: ", ")
            return wanted == .max ? "Sort by (\(names))" : "TopK \(wanted) by (\(names))"
        }
    }
}

extension SortedRow {
    /// Gives the row to the page.
    func lend(
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        let bytes = payload.byteSpan
        return try page(
            QueryRow(
                path: bytes.extracting(0..<pathCount), createMicroseconds: createMicroseconds,
                updateMicroseconds: updateMicroseconds, fields: bytes.extracting(pathCount..<bytes.byteCount),
                sortKey: key.byteSpan))
    }
}
