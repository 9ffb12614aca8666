package import Basics
import Calls
package import FirestoreMessages

/// The messages of one Listen stream as they come, at the consumer's pace: nothing is kept of the targets' documents.
///
/// The stream is not opened again when it ends. One consumer at a time; releasing it ends the stream.
package final class ListenMessages: Sendable {
    private let messages: MessageStream

    fileprivate init(_ messages: MessageStream) { self.messages = messages }

    /// The next message; nil after the last. A cancelled task ends the stream.
    ///
    /// - Throws: what ends the stream; `INTERNAL` for a message that cannot be read.
    nonisolated(nonsending) package func next() async throws(RequestError) -> ListenResponse? {
        guard let message = try await messages.next() else { return nil }
        return try HearthClient.decode { try ListenResponse(wire: message.byteSpan) }.get()
    }
}

extension HearthClient {
    /// Opens a Listen stream.
    ///
    /// - Parameter requests: adds the targets; at least one.
    package func listen(_ requests: [ListenRequest]) -> ListenMessages {
        let call = TargetsCall(requests)
        start(call)
        return ListenMessages(MessageStream(call: call))
    }
}

/// The call of ``ListenMessages``: sends further requests as soon as it is on a connection.
private final class TargetsCall: StreamingCall, @unchecked Sendable {
    private let rest: [[UInt8]]

    init(_ requests: [ListenRequest]) {
        rest = requests.dropFirst().map { $0.encodedBytes() }
        super.init(
            .listen, request: requests[0].encodedBytes(), options: .standard, timeoutMilliseconds: nil,
            bytesMax: 1 << 20)
    }

    override var isBidirectional: Bool { true }

    override func started(_ call: any StartedCall) {
        for request in rest { call.send(request, isLast: false) }
    }
}
