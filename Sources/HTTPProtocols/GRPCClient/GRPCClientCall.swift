// One call on a connection to a gRPC server.

import Calls
import EventLoops

/// A call as its client sees it. Its methods may be used from any thread.
package final class GRPCClientCall: StartedCall, @unchecked Sendable {
    // Sendable: the variables are touched on the connection's loop only.

    let connection: GRPCClientConnection
    /// `/package.Service/Method`.
    let path: String
    let deadlineMilliseconds: UInt32?
    /// Nil once the call has ended.
    var handler: (any StartedCallHandler)?
    var deadlineTimer: EventLoop.Timer?
    /// The stream of HTTP/2; 0 before there is one.
    var stream: Int32 = 0

    /// Messages with their prefixes that HTTP/2 has not taken.
    var outgoing: [UInt8] = []
    /// Bytes of `outgoing` that were taken.
    var outgoingStart = 0
    /// The client sends no further message.
    var isSent: Bool
    /// HTTP/2 asked for bytes when there were none.
    var isDeferred = false

    var answer = GRPCAnswer()
    /// The caller asked for no more messages for now.
    var isPaused = false
    /// Received bytes that the server was not permitted again.
    var uncredited = 0

    init(
        _ connection: GRPCClientConnection, path: String, request: [UInt8], isComplete: Bool,
        deadlineMilliseconds: UInt32?, handler: any StartedCallHandler
    ) {
        self.connection = connection
        self.path = path
        self.deadlineMilliseconds = deadlineMilliseconds
        self.handler = handler
        isSent = isComplete
        append(request)
    }

    /// Adds a message to what is to be sent.
    func append(_ message: [UInt8]) {
        outgoing.reserveCapacity(outgoing.count + MessageReader.prefixBytes + message.count)
        outgoing.append(0)
        for shift in [24, 16, 8, 0] { outgoing.append(UInt8(truncatingIfNeeded: message.count >> shift)) }
        outgoing.append(contentsOf: message)
    }

    /// What `grpc-timeout` says: at most eight digits and a unit.
    static func timeout(milliseconds: UInt32) -> String {
        milliseconds <= 99_999_999 ? "\(milliseconds)m" : "\(milliseconds / 1000)S"
    }

    package func cancel() {
        connection.onLoop { $0.end(self, CallOutcome(.cancelled, "the caller cancelled the call")) }
    }

    package func send(_ payload: [UInt8], isLast: Bool) {
        connection.onLoop { $0.send(payload, isLast: isLast, on: self) }
    }

    package func pauseMessages() { connection.onLoop { _ in self.isPaused = true } }

    package func resumeMessages() { connection.onLoop { $0.resume(self) } }
}
