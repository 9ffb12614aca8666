import Basics
import Calls
import DocumentModel
import FirestoreMessages
import Synchronization

/// The messages of one streaming call, in order, at the consumer's pace.
///
/// The stream asks the server to pause while more than a bound of unread bytes is buffered. One consumer at a time; the
/// stream may be passed from task to task. Releasing it cancels the call.
final class MessageStream: Sendable {
    private let call: StreamingCall

    init(call: StreamingCall) { self.call = call }

    deinit { call.home?.cancelFromAnyThread(call) }

    /// The next message; `nil` after the last. A cancelled task cancels the call.
    nonisolated(nonsending) func next() async throws(RequestError) -> [UInt8]? {
        if let step = call.inbox.takeNow() { return try step.get() }
        let call = call
        let step = await withTaskCancellationHandler {
            await withUnsafeContinuation { call.inbox.take($0) }
        } onCancel: {
            call.home?.cancelFromAnyThread(call)
        }
        return try step.get()
    }
}

/// What has arrived on a stream and is not read.
final class StreamInbox: Sendable {
    typealias Step = Result<[UInt8]?, RequestError>

    private struct State {
        var messages = FIFOQueue<[UInt8]>()
        var byteCount = 0
        /// The transport's call while the server is asked to pause.
        var held: (any StartedCall)?
        /// `.success(nil)` after the last message.
        var end: Step?
        var waiter: UnsafeContinuation<Step, Never>?
    }
    private let state = Mutex(State())
    /// Unread bytes past which the server is asked to pause.
    let bytesMax: Int

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Adds a message; asks `source` to pause if there are too many.
    func add(_ message: [UInt8], from source: (any StartedCall)?) {
        let waiter = state.withLock { state -> UnsafeContinuation<Step, Never>? in
            if let waiter = state.waiter.take() { return waiter }
            state.messages.append(message)
            state.byteCount += message.count
            if state.byteCount > bytesMax, state.held == nil, let source {
                source.pauseMessages()
                state.held = source
            }
            return nil
        }
        waiter?.resume(returning: .success(message))
    }

    /// The call is over.
    func finish(_ error: RequestError?) {
        let end: Step = error.map { .failure($0) } ?? .success(nil)
        let waiter = state.withLock { state in
            state.end = end
            state.held = nil
            return state.waiter.take()
        }
        waiter?.resume(returning: end)
    }

    /// The next step if there is one already.
    func takeNow() -> Step? { state.withLock { next(&$0) } }

    private func next(_ state: inout State) -> Step? {
        guard let message = state.messages.popFirst() else { return state.end }
        state.byteCount -= message.count
        if state.byteCount * 2 < bytesMax, let held = state.held.take() { held.resumeMessages() }
        return .success(message)
    }

    /// Resumes with the next step, now or when there is one.
    func take(_ continuation: UnsafeContinuation<Step, Never>) {
        let step = state.withLock { state -> Step? in
            if let step = next(&state) { return step }
            precondition(state.waiter == nil, "a stream has one consumer at a time")
            state.waiter = continuation
            return nil
        }
        if let step { continuation.resume(returning: step) }
    }
}

/// A call whose messages are read one by one. Once the first has arrived it is not repeated.
class StreamingCall: PooledCall, @unchecked Sendable {
    let inbox: StreamInbox
    private var hasDelivered = false

    init(
        _ method: Method, request: [UInt8], kind: CallKind = .repeatable, options: HearthClient.CallOptions,
        timeoutMilliseconds: UInt64?, bytesMax: Int
    ) {
        inbox = StreamInbox(bytesMax: bytesMax)
        super.init(
            method, request: request, kind: kind, options: options, timeoutMilliseconds: timeoutMilliseconds)
    }

    override var isStreaming: Bool { true }
    override var isRepeatable: Bool { !hasDelivered }

    override func received(_ message: RawSpan) {
        hasDelivered = true
        var source: (any StartedCall)?
        if case .inFlight(_, let started) = phase { source = started }
        inbox.add([UInt8](copying: message), from: source)
    }

    override func finished(_ error: RequestError?) { inbox.finish(error) }
}
