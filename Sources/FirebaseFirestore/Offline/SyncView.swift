import Basics
import ClientCache
import DocumentModel
import Foundation
internal import QueryEngine

/// What a view shows at one moment, and how it differs from the moment before.
struct ViewSnapshot: Sendable {
    var rows: RowList
    /// `nil`: all rows are new.
    var changes: [SnapshotRowChange]?
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
///
/// What a change costs follows from what has changed: O(log n) for each document that changes, enters or leaves.
struct SyncView {
    /// What is listened to.
    enum Subject {
        case document(name: UTF8Text)
        case query(QueryPlan, isReversed: Bool, limit: ViewLimit?)
    }

    /// A document that has changed in the cache, as views look at it.
    struct Change {
        let name: UTF8Text
        /// The path below `documents`.
        let path: [UInt8]
        let document: LocalDocument?
        /// The fields as queries compare them.
        let fields: [UInt8]

        /// - Parameter namePrefix: with which names begin: `projects/{p}/databases/{d}/documents/`.
        init(_ name: String, _ state: MaybeDocument, namePrefix: Int) {
            self.name = UTF8Text(name)
            path = Array(name.utf8.dropFirst(namePrefix))
            document = state.document
            fields = document?.fields(readingTimestampsAs: .ordered) ?? []
        }
    }

    let subject: Subject
    private var view: QueryView
    /// Of a limited query: the results of the cache, of which the first are shown.
    private var window: LimitWindow?
    /// Names of the documents of the target as the server has sent them.
    private(set) var remoteNames: Set<UTF8Text> = []
    /// Whether the server has sent everything that belongs to the target.
    private(set) var isCurrent = false
    /// Documents in the results that are not in the target and have no pending writes; nil before they are known.
    private var uncovered: Set<UTF8Text>?
    /// Names that have entered or left the target since the last snapshot.
    private var changedRemotely: Set<UTF8Text> = []
    /// Whether the state of the target has changed since the last snapshot.
    private var hasNewTarget = true
    /// How many documents were looked at so far. For tests.
    private(set) var examinedCount = 0
    /// Documents whose acknowledged write the server has not sent yet, with the time of the commit in microseconds.
    /// They are shown as before the acknowledgement, so that the program sees one change instead of two.
    private var held: [UTF8Text: UInt64] = [:]
    /// Documents that a local write has taken out of the results, until a state of the server contains the write. An
    /// older state may come before, and must not be shown.
    private var withdrawn: Set<UTF8Text> = []
    private var shownFromCache = true
    private var shownPending = false
    /// Whether the cache has a whole result of the query, maybe an old one.
    var hasCachedResult = false

    init(_ subject: Subject) {
        self.subject = subject
        switch subject {
        case .document: view = QueryView(orders: [])
        case .query(let plan, let isReversed, let limit):
            view = QueryView(plan, isReversed: isReversed)
            if let limit { window = LimitWindow(limit, isReversed: isReversed) }
        }
    }

    /// Documents in the results that are not in the target.
    var limbo: Set<UTF8Text> { isCurrent ? uncovered ?? [] : [] }

    /// Whether there are such documents.
    var hasLimbo: Bool { isCurrent && !(uncovered?.isEmpty ?? true) }

    /// Held documents that are not in the target, each with the time of its commit in microseconds. If another client
    /// has undone the write, the server may send nothing about them for a long time.
    var heldOutsideTarget: [UTF8Text: UInt64] { held.filter { !remoteNames.contains($0.key) } }

    /// Whether ``apply(_:snapshotMicroseconds:stateMicroseconds:store:)`` has something to do even without changes of
    /// documents.
    var isDue: Bool { hasNewTarget || !held.isEmpty || !withdrawn.isEmpty }

    private var isFromCache: Bool { !isCurrent || hasLimbo }

