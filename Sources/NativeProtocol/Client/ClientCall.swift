// One call as its caller sees it.

package import Basics
package import Calls
import EventLoops

/// Takes what comes back on a streaming call; used on the connection's loop.
package protocol ClientCallHandler: AnyObject {
    /// A message, lent for the call of this function.
    func received(_ message: RawSpan, on call: ClientCall)
    /// The end; comes once.
    func finished(_ outcome: CallOutcome, on call: ClientCall)
}

/// A call that was handed to a connection. Its methods may be used from any thread.
package final class ClientCall: @unchecked Sendable {
    // Sendable: what follows `connection` is touched on the connection's loop only.

    /// Called with the end of a unary call and, when it is OK, the reply, lent for the call.
    package typealias Completion = (CallOutcome, RawSpan) -> Void

    enum Receiver {
        case unary(Completion)
        case streaming(any ClientCallHandler)
    }

    enum State {
        /// Not sent yet.
        case waiting
        case open(stream: UInt32)
        case over
    }

    package let rpc: RPC
    package let connection: ClientConnection
    let options: RequestOptions
    var receiver: Receiver?
    var state = State.waiting
    /// The caller held the call's messages before it had a stream.
    var isPausedFromStart = false
    var deadlineTimer: EventLoop.Timer?
    /// The first message until it is sent; then messages that wait for the server's window.
    var outgoing: [(payload: [UInt8], isLast: Bool)]
    /// The message of a unary call whose status has not come yet.
    var reply: [UInt8]?

    init(
        _ rpc: RPC, _ options: RequestOptions, payload: [UInt8], isComplete: Bool, connection: ClientConnection,
        receiver: Receiver
    ) {
        self.rpc = rpc
        self.options = options
        self.connection = connection
        self.receiver = receiver
        outgoing = [(payload, isComplete)]
    }

    /// Gives the call up: it ends with CANCELLED unless it has ended already, and the server receives a cancellation.
    package func cancel() {
        connection.onLoop { $0.cancel(self, CallOutcome(.cancelled, "the caller cancelled the call")) }
    }

    /// Sends one more message of a bidirectional call, when the server's window allows.
    package func send(_ payload: [UInt8], isLast: Bool = false) {
        connection.onLoop { $0.send(self, payload, isLast: isLast) }
    }

    /// Sends no more messages.
    package func finishSending() {
        connection.onLoop { $0.finishSending(self) }
    }

    /// Asks the server to stop sending: no more than a window's worth of messages follows.
    package func pauseMessages() { connection.onLoop { $0.setPaused(self, true) } }

    /// Lets the server continue.
    package func resumeMessages() { connection.onLoop { $0.setPaused(self, false) } }
}

extension ClientCall: StartedCall {}
