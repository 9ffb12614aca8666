// Programming errors: rules of the API that no `throws` and no completion reports. Code that checks a rule throws a
// `RuleViolation`, so that tests can look at it; the public surface turns it into a trap.

import DocumentCoding

/// A broken rule of the API, in words that the programmer can act on.
struct RuleViolation: Error, Equatable {
    var message: String

    init(_ message: String) { self.message = message }
}

/// Runs a check of the public surface; a broken rule writes its message to standard error and traps.
func enforcing<Result>(_ body: () throws(RuleViolation) -> Result) -> Result {
    do {
        return try body()
    } catch {
        programmingError(error.message)
    }
}
