// Reads the documents that index entries name. If only their number is asked for, none is read.

import Basics
import DocumentModel
internal import Indexing

/// The documents of index entries.
struct Fetch: QueryOperator {
    private var entries: EntrySource
    private let scope: QueryScope
    private let readsDocuments: Bool
    private let check: FetchCheck
    /// The orders of the query, if the entries are to come in them.
    private let orders: [Order]

    // The resume token, beside that of the entries.
    private(set) var isFinished = false
    /// Entries that are not in the order of their documents, being given out in the order of the query.
    private var group: UnorderedGroup?
    /// The key of the document read last.
    private var lastDocument: [UInt8] = []
    /// Of the entries; nil unless they are measured.
    private var entryFigures: OperatorFigures?

    /// Set when the entries cannot be given out in order any more: the sort key of the last document that was, empty if
    /// there is none. A sort must continue there.
    private(set) var orderLostAfter: [UInt8]?

    /// A group is sorted in passes of bounded memory: each reads all entries, keeps those that come first, and gives
    /// them out.
    private struct UnorderedGroup: Sendable {
        /// The keys of the entries.
        let keys: ByteInterval
        /// The entries kept by the pass that reads them; nil between passes.
        var pass: SortedRows?
        /// The key at which the pass continues; nil is the first.
        var next: [UInt8]?
        /// The sort keys and id segments that the last pass has kept.
        var sorted = OrderedRows()
        /// The last sort key of the passes before; later ones are wanted.
        var after: [UInt8]?
        /// The last pass has kept all that were wanted.
        var isExhausted = false
    }

    /// - Parameter orders: the orders that rows must come in; empty if their order does not matter.
    init(
        _ entries: EntrySource, in scope: QueryScope, readsDocuments: Bool, _ check: FetchCheck, orders: [Order],
        measures: Bool = false
    ) {
        self.entries = entries
        self.scope = scope
        self.readsDocuments = readsDocuments
        self.check = check
        self.orders = orders
        if measures { entryFigures = OperatorFigures() }
    }

    mutating func restart() {
        entries.restart()
        isFinished = false
        group = nil
    }

    var tree: PlanTree {
        var input = entries.tree
        if var entryFigures {
            // The ranges below a merge have their own.
            if !input.inputs.isEmpty { entryFigures.entries = 0 }
            input.figures = entryFigures
        }
        return PlanTree(line: readsDocuments ? "Fetch" : "IndexOnly", inputs: [input])
    }

