// The front for REST: makes a request's path, parameters and JSON into the message of an RPC, and hands it to the
// loop's service, whose reply `RESTReply` makes into JSON. The caller of a request with a large body is admitted before
// that is read.

internal import Basics
internal import Calls
internal import DocumentModel
internal import FirestoreJSON
internal import FirestoreMessages
internal import FirestoreService
internal import HTTPProtocols

/// Serves `/v1/...` on one loop.
final class RESTHandler {
    /// Takes the calls, whichever service they are for.
    private let calls: CallRouter
    private let bodies: JSONBodies
    private let parameterReader = ParameterReader()

    init(_ calls: CallRouter, _ bodies: JSONBodies) {
        self.calls = calls
        self.bodies = bodies
    }

    /// - Parameter segments: of the path after `/v1`, still encoded.
    func handle(_ exchange: HTTPExchange, _ head: HTTPHead, _ segments: [String], body: RawSpan) {
        let route: RESTRoute
        let options: RESTOptions
        do throws(RequestError) {
            guard let found = try RESTRoute(head.method, segments) else {
                throw RequestError(.notFound, "This method is not supported on this path.")
            }
            route = found
            options = try RESTOptions(head)
        } catch {
            return exchange.fail(error)
        }
        let rpc = MethodMessages.of(route.method)
        let form = RESTReply(
            rpc.output, isStreaming: route.method.shape == .serverStreaming, isPretty: options.isPretty,
            asEvents: options.wantsEvents)
        let call = exchange.beginCall(route.method.rpc, form, deadlineMilliseconds: options.deadlineMilliseconds)
        var message = ByteBuffer(capacity: body.byteCount + 256)
        let part: BodyPart?
        do throws(RequestError) {
            if route.body != .none, body.byteCount > JSONBodies.bytesAtOnce {
                try calls.admitUnread(call, route.method, about: route.resource)
            }
            part = try appendStart(route, rpc.input, options.parameters, to: &message)
        } catch {
            return calls.refuse(call, error)
        }
        guard let part else { return begin(call, route, nil, message, nil) }
        bodies.read(body, part.type, onto: message, on: exchange.loop, while: { call.isOpen }) {
            [self] (message: consuming ByteBuffer, error: RequestError?) in
            begin(call, route, part, message, error)
        }
    }

    /// What a body is in the message.
    private struct BodyPart {
        let type: MessageType
        /// Where its length stands; nil if it is the whole message.
        var length: Int?
    }

    /// Appends what comes before the body.
    /// - Returns: nil if the body is ignored.
    private func appendStart(
        _ route: RESTRoute, _ input: MessageType, _ parameters: [Parameter], to message: inout ByteBuffer
    ) throws(RequestError) -> BodyPart? {
        switch route.body {
        case .none:
            try parameterReader.append(parameters, input, to: &message)
            return nil
        case .message:
            guard parameters.isEmpty else {
                let name = parameters[0].name
                throw .invalidArgument(
                    "This method reads its fields from the body, not from the query parameter \"\(name)\".")
            }
            return BodyPart(type: input)
        case .resource(let field, let type):
            try parameterReader.append(parameters, input, to: &message)
            message.appendTag(field: field, .lengthDelimited)
            return BodyPart(type: Schema.shared.message(type), length: message.beginLength())
        }
    }

    /// Begins the call when its body is in the message. What the path says comes last: it counts, whatever the rest
    /// says.
    private func begin(
        _ call: Call, _ route: RESTRoute, _ part: BodyPart?, _ message: consuming ByteBuffer, _ error: RequestError?
    ) {
        if let error { return calls.refuse(call, error) }
        if let length = part?.length {
            if let name = route.resourceName { message.appendField(RESTRoute.nameField, string: name) }
            message.endLength(at: length)
        }
        for binding in route.bindings { message.appendField(binding.field, string: binding.value) }
        calls.begin(call, payload: message.bytes)
    }
}

/// What a request says besides its message.
struct RESTOptions {
    /// Parameters that are fields of the message.
    private(set) var parameters: [Parameter] = []
    /// Whether JSON is indented; `prettyPrint`, true unless said otherwise, as it is in the cloud.
    private(set) var isPretty = true
    /// `alt=sse`: the reply is a stream of events.
    private(set) var wantsEvents = false
    /// From `X-Server-Timeout`, which is in seconds.
    private(set) var deadlineMilliseconds: UInt32?

    /// Parameters that Google's front ends take with every method. Those without an effect here are accepted and
    /// ignored.
    private static let systemParameters: Set<String> = [
        "access_token", "alt", "callback", "fields", "httpHeaders", "key", "oauth_token", "prettyPrint", "quotaUser",
        "uploadType",
        "upload_protocol", "xgafv",
    ]

    init(_ head: HTTPHead) throws(RequestError) {
        if let coding = head.value(of: "content-encoding"), coding.lowercased() != "identity" {
            throw .invalidArgument("Content-Encoding \(coding) is not supported.")
        }
        guard let all = URLText.parameters(head.queryBytes) else {
            throw .invalidArgument("The query is not percent-encoded UTF-8.")
        }
        for parameter in all {
            // Written as `alt`, `$alt` or `$.alt`.
            let name = String(parameter.name.drop { $0 == "$" || $0 == "." })
            guard Self.systemParameters.contains(name) else {
                parameters.append(parameter)
                continue
            }
            if name == "prettyPrint" { isPretty = parameter.value != "false" && parameter.value != "0" }
            if name == "alt" { try takeAlt(parameter.value) }
        }
        if let text = head.value(of: "x-server-timeout") {
            guard let seconds = Double(text), seconds > 0 else {
                throw .invalidArgument("X-Server-Timeout must be a positive number of seconds.")
            }
            deadlineMilliseconds = UInt32(min(seconds * 1_000, Double(UInt32.max)).rounded(.up))
        }
    }

    private mutating func takeAlt(_ value: String) throws(RequestError) {
        // Also `json;enum-encoding=int`, which Google's own REST clients say.
        switch value.prefix(while: { $0 != ";" }) {
        case "json": wantsEvents = false
        case "sse": wantsEvents = true
        default: throw .invalidArgument("The query parameter alt must be json or sse, not \"\(value)\".")
        }
    }
}
