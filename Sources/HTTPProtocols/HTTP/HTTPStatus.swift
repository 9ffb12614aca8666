// HTTP status codes, and the one table from the service's codes to them.

package import Basics

/// A status code of HTTP (RFC 9110, section 15).
package struct HTTPStatus: Equatable, Sendable {
    /// 100 ... 599.
    package let code: Int

    package init(_ code: Int) { self.code = code }

    package static let ok = HTTPStatus(200)
    package static let noContent = HTTPStatus(204)
    package static let badRequest = HTTPStatus(400)
    package static let forbidden = HTTPStatus(403)
    package static let notFound = HTTPStatus(404)
    package static let methodNotAllowed = HTTPStatus(405)
    package static let requestTimeout = HTTPStatus(408)
    package static let contentTooLarge = HTTPStatus(413)
    package static let uriTooLong = HTTPStatus(414)
    package static let unsupportedMediaType = HTTPStatus(415)
    package static let expectationFailed = HTTPStatus(417)
    package static let fieldsTooLarge = HTTPStatus(431)
    package static let internalError = HTTPStatus(500)
    package static let notImplemented = HTTPStatus(501)
    package static let unavailable = HTTPStatus(503)
    package static let versionNotSupported = HTTPStatus(505)

    /// The status that Google's APIs answer for a code (google/rpc/code.proto).
    package init(_ status: StatusCode) {
        code =
            switch status {
            case .ok: 200
            case .invalidArgument, .failedPrecondition, .outOfRange: 400
            case .unauthenticated: 401
            case .permissionDenied: 403
            case .notFound: 404
            case .alreadyExists, .aborted: 409
            case .resourceExhausted: 429
            case .cancelled: 499
            case .unknown, .internal, .dataLoss: 500
            case .unimplemented: 501
            case .unavailable: 503
            case .deadlineExceeded: 504
            }
    }

    /// The phrase of the status line.
    package var phrase: String {
        switch code {
        case 100: "Continue"
        case 200: "OK"
        case 204: "No Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 417: "Expectation Failed"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 499: "Client Closed Request"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: "Status"
        }
    }

    /// The name of a status code of the service for an error that the transport itself found in a request.
    var errorName: String { code == 501 ? "UNIMPLEMENTED" : "INVALID_ARGUMENT" }

    /// Whether a reply with this status never has a body or its length (RFC 9110, section 8.6).
    var isWithoutBody: Bool { code < 200 || code == 204 || code == 304 }
}
