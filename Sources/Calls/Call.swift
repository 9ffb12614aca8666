package import Basics

/// One call, wherever it came from: what a service is given, and answers with.
///
/// A small value; copy it freely. It ends exactly once: by ``respond(_:)``, by ``fail(_:)``, or by the end of
/// what ``stream(_:)`` or ``open(_:)`` gave it. Answering a call that is over (answered, cancelled, past its
/// deadline, its connection lost) does nothing, so a handler tracks cancellations only to save work.
///
/// All members are for the thread of ``loop``, except ``loop`` itself and ``makeSignal()``. Another thread uses
/// `call.loop.execute { ... }`.
package struct Call: Sendable {
    /// The connection that the call came over.
    package let carrier: any CallCarrier
    /// The call's number on that connection, never used twice.
    package let stream: UInt32
    /// Procedure, deadline and request id.
    package let head: RequestHead
    /// The loop's clock when the call came, in nanoseconds (``LoopThread/turnNanoseconds``).
    package let begunAt: UInt64

    package init(carrier: any CallCarrier, stream: UInt32, head: RequestHead, begunAt: UInt64) {
        self.carrier = carrier
        self.stream = stream
        self.head = head
        self.begunAt = begunAt
    }

    /// The thread that the call is for.
    package var loop: any LoopThread { carrier.loopThread }

    package var rpc: RPC { head.rpc }

    /// Whether the client came over the socket in the file system, which only the user of the server may use.
    package var isLocal: Bool { carrier.isLocal }

    /// Whether an answer can still reach the client.
    package var isOpen: Bool { carrier.isOpen(stream) }

    // MARK: One message

    /// Answers with one message, which `write` appends to the connection's output, and status OK.
    ///
    /// When `write` throws, what it appended is dropped and the call stays open.
    @inline(__always)
    package func respond<Failure: Error>(_ write: (inout ByteBuffer) throws(Failure) -> Void) throws(Failure) {
        guard var output = carrier.beginMessage(stream) else { return }
        do {
            try write(&output)
        } catch {
            carrier.abandonMessage(output)
            throw error
        }
        carrier.endMessage(stream, output, isLast: true)
    }

    /// Ends the call with a status and no message.
    package func finish(_ code: StatusCode, _ message: String = "") { carrier.finish(stream, code, message) }

    package func fail(_ code: StatusCode, _ message: String) { finish(code, message) }

    package func fail(_ error: RequestError) { finish(error.code, error.message) }

    /// Adds to the answer, which has to follow, when the client may come again.
    package func noteRetry(afterSeconds seconds: Int) { carrier.noteRetry(stream, afterSeconds: seconds) }

    /// Ends the connection after the calls that are open.
    package func endConnection() { carrier.endConnection() }

    // MARK: Many messages

    /// Sends the source's messages as fast as the client takes them. At most once for a call.
    package func stream(_ source: any ResponseSource) { carrier.stream(stream, source, receiver: nil) }

    /// Connects a bidirectional call: the client's messages go to `stream`, which is also the source of the server's.
    /// Before the handler returns from `begin`.
    package func open(_ stream: any CallStream) { carrier.stream(self.stream, stream, receiver: stream) }

    /// Asks the source again that was ``SourceStep/waiting``. When it was not, it is asked once more than it would
    /// have been.
    package func resume() { carrier.resume(stream) }

    /// Asks the source again after the other work of the loop has had its turn.
    package func resumeLater() { loop.execute { [self] in resume() } }

    /// Says that the source has done a step of work that may have taken long: it looks at the clock, and the source is
    /// asked again after others when the time of its share is over.
    package func noteStep() { loop.spend(0) }

    /// Whether a message would leave now: the client's window is open and the connection's output has room.
    package var hasRoom: Bool { carrier.hasRoom(stream) }

    /// Something by which other threads ask the source of this call again.
    package func makeSignal() -> LoopSignal { LoopSignal(on: loop) { [self] in resume() } }

    /// Asks the client of a bidirectional call to stop sending: at most one window of messages still comes.
    package func pauseMessages() { carrier.setPaused(stream, true) }

    /// Lets the client send again.
    package func resumeMessages() { carrier.setPaused(stream, false) }

    // MARK: The client's metadata

    /// Whether the protocol has a place for credentials.
    package var carriesCredentials: Bool { carrier.carriesCredentials }

    /// The client's `authorization` field, or its token of the native protocol after `Bearer`; nil without one, and
    /// unless ``ServerConfiguration/keepsAuthorization``.
    package var authorization: String? { carrier.authorization(stream) }

    /// What the request shows of its sender.
    package var origin: RequestOrigin { RequestOrigin(stream, on: carrier, authorization: authorization) }

    /// The names of the client's verified certificate, as `URI:spiffe://a/b` or `DNS:job.example`; empty without one.
    package var certificateNames: [String] { carrier.certificateNames }

    /// Whether the call came to a loopback address of this machine, or over no network.
    package var isLoopback: Bool { carrier.isLoopback }

    /// Whether a proxy has forwarded the call, or one before it on the same connection.
    package var isProxied: Bool { carrier.isProxied }

    /// Milliseconds left until the call's deadline; nil without one.
    package var remainingMilliseconds: UInt64? { carrier.remainingMilliseconds(stream) }
}
