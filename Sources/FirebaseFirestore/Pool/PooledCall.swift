// One call through all its tries. Made on any thread, then handed to its pool's loop, which owns it until it ends.

import Basics
import DocumentModel
import Transport

/// What the pool needs of a call. Subclasses say what becomes of the messages.
class PooledCall: TimerTarget, @unchecked Sendable {
    // Unchecked: after `ConnectionPool.submit` only the thread of the pool's loop touches the variables.

    /// Where the call is.
    enum Phase {
        /// Not with the pool yet, or over.
        case idle
        /// In the pool's queue.
        case waiting
        /// On a connection; the transport's call is known once it is started.
        case inFlight(PoolStateMachine<PooledCall>.ConnectionID, ClientCall?)
        /// Until the backoff ends.
        case backingOff(EventLoop.Timer)
    }

    let method: Method
    /// The request message.
    let request: [UInt8]
    let kind: CallKind
    /// Whether the call keeps its place among the ordered ones.
    let isOrdered: Bool
    let waitsForConnection: Bool
    /// Time for the whole call, retries included; `nil` = without limit.
    let timeoutMilliseconds: UInt64?
    let cancellation: Cancellation?

    var phase = Phase.idle
    /// The pool that the call was submitted to; set before it is handed over and constant from then on.
    var home: ConnectionPool?
    var orderNumber: UInt64 = 0
    var ticket: CommitSequence.Ticket?
    /// Tries that ended with a status.
    var answeredTries = 0
    /// The loop's time at which the call was handed over.
    var submittedAtMilliseconds: UInt64 = 0
    /// The loop's time at which the call ends unanswered.
    var deadlineMilliseconds: UInt64?
    /// Runs while the call is on no connection; connections keep the deadlines of the calls on them.
    var deadlineTimer: EventLoop.Timer?
    var isOver = false

    init(
        _ method: Method, request: [UInt8], kind: CallKind, isOrdered: Bool = false, options: HearthClient.CallOptions,
        timeoutMilliseconds: UInt64?
    ) {
        self.method = method
        self.request = request
        self.kind = kind
        self.isOrdered = isOrdered
        self.waitsForConnection = options.waitsForConnection
        self.timeoutMilliseconds = timeoutMilliseconds
        self.cancellation = options.cancellation
    }

    /// Whether the reply is a stream of messages.
    var isStreaming: Bool { false }

    /// Whether another try could still give a right result.
    var isRepeatable: Bool { true }

    /// A message of the reply, lent.
    func received(_ message: RawSpan) {}

    /// A try ended and another one begins: forget what was received.
    func restart() {}

    /// The call is over: `nil` after success. Called once.
    func finished(_ error: RequestError?) {}

    func timerFired(_ token: UInt64) { home?.deadlinePassed(self) }
}

/// A call with one message as its answer.
final class UnaryCall: PooledCall, @unchecked Sendable {
    private var answer: [UInt8] = []
    private let completion: @Sendable (Result<[UInt8], RequestError>) -> Void

    init(
        _ method: Method, request: [UInt8], kind: CallKind, isOrdered: Bool = false, options: HearthClient.CallOptions,
        timeoutMilliseconds: UInt64?, completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        self.completion = completion
        super.init(
            method, request: request, kind: kind, isOrdered: isOrdered, options: options,
            timeoutMilliseconds: timeoutMilliseconds)
    }

    override func received(_ message: RawSpan) { answer = [UInt8](copying: message) }
    override func restart() { answer = [] }
    override func finished(_ error: RequestError?) {
        completion(error.map { .failure($0) } ?? .success(answer))
    }
}

/// A call whose messages are folded into one result, which is delivered at the end: a lost connection starts it again.
final class CollectingCall<Collected: Sendable>: PooledCall, @unchecked Sendable {
    private let initial: Collected
    private var collected: Collected
    private var malformed: RequestError?
    private let add: (inout Collected, RawSpan) throws -> Void
    private let completion: @Sendable (Result<Collected, RequestError>) -> Void

    /// - Parameter add: takes one message, lent; an error ends the call as INTERNAL.
    init(
        _ method: Method, request: [UInt8], options: HearthClient.CallOptions, timeoutMilliseconds: UInt64?, into initial: Collected,
        add: @escaping @Sendable (inout Collected, RawSpan) throws -> Void,
        completion: @escaping @Sendable (Result<Collected, RequestError>) -> Void
    ) {
        self.initial = initial
        collected = initial
        self.add = add
        self.completion = completion
        super.init(
            method, request: request, kind: .repeatable, options: options, timeoutMilliseconds: timeoutMilliseconds)
    }

    override var isStreaming: Bool { true }

    override func received(_ message: RawSpan) {
        guard malformed == nil else { return }
        do {
            try add(&collected, message)
        } catch {
            malformed = RequestError(.internal, "The server sent a message that cannot be read: \(error)")
        }
    }

    override func restart() {
        collected = initial
        malformed = nil
    }

    override func finished(_ error: RequestError?) {
        completion((error ?? malformed).map { .failure($0) } ?? .success(collected))
    }
}
