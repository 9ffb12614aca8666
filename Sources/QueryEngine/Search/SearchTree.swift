// A text query over the words of one language: which lists of entries are read, and how they are combined.

internal import Basics
internal import Indexing
internal import TextAnalysis

/// The words that a search looks up, and the tree over them.
struct SearchTree: Sendable {
    /// A list of entries.
    enum Leaf: Sendable, Hashable {
        case stem([UInt8])
        /// All words that begin so.
        case prefix([UInt8])
        /// The points of a field in ranges of cells.
        case places(GeoArea)
    }

    indirect enum Node: Sendable {
        case leaf(Int)
        /// Stems that stand next to each other.
        case phrase([Int], Combination)
        case all([Node], excluding: [Node], Combination)
        case any([Node])
    }

    /// A number for a node that has to look for documents in several lists.
    typealias Combination = Int

    private(set) var leaves: [Leaf] = []
    private(set) var root: Node
    private(set) var combinations = 0
    /// Leaves that count for scores: those that are not excluded.
    private(set) var scored: [Int] = []

    /// Analyses the words of a query.
    ///
    /// - Throws: `INVALID_ARGUMENT` for a query without words or with too many, `FAILED_PRECONDITION` if the libraries
    ///   are missing.
    init(_ query: TextQuery, _ language: TextLanguage) throws(RequestError) {
        root = .any([])
        let built = try TextAnalyzer.with(language) { (analyzer) throws(RequestError) in
            try node(query, analyzer, isScored: true)
        }
        guard let built else { throw .invalidArgument("The text query has no word.") }
        root = built
    }

    /// The points of an area alone.
    init(_ area: GeoArea) {
        leaves = [.places(area)]
        root = .leaf(0)
    }

    /// The node of a query; nil if it has no word.
    private mutating func node(
        _ query: TextQuery, _ analyzer: TextAnalyzer, isScored: Bool
    ) throws(RequestError) -> Node? {
        switch query {
        case .text(let text, let isPrefix): return try node(text, isPrefix: isPrefix, analyzer, isScored: isScored)
        case .any(let parts):
            var nodes: [Node] = []
            for part in parts {
                if let node = try node(part, analyzer, isScored: isScored) { nodes.append(node) }
            }
            return nodes.count > 1 ? .any(nodes) : nodes.first
        case .all(let parts, let excluded):
            var nodes: [Node] = []
            var others: [Node] = []
            for part in parts {
                if let node = try node(part, analyzer, isScored: isScored) { nodes.append(node) }
            }
            for part in excluded {
                if let node = try node(part, analyzer, isScored: false) { others.append(node) }
            }
            if nodes.isEmpty { return nil }
            return nodes.count == 1 && others.isEmpty ? nodes[0] : .all(nodes, excluding: others, combination())
        }
    }

    private mutating func node(
        _ text: String, isPrefix: Bool, _ analyzer: TextAnalyzer, isScored: Bool
    ) throws(RequestError) -> Node? {
        let words = analyzer.words(of: Array(text.utf8).byteSpan)
        var parts: [Int] = []
        for index in 0..<words.count {
            let isLast = isPrefix && index == words.count - 1
            let leaf = isLast ? Leaf.prefix(words[index].folded) : .stem(words[index].stem)
            parts.append(try number(of: leaf, isScored: isScored))
        }
        guard let last = parts.last else { return nil }
        if parts.count == 1 { return .leaf(last) }
        if !isPrefix { return .phrase(parts, combination()) }
        let first = parts.dropLast()
        let whole: Node = first.count == 1 ? .leaf(first[0]) : .phrase(Array(first), combination())
        return .all([whole, .leaf(last)], excluding: [], combination())
    }

    private mutating func combination() -> Combination {
        combinations += 1
        return combinations - 1
    }

    private mutating func number(of leaf: Leaf, isScored: Bool) throws(RequestError) -> Int {
        var number = leaves.firstIndex(of: leaf)
        if number == nil {
            if leaves.count >= TextQuery.wordsMax {
                throw .invalidArgument("A text query may have at most \(TextQuery.wordsMax) different words.")
            }
            number = leaves.count
            leaves.append(leaf)
        }
        if isScored, !scored.contains(number!) { scored.append(number!) }
        return number!
    }
}
