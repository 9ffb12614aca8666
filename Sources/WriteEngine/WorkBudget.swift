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

    /// What looking at a byte of an array's elements costs, compared with copying it: each element is encoded and
    /// hashed.
    static let arrayByteCost = 8

    package init(bytes: Int = .max) {
        maximum = bytes
        left = bytes
    }

    var isSpent: Bool { left < 0 }

    /// Takes note of work that is about to be done.
    mutating func spend(_ bytes: Int) { left -= bytes }

    /// - Throws: `RESOURCE_EXHAUSTED` if more has been spent than there was.
    func check() throws(RequestError) {
        if !isSpent { return }
        throw RequestError(
            .resourceExhausted,
            """
            The commit is too large: its writes read and rewrite more than \(maximum) bytes of documents. \
            Commit fewer writes at a time.
            """)
    }
}
