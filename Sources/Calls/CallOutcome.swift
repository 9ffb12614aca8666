package import Basics

/// How a call ended.
package struct CallOutcome: Error, Equatable, Sendable {
    package var code: StatusCode
    /// The server's text, or the library's when the server could not be asked; empty for OK.
    package var message: String
    /// The server certainly did nothing for this call: repeating it elsewhere is safe, whatever it is.
    package var isUnprocessed: Bool

    package init(_ code: StatusCode, _ message: String = "", isUnprocessed: Bool = false) {
        self.code = code
        self.message = message
        self.isUnprocessed = isUnprocessed
    }

    package static let ok = CallOutcome(.ok)
}

/// Longest text of a status, in bytes of UTF-8.
package let statusTextBytesMax = 4096