    /// Fills the view from the cache.
    mutating func load(from store: LocalStore) throws(RequestError) {
        switch subject {
        case .document(let name):
            let state = try store.state(of: name.string)
            if let document = state.document { _ = view.apply([name: VisibleDocument(document)]) }
            if case .missing = state { hasCachedResult = !store.isPending(name.string) }
        case .query(let plan, let isReversed, _):
            var rows: [SnapshotRow] = []
            try store.run(plan) { name, document in
                rows.append(SnapshotRow(name: name, document: VisibleDocument(document)))
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

    /// Whether the view needs a document of the cache: it shows it, keeps it for later, or a local write has taken it
    /// out of the results.
    mutating func keeps(_ name: String) -> Bool {
        index()
        let name = UTF8Text(name)
        return known(name) != nil || withdrawn.contains(name)
    }

    /// Makes documents known by their names. Calling it again does nothing.
    private mutating func index() {
        if view.isIndexed { return }
        view.index()
        guard case .query(_, _, let limit?) = subject else { return }
        window?.fill(Array(view.rows), limit: limit.count)
    }

    // MARK: The target

    /// The documents of the target as of the last snapshot of an earlier listener.
    mutating func resume(_ names: some Sequence<UTF8Text>) {
        remoteNames = Set(names)
        uncovered = nil
        hasNewTarget = true
    }

    /// The server has sent a consistent state of the target.
    mutating func apply(added: [String], removed: [String]) {
        let (added, removed) = (added.map { UTF8Text($0) }, removed.map { UTF8Text($0) })
        remoteNames.formUnion(added)
        remoteNames.subtract(removed)
        isCurrent = true
        hasNewTarget = true
        if uncovered == nil { return }
        changedRemotely.formUnion(added)
        changedRemotely.formUnion(removed)
    }

    /// The server cannot be reached, or lists the target again.
    mutating func disconnected() {
        isCurrent = false
        hasNewTarget = true
    }

    /// The server is not asked any more.
    mutating func unwatched() {
        disconnected()
        remoteNames = []
        withdrawn = []
    }

    // MARK: Documents

    /// Applies documents that have changed in the cache.
    ///
    /// - Parameters:
    ///   - snapshotMicroseconds: the time of the server's state that the changes are part of; nil for local changes.
    ///   - stateMicroseconds: the time of the last state that the server has sent.
    /// - Returns: what the program sees of it; nil if nothing has changed.
    mutating func apply(
        _ changes: [Change], snapshotMicroseconds: UInt64?, stateMicroseconds: UInt64 = 0, store: LocalStore
    ) throws(RequestError) -> ViewSnapshot? {
        index()
        hasNewTarget = false
        var next: [UTF8Text: VisibleDocument?] = [:]
        for change in changes { consider(change, isLocal: snapshotMicroseconds == nil, &next) }
        try release(upTo: max(snapshotMicroseconds ?? 0, stateMicroseconds), from: store, &next)
        if let snapshotMicroseconds {
            for name in withdrawn where try !store.awaitsServer(name.string, after: snapshotMicroseconds) {
                withdrawn.remove(name)
            }
        }
        if window != nil, !next.isEmpty { next = try limited(next, store) }
        let rowChanges = next.isEmpty ? [] : view.apply(next)
        updateUncovered(next.keys)
        let (isFromCache, isPending) = (isFromCache, view.hasPendingWrites)
        let hasNewSource = isFromCache != shownFromCache
        guard !rowChanges.isEmpty || hasNewSource || isPending != shownPending else { return nil }
        shownFromCache = isFromCache
        shownPending = isPending
        return ViewSnapshot(
            rows: view.rows, changes: rowChanges, isFromCache: isFromCache, hasPendingWrites: isPending,
            hasNewSource: hasNewSource, hasCachedResult: hasCachedResult)
    }

    /// What is known of a document: as it is shown, or kept for later.
    private func known(_ name: UTF8Text) -> VisibleDocument? {
        view.document(name) ?? window?.row(of: name)?.content.document
    }

    /// Decides what a changed document means for the rows.
    private mutating func consider(_ change: Change, isLocal: Bool, _ next: inout [UTF8Text: VisibleDocument?]) {
        examinedCount += 1
        guard let document = change.document, matches(change) else {
            held[change.name] = nil
            guard known(change.name) != nil else { return }
            next[change.name] = .some(nil)
            if isLocal { withdrawn.insert(change.name) }
            return
        }
        if isCurrent, !document.hasPendingWrites, document.isProvisional,
            view.document(change.name)?.hasPendingWrites ?? false
        {
            held[change.name] = document.updateMicroseconds
            return
        }
        held[change.name] = nil
        next[change.name] = VisibleDocument(document)
    }

    private func matches(_ change: Change) -> Bool {
        switch subject {
        case .document(let subject): change.name == subject
        case .query(let plan, _, _):
            plan.matcher.matches(path: change.path.byteSpan, fields: change.fields.byteSpan)
        }
    }

    /// Shows the documents whose acknowledged writes a state of the server contains, or all if it cannot be reached.
    private mutating func release(
        upTo microseconds: UInt64, from store: LocalStore, _ next: inout [UTF8Text: VisibleDocument?]
    ) throws(RequestError) {
        if held.isEmpty { return }
        for (name, time) in held where !isCurrent || time <= microseconds {
            examinedCount += 1
            held[name] = nil
            guard next[name] == nil else { continue }
            let state = try store.state(of: name.string)
            let change = Change(name.string, state, namePrefix: store.namePrefixByteCount)
            if let document = change.document, matches(change) {
                next[name] = VisibleDocument(document)
            } else if known(name) != nil {
                next[name] = .some(nil)
            }
        }
    }

    // MARK: Limits

    /// What changes among the shown documents of a limited query.
    ///
    /// - Parameter next: what has changed among the results without the limit.
    private mutating func limited(
        _ next: [UTF8Text: VisibleDocument?], _ store: LocalStore
    ) throws(RequestError) -> [UTF8Text: VisibleDocument?] {
        window?.apply(next)
        if window?.needsRows ?? false { return try refilled(store) }
        guard let window else { return next }
        var changes: [UTF8Text: VisibleDocument?] = [:]
        for name in next.keys {
            if let row = window.row(of: name), window.isShown(row) {
                changes[name] = row.content.document
            } else if view.document(name) != nil {
                changes[name] = .some(nil)
            }
        }
        // Other documents enter or leave at the end of the shown ones only.
        for position in (0..<window.shownCount).reversed() {
            examinedCount += 1
            let row = window.row(position).content
            let name = UTF8Text(row.name)
            if next[name] != nil { continue }
            if view.document(name) != nil { break }
            changes[name] = row.document
        }
        for position in (0..<view.count).reversed() {
            examinedCount += 1
            let row = shownRow(position)
            let name = UTF8Text(row.content.name)
            if next[name] != nil { continue }
            if window.isShown(row) { break }
            changes[name] = .some(nil)
        }
        return changes
    }

    /// The shown row at a position from the end that the limit keeps.
    private func shownRow(_ position: Int) -> ViewRow {
        guard case .query(_, isReversed: true, _) = subject else { return view.row(at: position) }
        return view.row(at: view.count - 1 - position)
    }

    /// Reads the window from the cache again.
    ///
    /// - Returns: what changes among the shown documents.
    private mutating func refilled(_ store: LocalStore) throws(RequestError) -> [UTF8Text: VisibleDocument?] {
        guard var window, case .query(_, let isReversed, _) = subject else { return [:] }
        var rows: [SnapshotRow] = []
        try store.run(window.widerPlan) { name, document in
            rows.append(SnapshotRow(name: name, document: VisibleDocument(document)))
        }
        if isReversed { rows.reverse() }
        examinedCount += rows.count
        var shown: [UTF8Text: VisibleDocument] = [:]
        for name in held.keys { shown[name] = view.document(name) }
        window.refill(rows, showing: shown)
        self.window = window
        var changes: [UTF8Text: VisibleDocument?] = [:]
        for name in view.names { changes[name] = .some(nil) }
        for position in 0..<window.shownCount {
            let row = window.row(position).content
            changes[UTF8Text(row.name)] = row.document
        }
        return changes
    }

    // MARK: Limbo

    /// Decides again which of some documents the target does not cover.
    private mutating func updateUncovered(_ names: some Sequence<UTF8Text>) {
        guard isCurrent else {
            uncovered = nil
            changedRemotely.removeAll()
            return
        }
        if uncovered == nil {
            uncovered = []
            for name in view.names { updateUncovered(name) }
            return
        }
        for name in names { updateUncovered(name) }
        for name in changedRemotely { updateUncovered(name) }
        changedRemotely.removeAll()
    }

    private mutating func updateUncovered(_ name: UTF8Text) {
        examinedCount += 1
        if let document = view.document(name), !document.hasPendingWrites, !remoteNames.contains(name) {
            uncovered?.insert(name)
        } else {
            uncovered?.remove(name)
        }
    }
}
