// How a query finds its candidates through indexes.
//
// An access is a list of parts, walked one after the other. A part is either
//
//     intervals   runs of entries of one index, in its order                       a > 5;  a in [1, 2], ordered by a
//     merge       entries with one of several sets of equal values, by id          a == 1 AND b == 2;  a == 1 OR b == 2
//
// A merge is a union of intersections. Entries of one value lie in the order of ids, so an intersection moves along several
// indexes at once, each leaping to where the others are (zig-zag), and a union takes the least of its members. In a collection
// group without a declared index each collection has parts of its own, or in the order of the query members of one merge.
//
// What is found is judged once more by the whole filter, on the document. So an access may find too much, never too little,
// and never a document twice: a document that an earlier part has found is passed over by the later ones.

import DocumentModel

/// One index in use.
struct IndexUse: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case values
        case elements
        /// A declared one; its fields as explain shows them, whether its keys have paths in place of ids, and whether these are
        /// inverted.
        case declared(properties: String, isGroup: Bool, invertsSuffix: Bool)
    }

    let kind: Kind
    /// The field; of a declared index the first.
    let field: FieldPath
    /// What the keys of its entries begin with in the scope queried.
    let prefix: [UInt8]

    var isDeclared: Bool {
        if case .declared = kind { true } else { false }
    }

    /// The id segment or path of an entry, as it stands in document keys, and where it lies in the rest; nil if there is none.
    func document(in rest: [UInt8]) -> (segment: [UInt8], place: Range<Int>)? {
        guard case .declared(_, let isGroup, let invertsSuffix) = kind else {
            guard let place = IndexKey.idSegment(of: rest.byteSpan, from: 0) else { return nil }
            return (Array(rest[place]), place)
        }
        let found =
            isGroup ? IndexKey.path(ofGroupEntry: rest.byteSpan, from: 0) : IndexKey.idSegment(of: rest.byteSpan, from: 0)
        guard let place = found else { return nil }
        return (invertsSuffix ? rest[place].map { ~$0 } : Array(rest[place]), place)
    }
}

/// A run of entries that all begin with the same values. What follows, which is further values and the id, is the entry's *rest*:
/// entries lie in its order, and those of several runs are merged by it.
struct ValueRun: Sendable, Equatable {
    let index: IndexUse
    /// What the keys begin with, and how many bytes of that are values.
    let prefix: [UInt8]
    let valueBytes: Int
    /// The rests that are wanted.
    var rests = ByteInterval.all
    /// The condition as the plan shows it.
    let condition: String

    /// Other values may have the same bytes.
    var isCut: Bool { valueBytes >= IndexKey.valueBytesMaximum }

    /// The run of one value of an automatic index.
    init(_ index: IndexUse, value: IndexedKey, condition: String) {
        self.index = index
        prefix = index.prefix + value.bytes
        valueBytes = value.bytes.count
        self.condition = condition
    }

    init(_ index: IndexUse, values: [UInt8], rests: ByteInterval, condition: String) {
        self.index = index
        prefix = index.prefix + values
        valueBytes = values.count
        self.rests = rests
        self.condition = condition
    }
}

/// Runs that are intersected.
struct MergeMember: Sendable {
    var runs: [ValueRun]
    /// Where entries of several collections are merged: the one that the runs are of.
    var collection: GroupCollection?
}

/// One collection of a group.
struct GroupCollection: Sendable, Equatable {
    /// Below `documents`.
    let path: [UInt8]
    /// The path's segments as in keys, but never cut: what stands before the id where entries of several collections are
    /// compared.
    let segments: [UInt8]

    init(path: [UInt8]) {
        self.path = path
        var writer = WireWriter(capacity: 64)
        writer.appendPathSegments(path.byteSpan)
        segments = writer.copyBytes()
    }
}

/// A part of an access.
struct AccessPart: Sendable {
    enum Source: Sendable {
        /// Entries in these intervals: in order, disjoint.
        case intervals(IndexUse, [ByteInterval])
        /// Documents that have an entry in each run of at least one member.
        case merge([MergeMember])
    }

    var source: Source
    /// The alternatives of the filter that the part answers.
    var disjuncts: [Disjunct]
    /// The collection that the entries are of, in a group whose collections are gone through one after the other.
    var collection: GroupCollection?
}

