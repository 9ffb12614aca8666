// The replies of REST calls: messages as JSON, streams as an array that is written as it comes, errors as Google's APIs have them.

internal import Basics
internal import DocumentModel
internal import FirestoreSchema
internal import Transport

final class RESTReply: ReplyForm {
    static let json = "application/json; charset=utf-8"

    var contentType: String { Self.json }
    let isStreaming: Bool
    private let type: MessageType
    private let writer: JSONMessageWriter

    /// - Parameter type: the messages'.
    init(_ type: MessageType, isStreaming: Bool, isPretty: Bool) {
        self.type = type
        self.isStreaming = isStreaming
        writer = JSONMessageWriter(isPretty: isPretty)
    }

    func append(_ message: RawSpan, isFirst: Bool, to body: inout WireWriter) throws(RequestError) {
        if isStreaming { body.append(utf8: isFirst ? "[" : "\n,") }
        do throws(InvalidDocument) {
            try writer.append(message, type, to: &body)
        } catch {
            throw RequestError(.internal, "The reply cannot be written as JSON: \(error.message)")
        }
        if !isStreaming { body.append(utf8: "\n") }
    }

    func appendEnd(isFirst: Bool, to body: inout WireWriter) {
        // A call that succeeds without a message has nothing to say.
        // No byte follows an array's end: the official clients take one as the beginning of another array.
        body.append(utf8: isStreaming ? (isFirst ? "[]" : "\n]") : "{}\n")
    }

    func appendError(_ error: RequestError, isFirst: Bool, to body: inout WireWriter) {
        if isStreaming { body.append(utf8: isFirst ? "[" : "\n,") }
        Self.append(error, to: &body)
        body.append(utf8: isStreaming ? "]" : "\n")
    }

    /// Appends `{"error": {...}}`.
    static func append(_ error: RequestError, to body: inout WireWriter) {
        body.append(utf8: "{\n  \"error\": {\n    \"code\": \(HTTPStatus(error.code).code),\n    \"message\": ")
        error.message.withUTF8Span { body.appendJSONString($0) }
        body.append(utf8: ",\n    \"status\": \"\(error.code)\"\n  }\n}")
    }
}

extension HTTPExchange {
    /// Replies with an error that comes before any call.
    func fail(_ error: RequestError) {
        reply(HTTPStatus(error.code), contentType: RESTReply.json) { body in
            RESTReply.append(error, to: &body)
            body.append(utf8: "\n")
        }
    }
}
