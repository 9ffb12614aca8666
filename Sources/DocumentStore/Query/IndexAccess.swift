// How a query finds its candidates through indexes.
//
// An access is a list of parts, walked one after the other. A part is either
//
//     intervals   runs of entries of one index, in its order                       a > 5;  a in [1, 2], ordered by a
//     merge       entries with one of several sets of equal values, by id          a == 1 AND b == 2;  a == 1 OR b == 2
//
// A merge is a union of intersections. Entries of one value lie in the order of ids, so an intersection moves along several
// indexes at once, each leaping to where the others are (zig-zag), and a union takes the least of its members.
//
// What is found is judged once more by the whole filter, on the document. So an access may find too much, never too little,
// and never a document twice: a document that an earlier part has found is passed over by the later ones.

import DocumentModel

/// One index in use.
struct IndexUse: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case values
        case elements
        /// A declared one; its fields as explain shows them, and whether the ids or paths in its keys are inverted.
        case declared(properties: String, invertsSuffix: Bool)
    }

    let kind: Kind
    /// The field; of a declared index the first.
    let field: FieldPath
    /// What the keys of its entries begin with in the scope queried.
    let prefix: [UInt8]

    var isDeclared: Bool {
        if case .declared = kind { true } else { false }
    }

    var invertsSuffix: Bool {
        if case .declared(_, let inverts) = kind { inverts } else { false }
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

/// A part of an access.
struct AccessPart: Sendable {
    enum Source: Sendable {
        /// Entries in these intervals: in order, disjoint.
        case intervals(IndexUse, [ByteInterval])
        /// Documents that have an entry in each run of at least one member.
        case merge([[ValueRun]])
    }

    var source: Source
    /// The alternatives of the filter that the part answers.
    var disjuncts: [Disjunct]
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

    /// The indexes used, each once, in the order of their use.
    var indexes: [IndexUse] {
        var uses: [IndexUse] = []
        for part in parts {
            switch part.source {
            case .intervals(let use, _): if !uses.contains(use) { uses.append(use) }
            case .merge(let members):
                for run in members.joined() where !uses.contains(run.index) { uses.append(run.index) }
            }
        }
        return uses
    }
}

/// A collection as the planner sees it.
package struct IndexedCollection: Sendable {
    /// What stands for it in index keys.
    let number: UInt64
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
        case .declared(let properties, _): return properties
        case .elements: return "(\(field) CONTAINS, __name__ \(direction == .ascending ? "ASC" : "DESC"))"
        }
    }
}

extension IndexAccess {
    /// The source of a plan's tree, from the top: lines with their depth.
    var tree: [(depth: Int, text: String)] {
        if parts.isEmpty { return [(0, "nothing")] }
        if parts.count == 1 { return tree(of: parts[0], depth: 0) }
        return [(0, "one after the other")] + parts.flatMap { tree(of: $0, depth: 1) }
    }

    private func tree(of part: AccessPart, depth: Int) -> [(depth: Int, text: String)] {
        switch part.source {
        case .intervals(let use, let intervals):
            let conditions = part.disjuncts.map { disjunct in
                disjunct.fieldTests.filter { $0.path == use.field }.map(\.description).joined(separator: " AND ")
            }
            let known = conditions.contains("") ? [] : conditions
            let text = known.isEmpty ? "" : ": " + known.joined(separator: " OR ")
            let number = intervals.count == 1 ? "" : ", \(intervals.count) intervals"
            return [(depth, "index \(use.properties(direction))\(text)\(number)")]
        case .merge(let members):
            if members.count == 1 { return tree(ofMember: members[0], depth: depth) }
            return [(depth, "union")] + members.flatMap { tree(ofMember: $0, depth: depth + 1) }
        }
    }

    private func tree(ofMember runs: [ValueRun], depth: Int) -> [(depth: Int, text: String)] {
        let lines = runs.map { "index \($0.index.properties(direction))\($0.condition.isEmpty ? "" : ": ")\($0.condition)" }
        if lines.count == 1 { return [(depth, lines[0])] }
        return [(depth, "intersection")] + lines.map { (depth + 1, $0) }
    }
}
