internal import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine

/// Finds the targets that a change concerns, for one database. Confined to the thread of its hub.
///
///     path of the document      documents targets
///     path of its collection    queries over the collection
///     id of its collection      queries over the collection group
///
/// A query that requires a value of a field is found by that value; all others are compared one after the other.
/// So the cost of a change depends on the targets that it can concern, not on how many there are.
struct TargetRouter {
    private var documents: [ByteKey: [Target]] = [:]
    private var collections: [ByteKey: QueryIndex] = [:]
    private var groups: [ByteKey: QueryIndex] = [:]
    private var changes: UInt64 = 0

    var isEmpty: Bool { documents.isEmpty && collections.isEmpty && groups.isEmpty }

    // MARK: Targets

    /// The query with this identity that has targets; nil if there is none.
    private func query(_ identity: [UInt8], in scope: QueryScope) -> TargetQuery? {
        switch scope {
        case .collection(let path): collections[ByteKey(path)]?.queries[ByteKey(identity)]
        default: groups[ByteKey(scope.collectionID)]?.queries[ByteKey(identity)]
        }
    }

    /// From now on a target receives changes. Targets of equal queries come to share one query.
    mutating func insert(_ target: Target) {
        target.isRouted = true
        switch target.subject {
        case .documents(let paths):
            target.positions = paths.map { path in
                let key = ByteKey(path)
                documents[key, default: []].append(target)
                return (documents[key]?.count ?? 1) - 1
            }
        case .query(let planned):
            let query = self.query(planned.identity, in: planned.matcher.scope) ?? planned
            target.subject = .query(query)
            if query.targets.isEmpty { insert(query) }
            target.position = query.targets.count
            query.targets.append(target)
        }
    }

    private mutating func insert(_ query: TargetQuery) {
        switch query.matcher.scope {
        case .collection(let path): collections[ByteKey(path), default: QueryIndex()].insert(query)
        case let scope: groups[ByteKey(scope.collectionID), default: QueryIndex()].insert(query)
        }
    }

    mutating func remove(_ target: Target) {
        guard target.isRouted else { return }
        target.isRouted = false
        switch target.subject {
        case .documents(let paths):
            for (path, position) in zip(paths, target.positions) {
                let key = ByteKey(path)
                if let moved = documents[key]?.takeOut(at: position) { moved.note(position, ofDocument: path) }
                if documents[key]?.isEmpty ?? false { documents[key] = nil }
            }
            target.positions = []
        case .query(let query):
            query.targets.takeOut(at: target.position)?.position = target.position
            if query.targets.isEmpty { remove(query) }
        }
    }

    private mutating func remove(_ query: TargetQuery) {
        switch query.matcher.scope {
        case .collection(let path):
            let key = ByteKey(path)
            collections[key]?.remove(query)
            if collections[key]?.queries.isEmpty ?? false { collections[key] = nil }
        case let scope:
            let key = ByteKey(scope.collectionID)
            groups[key]?.remove(query)
            if groups[key]?.queries.isEmpty ?? false { groups[key] = nil }
        }
    }

    // MARK: Changes

    /// Calls `body` for each target that a change concerns.
    ///
    /// - Parameter body: gets the target, and whether the document matches now. If not, it matched before.
    mutating func route(_ change: StoreChange, _ body: (Target, _ matches: Bool) -> Void) {
        changes += 1
        if !documents.isEmpty, let targets = documents[ByteKey(copying: change.path)] {
            for target in targets { body(target, change.existsAfter) }
        }
        if !collections.isEmpty, let index = collections[ByteKey(copying: change.collection)] {
            route(change, index, body)
        }
        if !groups.isEmpty, let index = groups[ByteKey(copying: change.collectionID)] {
            route(change, index, body)
        }
    }

    private func route(
        _ change: StoreChange, _ index: QueryIndex, _ body: (Target, _ matches: Bool) -> Void
    ) {
        let visit = changes
        let indexes = ChangeIndexes(change, queryCount: index.queries.count)
        index.forEachCandidate(change, by: indexes) { query in
            // A query is found by the values before and after.
            if query.lastChange == visit { return }
            query.lastChange = visit
            let matcher = query.matcher
            let before =
                change.existedBefore && matcher.matches(path: change.path, fields: change.before, by: indexes.before)
            let now = change.existsAfter && matcher.matches(path: change.path, fields: change.after, by: indexes.after)
            guard before || now else { return }
            query.noteSortKeys(of: change, by: indexes, before, now)
            for target in query.targets { body(target, now) }
        }
    }
}

/// Where the fields of a changed document are, for all queries that it is compared with. Without them the time would
/// grow with the product of fields and queries.
struct ChangeIndexes {
    let before: FieldIndex?
    let after: FieldIndex?

    /// Queries from which on an index is worth its cost, and the least bytes of such a document.
    private static let (queriesMin, bytesMin) = (16, 4 << 10)

    /// - Parameter queryCount: how many queries the change may be compared with.
    init(_ change: StoreChange, queryCount: Int) {
        func index(_ fields: RawSpan) -> FieldIndex? {
            queryCount >= Self.queriesMin && fields.byteCount >= Self.bytesMin ? FieldIndex() : nil
        }
        before = index(change.before)
        after = index(change.after)
    }
}

/// The queries over one collection or collection group.
struct QueryIndex {
    /// All queries, by identity.
    private(set) var queries: [ByteKey: TargetQuery] = [:]
    /// Queries that require a value, by the hash of the value. Values with the same hash cost a comparison.
    private var byValue: [RequiredField: [Int: [TargetQuery]]] = [:]
    private var others: [TargetQuery] = []

    mutating func insert(_ query: TargetQuery) {
        queries[ByteKey(query.identity)] = query
        guard let required = query.required else {
            query.positions = [others.count]
            return others.append(query)
        }
        query.positions = required.hashes.map { hash in
            byValue[required.field, default: [:]][hash, default: []].append(query)
            return (byValue[required.field]?[hash]?.count ?? 1) - 1
        }
    }

    mutating func remove(_ query: TargetQuery) {
        queries[ByteKey(query.identity)] = nil
        guard let required = query.required else {
            others.takeOut(at: query.positions[0])?.positions = query.positions
            return
        }
        for (hash, position) in zip(required.hashes, query.positions) {
            if let moved = byValue[required.field]?[hash]?.takeOut(at: position) {
                moved.note(position, ofHash: hash)
            }
            if byValue[required.field]?[hash]?.isEmpty ?? false { byValue[required.field]?[hash] = nil }
        }
        if byValue[required.field]?.isEmpty ?? false { byValue[required.field] = nil }
    }

    /// Calls `body` with every query that a changed document may match before or after, some of them repeatedly.
    func forEachCandidate(_ change: StoreChange, by indexes: ChangeIndexes, _ body: (TargetQuery) -> Void) {
        for query in others { body(query) }
        if byValue.isEmpty { return }
        var key = ByteBuffer(capacity: 64)
        for (field, queries) in byValue {
            if change.existedBefore {
                field.forEachHash(in: change.before, by: indexes.before, &key) {
                    for query in queries[$0] ?? [] { body(query) }
                }
            }
            if change.existsAfter {
                field.forEachHash(in: change.after, by: indexes.after, &key) {
                    for query in queries[$0] ?? [] { body(query) }
                }
            }
        }
    }
}

extension Array {
    /// Removes the element at a position without moving those after it: the last one takes its place.
    ///
    /// - Returns: the element that is at the position now; nil if it was the last one.
    fileprivate mutating func takeOut(at position: Int) -> Element? {
        let last = removeLast()
        if position == count { return nil }
        self[position] = last
        return last
    }
}
