package import Basics

/// What a server has of the rules that it shares with others.
package struct SeenRules: Sendable {
    /// The number of the last one; 0 for none.
    package var number = 0
    /// The session with the others in which it was seen; 0 before the first.
    package var session: UInt64 = 0

    package init() {}
}

/// What others have applied.
package struct RulesNews: Sendable {
    /// In the order in which they were applied. In another session than before the last one is among them, which may
    /// have a lower number than what was seen: then the rules after it were lost.
    package let texts: [(number: Int, text: String)]
    package let session: UInt64

    package init(texts: [(number: Int, text: String)], session: UInt64) {
        self.texts = texts
        self.session = session
    }
}

/// The rules of several servers, which have them in common: each text that was applied at any of them, with its number.
/// Thread-safe. Each call may block.
package protocol SharedRules: Sendable {
    /// The texts after those that were seen; those that are not kept any more are left out.
    /// - Throws: `UNAVAILABLE`.
    func news(after seen: SeenRules) throws(RequestError) -> RulesNews

    /// Adds a text for all servers.
    ///
    /// - Parameters:
    ///   - number: of the text.
    ///   - last: the number of the last one that this server knows, which is lower; 0 for none.
    /// - Returns: false, and nothing is added, if there is a later one.
    /// - Throws: `UNAVAILABLE`: whether the text was added is not known.
    func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool
}
