internal import Basics
import Calls

/// The response to one GET of a session: sends the frames that the session gives it, as fast as the page reads.
///
/// Used on the loop of the GET's connection, which may be another one than the session's.
final class WebChannelBackChannel: ResponseSource, @unchecked Sendable {
    // Sendable: references are passed between threads, state is used on the loop's thread only.

    private let call: Call
    private let session: WebChannelConnection
    /// Whether its connection carries nothing else meanwhile.
    let holdsConnection: Bool
    private var frames: [[UInt8]] = []
    private var isEnded = false
    /// The connection has ended; used on the session's home loop only.
    var isGone = false

    init(_ call: Call, of session: WebChannelConnection, holdsConnection: Bool) {
        self.call = call
        self.session = session
        self.holdsConnection = holdsConnection
    }

    /// Sends a frame; from any thread.
    ///
    /// - Parameters:
    ///   - frame: may be empty if the response only ends.
    ///   - isLast: whether the response ends with it.
    func send(_ frame: [UInt8], isLast: Bool) {
        guard !call.loop.isCurrent else { return take(frame, isLast) }
        call.loop.execute { [self] in take(frame, isLast) }
    }

    /// Ends the response without the frames that it has not sent: another back channel has them. From any thread.
    func giveUp() {
        guard !call.loop.isCurrent else { return dropAndEnd() }
        call.loop.execute { [self] in dropAndEnd() }
    }

    private func dropAndEnd() {
        frames = []
        take([], true)
    }

    /// Responds with an error instead of frames; from any thread.
    func refuse(_ error: RequestError) { call.loop.execute { [call] in call.fail(error) } }

    private func take(_ frame: [UInt8], _ isLast: Bool) {
        guard !isEnded else { return }
        if !frame.isEmpty { frames.append(frame) }
        isEnded = isLast
        call.resume()
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        guard !frames.isEmpty else { return isEnded ? .finished : .waiting }
        output.append(frames.removeFirst())
        return isEnded && frames.isEmpty ? .lastMessage : .message
    }

    func cancelled() {
        frames = []
        isEnded = true
        session.backChannelClosed(self)
    }
}

/// Makes frames into the body of the response: they are its body as they are.
final class WebChannelForm: ReplyForm {
    let contentType = "text/plain; charset=utf-8"
    let isStreaming = true
    let watchesClient = true

    func append(_ message: RawSpan, isFirst: Bool, to body: inout ByteBuffer) { body.append(message) }
    func appendEnd(isFirst: Bool, to body: inout ByteBuffer) {}

    /// After the first frame nothing is appended: the page sees a response that ends, and asks again.
    func appendError(_ error: RequestError, isFirst: Bool, to body: inout ByteBuffer) {
        if isFirst { body.append(utf8: error.message) }
    }
}
