// The sorting half of a run: passes over the candidates, and the rows that each pass yields.

import Basics
import DocumentModel

/// Collects the next results of a sorted query in one or more passes.
struct QuerySorter: ~Copyable, Sendable {
    private enum Phase {
        /// Rows are being given out, or there were none yet.
        case giving
        /// Candidates are being offered.
        case collecting
    }

    private let matcher: QueryMatcher
    private let selection: FieldSelection?
    private let comparesCursors: Bool
    private let bytesMax: Int
    private let orders: [Order]
    private let nearest: NearestSearch?
    private var phase = Phase.giving
    private var rows: SortedRows
    /// The rows of the last pass; those before `position` have been given out.
    private var sorted: [SortedRow] = []
    private var position = 0
    /// The key of the last row given out by the passes before this one; its successors are wanted.
    private var after: [UInt8]?
    /// Whether no further pass can yield anything.
    private(set) var isExhausted = false
    private var key = WireWriter()
    private var payload = WireWriter()

    /// - Parameters:
    ///   - orders: what to sort by, if not what the plan says.
    ///   - after: the sort key behind which results are wanted.
    init(_ plan: QueryPlan, orders: [Order]? = nil, after: [UInt8]? = nil) {
        self.after = after
        matcher = plan.matcher
        selection = plan.selection
        comparesCursors = plan.comparesCursors
        bytesMax = plan.options.sortBufferBytes
        switch plan.strategy {
        case .stream: (self.orders, nearest) = (orders ?? [], nil)
        case .sort(let planned): (self.orders, nearest) = (orders ?? planned, nil)
        case .nearest(let search): (self.orders, nearest) = ([], search)
        }
        rows = SortedRows(rowsMax: 1, bytesMax: 0)
    }

    /// The next row of the last pass; nil when they are all given out.
    mutating func takeRow() -> SortedRow? {
        guard position < sorted.count else {
            if !sorted.isEmpty {
                sorted = []
                position = 0
            }
            return nil
        }
        position += 1
        return sorted[position - 1]
    }

    /// Begins a pass unless one is under way.
    mutating func beginPass(rowsMax: Int) {
        if case .collecting = phase { return }
        phase = .collecting
        rows = SortedRows(rowsMax: rowsMax, bytesMax: bytesMax)
    }

    /// Considers one candidate.
    mutating func offer(_ path: RawSpan, _ document: borrowing CandidateDocument) {
        guard matcher.matchesInScope(path: path, fields: document.fields) else { return }
        if comparesCursors {
            key.reset(keeping: 1 << 16)
            guard
                SortKey.append(path: path, fields: document.fields, order: matcher.order.components, into: &key),
                matcher.cursors.contains(key: key.bytes)
            else { return }
        }
        key.reset(keeping: 1 << 16)
        var distance: Double?
        if let nearest {
            guard let found = nearest.distance(of: document.fields) else { return }
            distance = found
            nearest.appendKey(found, path: path, into: &key)
        } else {
            guard SortKey.append(path: path, fields: document.fields, order: orders, into: &key) else { return }
        }
        if let after, key.bytes.compareBytes(after.byteSpan) <= 0 { return }
        guard rows.wants(key: key.bytes) else { return }
        payload.reset(keeping: 1 << 20)
        payload.append(path)
        if let nearest, let distance, nearest.addsField {
            let fields = nearest.fields(document.fields, with: distance)
            appendSelected(fields.byteSpan)
        } else {
            appendSelected(document.fields)
        }
        rows.insert(
            SortedRow(
                key: key.copyBytes(), payload: payload.copyBytes(), pathCount: path.byteCount,
                createMicroseconds: document.createMicroseconds, updateMicroseconds: document.updateMicroseconds))
    }

    private mutating func appendSelected(_ fields: RawSpan) {
        if let selection {
            selection.append(fields, into: &payload)
        } else {
            payload.append(fields)
        }
    }

    /// Ends a pass: its rows are ready to be taken.
    mutating func endPass() {
        phase = .giving
        let isCut = rows.cut != nil
        sorted = rows.takeSorted()
        position = 0
        after = sorted.last?.key ?? after
        isExhausted = !isCut
    }
}

extension SortedRow {
    /// Gives the row out as a result.
    func lend(
        _ emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        let bytes = payload.byteSpan
        return try emit(
            QueryResult(
                path: bytes.extracting(0..<pathCount), createMicroseconds: createMicroseconds,
                updateMicroseconds: updateMicroseconds, fields: bytes.extracting(pathCount..<bytes.byteCount)))
    }
}
