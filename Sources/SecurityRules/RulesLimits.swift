/// The limits of security rules. Source: "Security rules limits" in the documentation of Firestore, and what its
/// emulator
/// accepts.
package enum RulesLimits {
    /// Bytes of the text of a ruleset, UTF-8.
    package static let sourceBytes = 256 << 10
    /// Levels of expressions and brackets within each other.
    package static let nestingDepth = 99
    /// `match` blocks within each other.
    package static let matchDepth = 11
    /// Wildcards on the way to a rule.
    package static let captures = 20
    /// Parameters of a function.
    package static let parameters = 7
    /// `let` bindings of a function.
    package static let variables = 11
    /// Functions that call each other.
    package static let callDepth = 21
    /// Expressions that are evaluated for one request.
    package static let expressions = 1_000
    /// Different calls of `get`, `exists`, `getAfter` and `existsAfter` for a request for one document.
    package static let accessCalls = 10
    /// The same for a query, and for all writes of one commit together.
    package static let accessCallsOfMany = 20
    /// Diagnostics that are reported for one text.
    package static let diagnostics = 50
    /// Cases that a proof distinguishes: alternatives of the filter, and for each of them the spellings of its numbers.
    package static let proofCases = 256
    /// Work of all cases of a query together, as of ``Verdict/work``: alternatives and spellings multiply. An event
    /// loop does it in one step. It is twice what the alternatives of a query, 30 at most, may take without spellings.
    package static let proofWork = 64 * expressions
}
