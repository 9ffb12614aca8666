import Basics
import ClientCache
import DocumentModel
import Foundation
internal import QueryEngine

/// What a view shows at one moment, and how it differs from the moment before.
struct ViewSnapshot: Sendable {
    var rows: [SnapshotRow]
    /// `nil`: all rows are new.
    var changes: [RowChange]?
    var isFromCache: Bool
    var hasPendingWrites: Bool
    /// Whether `isFromCache` has changed.
    var hasNewSource: Bool
    /// Whether the cache has a whole result of the query, maybe an old one.
    var hasCachedResult: Bool
}

/// The results of one query or document, kept up to date from the cache and the server. Without I/O.
///
///     cached documents ─┐
///     pending writes   ─┼─► rows ─► ViewSnapshot
///     the server       ─┘
///
/// A view is *synced* when the server has sent everything that belongs to its target, and each of its documents is
/// among that. A document that only the cache has in the results is *in limbo*: the server is asked for it.
struct SyncView {
    /// What is listened to.
    enum Subject {
        case document(name: String)
        case query(QueryPlan, isReversed: Bool, limit: Int?)
    }

    let subject: Subject
    private var view: QueryView
    /// Names of the documents of the target as the server has sent them.
    private(set) var remoteNames: Set<String> = []
    /// Whether the server has sent everything that belongs to the target.
    private(set) var isCurrent = false
    /// Documents in the results that are not in the target.
    private(set) var limbo: Set<String> = []
    /// Documents whose acknowledged write the server has not sent yet, with the time of the commit in microseconds.
    /// They are shown as before the acknowledgement, so that the program sees one change instead of two.
    private var held: [String: UInt64] = [:]
    private var shownFromCache = true
    private var shownPending = false
    /// Whether the cache has a whole result of the query, maybe an old one.
    var hasCachedResult = false

    /// - Parameter orders: the complete order of the query, or empty for a document.
    init(_ subject: Subject, orders: [DocumentModel.Order]) {
        self.subject = subject
        view = QueryView(orders: orders)
    }

    private var isFromCache: Bool { !(isCurrent && limbo.isEmpty) }

    /// Fills the view from the cache.
    mutating func load(from store: LocalStore) throws(RequestError) {
        switch subject {
        case .document(let name):
            let state = try store.state(of: name)
            if let document = state.document { _ = view.apply([name: StoredDocument(document)]) }
            if case .missing = state { hasCachedResult = !store.pendingNames.contains(name) }
        case .query(let plan, let isReversed, _):
            var rows: [SnapshotRow] = []
            try store.run(plan) { name, document in
                rows.append(SnapshotRow(name: name, document: StoredDocument(document)))
            }
            view.fill(rows, isReversed: isReversed)
        }
        shownPending = view.hasPendingWrites
    }

    /// Everything as one snapshot.
    var snapshot: ViewSnapshot {
        ViewSnapshot(
            rows: view.rows, changes: nil, isFromCache: isFromCache, hasPendingWrites: view.hasPendingWrites,
            hasNewSource: false, hasCachedResult: hasCachedResult)
    }

    /// Whether a document is among the results.
    mutating func shows(_ name: String) -> Bool {
        view.index()
        return view.document(name) != nil
    }

    // MARK: The target

    /// The documents of the target as of the last snapshot of an earlier listener.
    mutating func resume(_ names: some Sequence<String>) { remoteNames = Set(names) }

    /// The server has sent a consistent state of the target.
    mutating func apply(added: [String], removed: [String]) {
        remoteNames.formUnion(added)
        remoteNames.subtract(removed)
        isCurrent = true
    }

    /// The server cannot be reached.
    mutating func disconnected() { isCurrent = false }

    /// The server is not asked any more.
    mutating func unwatched() {
        isCurrent = false
        remoteNames = []
    }

    // MARK: Documents

