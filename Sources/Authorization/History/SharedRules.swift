package import Basics

/// The rules of several servers, which have them in common: each text that was applied at any of them, with its number.
/// Thread-safe. Each call may block.
package protocol SharedRules: Sendable {
    /// The texts after a number, in the order in which they were applied; those that are not kept any more are left
    /// out.
    /// - Throws: `UNAVAILABLE`.
    func texts(after number: Int) throws(RequestError) -> [(number: Int, text: String)]

    /// Adds a text for all servers.
    ///
    /// - Parameters:
    ///   - number: of the text.
    ///   - last: the number of the last one that this server knows, which is lower; 0 for none.
    /// - Returns: false, and nothing is added, if there is a later one.
    /// - Throws: `UNAVAILABLE`: whether the text was added is not known.
    func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool
}
