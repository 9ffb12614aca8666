// The front for REST: makes a request's path, parameters and JSON into the message of an RPC, and hands it to the
// loop's service, whose reply `RESTReply` makes into JSON.

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
    private var reader = JSONMessageReader()
    private let parameterReader = ParameterReader()

    init(_ calls: CallRouter) { self.calls = calls }

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
        do throws(RequestError) {
            try append(route, rpc.input, options.parameters, body, to: &message)
        } catch {
            return calls.refuse(call, error)
        }
        calls.begin(call, payload: message.bytes)
    }

    /// Appends the RPC's message. What the path says comes last: it counts, whatever the rest says.
    private func append(
        _ route: RESTRoute, _ input: MessageType, _ parameters: [Parameter], _ body: RawSpan,
        to message: inout ByteBuffer
    ) throws(RequestError) {
        switch route.body {
        case .none: try parameterReader.append(parameters, input, to: &message)
        case .message:
            guard parameters.isEmpty else {
                let name = parameters[0].name
                throw .invalidArgument(
                    "This method reads its fields from the body, not from the query parameter \"\(name)\".")
            }
            try reader.append(body, input, to: &message)
        case .resource(let field, let type):
            try parameterReader.append(parameters, input, to: &message)
            message.appendTag(field: field, .lengthDelimited)
            let place = message.beginLength()
            try reader.append(body, Schema.shared.message(type), to: &message)
            if let name = route.resourceName { message.appendField(RESTRoute.nameField, string: name) }
            message.endLength(at: place)
        }
        for binding in route.bindings { message.appendField(binding.field, string: binding.value) }
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
