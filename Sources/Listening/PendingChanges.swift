internal import Basics

/// The documents that have changed since the last snapshot of a stream, each once.
///
/// Only paths are held: a snapshot reads the documents at its own version. So a listener that is slow costs the memory
/// of the names that have changed, and changes of one document become one.
struct PendingChanges {
    /// What the changes of a document mean for one target.
    struct Hit {
        let target: Target
        /// Whether the document matches after the last change. If not, it matched before it, or between two changes.
        var matches: Bool
    }

    /// A changed document.
    struct Entry {
        var document: ChangedDocument
        var first: Hit
        /// Further targets.
        var others: [Hit] = []
    }

    private(set) var entries: [Entry] = []
    /// Positions of `entries`; made when there are too many to search.
    private var positions: [ByteKey: Int] = [:]
    /// The version before the first change; nil if there are none.
    private(set) var base: UInt64?

    /// Documents up to which the list is searched from its start.
    private static let searchedMax = 8

    var isEmpty: Bool { entries.isEmpty }

    /// Notes a change that concerns a target: the document matched before it, or matches after it.
    ///
    /// - Parameters:
    ///   - version: the version of the commit.
    ///   - matches: whether the document matches after the change.
    mutating func note(_ document: ChangedDocument, _ target: Target, version: UInt64, matches: Bool) {
        if base == nil { base = version - 1 }
        let hit = Hit(target: target, matches: matches)
        guard let position = position(of: document.path) else {
            return append(Entry(document: document, first: hit))
        }
        entries[position].document = document
        if entries[position].first.target === target {
            entries[position].first.matches = matches
        } else if let other = entries[position].others.firstIndex(where: { $0.target === target }) {
            entries[position].others[other].matches = matches
        } else {
            entries[position].others.append(hit)
        }
    }

    /// Forgets what the changes mean for a target.
    mutating func forget(_ target: Target) {
        var kept = PendingChanges()
        for entry in entries {
            if let rest = entry.without(target) { kept.append(rest) }
        }
        if !kept.isEmpty { kept.base = base }
        self = kept
    }

    private func position(of path: [UInt8]) -> Int? {
        if entries.count > Self.searchedMax { return positions[ByteKey(path)] }
        return entries.firstIndex { $0.document.path == path }
    }

    private mutating func append(_ entry: Entry) {
        entries.append(entry)
        if entries.count == Self.searchedMax + 1 {
            for (position, entry) in entries.enumerated() { positions[ByteKey(entry.document.path)] = position }
        } else if entries.count > Self.searchedMax {
            positions[ByteKey(entry.document.path)] = entries.count - 1
        }
    }
}

extension PendingChanges.Entry {
    /// The target that the document matches, if the changes concern no other.
    var onlyMatch: Target? { others.isEmpty && first.matches && first.target.isActive ? first.target : nil }

    /// The entry for its other targets; nil if there are none.
    fileprivate func without(_ target: Target) -> PendingChanges.Entry? {
        let hits = ([first] + others).filter { $0.target !== target }
        return hits.first.map { PendingChanges.Entry(document: document, first: $0, others: Array(hits.dropFirst())) }
    }

    /// Calls `body` with every target that is still active.
    func forEachHit(_ body: (PendingChanges.Hit) -> Void) {
        if first.target.isActive { body(first) }
        for hit in others where hit.target.isActive { body(hit) }
    }
}
