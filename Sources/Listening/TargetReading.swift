// Reading what a client lacks of one target.
//
// A client has the results as of a version, the base, or nothing. What it lacks at a later version is found by two runs
// of the query, without memory for the results:
//
//     the results at the new version     those that changed after the base; of a window also those that entered it
//     the results at the base            those that are deleted or do not match any more; of a window also those that
//                                        left it
//
// A window (offset, limit) is all that matches between its first and its last sort key, so two keys decide whether a
// document is in it. The window at the base is known, or a separate run finds it.

import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine

/// The reading of one target from a base, or from nothing, to a version; page by page. Few streams have one at a time,
/// and it is large. Confined to the thread of its hub.
final class TargetReading {
    private enum Phase {
        /// Finds the window at the base, and the number of documents.
        case base
        case results
        case removals
        case finished
    }

    let target: Target
    /// The version that is read, in microseconds.
    let version: UInt64
    /// The version of what the client has; nil for a client that has nothing.
    let base: UInt64?

    private var phase: Phase
    private var run: QueryExecution?
    /// The next document of a documents target.
    private var nextDocument = 0
    /// Results of the base that are looked up at the new version, and the next of them.
    private var baseResults: [[UInt8]] = []
    private var nextBaseResult = 0
    private var isBaseRead = false

    private var baseWindow: ResultRange
    /// Documents at the base; counted if the client has said how many it has.
    private var baseCount = 0
    private let expectedCount: Int?
    /// The names of the results at the new version, if the client needs them.
    private var names: NameFilter?
    /// The results at the new version.
    private(set) var window = ResultRange()

    /// Documents that are looked up in one step; large ones count as several.
    private static let lookupsPerStep = 256

    /// - Parameters:
    ///   - base: the version of what the client has; nil for a client that has nothing.
    ///   - baseWindow: the window at the base; nil if it is not known.
    ///   - expectedCount: the number of documents that the client says it has.
    init(
        _ target: Target, from base: UInt64?, _ baseWindow: ResultRange? = nil, expectedCount: Int? = nil,
        to version: UInt64
    ) {
        self.target = target
        self.base = base
        self.version = version
        self.expectedCount = base == nil ? nil : expectedCount
        self.baseWindow = baseWindow ?? ResultRange()
        let isWindowMissing = target.windowQuery != nil && baseWindow == nil
        phase = base != nil && (isWindowMissing || expectedCount != nil) ? .base : .results
    }

    var isFinished: Bool { phase == .finished }

    /// Reads on until the queue is full, a step's budget is spent, or everything is read.
    ///
    /// - Throws: `pending`, after which it is called again; `FAILED_PRECONDITION` if the base is not readable any more,
    ///   and what storage throws.
    func step(_ reader: DatabaseReader, into queue: inout MessageQueue) throws(RequestError) {
        switch (target.subject, phase) {
        case (_, .finished): break
        case (.documents(let paths), .base): try countDocuments(paths, reader)
        case (.documents(let paths), _): try readDocuments(paths, reader, into: &queue)
        case (.query(let query), .base): try readBase(query, reader)
        case (.query(let query), .results): try readResults(query, reader, into: &queue)
        case (.query(let query), .removals): try readRemovals(query, reader, into: &queue)
        }
    }

    /// Ends the reading early.
    func cancel() {
        run = nil
        phase = .finished
    }

    private func finish(_ queue: inout MessageQueue) {
        phase = .finished
        appendFilter(&queue)
    }

    // MARK: Existence filters

    private func finishBase() {
        phase = .results
        // The client has other documents than it should: it needs the names of all that match, unless it has none.
        if let expectedCount, expectedCount > 0, expectedCount != baseCount { names = NameFilter() }
    }

    private func noteResult(_ path: RawSpan, _ namePrefix: [UInt8]) {
        if names == nil { return }
        names?.insert((namePrefix + [UInt8](copying: path)).byteSpan)
    }

    private func appendFilter(_ queue: inout MessageQueue) {
        guard let expectedCount, expectedCount != baseCount else { return }
        queue.appendFilter(target.id, count: window.count, names: names?.message)
    }

    // MARK: Documents

    private func countDocuments(_ paths: [[UInt8]], _ reader: DatabaseReader) throws(RequestError) {
        guard let base else { return }
        var work = StepWork(budget: Self.lookupsPerStep)
        while nextDocument < paths.count {
            if work.isSpent { return }
            let path = paths[nextDocument]
            if try reader.exists(path.byteSpan, at: base) { baseCount += 1 }
            nextDocument += 1
            work.spend(byteCount: 0)
        }
        nextDocument = 0
        finishBase()
    }

