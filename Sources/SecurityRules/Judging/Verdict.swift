// What a ruleset decides, and why.

/// The judgement of one request.
package struct Verdict: Sendable {
    package enum Decision: Sendable, Equatable {
        case allowed
        case denied
        /// The decision depends on documents that the access answered by ``DocumentAnswer/pending``. Sorted by address.
        case needs([DocumentRead])
    }

    /// What became of one `allow` statement.
    package struct Statement: Sendable {
        package enum Outcome: Sendable {
            /// The condition is true.
            case allowed
            /// The condition is false.
            case refused
            /// The condition failed, at a place if it is known.
            case failed(String, SourceRange?)
        }

        /// The statement, by its place in ``Ruleset/statements``.
        package let index: Int
        package let outcome: Outcome
    }

    package let decision: Decision
    /// The statements whose paths and methods fit, in the order of the text, up to the one that decided. For a query
    /// with alternatives: those of the alternative that was denied, or of the last one.
    package let statements: [Statement]
    /// What the evaluation has read, or would have read, each once: a commit that relies on the verdict is valid while
    /// all of it is unchanged.
    package let reads: [DocumentRead]
    /// Whether the evaluation has read `request.resource`.
    package let readsNewResource: Bool
    /// The values that `debug()` was given, in order.
    package let debugLines: [String]
    /// What the judgement has cost: expressions that were evaluated, and KiB that they have read or built.
    package internal(set) var work = 0
    /// Whether the statement that allows a `get` would allow it for every document of the collection: it depends on the
    /// caller alone, and a wildcard takes the document's id. The same caller need not be judged again for these.
    package internal(set) var allowsSiblings = false

    package var isAllowed: Bool { decision == .allowed }

    /// The `allow` statement that decided, if the request is allowed.
    package var deciding: Statement? {
        statements.last.flatMap { statement in
            if case .allowed = statement.outcome { statement } else { nil }
        }
    }
}