/// The candidates of a query, found through indexes.
package struct IndexAccess: Sendable {
    var parts: [AccessPart]
    /// Which way the entries are walked.
    var direction: SortDirection
    /// Candidates come in the order of the query.
    var isOrdered = false
    /// Every candidate is a result, whatever its document says.
    var isExact = false
    /// Documents are not read: only the number of candidates is asked for.
    var countsOnly = false
    /// The collections of a group whose own indexes are used.
    var collectionCount: Int?

    /// The indexes used, each once, in the order of their use.
    var indexes: [IndexUse] {
        var uses: [IndexUse] = []
        for part in firstCollection {
            switch part.source {
            case .intervals(let use, _): if !uses.contains(use) { uses.append(use) }
            case .merge(let members):
                for run in members.flatMap(\.runs) where !uses.contains(run.index) { uses.append(run.index) }
            }
        }
        return uses
    }

    /// The first collection's share of the access; everything if there is one collection only.
    private var firstCollection: [AccessPart] {
        guard collectionCount != nil else { return parts }
        return parts.compactMap { part in
            if part.collection != parts[0].collection { return nil }
            guard case .merge(let members) = part.source else { return part }
            var first = part
            first.source = .merge(members.filter { $0.collection == members[0].collection })
            return first
        }
    }
}

/// A collection as the planner sees it.
package struct IndexedCollection: Sendable {
    /// What stands for it in index keys.
    let number: UInt64
    /// Set for collections of a group.
    var inGroup: GroupCollection?
    /// About how many documents it holds.
    let documentCount: Int
    /// The fields that have entries.
    var fields = IndexedFields.all
    /// Results must be read even when only their number is asked for, since the transaction locks them.
    var mustReadDocuments = false
}

// MARK: Text

extension IndexUse {
    /// The index's fields, as explain shows them.
    func properties(_ direction: SortDirection) -> String {
        switch kind {
        case .values:
            let order = direction == .ascending ? "ASC" : "DESC"
            return "(\(field) \(order), __name__ \(order))"
        case .declared(let properties, _, _): return properties
        case .elements: return "(\(field) CONTAINS, __name__ \(direction == .ascending ? "ASC" : "DESC"))"
        }
    }
}

extension AccessPart {
    /// The conditions of all alternatives on a field; empty if one has none.
    func condition(on field: FieldPath) -> String {
        let conditions = disjuncts.map { disjunct in
            disjunct.fieldTests.filter { $0.path == field }.map(\.description).joined(separator: " AND ")
        }
        return conditions.contains("") ? "" : conditions.joined(separator: " OR ")
    }
}

extension IndexAccess {
    /// The source of a plan's tree, from the top: lines with their depth.
    var tree: [(depth: Int, text: String)] {
        if parts.isEmpty { return [(0, "nothing")] }
        guard let collectionCount else { return tree(of: parts, depth: 0) }
        let way = isOrdered ? "union of" : "one after the other,"
        return [(0, "\(way) \(collectionCount) collections, each by")] + tree(of: firstCollection, depth: 1)
    }

    private func tree(of parts: [AccessPart], depth: Int) -> [(depth: Int, text: String)] {
        if parts.count == 1 { return tree(of: parts[0], depth: depth) }
        return [(depth, "one after the other")] + parts.flatMap { tree(of: $0, depth: depth + 1) }
    }

    private func tree(of part: AccessPart, depth: Int) -> [(depth: Int, text: String)] {
        switch part.source {
        case .intervals(let use, let intervals):
            let condition = part.condition(on: use.field)
            let text = condition.isEmpty ? "" : ": " + condition
            let number = intervals.count == 1 ? "" : ", \(intervals.count) intervals"
            return [(depth, "index \(use.properties(direction))\(text)\(number)")]
        case .merge(let members):
            if members.count == 1 { return tree(ofMember: members[0].runs, depth: depth) }
            return [(depth, "union")] + members.flatMap { tree(ofMember: $0.runs, depth: depth + 1) }
        }
    }

    private func tree(ofMember runs: [ValueRun], depth: Int) -> [(depth: Int, text: String)] {
        let lines = runs.map { "index \($0.index.properties(direction))\($0.condition.isEmpty ? "" : ": ")\($0.condition)" }
        if lines.count == 1 { return [(depth, lines[0])] }
        return [(depth, "intersection")] + lines.map { (depth + 1, $0) }
    }
}