    private func readDocuments(
        _ paths: [[UInt8]], _ reader: DatabaseReader, into queue: inout MessageQueue
    ) throws(RequestError) {
        var work = StepWork(budget: Self.lookupsPerStep)
        while nextDocument < paths.count {
            if queue.isFull || work.isSpent { return }
            let path = paths[nextDocument]
            var exists = false
            try reader.withDocument(path.byteSpan, at: version) { (document: LentDocument?) in
                guard let document else { return }
                exists = true
                if document.updateMicroseconds <= base ?? 0 { return }
                queue.appendChange(document, nil, targets: [target.id], removed: [])
            }
            if exists {
                window.count += 1
                noteResult(path.byteSpan, reader.namePrefix)
            } else if try base.map({ (base) throws(RequestError) in try reader.exists(path.byteSpan, at: base) })
                ?? true
            {
                queue.appendDelete(path.byteSpan, removed: [target.id], at: version)
            }
            nextDocument += 1
            work.spend(byteCount: 0)
        }
        finish(&queue)
    }

    // MARK: Queries

    private func readBase(_ query: TargetQuery, _ reader: DatabaseReader) throws(RequestError) {
        guard let base else { return }
        let isRead = try reader.next(&run, of: query, at: base) { row in
            baseCount += 1
            if query.isWindow { baseWindow.append(query.sortKey(path: row.path, fields: row.fields)) }
            return .more
        }
        if isRead { finishBase() }
    }

    private func readResults(
        _ query: TargetQuery, _ reader: DatabaseReader, into queue: inout MessageQueue
    ) throws(RequestError) {
        let isRead = try reader.next(&run, of: query, at: version) { row in
            var isNew = row.updateMicroseconds > base ?? 0
            if query.isWindow {
                let key = query.sortKey(path: row.path, fields: row.fields)
                window.append(key)
                isNew = isNew || !baseWindow.contains(key)
            } else {
                window.count += 1
            }
            noteResult(row.path, reader.namePrefix)
            if isNew { queue.appendChange(LentDocument(row), query.selection, targets: [target.id], removed: []) }
            return queue.isFull ? .full : .more
        }
        if !isRead { return }
        if base == nil { finish(&queue) } else { phase = .removals }
    }

    private func readRemovals(
        _ query: TargetQuery, _ reader: DatabaseReader, into queue: inout MessageQueue
    ) throws(RequestError) {
        guard let base else { return }
        if baseResults.isEmpty {
            isBaseRead = try reader.next(&run, of: query, at: base) { row in
                baseResults.append([UInt8](copying: row.path))
                return baseResults.count >= Self.lookupsPerStep ? .full : .more
            }
        }
        var work = StepWork(budget: Self.lookupsPerStep, walks: query.matcher.walks)
        while nextBaseResult < baseResults.count {
            if queue.isFull || work.isSpent { return }
            let path = baseResults[nextBaseResult]
            try reader.withDocument(path.byteSpan, at: version) { (document: LentDocument?) in
                appendRemoval(path, document, of: query, since: base, into: &queue)
                work.spend(byteCount: document?.fields.byteCount ?? 0)
            }
            nextBaseResult += 1
        }
        baseResults.removeAll(keepingCapacity: true)
        nextBaseResult = 0
        if isBaseRead { finish(&queue) }
    }

    /// Appends what has become of a result of the base, if it is a result no more.
    private func appendRemoval(
        _ path: [UInt8], _ document: LentDocument?, of query: TargetQuery, since base: UInt64,
        into queue: inout MessageQueue
    ) {
        guard let document else { return queue.appendDelete(path.byteSpan, removed: [target.id], at: version) }
        if isResult(document, of: query, base) { return }
        if document.updateMicroseconds > base {
            queue.appendChange(document, query.selection, targets: [], removed: [target.id])
        } else {
            queue.appendRemove(document.path, removed: [target.id], at: version)
        }
    }

    /// Whether a result of the base is still a result.
    private func isResult(_ document: LentDocument, of query: TargetQuery, _ base: UInt64) -> Bool {
        let matches =
            document.updateMicroseconds <= base || query.matcher.matches(path: document.path, fields: document.fields)
        guard matches, query.isWindow else { return matches }
        return window.contains(query.sortKey(path: document.path, fields: document.fields))
    }
}
