import DocumentModel
import DocumentStore

/// Finds the targets that a change concerns, for one database. Confined to the thread of its hub.
///
///     path of the document      documents targets
//     path of its collection    queries over the collection
//     id of its collection      queries over the collection group
//
// A query that requires a value of a field is found by that value; all others are compared one after the other.
// So the cost of a change depends on the targets that it can concern, not on how many there are.
struct TargetRouter {
    private var documents: [[UInt8]: [Target]] = [:]
    private var collections: [[UInt8]: QueryIndex] = [:]
    private var groups: [[UInt8]: QueryIndex] = [:]
    private var changes: UInt64 = 0

    var isEmpty: Bool { documents.isEmpty && collections.isEmpty && groups.isEmpty }

    // MARK: Targets

    /// The query with this identity that has targets; nil if there is none.
    private func query(_ identity: [UInt8], in scope: QueryScope) -> TargetQuery? {
        switch scope {
        case .collection(let path): collections[path]?.queries[identity]
        default: groups[scope.collectionID]?.queries[identity]
        }
    }

    /// From now on a target receives changes. Targets of equal queries come to share one query.
    mutating func insert(_ target: Target) {
        target.isRouted = true
        switch target.subject {
        case .documents(let paths):
            for path in paths { documents[path, default: []].append(target) }
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
        case .collection(let path): collections[path, default: QueryIndex()].insert(query)
        case let scope: groups[scope.collectionID, default: QueryIndex()].insert(query)
        }
    }

    mutating func remove(_ target: Target) {
        guard target.isRouted else { return }
        target.isRouted = false
        switch target.subject {
        case .documents(let paths):
            for path in paths { documents[path]?.removeAll { $0 === target } }
            for path in paths where documents[path]?.isEmpty ?? false { documents[path] = nil }
        case .query(let query):
            let last = query.targets.removeLast()
            if last !== target {
                query.targets[target.position] = last
                last.position = target.position
            }
            if query.targets.isEmpty { remove(query) }
        }
    }

    private mutating func remove(_ query: TargetQuery) {
        switch query.matcher.scope {
        case .collection(let path):
            collections[path]?.remove(query)
            if collections[path]?.queries.isEmpty ?? false { collections[path] = nil }
        case let scope:
            groups[scope.collectionID]?.remove(query)
            if groups[scope.collectionID]?.queries.isEmpty ?? false { groups[scope.collectionID] = nil }
        }
    }

    // MARK: Changes

    /// Calls `body` for each target that a change concerns.
    ///
    /// - Parameter body: gets the document's path, the target, and whether the document matched before and matches now.
    mutating func route(_ change: DocumentChange, _ body: ([UInt8], Target, _ before: Bool, _ now: Bool) -> Void) {
        changes += 1
        let path = [UInt8](copying: change.path)
        if let targets = documents[path] {
            for target in targets { body(path, target, change.existedBefore, change.existsAfter) }
        }
        if collections.isEmpty, groups.isEmpty { return }
        if !collections.isEmpty, let index = collections[[UInt8](copying: change.collection)] {
            route(change, path, index, body)
        }
        if !groups.isEmpty, let index = groups[[UInt8](copying: change.collectionID)] {
            route(change, path, index, body)
        }
    }

    private func route(
        _ change: DocumentChange, _ path: [UInt8], _ index: QueryIndex,
        _ body: ([UInt8], Target, _ before: Bool, _ now: Bool) -> Void
    ) {
        let visit = changes
        index.forEachCandidate(change) { query in
            // A query is found by the values before and after.
            if query.lastChange == visit { return }
            query.lastChange = visit
            let before = change.existedBefore && query.matcher.matches(path: change.path, fields: change.before)
            let now = change.existsAfter && query.matcher.matches(path: change.path, fields: change.after)
            guard before || now else { return }
            query.noteSortKeys(of: change, before, now)
            for target in query.targets { body(path, target, before, now) }
        }
    }
}

/// The queries over one collection or collection group.
struct QueryIndex {
    /// A field of which queries require certain values.
    private struct Key: Hashable {
        let field: FieldPath
        let kind: QueryMatcher.EqualityCondition.Kind
    }

    /// All queries, by identity.
    private(set) var queries: [[UInt8]: TargetQuery] = [:]
    private var byValue: [Key: [[UInt8]: [TargetQuery]]] = [:]
    private var others: [TargetQuery] = []

    mutating func insert(_ query: TargetQuery) {
        queries[query.identity] = query
        guard let condition = query.equality else { return others.append(query) }
        let key = Key(field: condition.field, kind: condition.kind)
        for value in Set(condition.keys) { byValue[key, default: [:]][value, default: []].append(query) }
    }

    mutating func remove(_ query: TargetQuery) {
        queries[query.identity] = nil
        guard let condition = query.equality else { return others.removeAll { $0 === query } }
        let key = Key(field: condition.field, kind: condition.kind)
        for value in Set(condition.keys) {
            byValue[key]?[value]?.removeAll { $0 === query }
            if byValue[key]?[value]?.isEmpty ?? false { byValue[key]?[value] = nil }
        }
        if byValue[key]?.isEmpty ?? false { byValue[key] = nil }
    }

    /// Calls `body` with every query that a changed document may match before or after, some of them repeatedly.
    func forEachCandidate(_ change: DocumentChange, _ body: (TargetQuery) -> Void) {
        for query in others { body(query) }
        if byValue.isEmpty { return }
        var key = WireWriter(capacity: 64)
        for (field, queries) in byValue {
            if change.existedBefore { forEach(field, queries, change.before, &key, body) }
            if change.existsAfter { forEach(field, queries, change.after, &key, body) }
        }
    }

    private func forEach(
        _ key: Key, _ queries: [[UInt8]: [TargetQuery]], _ fields: RawSpan, _ writer: inout WireWriter,
        _ body: (TargetQuery) -> Void
    ) {
        guard let value = DocumentBytes.value(at: key.field, in: fields) else { return }
        switch key.kind {
        case .field: forEach(queries, value, &writer, body)
        case .element:
            guard var elements = WireValue(value)?.elements else { return }
            while let element = elements.next() { forEach(queries, element, &writer, body) }
        }
    }

    private func forEach(
        _ queries: [[UInt8]: [TargetQuery]], _ value: RawSpan, _ writer: inout WireWriter, _ body: (TargetQuery) -> Void
    ) {
        writer.reset()
        ValueKey.append(wireValue: value, into: &writer)
        for query in queries[writer.copyBytes()] ?? [] { body(query) }
    }
}
