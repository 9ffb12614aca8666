// What a judgement of a commit rested on: documents, with what was seen of each.
//
// A judge reads before the commit's turn, on another thread and without locks. The commit thread compares what the
// judge saw with the newest state: if they agree, the judgement is what it would be at the turn.

package import Basics

/// Documents of a commit's database that a judgement rested on. The commit stands only if all of them are as they were
/// seen.
package struct CommitBasis: Sendable {
    /// What was seen of a document.
    fileprivate enum Sight: Equatable {
        /// Its update time in microseconds, 0 if it was missing.
        case version(UInt64)
        /// Only whether it existed.
        case existence(Bool)
        /// Two states, of which no commit can find both.
        case contradiction
    }

    private struct Entry {
        /// Where its path ends in `paths`; it begins at the end of the one before.
        let end: Int
        var sight: Sight
    }

    private var paths: [UInt8] = []
    private var entries: [Entry] = []
    /// Positions of `entries` by the hashes of their paths.
    private var positions: [UInt64: Int] = [:]

    package init() {}

    /// Memory that it holds, in bytes; an estimate.
    var byteCount: Int { paths.count + entries.count * (MemoryLayout<Entry>.stride + 32) }

    /// Takes note of a document whose content was seen.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`, UTF-8, as in `users/alice`.
    ///   - version: its update time in microseconds; 0 if it was missing.
    package mutating func note(_ path: RawSpan, version: UInt64) { note(path, .version(version)) }

    /// Takes note of a document of which only the existence was seen: changes of its content do not matter, unless its
    /// version is noted as well.
    ///
    /// - Parameter path: the document's path below `documents`, UTF-8.
    package mutating func note(_ path: RawSpan, exists: Bool) { note(path, .existence(exists)) }

    private mutating func note(_ path: RawSpan, _ sight: Sight) {
        let hash = ByteTable.hash(path)
        if let position = positions[hash], isPath(at: position, path) {
            return entries[position].sight.combine(with: sight)
        }
        // Of two paths with one hash the later has no position; noted again it gets a second entry, which is harmless.
        if positions[hash] == nil { positions[hash] = entries.count }
        paths.append(contentsOf: path)
        entries.append(Entry(end: paths.count, sight: sight))
    }

    private func isPath(at position: Int, _ path: RawSpan) -> Bool {
        let start = position == 0 ? 0 : entries[position - 1].end
        return paths.byteSpan.extracting(start..<entries[position].end).equalsBytes(path)
    }

    /// Whether every document is as it was seen.
    ///
    /// - Parameter version: finds the update time of a document by its path, in microseconds; 0 if it is missing.
    func stands(_ version: (RawSpan) throws(RequestError) -> UInt64) throws(RequestError) -> Bool {
        var start = 0
        for entry in entries {
            if try !entry.sight.agrees(with: version(paths.byteSpan.extracting(start..<entry.end))) { return false }
            start = entry.end
        }
        return true
    }
}

extension CommitBasis.Sight {
    /// Adds what was seen at another time by the same judgement.
    fileprivate mutating func combine(with other: Self) {
        switch (self, other) {
        case (.version(let version), .existence(let exists)), (.existence(let exists), .version(let version)):
            self = exists == (version != 0) ? .version(version) : .contradiction
        default: if self != other { self = .contradiction }
        }
    }

    fileprivate func agrees(with version: UInt64) -> Bool {
        switch self {
        case .version(let seen): seen == version
        case .existence(let exists): exists == (version != 0)
        case .contradiction: false
        }
    }
}

extension RequestError {
    /// What a commit's judgement rested on has changed before the commit's turn. The commit has had no effect, and its
    /// transaction is open as before: judge it and commit it again.
    package static let judgementOutdated = RequestError(
        .aborted, "The documents that the security rules read have changed. Please try again.")

    /// Whether it is ``judgementOutdated``.
    package var isJudgementOutdated: Bool { self == .judgementOutdated }
}
