internal import Basics
package import Identity
package import SecurityRules

extension Authorization {
    /// What decides at one moment.
    package struct State: Sendable {
        package var authenticator: Authenticator
        /// The rules of all databases; nil if there are none.
        package var ruleset: Ruleset? { didSet { allRules = ruleset.map { JudgingRules($0) } } }
        private var allRules: JudgingRules?
        /// The mode without what came over the emulator's route.
        private var lastingMode: SecurityMode
        /// Rules that came over the emulator's route, by project.
        private var emulated: [String: JudgingRules] = [:]

        /// Projects that may have rules of the emulator's route.
        package static let emulatedProjectsMax = 1_000

        package init(authenticator: Authenticator, ruleset: Ruleset?) {
            self.authenticator = authenticator
            self.ruleset = ruleset
            lastingMode = authenticator.mode
            allRules = ruleset.map { JudgingRules($0) }
        }

        /// The rules of a project; nil if there are none.
        package func rules(of project: String) -> JudgingRules? { emulated[project] ?? allRules }

        /// Whether there are rules for all projects.
        var hasRules: Bool { allRules != nil }

        /// Takes rules of the data directory. They close an open server, and end the emulator's mode that its route
        /// began.
        ///
        /// - Returns: whether the server was open, or had been before that route was used.
        mutating func apply(_ ruleset: Ruleset) -> Bool {
            self.ruleset = ruleset
            guard lastingMode == .open else { return false }
            lastingMode = lastingMode.withKeptRules
            authenticator = authenticator.with(mode: lastingMode)
            emulated = [:]
            return true
        }

        /// Takes rules of the emulator's route.
        mutating func emulate(_ rules: Ruleset, of project: String) throws(RequestError) {
            guard let mode = authenticator.mode.withRulesOfEmulator else {
                throw RequestError(
                    .permissionDenied, "This server takes rules from its command line and from 'hearth rules apply'.")
            }
            guard emulated[project] != nil || emulated.count < Self.emulatedProjectsMax else {
                throw RequestError(.resourceExhausted, "Too many projects have rules.")
            }
            authenticator = authenticator.with(mode: mode)
            emulated[project] = JudgingRules(rules, countsCoverage: true)
        }
    }
}
