// The indexes on demand that a query uses, and those that it would use if they existed.
//
//     where a == 1 and b == 2        a, b       merged
//     where a > 1 and b > 2          a, b       the one with fewer entries
//     where a == 1 order by b        a          then b, if a alone leaves much to read
//     order by b limit 10            b
//
// A query reports the documents that it has read and not returned. So a second field of a filter is asked for only if
// the index of the first one does not leave out enough.

import Basics
import DocumentModel
internal import Indexing

/// Reports what one execution of a query uses and lacks.
struct IndexReport: Sendable {
    private let usage: any IndexUsage
    private let used: [AdaptiveIndex]
    private let lacking: [AdaptiveIndex]
    /// About how many documents the collections have; 0 if unknown.
    private let total: Int
    private var isUseRecorded = false
    /// Documents reported so far.
    private var documentsNoted = 0

    /// - Parameter access: what was chosen; nil scans.
    /// - Returns: nil if nobody wants to know, or no index of a single field could serve the query.
    init?<Source: QuerySource & ~Copyable>(
        _ plan: QueryPlan, _ access: Append?, _ source: borrowing Source
    ) throws(RequestError) {
        guard let usage = source.indexUsage, plan.points == nil, plan.options.indexes == .any, source.database != 0
        else {
            return nil
        }
        guard let id = IndexReport.groupID(of: plan.matcher.scope) else { return nil }
        let (database, collectionID) = (source.database, String(decoding: id, as: UTF8.self))
        func index(_ field: FieldPath, _ kind: EntryKinds) -> AdaptiveIndex {
            AdaptiveIndex(database: database, collectionID: collectionID, field: field, kind: kind)
        }
        self.usage = usage
        used = (access?.indexes ?? []).compactMap { use in
            switch use.kind {
            case .values: index(use.field, .values)
            case .elements: index(use.field, .elements)
            case .declared: nil
            }
        }
        let declared = source.fieldOverrides(of: id)
        let fields = source.indexedFields(ofGroup: id)
        lacking = IndexReport.wanted(plan, fields).filter { want in
            !declared.contains { $0.covers(want.field.utf8Segments) }
        }.map { index($0.field, $0.kind) }
        total = lacking.isEmpty ? 0 : try source.indexedCollection(of: plan.matcher.scope)?.documentCount ?? 0
    }

    /// The id of the collections that a scope consists of; nil if there is none.
    private static func groupID(of scope: QueryScope) -> [UInt8]? {
        switch scope {
        case .collection(let path): [UInt8](copying: RelativePath.lastSegment(path.byteSpan))
        case .descendants(let parent, let collectionID?) where parent.isEmpty: collectionID
        case .children, .descendants: nil
        }
    }

    private typealias Want = (field: FieldPath, kind: EntryKinds)

    /// The indexes that are not there and would serve.
    private static func wanted(_ plan: QueryPlan, _ fields: IndexedFields) -> [Want] {
        var wants: [Want] = []
        func add(_ field: FieldPath, _ kind: EntryKinds) {
            if field.isDocumentName || fields.has(kind, of: field) { return }
            if !wants.contains(where: { $0 == (field, kind) }) { wants.append((field, kind)) }
        }
        for disjunct in Disjunct.all(of: plan.matcher.filter) {
            let equalities = disjunct.fieldTests.filter(\.isEquality)
            for test in equalities { add(test.path, test.condition.isOfValue ? .values : .elements) }
            if !equalities.isEmpty { continue }
            for test in disjunct.fieldTests where test.condition.isOfValue { add(test.path, .values) }
        }
        if wants.isEmpty, case .sort(let orders) = plan.strategy, orders.count == 2, orders[1].field.isDocumentName,
            orders[0].direction == orders[1].direction
        {
            add(orders[0].field, .values)
        }
        return wants
    }

    /// Reports after a step.
    /// - Parameter documents: those read and not returned so far.
    mutating func note(documents: Int) {
        if !isUseRecorded, !used.isEmpty { usage.noteUse(of: used) }
        isUseRecorded = true
        let news = documents - documentsNoted
        guard !lacking.isEmpty, news >= usage.scanMin else { return }
        documentsNoted = documents
        usage.noteScan(lacking: lacking, documents: news, of: total)
    }

    /// Lines for explain.
    var lines: [String] { lacking.map { "Missing index \($0): \(usage.progress(of: $0))" } }
}

extension QuerySource where Self: ~Copyable {
    fileprivate borrowing func indexedFields(ofGroup id: [UInt8]) -> IndexedFields { indexedFields(of: id.byteSpan) }

    /// The collection of a scope that is a single one.
    fileprivate borrowing func indexedCollection(of scope: QueryScope) throws(RequestError) -> IndexedCollection? {
        guard case .collection(let path) = scope else { return nil }
        return try indexedCollection(path)
    }
}
