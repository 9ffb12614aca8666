// Why the transport itself refuses a request that came over HTTP/2.

/// A status, and a sentence for the sender.
struct HTTPRefusal: Equatable, Sendable {
    let status: HTTPStatus
    let text: String

    static let target = HTTPRefusal(
        status: .badRequest, text: "The request target must be a path of visible ASCII characters.")

    static let repeatedAuthorization = HTTPRefusal(
        status: .badRequest, text: "A request may have only one Authorization header.")

    static let tooLate = HTTPRefusal(
        status: .requestTimeout, text: "The request's body did not arrive in time.")

    static func headTooLarge(_ max: Int) -> HTTPRefusal {
        HTTPRefusal(status: .fieldsTooLarge, text: "The request's headers are longer than \(max) bytes.")
    }

    static func tooManyFields(_ max: Int) -> HTTPRefusal {
        HTTPRefusal(status: .fieldsTooLarge, text: "The request has more than \(max) headers.")
    }

    static func bodyTooLarge(_ max: Int) -> HTTPRefusal {
        HTTPRefusal(status: .contentTooLarge, text: "The request's body is larger than \(max) bytes.")
    }
}
