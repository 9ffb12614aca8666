// What is wrong with a line of JSON, and where.

/// Why a line is not a document.
///
/// `description` reads after `FILE:LINE: `: the reason, and the column (in bytes, from 1) where it was noticed.
package struct JSONLineError: Error, Equatable, CustomStringConvertible {
    package let reason: String
    /// Byte offset in the line, from 0.
    package let offset: Int

    package init(_ reason: String, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String { "\(reason) (column \(offset + 1))" }
}
