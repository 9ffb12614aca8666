// The replies of REST calls: messages as JSON, streams as an array that is written as it comes or as events, errors as
// Google's APIs have them.

internal import Basics
internal import DocumentModel
internal import FirestoreJSON
internal import HTTPProtocols

final class RESTReply: ReplyForm {
    let isStreaming: Bool
    private let type: MessageType
    private let writer: JSONMessageWriter
    /// Server-sent events (the HTML standard's `text/event-stream`), one for each message, as Google's APIs write them
    /// for `alt=sse`.
    private let isEvents: Bool

    var contentType: String { isEvents ? "text/event-stream" : HTTPError.contentType }
    var errorContentType: String { HTTPError.contentType }

    /// - Parameters:
    ///   - type: the messages'.
    ///   - asEvents: whether each message, or the only one, is an event.
    init(_ type: MessageType, isStreaming: Bool, isPretty: Bool, asEvents: Bool = false) {
        self.type = type
        self.isStreaming = isStreaming
        isEvents = asEvents
        // An event's data is one line.
        writer = JSONMessageWriter(isPretty: isPretty && !asEvents)
    }

    func append(_ message: RawSpan, isFirst: Bool, to body: inout ByteBuffer) throws(RequestError) {
        appendStart(isFirst: isFirst, to: &body)
        do throws(InvalidDocument) {
            try writer.append(message, type, to: &body)
        } catch {
            throw RequestError(.internal, "The reply cannot be written as JSON: \(error.message)")
        }
        appendMessageEnd(to: &body)
    }

    private func appendStart(isFirst: Bool, to body: inout ByteBuffer) {
        if isEvents {
            body.append(utf8: "data: ")
        } else if isStreaming {
            body.append(utf8: isFirst ? "[" : "\n,")
        }
    }

    private func appendMessageEnd(to body: inout ByteBuffer) {
        if isEvents {
            body.append(utf8: "\r\n\r\n")
        } else if !isStreaming {
            body.append(utf8: "\n")
        }
    }

    func appendEnd(isFirst: Bool, to body: inout ByteBuffer) {
        if isEvents { return }
        // A call that succeeds without a message has nothing to say.
        // No byte follows an array's end: the official clients take one as the beginning of another array.
        body.append(utf8: isStreaming ? (isFirst ? "[]" : "\n]") : "{}\n")
    }

    func appendError(_ error: RequestError, isFirst: Bool, to body: inout ByteBuffer) {
        if isEvents, !isFirst {
            appendStart(isFirst: false, to: &body)
            HTTPError.append(HTTPStatus(error.code), "\(error.code)", error.message, isPretty: false, to: &body)
            return appendMessageEnd(to: &body)
        }
        // An error from the start is not an event: its status says that there are none.
        let isElement = isStreaming && !isEvents
        if isElement { appendStart(isFirst: isFirst, to: &body) }
        HTTPError.append(HTTPStatus(error.code), "\(error.code)", error.message, to: &body)
        body.append(utf8: isElement ? "]" : "\n")
    }
}

extension HTTPExchange {
    /// Replies with an error that comes before any call.
    func fail(_ error: RequestError) {
        reply(HTTPStatus(error.code), contentType: HTTPError.contentType) { body in
            HTTPError.append(HTTPStatus(error.code), "\(error.code)", error.message, to: &body)
            body.append(utf8: "\n")
        }
    }
}