    /// Applies documents that have changed in the cache.
    ///
    /// - Parameters:
    ///   - snapshotMicroseconds: the time of the server's state that the changes are part of; nil for local changes.
    /// - Returns: what the program sees of it; nil if nothing has changed.
    mutating func apply(
        _ changes: [LocalChange], snapshotMicroseconds: UInt64?, store: LocalStore
    ) throws(RequestError) -> ViewSnapshot? {
        view.index()
        var next: [String: StoredDocument?] = [:]
        for change in changes { consider(change, &next) }
        try release(upTo: snapshotMicroseconds, from: store, &next)
        let rowChanges: [RowChange]
        if next.isEmpty {
            rowChanges = []
        } else {
            rowChanges = try applyLimited(next, store)
        }
        updateLimbo()
        let (isFromCache, isPending) = (isFromCache, view.hasPendingWrites)
        let hasNewSource = isFromCache != shownFromCache
        guard !rowChanges.isEmpty || hasNewSource || isPending != shownPending else { return nil }
        shownFromCache = isFromCache
        shownPending = isPending
        return ViewSnapshot(
            rows: view.rows, changes: rowChanges, isFromCache: isFromCache, hasPendingWrites: isPending,
            hasNewSource: hasNewSource, hasCachedResult: hasCachedResult)
    }

    /// Decides what a changed document means for the rows.
    private mutating func consider(_ change: LocalChange, _ next: inout [String: StoredDocument?]) {
        let old = view.document(change.name)
        guard let document = change.state.document, matches(change.name, document) else {
            held[change.name] = nil
            if old != nil { next[change.name] = .some(nil) }
            return
        }
        if isCurrent, let old, old.hasPendingWrites, document.isProvisional, !document.hasPendingWrites {
            held[change.name] = document.updateMicroseconds
            return
        }
        held[change.name] = nil
        next[change.name] = StoredDocument(document)
    }

    private func matches(_ name: String, _ document: LocalDocument) -> Bool {
        switch subject {
        case .document(let subject): return name == subject
        case .query(let plan, _, _):
            let path = Array(name.utf8.dropFirst(plan.database.documentsRoot.utf8.count + 1))
            let fields = document.fields(readingTimestampsAs: .ordered)
            return plan.matcher.matches(path: path.byteSpan, fields: fields.byteSpan)
        }
    }

    /// Shows the documents whose acknowledged writes a state of the server contains, or all if it cannot be reached.
    private mutating func release(
        upTo microseconds: UInt64?, from store: LocalStore, _ next: inout [String: StoredDocument?]
    ) throws(RequestError) {
        if held.isEmpty { return }
        for (name, time) in held where !isCurrent || time <= microseconds ?? 0 {
            held[name] = nil
            guard next[name] == nil else { continue }
            let document = try store.state(of: name).document
            if let document, matches(name, document) {
                next[name] = StoredDocument(document)
            } else if view.document(name) != nil {
                next[name] = .some(nil)
            }
        }
    }

    // MARK: Limits

    private mutating func applyLimited(
        _ next: [String: StoredDocument?], _ store: LocalStore
    ) throws(RequestError) -> [RowChange] {
        guard case .query(let plan, let isReversed, let limit?) = subject else { return view.apply(next) }
        var next = next
        let changesOld = next.keys.contains { view.document($0) != nil }
        if changesOld, view.count >= limit {
            // A document may have made room for others of the cache.
            next = try difference(to: plan, store)
        } else {
            var trial = view
            _ = trial.apply(next)
            let excess = trial.count - limit
            if excess > 0 {
                let rows = isReversed ? Array(trial.rows[..<excess]) : trial.rows(from: limit)
                for row in rows {
                    if view.document(row.name) == nil { next[row.name] = nil } else { next[row.name] = .some(nil) }
                }
            }
        }
        return view.apply(next)
    }

    /// What differs between the rows and the query over the cache.
    private func difference(
        to plan: QueryPlan, _ store: LocalStore
    ) throws(RequestError) -> [String: StoredDocument?] {
        var next: [String: StoredDocument?] = [:]
        for name in view.names { next[name] = .some(nil) }
        try store.run(plan) { name, document in
            if held[name] != nil, let shown = view.document(name) {
                next[name] = shown
            } else {
                next[name] = StoredDocument(document)
            }
        }
        return next
    }

    // MARK: Limbo

    private mutating func updateLimbo() {
        guard isCurrent else {
            limbo = []
            return
        }
        var found: Set<String> = []
        for name in view.names where !remoteNames.contains(name) {
            if let document = view.document(name), !document.hasPendingWrites { found.insert(name) }
        }
        limbo = found
    }
}
