// Walking every document of a query's scope, with a memory of where it stands.
//
// One collection is one scan. A collection group or a subtree is walked in name order, although storage keeps
// collections apart: a document's sub-collections come right after it, before its next sibling.
//
//     a/1   a/1/x/5   a/1/x/5/x/7   a/2   b/1        name order
//
//     stack of collections begun    next collection     what is scanned
//     a                             a/1/x               a, up to and including 1
//     a  a/1/x                      a/1/x/5/x           a/1/x, up to and including 5
//     a  a/1/x  a/1/x/5/x           b                   a/1/x/5/x, all of it; popped
//     a  a/1/x                      b                   the rest of a/1/x after 5; popped
//     a                             b                   the rest of a after 1; popped
//     b                             none                b, all of it; popped
//
// The stack is as deep as collections nest. Between two calls the walk is only names, so that nothing of the storage is
// held while a slow reader makes up its mind.

import Basics
import DocumentModel

/// Visits the documents of a scope in name order.
struct ScopeWalk: ~Copyable, Sendable {
    /// A collection that has been begun, and the ids in it that are still to be visited.
    private struct Begun {
        var collection: [UInt8]
        var ids: DocumentIDRange
    }

    private let scope: QueryScope
    private let names: NameRange
    private let direction: SortDirection
    /// The only documents to visit, ascending; nil visits all.
    private let points: [[UInt8]]?
    /// Innermost last.
    private var begun: [Begun] = []
    /// The first collection not begun yet, once it is known.
    private var upcoming: [UInt8]?
    /// Where to look for `upcoming`; nil when there is nothing left to begin.
    private var searchPosition: [UInt8]?
    /// The path of the document being visited.
    private var path = WireWriter(capacity: 128)

    /// - Parameters:
    ///   - points: paths of the scope and the range, ascending, if these are all that can be of interest.
    ///   - direction: descending is for a single collection only.
    init(_ scope: QueryScope, names: NameRange, points: [[UInt8]]?, direction: SortDirection) {
        self.scope = scope
        self.names = names
        self.points = points
        self.direction = direction
        restart()
    }

    /// Whether everything has been visited.
    var isFinished: Bool { begun.isEmpty && upcoming == nil && searchPosition == nil }

    /// Goes back to the beginning.
    mutating func restart() {
        begun = []
        upcoming = nil
        searchPosition = nil
        if let points { return restart(points) }
        switch scope {
        case .collection(let path):
            if let ids = names.ids(in: path) { begun = [Begun(collection: path, ids: ids)] }
        case .children(let parent):
            precondition(direction == .ascending, "collections of any id are walked in ascending order only")
            restartChildren(of: parent)
        case .descendants(let parent, let collectionID):
            precondition(direction == .ascending, "subtrees are walked in ascending order only")
            restart(parent: parent, collectionID: collectionID)
        }
    }

    /// Makes each point a range of its own, the first one on top of the stack.
    private mutating func restart(_ points: [[UInt8]]) {
        begun = points.map { point in
            let id = [UInt8](copying: RelativePath.lastSegment(point.byteSpan))
            let bound = DocumentIDBound(id: id, isInclusive: true)
            return Begun(
                collection: Array(point.dropLast(id.count + 1)), ids: DocumentIDRange(lower: bound, upper: bound))
        }
        if direction == .ascending { begun.reverse() }
    }

    /// Begins at the lower bound: in the child collection that it lies in.
    private mutating func restartChildren(of parent: [UInt8]) {
        searchPosition = parent
        guard case .at(let bound)? = names.lower?.position else {
            if names.lower?.position == .afterAll { searchPosition = nil }
            return
        }
        guard RelativePath.isBelow(bound.byteSpan, parent.byteSpan) else {
            if ResourcePath.compare(bound.byteSpan, parent.byteSpan) > 0 { searchPosition = nil }
            return
        }
        let id = RelativePath.nextSegment(of: bound.byteSpan, below: parent.byteSpan).id
        begin(RelativePath.child(id, of: parent))
    }

    /// Begins at the lower bound: in the collections around it, as if everything before it had been visited.
    private mutating func restart(parent: [UInt8], collectionID: [UInt8]?) {
        searchPosition = parent
        guard let lower = names.lower else { return }
        switch lower.position {
        case .beforeAll: return
        case .afterAll: searchPosition = nil
        case .at(let bound):
            guard RelativePath.isBelow(bound.byteSpan, parent.byteSpan) else {
                if ResourcePath.compare(bound.byteSpan, parent.byteSpan) > 0 { searchPosition = nil }
                return
            }
            for collection in RelativePath.collections(leadingTo: bound) {
                guard RelativePath.isBelow(collection.byteSpan, parent.byteSpan),
                    collectionID == nil || [UInt8](copying: RelativePath.lastSegment(collection.byteSpan)) == collectionID,
                    let ids = names.ids(in: collection)
                else { continue }
                begun.append(Begun(collection: collection, ids: ids))
            }
            searchPosition = bound
        }
    }

