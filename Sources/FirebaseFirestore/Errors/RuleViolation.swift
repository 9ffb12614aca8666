import DocumentCoding

/// A violated rule of the API, with a message for the programmer.
///
/// Code that checks a rule throws a `RuleViolation`, so that tests can inspect it. The public surface turns it into a
/// trap, because no `throws` and no completion reports it.
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
