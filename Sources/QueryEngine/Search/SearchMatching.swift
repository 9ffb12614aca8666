// Finding the documents that match a search, in the order of names, over lists of entries in memory.

internal import Basics
internal import DocumentModel
internal import Indexing

/// The lists of a search with a position in each. A step ends when its fuel is spent; positions are kept.
struct SearchMatching: Sendable {
    /// How a search for the next document ended.
    enum Found: Equatable {
        case document([UInt8])
        /// The fuel is spent. No document before this one matches that has not been found.
        case paused([UInt8])
        case nothing

        fileprivate var place: [UInt8]? {
            switch self {
            case .document(let place), .paused(let place): place
            case .nothing: nil
            }
        }
    }

    let tree: SearchTree
    /// By leaf.
    private let lists: [PostingList]
    private let weights: [Double]
    private let score: SearchScore
    private var positions: [Int]
    /// What combinations were asked for last, and what they found.
    private var found: [(target: [UInt8], found: Found)?]
    /// Comparisons and places that the present step may still look at.
    var fuel = 0

    init(_ tree: SearchTree, _ lists: [PostingList], _ counts: SearchCounts) {
        self.tree = tree
        self.lists = lists
        score = SearchScore(counts)
        weights = lists.map { [score] list in score.weight(documents: list.documentCount) }
        positions = lists.map { _ in 0 }
        found = [(target: [UInt8], found: Found)?](repeating: nil, count: tree.combinations)
    }

    /// The first document from `target` on that matches.
    mutating func next(from target: [UInt8]) -> Found { seek(tree.root, target) }

    private mutating func seek(_ node: SearchTree.Node, _ target: [UInt8]) -> Found {
        switch node {
        case .leaf(let leaf): return seek(leaf: leaf, target)
        case .any(let nodes): return seekAny(nodes, target)
        case .phrase(let leaves, let number):
            return remember(number, target) { matching, start in
                matching.seekAll(leaves.map { .leaf($0) }, start) {
                    $0.hasPhrase(leaves, $1) ? .accepted : .refused
                }
            }
        case .all(let nodes, let excluded, let number):
            return remember(number, target) { matching, start in
                matching.seekAll(nodes, start) { $0.verdict(excluded, $1) }
            }
        }
    }

    private mutating func verdict(_ excluded: [SearchTree.Node], _ document: [UInt8]) -> Verdict {
        for node in excluded {
            switch seek(node, document) {
            case .document(document): return .refused
            case .paused(let place) where place == document: return .undecided
            case .document, .paused, .nothing: continue
            }
        }
        return .accepted
    }

    /// What a combination found last, if that answers the question; else looks for it.
    private mutating func remember(
        _ number: SearchTree.Combination, _ target: [UInt8], _ look: (inout SearchMatching, [UInt8]) -> Found
    ) -> Found {
        var start = target
        if let last = found[number], last.target.byteSpan.compareBytes(target.byteSpan) <= 0 {
            switch last.found {
            case .nothing: return .nothing
            case .document(let place) where target.byteSpan.compareBytes(place.byteSpan) <= 0: return last.found
            // Nothing lies between the target and the place where the last step ended.
            case .paused(let place) where target.byteSpan.compareBytes(place.byteSpan) <= 0: start = place
            case .document, .paused: break
            }
        }
        let found = look(&self, start)
        self.found[number] = (target, found)
        return found
    }

    private mutating func seek(leaf: Int, _ target: [UInt8]) -> Found {
        fuel -= 1
        let document = target.byteSpan
        positions[leaf] = lists[leaf].firstIndex(notBefore: document, from: start(leaf, document))
        guard positions[leaf] < lists[leaf].count else { return .nothing }
        return .document(lists[leaf].document(positions[leaf]))
    }

    /// An entry of a list that is not after those of a document.
    private func start(_ leaf: Int, _ document: RawSpan) -> Int {
        // Another node may have gone on in the same list.
        let isBeyond = positions[leaf] > 0 && lists[leaf].compare(positions[leaf] - 1, document) >= 0
        return isBeyond ? 0 : positions[leaf]
    }

    private mutating func seekAny(_ nodes: [SearchTree.Node], _ target: [UInt8]) -> Found {
        var first: Found = .nothing
        for node in nodes {
            let found = seek(node, target)
            guard let place = found.place else { continue }
            guard let known = first.place else {
                first = found
                continue
            }
            let order = place.byteSpan.compareBytes(known.byteSpan)
            // A document that one node has found matches, whatever another one will find.
            if order < 0 || order == 0 && found == .document(place) { first = found }
        }
        return first
    }

