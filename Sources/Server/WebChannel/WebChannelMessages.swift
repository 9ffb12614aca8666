internal import Basics
internal import Calls
internal import DocumentModel
internal import EventLoops
internal import FirestoreJSON
internal import FirestoreMessages
internal import FirestoreService
internal import HTTPProtocols

/// The sessions of one method on one loop: their calls go to the loop's router, their messages are JSON.
final class WebChannelMessages: WebChannelService {
    private unowned let calls: CallRouter
    private let input: MessageType
    private let output: MessageType
    private let bodies: JSONBodies
    private let writer = JSONMessageWriter()

    init(_ method: Method, _ calls: CallRouter, _ bodies: JSONBodies) {
        self.calls = calls
        self.bodies = bodies
        (input, output) = MethodMessages.of(method)
    }

    func begin(_ call: Call, _ message: RawSpan) { calls.begin(call, payload: message) }

    func abandoned(_ reason: CancellationReason) { calls.counters.callsAbandoned.add() }

    func ended(_ session: WebChannelConnection) { calls.streams.remove(session) }

    func appendDatabase(_ name: String, to message: inout ByteBuffer) {
        // The field has the same number in the requests of all bidirectional methods.
        if !name.isEmpty { message.appendField(FieldNumber.WriteRequest.database, string: name) }
    }

    func readMessage(
        _ json: RawSpan, onto output: consuming ByteBuffer, on loop: EventLoop, while isWanted: @escaping () -> Bool,
        _ done: @escaping (consuming ByteBuffer, RequestError?) -> Void
    ) {
        bodies.read(json, input, onto: output, on: loop, while: isWanted, done)
    }

    func appendJSON(_ message: RawSpan, to text: inout ByteBuffer) throws(RequestError) {
        do throws(InvalidDocument) {
            try writer.append(message, output, to: &text)
        } catch {
            throw RequestError(.internal, "The response cannot be written as JSON: \(error.message)")
        }
    }
}