    var indexes: [IndexUse] { entries.indexes }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        if !readsDocuments { return try countEntries(source, &work, page) }
        var documents = DocumentReader(scope, database: source.database)
        while !isFinished, orderLostAfter == nil {
            if group != nil, try !nextOfGroup(&documents, source, &work, page) { return }
            switch try nextOfEntries(&documents, source, &work, page) {
            case .paused: return
            case .finished: isFinished = true
            case .unordered(let keys?): group = UnorderedGroup(keys: keys)
            case .unordered(nil): orderLostAfter = try sortKey(of: lastDocument, &documents, source)
            }
        }
    }

    private mutating func nextOfEntries<Source: QuerySource & ~Copyable>(
        _ documents: inout DocumentReader, _ source: borrowing Source, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        var entryWork = EntryWork(work)
        defer { work.note(entryWork) }
        let check = check
        var hasRead = false
        let step = try nextEntries(from: source, &entryWork) { (entry) throws(RequestError) in
            hasRead = true
            return try documents.read(entry, source) { (row) throws(RequestError) in
                try Fetch.give(row, check, &work, page)
            }
        }
        if hasRead { lastDocument = documents.lastKey }
        return step
    }

    private mutating func nextEntries<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout EntryWork,
        into consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        guard var figures = entryFigures else { return try entries.next(from: source, &work, into: consume) }
        defer { entryFigures = figures }
        return try figures.measure(&entries, from: source, &work, into: consume)
    }

    /// Gives a row to the page if it is for this operator to give out.
    private static func give(
        _ row: borrowing QueryRow, _ check: FetchCheck, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        guard check.accepts(row) else { return work.spend(byteCount: row.fields.byteCount) ? .more : .full }
        let hasBudget = work.countDocument(byteCount: row.fields.byteCount)
        return try page(row) == .full || !hasBudget ? .full : .more
    }

    /// Gives the page an empty row for each entry.
    private mutating func countEntries<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        var entryWork = EntryWork(work)
        defer { work.note(entryWork) }
        let step = try nextEntries(from: source, &entryWork) { (entry) throws(RequestError) in
            let nothing = entry.segment.extracting(0..<0)
            work.budget -= 1
            let row = QueryRow(path: nothing, createMicroseconds: 0, updateMicroseconds: 0, fields: nothing)
            return try page(row) == .full || work.budget <= 0 ? .full : .more
        }
        if case .finished = step { isFinished = true }
    }

    // MARK: Unordered groups

    /// Bytes of sort keys and ids that one pass over a group keeps.
    private static let groupBytesMax = 4 << 20

    /// Gives out the documents of the group in the order of the query.
    /// - Returns: whether the group is finished; else the page is full or the budget spent.
    private mutating func nextOfGroup<Source: QuerySource & ~Copyable>(
        _ documents: inout DocumentReader, _ source: borrowing Source, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        guard var group else { return true }
        // Its rows have one owner while they change.
        self.group = nil
        var isFinished = false
        defer { if !isFinished { self.group = group } }
        let check = check
        while true {
            guard group.sorted.advance(&work) else { return false }
            while let first = group.sorted.first {
                let entry = IndexEntry(segment: first.payload.byteSpan, documentKey: [UInt8]().byteSpan)
                let control = try documents.read(entry, source) { (row) throws(RequestError) in
                    try Fetch.give(row, check, &work, page)
                }
                group.sorted.skipFirst()
                group.after = first.key
                if control == .full { return false }
            }
            if group.isExhausted { break }
            guard try collect(&group, &documents, source, &work) else { return false }
        }
        if case .scan(var scan) = entries {
            scan.skip(past: group.keys)
            entries = .scan(scan)
        }
        isFinished = true
        return true
    }

    /// Continues a pass over the entries of a group.
    /// - Returns: whether the pass is finished; else the budget is spent.
    private func collect<Source: QuerySource & ~Copyable>(
        _ group: inout UnorderedGroup, _ documents: inout DocumentReader, _ source: borrowing Source,
        _ work: inout StepWork
    ) throws(RequestError) -> Bool {
        var rows = group.pass ?? SortedRows(rowsMax: .max, bytesMax: Self.groupBytesMax)
        let start = group.next ?? group.keys.lower
        // If a read throws, the pass begins again.
        (group.pass, group.next) = (nil, nil)
        let after = group.after
        var key = ByteBuffer(capacity: 256)
        var cursor = try source.cursor(from: start.byteSpan, to: group.keys.upper.byteSpan, .ascending)
        while try cursor.next() {
            guard let place = IndexKey.idSegment(of: cursor.key) else { throw .damagedEntry }
            let segment = cursor.key.extracting(place)
            work.entries += 1
            let entry = IndexEntry(segment: segment, documentKey: segment.extracting(0..<0))
            let control = try documents.read(entry, source) { (row) throws(RequestError) in
                let control = work.spend(byteCount: row.fields.byteCount) ? PageControl.more : .full
                key.reset(keeping: 1 << 16)
                guard check.accepts(row), SortKey.append(path: row.path, fields: row.fields, order: orders, into: &key)
                else { return control }
                if let after, key.bytes.compareBytes(after.byteSpan) <= 0 { return control }
                guard rows.wants(key: key.bytes) else { return control }
                rows.insert(
                    SortedRow(
                        key: key.copyBytes(), payload: [UInt8](copying: segment), pathCount: 0,
                        createMicroseconds: 0, updateMicroseconds: 0))
                return control
            }
            if control == .full {
                group.pass = rows
                group.next = [UInt8](copying: cursor.key) + [0]
                return false
            }
        }
        group.isExhausted = rows.cut == nil
        group.sorted = rows.ordered()
        return true
    }

    /// The sort key of a document given by its key; empty if there is none.
    private func sortKey<Source: QuerySource & ~Copyable>(
        of document: [UInt8], _ documents: inout DocumentReader, _ source: borrowing Source
    ) throws(RequestError) -> [UInt8] {
        if document.isEmpty { return [] }
        var key = ByteBuffer(capacity: 128)
        _ = try documents.read(key: document, source) { (row) throws(RequestError) in
            if !SortKey.append(path: row.path, fields: row.fields, order: orders, into: &key) { key.reset() }
            return .full
        }
        return key.copyBytes()
    }
}

/// Which of the documents that a `Fetch` reads it gives out.
struct FetchCheck: Sendable {
    /// The names that can be results.
    var names = NameRange.all
    /// If several inputs of an `Append` can find the same document: the alternatives of the filter that this one is
    /// for, and those of the inputs before it, which have given out the documents that meet them.
    var alternatives: [Disjunct] = []
    var earlier: [Disjunct] = []

    func accepts(_ row: borrowing QueryRow) -> Bool {
        if names != .all, !names.contains(path: row.path) { return false }
        if alternatives.isEmpty { return true }
        for alternative in earlier where alternative.matches(path: row.path, fields: row.fields) { return false }
        for alternative in alternatives where alternative.matches(path: row.path, fields: row.fields) { return true }
        return false
    }
}
