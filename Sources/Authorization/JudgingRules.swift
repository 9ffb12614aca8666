internal import Basics
internal import Expressions
package import SecurityRules
internal import Synchronization

/// Rules in use, with the outcomes of their expressions if those are counted. Thread-safe.
package final class JudgingRules: Sendable {
    package let ruleset: Ruleset
    /// Nil if nothing is counted.
    private let coverage: Coverage?

    /// Counts of one thread at a time.
    private final class Coverage: @unchecked Sendable {
        // Sendable: `counts` is touched under the lock only.
        private let lock = Mutex(())
        private let counts: ExpressionCoverage

        init(_ ruleset: Ruleset) { counts = ExpressionCoverage(expressions: ruleset.tree.count) }

        func use<Answer>(_ body: (ExpressionCoverage) -> Answer) -> Answer {
            lock.withLock { _ in body(counts) }
        }
    }

    /// - Parameter countsCoverage: whether outcomes are counted, as the emulator does; judgements wait for each other
    ///   then.
    init(_ ruleset: Ruleset, countsCoverage: Bool = false) {
        self.ruleset = ruleset
        coverage = countsCoverage ? Coverage(ruleset) : nil
    }

    /// Whether outcomes are counted.
    var countsCoverage: Bool { coverage != nil }

    /// Judges an access; see ``SecurityRules/Ruleset/judge(_:access:ledger:coverage:budget:)``.
    func judge(_ request: RulesRequest, access: any DocumentAccess, ledger: AccessLedger? = nil) -> Verdict {
        guard let coverage else { return ruleset.judge(request, access: access, ledger: ledger) }
        return coverage.use { ruleset.judge(request, access: access, ledger: ledger, coverage: $0) }
    }

    /// What of the rules was evaluated, as a JSON text or a page; nil if it is not counted.
    package func coverageReport(isPage: Bool, name: String) -> String? {
        coverage?.use { isPage ? ruleset.coverageHTML($0, name: name) : ruleset.coverageJSON($0, name: name) }
    }
}
