// Ranges of index entries.
//
//     20 | collection | field | value | id | 1        prefix        what all keys of the range begin with
//     └──── index prefix ────┘                        suffix        what follows: further values and the id
//     └──────── prefix ──────────────┘ suffix         entries are in the order of their suffixes

import Basics
import DocumentModel
internal import Indexing

/// An index, as one query uses it.
struct IndexUse: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case values
        case elements
        /// A declared one; its fields as explain shows them, whether its keys have paths in place of ids, and whether
        /// these are inverted.
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

    /// The id segment or path of an entry, as in document keys, and where it lies in the suffix; nil if
    /// there is none.
    func document(in suffix: [UInt8]) -> (segment: [UInt8], place: Range<Int>)? {
        guard case .declared(_, let isGroup, let invertsSuffix) = kind else {
            guard let place = IndexKey.idSegment(of: suffix.byteSpan, from: 0) else { return nil }
            return (Array(suffix[place]), place)
        }
        let found =
            isGroup
            ? IndexKey.path(ofGroupEntry: suffix.byteSpan, from: 0) : IndexKey.idSegment(of: suffix.byteSpan, from: 0)
        guard let place = found else { return nil }
        return (invertsSuffix ? suffix[place].map { ~$0 } : Array(suffix[place]), place)
    }
}

/// Entries of one index that begin with the same values.
struct IndexRange: Sendable, Equatable {
    let index: IndexUse
    /// What the keys begin with, and how many bytes of that are values.
    let prefix: [UInt8]
    let valueBytes: Int
    /// The suffixes that are wanted.
    var suffixes = ByteInterval.all
    /// The condition as explain shows it.
    let condition: String

    /// Other values may have the same bytes.
    var isCut: Bool { valueBytes >= IndexKey.valueBytesMax }

    /// The entries of one value of an automatic index.
    init(_ index: IndexUse, value: IndexedKey, condition: String) {
        self.index = index
        prefix = index.prefix + value.bytes
        valueBytes = value.bytes.count
        self.condition = condition
    }

    init(_ index: IndexUse, values: [UInt8], suffixes: ByteInterval, condition: String) {
        self.index = index
        prefix = index.prefix + values
        valueBytes = values.count
        self.suffixes = suffixes
        self.condition = condition
    }

    /// Bytes that the values of a suffix have in the keys. Values that take all of them may be cut.
    var suffixValueBytesMax: Int { IndexKey.valueBytesMax - valueBytes }

    /// The number of entries, counted no further than `atMost`.
    func count<Source: QuerySource & ~Copyable>(in source: borrowing Source, atMost: Int) throws(RequestError) -> Int {
        let (lower, upper) = (prefix + suffixes.lower, prefix + suffixes.upper)
        return try source.countKeys(from: lower.byteSpan, to: upper.byteSpan, atMost: atMost)
    }

    func tree(_ direction: SortDirection) -> PlanTree {
        PlanTree(line: "IndexScan \(index.properties(direction))\(condition.isEmpty ? "" : ": ")\(condition)")
    }
}

/// One collection of a collection group.
struct GroupCollection: Sendable, Equatable {
    /// Below `documents`.
    let path: [UInt8]
    /// The path's segments as in keys, but never cut: what stands before the id where entries of several collections
    /// are compared.
    let segments: [UInt8]

    init(path: [UInt8]) {
        self.path = path
        var writer = ByteBuffer(capacity: 64)
        writer.appendPathSegments(path.byteSpan)
        segments = writer.copyBytes()
    }
}
