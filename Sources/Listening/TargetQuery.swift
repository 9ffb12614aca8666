import Basics
import DocumentModel
import DocumentStore
package import QueryEngine

/// What the documents of a target must meet besides its query.
package struct TargetCondition: Sendable {
    let condition: any DocumentCondition
    /// Bytes that are equal for equal conditions.
    let identity: [UInt8]

    package init(_ condition: any DocumentCondition, identity: [UInt8]) {
        self.condition = condition
        self.identity = identity
    }
}

/// The query of one or more targets, planned once. Confined to the thread of its hub.
///
/// Listeners of the same query share one of these, so a change is compared with the query once for all of them.
final class TargetQuery {
    /// The query without its projection: listeners compare whole documents and project what they send.
    let plan: QueryPlan
    /// The fields to send; nil sends all.
    let selection: FieldSelection?
    /// Whether an offset or a limit cuts the results.
    let isWindow: Bool
    /// The values by which the router finds the query; nil if it requires none.
    let required: RequiredValues?
    /// The bytes of parent and query, by which equal queries are found.
    let identity: [UInt8]

    /// The targets that receive changes.
    var targets: [Target] = []
    /// Where the router has it: in the list of each required value, or in the one of queries that require none.
    var positions: [Int] = []
    /// The last change that was compared with the query, by the router's count.
    var lastChange: UInt64 = 0
    /// Of a window: the sort keys of the change that is routed, before and after it; nil if it did not match.
    private(set) var changedKeys: (before: [UInt8]?, after: [UInt8]?) = (nil, nil)
    /// Of a window: the last comparison of its results. See ``SharedReads``.
    var comparison: WindowComparison?

    /// It is at another position in the list of a required value.
    func note(_ position: Int, ofHash hash: Int) {
        if let index = required?.hashes.firstIndex(of: hash) { positions[index] = position }
    }

    var matcher: QueryMatcher { plan.matcher }

    /// Whether the sessions of its targets share a comparison: its results are few enough to be kept.
    var sharesComparisons: Bool { isWindow && plan.limit.map { $0 <= Self.sharedResultsMax } ?? false }

    private static let sharedResultsMax = 1_000

    /// Checks and plans a query.
    ///
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query breaks.
    init(
        parent: borrowing ResourceNameView, _ query: StructuredQuery, _ condition: (any DocumentCondition)?,
        identity: [UInt8]
    ) throws(RequestError) {
        if query.findNearest != nil {
            throw .invalidArgument("find_nearest is not supported by real-time queries.")
        }
        let collection = query.from.first
        if collection?.collectionID.isEmpty ?? true {
            throw .invalidArgument("All-collection queries are not supported by real-time queries.")
        }
        if collection?.allDescendants ?? false, parent.isDocument {
            throw .invalidArgument(
                "'all_descendants' in CollectionSelector with document parent is not supported by real-time queries.")
        }
        // Planned with its projection for the rules, and without it to be run.
        selection = try QueryPlan(query, parent: parent.bytes).selection
        var whole = query
        whole.select = nil
        plan = try QueryPlan(whole, parent: parent.bytes, condition: condition)
        isWindow = plan.limit != nil || plan.offset > 0
        required = plan.matcher.equalityCondition.map(RequiredValues.init)
        self.identity = identity
    }

    /// The bytes by which equal queries are found.
    static func identity(parent: String, _ query: StructuredQuery, _ condition: TargetCondition?) -> [UInt8] {
        var writer = ByteBuffer(capacity: 128)
        writer.append(utf8: parent)
        // Names have neither byte.
        writer.append(byte: condition == nil ? 0 : 1)
        if let condition {
            writer.appendVarint(UInt64(condition.identity.count))
            writer.append(condition.identity)
        }
        query.encode(into: &writer)
        return writer.copyBytes()
    }

    /// Notes the sort keys of a change, which its targets compare with their windows.
    func noteSortKeys(of change: StoreChange, by indexes: ChangeIndexes, _ matchedBefore: Bool, _ matches: Bool) {
        guard isWindow else { return }
        let (path, before, after) = (change.path, change.before, change.after)
        changedKeys.before = matchedBefore ? sortKey(path: path, fields: before, by: indexes.before) : nil
        changedKeys.after = matches ? sortKey(path: path, fields: after, by: indexes.after) : nil
    }

    /// The sort key of a result.
    func sortKey(path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil) -> [UInt8] {
        var key = ByteBuffer(capacity: 128)
        guard matcher.appendSortKey(path: path, fields: fields, by: index, into: &key) else { return [] }
        return key.copyBytes()
    }
}

/// The results that offset and limit leave: all documents that match from the first key to the last.
struct ResultRange {
    /// Sort keys of the first and of the last result; nil if there are none.
    var first: [UInt8]?
    var last: [UInt8]?
    var count = 0

    /// Adds the next result in the order of the query.
    mutating func append(_ key: [UInt8]) {
        if first == nil { first = key }
        last = key
        count += 1
    }

    /// Whether a document that matches is one of the results.
    func contains(_ key: [UInt8]) -> Bool {
        guard let first, let last else { return false }
        return key.byteSpan.compareBytes(first.byteSpan) >= 0 && key.byteSpan.compareBytes(last.byteSpan) <= 0
    }

    /// Whether a document with this key, added, changed or deleted, can change the results.
    ///
    /// - Parameter limit: the most results; nil is unlimited.
    func isAffected(by key: [UInt8], limit: Int?) -> Bool {
        if let limit { if count < limit { return true } } else { return true }
        guard let last else { return limit != 0 }
        return key.byteSpan.compareBytes(last.byteSpan) <= 0
    }
}
