// How rules read other documents.

internal import Basics

/// A document of the request's database, by its path below `documents`.
package struct DocumentAddress: Hashable, Sendable, CustomStringConvertible {
    /// UTF-8, as in `users/alice`. Names are equal if their bytes are.
    package let utf8: [UInt8]

    package init(_ segments: [String]) { utf8 = Array(segments.joined(separator: "/").utf8) }

    init(utf8: [UInt8]) { self.utf8 = utf8 }

    package func hash(into hasher: inout Hasher) { hasher.combine(ByteKey(utf8)) }

    package var description: String { String(decoding: utf8, as: UTF8.self) }

    package var segments: [String] { description.slashSeparated }
}

/// When a document is read.
package enum DocumentState: Hashable, Sendable {
    /// Before the commit: `get`, `exists`, `resource`.
    case before
    /// As the commit will leave it: `getAfter`, `existsAfter`.
    case after
}

/// One document that a ruleset reads.
package struct DocumentRead: Hashable, Sendable {
    package let address: DocumentAddress
    package let state: DocumentState

    package init(_ address: DocumentAddress, _ state: DocumentState) {
        self.address = address
        self.state = state
    }
}

/// What a document access finds.
package enum DocumentAnswer: Sendable {
    /// The fields of the document, canonical.
    case found([UInt8])
    case missing
    /// The commit deletes the document; for ``DocumentState/after`` alone.
    case deleted
    /// Not known yet. The verdict names the document, and the caller judges again once it knows it.
    case pending
}

/// Documents for rules to read, at one version of the database.
///
/// Used by one judgement at a time. An access may return ``DocumentAnswer/pending``: the judgement then goes as
/// far as it can, collects every further document that it needs, and returns ``Verdict/Decision/needs(_:)`` if its
/// result depends on them.
package protocol DocumentAccess: AnyObject {
    /// Reads a document.
    func document(_ read: DocumentRead) -> DocumentAnswer
}

/// Counts different document accesses over several judgements: those of one query, or of all writes of one commit.
///
/// Used by one thread at a time.
package final class AccessLedger {
    /// What counts once. There are few of them, so that they are looked for one after the other.
    struct Call: Equatable {
        /// `exists` and `existsAfter`; else `get` and `getAfter`.
        let asksExistence: Bool
        let address: DocumentAddress
    }

    private var calls: [Call] = []
    private let max: Int

    package init(max: Int = RulesLimits.accessCallsOfMany) { self.max = max }

    /// Counts a call; false if it is one too many.
    func count(_ call: Call) -> Bool {
        if calls.contains(call) { return true }
        if calls.count >= max { return false }
        calls.append(call)
        return true
    }

    /// Takes calls back: those of a judgement that is made again.
    func forget(_ calls: [Call]) { self.calls.removeAll { calls.contains($0) } }

    /// Whether a call was counted.
    func has(_ call: Call) -> Bool { calls.contains(call) }
}