    private enum Verdict {
        case accepted, refused, undecided
    }

    private mutating func seekAll(
        _ nodes: [SearchTree.Node], _ target: [UInt8], _ check: (inout SearchMatching, [UInt8]) -> Verdict
    ) -> Found {
        var target = target
        while true {
            if fuel <= 0 { return .paused(target) }
            var candidate = target
            var doAgree = true
            for (number, node) in nodes.enumerated() {
                switch seek(node, candidate) {
                case .nothing: return .nothing
                case .paused(let place): return .paused(place)
                case .document(let place):
                    if place == candidate { continue }
                    if number > 0 { doAgree = false }
                    candidate = place
                }
            }
            if !doAgree {
                target = candidate
                continue
            }
            switch check(&self, candidate) {
            case .accepted: return .document(candidate)
            case .undecided: return .paused(candidate)
            // The smallest text after the candidate.
            case .refused: target = candidate + [0]
            }
        }
    }

    // MARK: Occurrences

    /// Whether stems stand next to each other in some field of a document that has all of them.
    private mutating func hasPhrase(_ leaves: [Int], _ document: [UInt8]) -> Bool {
        /// Where the phrase may begin, ascending, by field.
        var starts: [Int: [UInt32]] = [:]
        for (offset, leaf) in leaves.enumerated() {
            var left: [Int: [UInt32]] = [:]
            forEachField(of: leaf, document) { field, places in
                // A place before the phrase's first word would be negative.
                let own = places.compactMap { $0 >= offset ? $0 - UInt32(offset) : nil }
                let common = offset == 0 ? own : Self.common(starts[field.field] ?? [], own)
                if !common.isEmpty { left[field.field] = common }
            }
            starts = left
            if starts.isEmpty { return false }
        }
        return true
    }

    /// The places that two ascending lists have in common.
    private static func common(_ one: [UInt32], _ other: [UInt32]) -> [UInt32] {
        var common: [UInt32] = []
        var next = other.startIndex
        for place in one {
            while next < other.endIndex, other[next] < place { next += 1 }
            if next == other.endIndex { break }
            if other[next] == place { common.append(place) }
        }
        return common
    }

    /// Calls `body` with the fields of a document in which a leaf's words occur, and with their places, ascending.
    private mutating func forEachField(
        of leaf: Int, _ document: [UInt8], _ body: (SearchPosting.Field, [UInt32]) -> Void
    ) {
        let document = document.byteSpan
        var cost = 0
        lists[leaf].forEachEntry(of: document, from: start(leaf, document)) { value, onlyItself in
            cost += Self.cost(of: value)
            guard var posting = SearchPosting(value) else { return }
            var places: [UInt32] = []
            while let field = posting.next(onlyItself: onlyItself, { places.append($0) }) {
                body(field, places)
                places.removeAll(keepingCapacity: true)
            }
        }
        fuel -= cost
    }

    /// The fuel that reading an entry takes. A place has a byte at least.
    private static func cost(of value: RawSpan) -> Int { value.byteCount / 16 }

    /// The score of a document that matches.
    mutating func score(of document: [UInt8]) -> Double {
        var total = 0.0
        var cost = 0
        for leaf in tree.scored {
            var frequency = 0.0
            let start = start(leaf, document.byteSpan)
            lists[leaf].forEachEntry(of: document.byteSpan, from: start) { value, onlyItself in
                cost += Self.cost(of: value)
                guard var posting = SearchPosting(value) else { return }
                while let field = posting.next(onlyItself: onlyItself) { frequency += score.frequency(field) }
            }
            if frequency > 0 { total += score.score(weight: weights[leaf], frequency: frequency) }
        }
        fuel -= cost
        return total
    }

    /// The key of a document that has one of the words, if its path is cut in the entries' keys; else empty.
    func documentKey(of document: [UInt8]) -> [UInt8] {
        var key: [UInt8]?
        for list in lists where key == nil {
            list.forEachEntry(of: document.byteSpan, from: 0) { value, _ in
                guard key == nil else { return }
                guard let posting = SearchPosting(value) else { return key = [] }
                key = [UInt8](copying: posting.documentKey)
            }
        }
        return key ?? []
    }
}