    /// Visits documents until `body` says stop or none is left; the next call goes on behind the last one visited.
    mutating func visit<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        while true {
            try findUpcoming(&scanner)
            guard let current = begun.last else {
                guard let collection = upcoming else { return }
                begin(collection)
                continue
            }
            var ids = current.ids
            let split = splitID(of: current.collection)
            if let split { ids.lowerUpperBound(to: DocumentIDBound(id: split, isInclusive: true)) }
            if let stopped = try scan(current.collection, ids, &scanner, body) {
                begun[begun.count - 1].ids.resume(after: stopped, direction)
                return
            }
            if let split, let collection = upcoming {
                begun[begun.count - 1].ids.resume(after: split, .ascending)
                begin(collection)
            } else {
                begun.removeLast()
            }
        }
    }

    /// Scans a part of one collection; returns the id at which `body` said stop.
    private mutating func scan<Scanner: DocumentScanner & ~Copyable>(
        _ collection: [UInt8], _ ids: DocumentIDRange, _ scanner: inout Scanner,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> [UInt8]? {
        if ids.isEmpty { return nil }
        var stopped: [UInt8]?
        path.reset()
        path.append(collection)
        path.append(byte: RelativePath.slash)
        let prefix = path.count
        try scanner.scanCollection(collection.byteSpan, ids: ids, direction: direction) {
            (document) throws(RequestError) in
            path.truncate(to: prefix)
            path.append(document.documentID)
            let control = try body(path.bytes, document)
            if case .stop = control { stopped = [UInt8](copying: document.documentID) }
            return control
        }
        return stopped
    }

    /// Finds the next collection to begin, unless it is known or there is none.
    private mutating func findUpcoming<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) {
        guard upcoming == nil, let position = searchPosition else { return }
        searchPosition = nil
        let found: [UInt8]?
        switch scope {
        case .collection: return
        case .children(let parent): found = try ScopeWalk.nextChild(&scanner, of: parent, after: position)
        case .descendants(let parent, let collectionID?):
            found = try scanner.nextCollection(
                after: position.byteSpan, below: parent.byteSpan, collectionID: collectionID.byteSpan)
        case .descendants(let parent, nil):
            found = try scanner.nextCollection(after: position.byteSpan, below: parent.byteSpan, collectionID: nil)
        }
        // Beyond the upper bound nothing can follow: every document of a collection comes after the collection's path.
        guard let found, names.upper.map({ $0.position.compare(path: found.byteSpan) < 0 }) ?? true else { return }
        upcoming = found
    }

    /// The next collection directly below `parent` that has documents.
    ///
    /// - Parameter position: the child collection begun last, or `parent` itself.
    private static func nextChild<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, of parent: [UInt8], after position: [UInt8]
    ) throws(RequestError) -> [UInt8]? {
        var position = position
        while true {
            let found = try scanner.nextCollection(
                after: position.byteSpan, skippingBelow: position != parent, below: parent.byteSpan, collectionID: nil)
            guard let found else { return nil }
            let (id, isLast) = RelativePath.nextSegment(of: found.byteSpan, below: parent.byteSpan)
            if isLast { return found }
            // The child has no documents of its own.
            position = RelativePath.child(id, of: parent)
        }
    }

    /// Begins the upcoming collection.
    private mutating func begin(_ collection: [UInt8]) {
        upcoming = nil
        searchPosition = collection
        if let ids = names.ids(in: collection) { begun.append(Begun(collection: collection, ids: ids)) }
    }

    /// The document of `collection` below which the upcoming collection lies, if it does.
    private func splitID(of collection: [UInt8]) -> [UInt8]? {
        guard let upcoming, RelativePath.isBelow(upcoming.byteSpan, collection.byteSpan) else { return nil }
        return RelativePath.nextSegment(of: upcoming.byteSpan, below: collection.byteSpan).id
    }
}

extension DocumentIDRange {
    /// Whether the bounds leave no id.
    var isEmpty: Bool {
        guard let lower, let upper else { return false }
        let order = ResourceID.compare(lower.id.byteSpan, upper.id.byteSpan)
        return order > 0 || (order == 0 && !(lower.isInclusive && upper.isInclusive))
    }

    /// Leaves what follows an id in the direction of the walk.
    mutating func resume(after id: [UInt8], _ direction: SortDirection) {
        let bound = DocumentIDBound(id: id, isInclusive: false)
        switch direction {
        case .ascending: lower = bound
        case .descending: upper = bound
        }
    }

    /// Replaces the upper bound unless the present one is tighter.
    mutating func lowerUpperBound(to bound: DocumentIDBound) {
        if let upper {
            let order = ResourceID.compare(upper.id.byteSpan, bound.id.byteSpan)
            if order < 0 || (order == 0 && !upper.isInclusive) { return }
        }
        upper = bound
    }
}
