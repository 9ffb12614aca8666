import Basics
import Calls

/// A call on an ``InProcessConnection``, as its client sees it. Its methods may be used from any thread.
package final class InProcessCall: StartedCall, @unchecked Sendable {
    // Sendable: the variables are touched on the thread of the connection's loop only.

    let connection: InProcessConnection
    let head: RequestHead
    /// The first message, until the service has it.
    var request: [UInt8]
    /// `nil` once the call has ended.
    var handler: (any StartedCallHandler)?
    /// The call's number on the connection; 0 before the service has the call.
    var number: UInt32 = 0
    /// In milliseconds of the loop's clock.
    let deadlineAt: UInt64?
    /// The client has asked the service to pause.
    var isPaused = false
    /// The service has asked the client to pause.
    var isServicePaused = false
    /// Messages that the client has sent and the service has not asked for yet.
    var outgoing: [(payload: [UInt8], isLast: Bool)] = []
    /// The client has sent its last message.
    var isSent: Bool

    init(
        _ connection: InProcessConnection, _ head: RequestHead, request: [UInt8], deadlineAt: UInt64?,
        handler: any StartedCallHandler
    ) {
        self.connection = connection
        self.head = head
        self.request = request
        self.deadlineAt = deadlineAt
        self.handler = handler
        isSent = head.isComplete
    }

    package func cancel() { connection.onLoop { $0.cancel(self) } }

    package func send(_ payload: [UInt8], isLast: Bool) {
        connection.onLoop { $0.send(payload, isLast: isLast, on: self) }
    }

    package func pauseMessages() { connection.onLoop { _ in self.isPaused = true } }

    package func resumeMessages() { connection.onLoop { $0.release(self) } }
}
