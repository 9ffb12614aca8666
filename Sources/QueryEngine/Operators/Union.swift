// Merges ordered streams of index entries into one, without repetition.

import Basics
import DocumentModel
internal import Indexing

/// The entries of several zigzag merges, in the order of their suffixes, each once.
struct Union: Sendable {
    let members: [ZigzagMerge]
    let direction: SortDirection
    /// The number of collections of a group, if members of several collections are united.
    let collectionCount: Int?
    /// Values of so many bytes in a suffix are cut in one of the ranges at least. The place of their entries among the
    /// others is not the place of their documents.
    private let suffixValueBytesMax: Int
    /// The consumer needs the entries in the order of their documents.
    var isOrdered = false
    /// The resume token: the position of each member.
    private var positions: [MergePosition]
    /// Of each member; empty unless they are measured.
    private var figures: [MergeFigures] = []

    init(_ members: [ZigzagMerge], direction: SortDirection, collectionCount: Int? = nil) {
        precondition(!members.isEmpty, "a union has members")
        self.members = members
        self.direction = direction
        self.collectionCount = collectionCount
        suffixValueBytesMax = members.flatMap(\.ranges).reduce(.max) { min($0, $1.suffixValueBytesMax) }
        positions = members.map { _ in MergePosition() }
    }

    /// Has the members and their ranges counted and timed.
    mutating func measure() {
        figures = members.map { MergeFigures(ranges: $0.ranges.map { _ in OperatorFigures() }) }
    }

    mutating func restart() { positions = members.map { _ in MergePosition() } }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout EntryWork,
        into consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        var readers = zip(members, positions).map {
            ZigzagReader($0, at: $1, database: source.database, direction, measures: !figures.isEmpty)
        }
        defer {
            positions = readers.map(\.position)
            for member in figures.indices {
                if let measured = readers[member].measured { figures[member] = figures[member] + measured }
            }
        }
        while true {
            for member in readers.indices where readers[member].head == nil {
                if try !readers[member].seek(source, &work) { return .paused }
            }
            guard let entry = first(of: readers) else { return .finished }
            var segment: [UInt8] = []
            var isCut = entry.isCut
            if members[0].collection == nil {
                let document = try document(of: entry)
                segment = document.segment
                isCut = isCut || document.isCut
            }
            if isOrdered, isCut { return .unordered(nil) }
            if readers.count == 1 {
                readers[0].pass()
            } else {
                for member in readers.indices where readers[member].head?.suffix == entry.suffix {
                    readers[member].pass()
                }
            }
            let control = try consume(
                IndexEntry(segment: segment.byteSpan, documentKey: entry.documentKey.byteSpan))
            if control == .full { return .paused }
        }
    }

    /// The head that comes first.
    private func first(of readers: [ZigzagReader]) -> MergeEntry? {
        var first: MergeEntry?
        if readers.count == 1 { return readers[0].head }
        for member in readers.indices {
            guard let head = readers[member].head else { continue }
            if let known = first {
                let isLess = head.suffix.byteSpan.compareBytes(known.suffix.byteSpan) < 0
                if isLess != (direction == .ascending) { continue }
            }
            first = head
        }
        return first
    }

    /// What the suffix says of the document, and whether its place among the others is not the document's because
    /// something was cut.
    private func document(of entry: MergeEntry) throws(RequestError) -> (segment: [UInt8], isCut: Bool) {
        let range = members[0].ranges[0]
        guard let (segment, place) = range.index.document(in: entry.suffix) else { throw .damagedEntry }
        let isCutValue = place.lowerBound > 0 && place.lowerBound >= suffixValueBytesMax
        return (segment, isCutValue || IndexKey.isCut(idSegment: segment.byteSpan))
    }

    func estimate<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, atMost: Int
    ) throws(RequestError) -> Int {
        var total = 0
        for member in members where total < atMost { total += try member.estimate(in: source, atMost: atMost - total) }
        return total
    }

    // MARK: Explain

    /// The members of the first collection: those of the others are alike.
    private var shown: [ZigzagMerge] {
        collectionCount == nil ? members : members.filter { $0.collection == members[0].collection }
    }

    /// The figures of a shown member and of those of other collections that are alike.
    private func figures(ofShown position: Int, of count: Int) -> MergeFigures? {
        guard !figures.isEmpty else { return nil }
        let alike = stride(from: position + count, to: members.count, by: count)
        return alike.reduce(figures[position]) { $0 + figures[$1] }
    }

    var tree: PlanTree {
        let shown = shown
        let inputs = shown.indices.map { shown[$0].tree(direction, figures(ofShown: $0, of: shown.count)) }
        let sum = figures.isEmpty ? nil : figures.map(\.merge).reduce(OperatorFigures(), +)
        let union = inputs.count == 1 ? inputs[0] : PlanTree(line: "Union", inputs: inputs, figures: sum)
        guard let collectionCount else { return union }
        return PlanTree(line: "Union of \(collectionCount) collections, each by", inputs: [union])
    }

    var indexes: [IndexUse] {
        var indexes: [IndexUse] = []
        for range in shown.flatMap(\.ranges) where !indexes.contains(range.index) { indexes.append(range.index) }
        return indexes
    }
}
