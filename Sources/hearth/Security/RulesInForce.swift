import Authorization
import SecurityRules
import Storage

/// The rules in force of a data directory, compiled.
struct RulesInForce {
    let number: Int
    let file: String
    let ruleset: Ruleset

    /// - Returns: nil if there are none.
    /// - Throws: `CommandFailure` if they cannot be read or do not parse.
    static func newest(of history: RulesHistory) throws(CommandFailure) -> RulesInForce? {
        let (number, text): (Int, String)
        do throws(StorageError) {
            guard let newest = try history.newest() else { return nil }
            (number, text) = (newest, try history.text(newest))
        } catch {
            throw CommandFailure("the rules of the data directory cannot be used: \(error)")
        }
        let file = history.file(number)
        return RulesInForce(number: number, file: file, ruleset: try RulesFile.ruleset(text, of: file))
    }

    /// What is missing below the newest rules, so that nothing can be returned to; nil if nothing is.
    static func gap(in history: RulesHistory) -> StorageError? {
        do throws(StorageError) {
            _ = try history.previous()
            return nil
        } catch {
            return error
        }
    }
}
