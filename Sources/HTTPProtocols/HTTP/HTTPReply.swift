// The reply to one HTTP request, as far as it is known.

/// A header field of a reply: a name as HTTP/1.1 writes it, and a value without line ends.
package struct HTTPField: Equatable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The reply to one request, as far as it is known. Confined to its loop's thread.
final class HTTPReply {
    /// The exchange's number on its connection.
    let number: UInt32
    /// The request's method was HEAD: the reply has no body.
    let isHead: Bool
    /// The request's `authorization`, if that is kept.
    var authorization: String?
    var fields: [HTTPField] = []
    /// How messages become the body; nil while the exchange is not a call.
    var form: (any ReplyForm)?
    /// The head of a streaming reply is written.
    var hasBegun = false

    init(number: UInt32, head: HTTPHead, keepsAuthorization: Bool) {
        self.number = number
        isHead = head.method == .head
        authorization = keepsAuthorization ? head.value(of: "authorization") : nil
    }
}
