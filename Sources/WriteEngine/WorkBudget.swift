// How much work one commit may cause.
//
// A small request may name large documents many times: each masked update or transform of a document of 1 MB reads and
// writes 1 MB. The commit thread serves everybody, so what one commit may cost has a bound, and it is reached before
// the work is done.

internal import Basics
internal import DocumentModel

/// Bytes of documents that may still be read and written.
package struct WorkBudget: Sendable {
    private let maximum: Int
    private var left: Int

    /// What an element of an array transform costs, compared with copying a byte: it is encoded, hashed and looked up.
    package static let elementCost = 512
    /// What a byte of such an element costs.
    private static let elementByteCost = 8

    package init(bytes: Int = .max) {
        maximum = bytes
        left = bytes
    }

    var isSpent: Bool { left < 0 }

    /// Takes note of work that is about to be done.
    mutating func spend(_ bytes: Int) { left -= bytes }

    /// Pays for an element of an array that is about to be compared with others.
    /// - Returns: false if the budget is spent.
    mutating func payElement(_ element: RawSpan) -> Bool {
        if isSpent { return false }
        spend(Self.elementCost + element.byteCount * Self.elementByteCost)
        return !isSpent
    }

    /// - Throws: `INVALID_ARGUMENT` if more has been spent than there was.
    func check() throws(RequestError) {
        if !isSpent { return }
        throw RequestError(
            .invalidArgument,
            """
            The commit is too large: its writes read and rewrite more than \(maximum) bytes of documents, \
            where an element of an array transform counts as \(Self.elementCost) bytes. \
            Commit fewer writes or elements at a time.
            """)
    }
}
