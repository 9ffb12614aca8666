// One call with all its attempts. It is created on any thread and then belongs to its pool's loop until it ends.

import Basics
import Calls
import DocumentModel
import EventLoops
import FirestoreMessages

/// A call as the pool sees it. Subclasses handle the messages.
class PooledCall: TimerTarget, @unchecked Sendable {
    // Unchecked: after `ConnectionPool.submit` only the thread of the pool's loop touches the variables.

    /// Where the call is.
    enum Phase {
        /// Not submitted to the pool yet, or ended.
        case idle
        /// In the pool's queue.
        case waiting
        /// On a connection; the transport's call is known once it is started.
        case inFlight(PoolStateMachine<PooledCall>.ConnectionID, (any StartedCall)?)
        /// Until the backoff ends.
        case backingOff(EventLoop.Timer)
    }

    let method: Method
    /// The request message.
    let request: [UInt8]
    let kind: CallKind
    /// Whether the call keeps its position among the ordered ones.
    let isOrdered: Bool
    /// Whether the call waits for a server that cannot be reached.
    private(set) var waitsForConnection: Bool
    /// Time for the whole call, retries included; `nil` = without limit.
    let timeoutMilliseconds: UInt64?
    let cancellation: Cancellation?

    var phase = Phase.idle
    /// The pool of the call; set before the call is submitted, and constant after that.
    var home: ConnectionPool?
    var orderNumber: UInt64 = 0
    /// Whether the call was accepted before: it is not refused because too many others wait.
    var wasAccepted = false
    var ticket: CommitSequence.Ticket?
    /// What the ticket is of; nil if the pool makes the ticket.
    var numbers: WriteNumbers?
    /// The token that the last attempt showed, by the number of its answer; 0 for none.
    var tokenGeneration: UInt64 = 0
    /// Whether an attempt was made again because the server had refused the token.
    var hasRenewedToken = false
    /// Whether the last attempt named a call before it, without which the server refuses it.
    var isAfterAnother = false
    /// The user whose write this is, empty for none; nil for the first user of the client, and for other calls.
    var owner: String?
    /// Attempts that ended with a status.
    var answeredTries = 0
    /// The loop's time at which the call was submitted.
    var submittedAtMilliseconds: UInt64 = 0
    /// The loop's time at which the call ends without a reply.
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

    /// The method and what the call is about, for the log.
    var title: String {
        let subject = CallSubject.text(method, request)
        return subject.isEmpty ? "\(method)" : "\(method) \(subject)"
    }

    /// Whether the reply is a stream of messages.
    var isStreaming: Bool { false }

    /// Whether the client sends more messages after the first.
    var isBidirectional: Bool { false }

    /// Whether another attempt could still give a correct result.
    var isRepeatable: Bool { true }

    /// A message of the reply, borrowed.
    func received(_ message: RawSpan) {}

    /// An attempt begins on a connection. A commit may be applied from now on: only its reply, which it waits for, says
    /// whether it was.
    func sending() {
        if kind.hasIdentifier { waitsForConnection = true }
    }

    /// An attempt has begun, and has not ended.
    func started(_ call: any StartedCall) {}

    /// An attempt ended and another one begins: discard what was received.
    func restart() {}

    /// The call has ended: `nil` after success. Called once.
    func finished(_ error: RequestError?) {}

    func timerFired(_ token: UInt64) { home?.deadlinePassed(self) }
}

/// A call with one reply message.
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

/// A call whose messages are combined into one result at the end; a lost connection starts it again.
final class CollectingCall<Collected: Sendable>: PooledCall, @unchecked Sendable {
    private let initial: Collected
    private var collected: Collected
    private var malformed: RequestError?
    private var hasEnough = false
    private let add: (inout Collected, RawSpan) throws -> Void
    private let isEnough: (Collected) -> Bool
    private let completion: @Sendable (Result<Collected, RequestError>) -> Void

    /// - Parameters:
    ///   - add: processes one message, borrowed; an error ends the call as INTERNAL.
    ///   - isEnough: asked after each message whether the call ends here, with success.
    init(
        _ method: Method, request: [UInt8], options: HearthClient.CallOptions, timeoutMilliseconds: UInt64?,
        into initial: Collected,
        add: @escaping @Sendable (inout Collected, RawSpan) throws -> Void,
        isEnough: @escaping @Sendable (Collected) -> Bool,
        completion: @escaping @Sendable (Result<Collected, RequestError>) -> Void
    ) {
        self.initial = initial
        collected = initial
        self.add = add
        self.isEnough = isEnough
        self.completion = completion
        super.init(
            method, request: request, kind: .repeatable, options: options, timeoutMilliseconds: timeoutMilliseconds)
    }

    override var isStreaming: Bool { true }

    override var isRepeatable: Bool { !hasEnough }

    override func received(_ message: RawSpan) {
        guard malformed == nil, !hasEnough else { return }
        do {
            try add(&collected, message)
        } catch {
            malformed = RequestError(.internal, "The server sent a message that cannot be read: \(error)")
            return
        }
        hasEnough = isEnough(collected)
        if hasEnough { home?.cancelFromAnyThread(self) }
    }

    override func restart() {
        collected = initial
        malformed = nil
    }

    override func finished(_ error: RequestError?) {
        let failure = hasEnough ? nil : error ?? malformed
        completion(failure.map { .failure($0) } ?? .success(collected))
    }
}
