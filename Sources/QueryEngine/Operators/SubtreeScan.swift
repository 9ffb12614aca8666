// Scans the collections of a subtree or collection group in the order of document names.
//
// Storage keeps collections apart, but in name order the collections below a document come right after it, before its
// next sibling. The scan keeps a stack of the collections that it has begun:
//
//     a/1   a/1/x/5   a/1/x/5/x/7   a/2   b/1        name order
//
//     stack of collections begun    next collection     what is scanned
//     a                             a/1/x               a, through 1
//     a  a/1/x                      a/1/x/5/x           a/1/x, through 5
//     a  a/1/x  a/1/x/5/x           b                   a/1/x/5/x, all of it; popped
//     a  a/1/x                      b                   a/1/x after 5; popped
//     a                             b                   a after 1; popped
//     b                             none                b, all of it; popped
//
// The stack is as deep as collections nest.

import Basics
import DocumentModel
internal import StoreFormat

/// The documents of several collections, by name, ascending.
struct SubtreeScan: QueryOperator {
    private let scope: QueryScope
    private let names: NameRange
    // The resume token: the collections begun, innermost last; the first collection not begun yet, once it is known;
    // where to look for that, nil when no collection is left; and the key at which this look was paused.
    private var begun: [CollectionScan] = []
    private var upcoming: [UInt8]?
    private var searchPosition: [UInt8]?
    private var searchKey: [UInt8]?
    /// What the keys of the list of a group's collections begin with; nil before the first search.
    private var group: [UInt8]?

    /// - Parameter scope: more than one collection.
    init(_ scope: QueryScope, names: NameRange) {
        self.scope = scope
        self.names = names
        restart()
    }

    var isFinished: Bool { begun.isEmpty && upcoming == nil && searchPosition == nil }

    var tree: PlanTree { PlanTree(line: "SubtreeScan \(scope)\(names == .all ? "" : ", \(names)")") }

    // MARK: Beginning

    mutating func restart() {
        begun = []
        upcoming = nil
        (searchPosition, searchKey) = (nil, nil)
        switch scope {
        case .collection: preconditionFailure("one collection is read by a CollectionScan")
        case .children(let parent): restartChildren(of: parent)
        case .descendants(let parent, let collectionID): restart(parent: parent, collectionID: collectionID)
        }
    }

    /// Begins at the lower bound: in the child collection that contains it.
    private mutating func restartChildren(of parent: [UInt8]) {
        searchPosition = parent
        guard let bound = names.lower?.position.path else { return }
        guard RelativePath.isBelow(bound.byteSpan, parent.byteSpan) else {
            if ResourcePath.compare(bound.byteSpan, parent.byteSpan) > 0 { searchPosition = nil }
            return
        }
        let id = RelativePath.nextSegment(of: bound.byteSpan, below: parent.byteSpan).id
        begin(RelativePath.child(id, of: parent))
    }

    /// Begins at the lower bound: in the collections around it, as if everything before it had been read.
    private mutating func restart(parent: [UInt8], collectionID: [UInt8]?) {
        searchPosition = parent
        guard let bound = names.lower?.position.path else { return }
        guard RelativePath.isBelow(bound.byteSpan, parent.byteSpan) else {
            if ResourcePath.compare(bound.byteSpan, parent.byteSpan) > 0 { searchPosition = nil }
            return
        }
        for collection in RelativePath.collections(leadingTo: bound) {
            guard RelativePath.isBelow(collection.byteSpan, parent.byteSpan),
                collectionID == nil || [UInt8](copying: RelativePath.lastSegment(collection.byteSpan)) == collectionID
            else { continue }
            push(collection)
        }
        searchPosition = bound
    }

    /// Begins the upcoming collection.
    private mutating func begin(_ collection: [UInt8]) {
        upcoming = nil
        searchPosition = collection
        push(collection)
    }

    private mutating func push(_ collection: [UInt8]) {
        guard let ids = names.ids(in: collection) else { return }
        begun.append(CollectionScan(collection, ids: ids, direction: .ascending))
    }

    // MARK: Scanning

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        while true {
            if try !findUpcoming(source, &work) { return }
            guard let current = begun.last else {
                guard let collection = upcoming else { return }
                begin(collection)
                continue
            }
            let split = splitID(of: current.collection)
            if try !scanInnermost(through: split, source, &work, page) { return }
            if let split, let collection = upcoming {
                begun[begun.count - 1].skip(through: split)
                begin(collection)
            } else {
                begun.removeLast()
            }
        }
    }

    /// Scans the innermost collection through an id; nil: to its end.
    /// - Returns: whether all of that was scanned.
    private mutating func scanInnermost<Source: QuerySource & ~Copyable>(
        through split: [UInt8]?, _ source: borrowing Source, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        let innermost = begun.count - 1
        if let split { return try begun[innermost].next(through: split, from: source, &work, into: page) }
        try begun[innermost].next(from: source, &work, into: page)
        return begun[innermost].isFinished
    }

    /// Finds the next collection to begin, unless it is known or there is none. That takes as long as to look at a
    /// document, or at many deleted ones.
    /// - Returns: whether the step may continue.
    private mutating func findUpcoming<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: inout StepWork
    ) throws(RequestError) -> Bool {
        guard upcoming == nil, var position = searchPosition else { return true }
        var deletions = work.deletionsMax
        let next: NextCollection
        switch scope {
        case .collection: return true
        case .children(let parent):
            next = try SubtreeScan.nextChild(source, of: parent, after: &position, from: searchKey, passing: &deletions)
        case .descendants(let parent, let collectionID):
            if group == nil, let collectionID {
                group = GroupKey.prefix(ofGroup: collectionID.byteSpan, database: source.database)
            }
            next = try source.nextCollectionOfQuery(
                after: position, below: parent, collectionID: collectionID, group: group, from: searchKey,
                passing: &deletions)
        }
        if case .paused(let key) = next {
            (searchPosition, searchKey) = (position, key)
            work.budget = 0
            return false
        }
        (searchPosition, searchKey) = (nil, nil)
        // Beyond the upper bound nothing can follow: every document of a collection comes after the collection's path.
        guard case .found(let found) = next, names.upper.map({ $0.position.compare(path: found.byteSpan) < 0 }) ?? true
        else { return true }
        upcoming = found
        return work.spend(byteCount: 0)
    }

    /// The next collection directly below `parent` that has documents.
    ///
    /// - Parameters:
    ///   - position: the child collection begun last, or `parent` itself. Set to where a search begins that is paused.
    ///   - key: where the search from this position was paused.
    private static func nextChild<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, of parent: [UInt8], after position: inout [UInt8], from key: [UInt8]?,
        passing deletions: inout Int
    ) throws(RequestError) -> NextCollection {
        var key = key
        while true {
            let next = try source.nextCollectionOfQuery(
                after: position, skippingBelow: position != parent, below: parent, collectionID: nil, from: key,
                passing: &deletions)
            guard case .found(let found) = next else { return next }
            let (id, isLast) = RelativePath.nextSegment(of: found.byteSpan, below: parent.byteSpan)
            if isLast { return next }
            // The child itself has no documents.
            (position, key) = (RelativePath.child(id, of: parent), nil)
        }
    }

    /// The document of `collection` below which the upcoming collection lies, if it does.
    private func splitID(of collection: [UInt8]) -> [UInt8]? {
        guard let upcoming, RelativePath.isBelow(upcoming.byteSpan, collection.byteSpan) else { return nil }
        return RelativePath.nextSegment(of: upcoming.byteSpan, below: collection.byteSpan).id
    }
}
