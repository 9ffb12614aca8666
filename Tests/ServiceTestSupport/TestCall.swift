// Calls for tests, made and answered in process, on the test's own thread.

package import Basics
package import Calls
import DocumentModel
package import DocumentStore
package import EventLoops
package import FirestoreMessages
package import FirestoreService
import Synchronization

/// The messages and the status of a call.
package struct TestAnswer: Sendable {
    package var messages: [[UInt8]] = []
    /// Nil until the call is over.
    package var status: StatusCode?
    package var text = ""
    /// The service has asked the client to send no more for now.
    package var isPaused = false

    package var isOK: Bool { status == .ok }
}

/// The loop of a test, which runs on the test's thread while the test waits.
package final class TestLoop {
    package let loop = EventLoop(name: "test")
    /// What the service keeps for the connection, of which a test has one at a time.
    package var connectionContext: AnyObject?

    /// Runs what other threads hand over until `isDone`; false when that has not come within a minute.
    package func run(until isDone: () -> Bool) -> Bool {
        if isDone() { return true }
        var isLate = false
        let limit = loop.schedule(afterMilliseconds: 60_000) { isLate = true }
        loop.run { isLate || isDone() }
        loop.cancel(limit)
        return isDone()
    }
}

/// A connection with one call on it. Everything happens on the test's thread.
package final class TestCall: CallCarrier, @unchecked Sendable {
    // Sendable: touched on the test's thread only.
    private let owner: TestLoop
    private let authorization: String?
    private let head: RequestHead
    /// Messages of a stream that are taken before the call is given up; nil takes all.
    private let messagesMax: Int?
    /// Messages of a stream after which the client takes nothing until `takeMore`; nil pauses nowhere.
    private var pausesAt: Int?
    package private(set) var answer = TestAnswer()
    private var source: (any ResponseSource)?
    private var receiver: (any CallStream)?
    private var isPulling = false

    package init(
        loop: TestLoop, method: FirestoreMessages.Method, requestIdentifier: RequestIdentifier? = nil,
        authorization: String? = nil, messagesMax: Int? = nil, pausesAt: Int? = nil
    ) {
        owner = loop
        let requestID = requestIdentifier.map {
            RequestID(
                sessionHigh: $0.sessionHigh, sessionLow: $0.sessionLow, sequence: $0.sequence,
                oldestPending: $0.oldestPending)
        }
        head = RequestHead(rpc: method.rpc, requestID: requestID)
        self.authorization = authorization
        self.messagesMax = messagesMax
        self.pausesAt = pausesAt
    }

    /// The call as the service sees it.
    package var call: Call { Call(carrier: self, stream: 1, head: head, begunAt: 0) }

    // MARK: The client

    /// Sends a further message.
    package func send(_ message: [UInt8]) { receiver?.received(message.byteSpan) }

    /// Sends no more messages.
    package func halfClose() { receiver?.halfClosed() }

    /// Takes messages again.
    package func takeMore() {
        pausesAt = nil
        pull()
    }

    /// Leaves before the call has ended.
    package func cancel() {
        source?.cancelled()
        finish(1, .cancelled, "the client has left")
    }

    // MARK: CallCarrier

    package var loopThread: any LoopThread { owner.loop }
    package let peerAddress = "test"
    package var connectionContext: AnyObject? {
        get { owner.connectionContext }
        set { owner.connectionContext = newValue }
    }

    package var carriesCredentials: Bool { true }
    package func authorization(_ stream: UInt32) -> String? { authorization }

    package func isOpen(_ stream: UInt32) -> Bool { answer.status == nil }
    package func beginMessage(_ stream: UInt32) -> ByteBuffer? { isOpen(stream) ? ByteBuffer() : nil }
    package func abandonMessage(_ output: consuming ByteBuffer) {}

    package func endMessage(_ stream: UInt32, _ output: consuming ByteBuffer, isLast: Bool) {
        answer.messages.append(output.copyBytes())
        if isLast { end(.ok) }
    }

    package func finish(_ stream: UInt32, _ code: StatusCode, _ message: String) {
        guard isOpen(stream) else { return }
        answer.text = message
        end(code)
    }

    /// Ends the call, and lets go of its stream, which holds the call.
    private func end(_ code: StatusCode) {
        answer.status = code
        source = nil
        receiver = nil
    }

    package func stream(_ stream: UInt32, _ source: any ResponseSource, receiver: (any CallStream)?) {
        self.source = source
        self.receiver = receiver
        pull()
    }

    package func resume(_ stream: UInt32) { pull() }
    package func hasRoom(_ stream: UInt32) -> Bool { isOpen(stream) }
    package func setPaused(_ stream: UInt32, _ isPaused: Bool) { answer.isPaused = isPaused }
    package func remainingMilliseconds(_ stream: UInt32) -> UInt64? { nil }

    /// Asks the source until it ends, waits, or has given what the test wants of it.
    private func pull() {
        guard let source, isOpen(1), !isPulling else { return }
        isPulling = true
        defer { isPulling = false }
        while isOpen(1) {
            if let pausesAt, answer.messages.count >= pausesAt { return }
            if let messagesMax, answer.messages.count >= messagesMax {
                source.cancelled()
                return finish(1, .cancelled, "the test has seen enough")
            }
            var output = ByteBuffer()
            switch source.next(into: &output) {
            case .message: endMessage(1, output, isLast: false)
            case .lastMessage: endMessage(1, output, isLast: true)
            case .finished: finish(1, .ok, "")
            case .failed(let code, let text): finish(1, code, text)
            case .waiting: return
            }
        }
    }
}

extension FirestoreService {
    /// Takes a call of a test.
    package func begin(_ call: TestCall, _ request: [UInt8]) { begin(call.call, request.byteSpan) }
}
