// By what a repeated request is recognised.

/// Names one commit of one writer, so that sending it again applies it once.
///
/// A writer makes up a random session when it starts and numbers its commits 1, 2, 3, ... With each it says up to where
/// it has all answers, so that the store can forget results nobody will ask for again.
package struct RequestIdentifier: Sendable, Hashable {
    /// The session's sixteen random bytes, as two big-endian words.
    package var sessionHigh: UInt64
    package var sessionLow: UInt64

    /// The number of this commit within the session.
    package var sequence: UInt64

    /// The lowest number whose answer the writer still waits for; at most `sequence`.
    package var oldestPending: UInt64

    package init(sessionHigh: UInt64, sessionLow: UInt64, sequence: UInt64, oldestPending: UInt64) {
        self.sessionHigh = sessionHigh
        self.sessionLow = sessionLow
        self.sequence = sequence
        self.oldestPending = oldestPending
    }
}
