// An error as the body of an HTTP reply, in the form of Google's REST APIs.

package import Basics

package enum HTTPError {
    package static let contentType = "application/json; charset=utf-8"

    /// Appends `{"error": {...}}`.
    ///
    /// - Parameters:
    ///   - name: the status code's name, such as `NOT_FOUND`.
    ///   - isPretty: indented, or in one line.
    package static func append(
        _ status: HTTPStatus, _ name: String, _ message: String, isPretty: Bool = true, to body: inout ByteBuffer
    ) {
        let start = { (depth: Int) in isPretty ? "\n" + String(repeating: "  ", count: depth) : "" }
        body.append(utf8: "{\(start(1))\"error\": {\(start(2))\"code\": \(status.code),\(start(2))\"message\": ")
        message.withUTF8Span { body.appendJSONString($0) }
        body.append(utf8: ",\(start(2))\"status\": \"\(name)\"\(start(1))}\(start(0))}")
    }
}
