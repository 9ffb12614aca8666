// What can be wrong with an HTTP/1.1 request, and the reply to its sender.

/// A request that cannot be served, or not be understood for certain. The connection ends with the answer: where the
/// next request would begin is not known, and guessing is how requests are smuggled.
package struct HTTP1Violation: Error, Equatable, Sendable {
    package let status: HTTPStatus
    /// A sentence for the sender.
    package let text: String

    init(_ status: HTTPStatus, _ text: String) {
        self.status = status
        self.text = text
    }

    private static func bad(_ text: String) -> HTTP1Violation { HTTP1Violation(.badRequest, text) }

    static let bareLineFeed = bad("A line must end with CR LF.")
    static let requestLine = bad("The first line must be a method, a target and HTTP/1.1, separated by single spaces.")
    static let target = bad("The request target must be a path or an http URI of visible ASCII characters.")
    static let fieldName = bad("A header line must be a name, a colon directly after it, and a value.")
    static let fieldValue = bad("A header value contains a control character.")
    static let foldedField = bad("A header value must not be folded over several lines.")
    static let host = bad("A request of HTTP/1.1 must have exactly one Host header.")
    static let contentLength = bad("Content-Length must be one number.")
    static let repeatedLength = bad("A request may have only one Content-Length or Transfer-Encoding header.")
    static let repeatedAuthorization = bad(HTTPRefusal.repeatedAuthorization.text)
    static let chunkedInOldVersion = bad("Transfer-Encoding needs HTTP/1.1.")
    static let chunkSize = bad("A chunk must begin with its size in hexadecimal digits.")
    static let chunkEnd = bad("A chunk must have the given size and end with CR LF.")

    static let transferCoding = HTTP1Violation(.notImplemented, "The only supported Transfer-Encoding is chunked.")
    static let version = HTTP1Violation(.versionNotSupported, "Only HTTP/1.1 and HTTP/1.0 are supported.")
    static let expectation = HTTP1Violation(.expectationFailed, "The only supported expectation is 100-continue.")

    static func targetTooLong(_ max: Int) -> HTTP1Violation {
        HTTP1Violation(.uriTooLong, "The request line is longer than \(max) bytes.")
    }

    static func headTooLarge(_ max: Int) -> HTTP1Violation {
        HTTP1Violation(.fieldsTooLarge, "The request's headers are longer than \(max) bytes.")
    }

    static func tooManyFields(_ max: Int) -> HTTP1Violation {
        HTTP1Violation(.fieldsTooLarge, "The request has more than \(max) header lines.")
    }

    static func bodyTooLarge(_ max: Int) -> HTTP1Violation {
        HTTP1Violation(.contentTooLarge, "The request's body is larger than \(max) bytes.")
    }
}
