// A Write stream that another server answers.
//
// What was sent and not answered is kept. When the connection is lost, the stream is taken up at the server that takes
// the writes by then: a new stream names the old one and the last token, and what was not answered is sent again. The
// server applies nothing twice (docs/commits.md).

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import NativeProtocol

/// One stream of a client. Confined to its loop.
final class ForwardedWriteStream: ForwardedWork, CallStream, LongLivedStream, @unchecked Sendable {
    // Sendable: used on the loop's thread alone; the connection calls back there too.

    let link: LeaderLink
    private let service: FirestoreService
    private let call: Call
    private let head: ForwardedHead
    private let first: [UInt8]
    private let databaseName: [UInt8]
    /// The stream's id and its last token; empty before the first answer.
    private var streamID: [UInt8]
    private var token: [UInt8]
    /// Messages without an answer, the oldest first.
    private var unanswered: [[UInt8]] = []
    private var unansweredBytes = 0
    private var upstream: ClientCall?
    /// Whether the first message of the present stream to the other server has its answer.
    private var isTakenUp = false
    /// Whether the client has the answer to its first message.
    private var isBegun = false
    private var isPaused = false
    private var isHalfClosed = false
    private var isOver = false
    /// Answers that are not sent yet, each with the version that must be visible first.
    private var answers: [(version: UInt64, bytes: [UInt8])] = []
    private var isWaiting = false
    var attempts: ForwardedAttempts
    var pause: EventLoop.Timer?
    /// How the stream ends after its answers; nil inside for OK.
    private var end: RequestError??
    /// How it ends when the other server has answered everything.
    private var endOfService: RequestError?

    /// Messages and bytes without an answer before the client is asked to hold on.
    private static let unansweredMax = 32
    private static let unansweredBytesMax = 16 << 20

    /// Counted with their most.
    let requestBytes = 64 << 10

    /// - Throws: what is wrong with the first message.
    init(_ link: LeaderLink, _ call: Call, _ head: ForwardedHead, _ message: RawSpan) throws {
        self.link = link
        service = link.service
        self.call = call
        self.head = head
        let view = try WriteRequestView(message)
        databaseName = [UInt8](copying: view.database)
        streamID = [UInt8](copying: view.streamID)
        token = [UInt8](copying: view.streamToken)
        first = head.request(message)
        attempts = ForwardedAttempts(of: call)
    }

    var database: DatabaseName? {
        let name = databaseName
        return try? DatabaseName(name.byteSpan)
    }

    func begin() {
        link.add(self)
        service.counters.streamsOpen.add()
        call.open(self)
        service.longLivedStreams.insert(self)
        attempt()
    }

    // MARK: From the client

    func received(_ message: RawSpan) {
        guard !isOver, end == nil else { return }
        let copy = [UInt8](copying: message)
        unanswered.append(copy)
        unansweredBytes += copy.count
        upstream?.send(copy)
        pauseIfFull()
    }

    func halfClosed() {
        isHalfClosed = true
        upstream?.finishSending()
    }

    func stopServing() {
        if endOfService != nil { return }
        endOfService = RequestError(.unavailable, "the server is draining")
        halfClosed()
    }

    func checkAccess() {
        do throws(RequestError) {
            // The other server goes by what this one has said when the stream began.
            if try link.callerBytes(of: call) != head.caller {
                throw RequestError(.unavailable, "The rights of the caller have changed: open the stream again.")
            }
        } catch {
            fail(error)
        }
    }

    private func pauseIfFull() {
        let isFull = unanswered.count >= Self.unansweredMax || unansweredBytes >= Self.unansweredBytesMax
        if isFull == isPaused { return }
        isPaused = isFull
        if isFull { call.pauseMessages() } else { call.resumeMessages() }
    }

    // MARK: Attempts

    func attempt() {
        pause = nil
        guard !isOver, end == nil else { return }
        guard call.isOpen else { return finish() }
        guard let connection = link.connect() else { return tryLater("") }
        isTakenUp = false
        let upstream = connection.stream(
            FirestoreMessages.Method.adminForward.rpc, isBegun ? continuation : first, isComplete: false,
            RequestOptions(), handler: self)
        for message in unanswered { upstream.send(message) }
        if isHalfClosed { upstream.finishSending() }
        self.upstream = upstream
    }

    /// The first message that takes the stream up where it was.
    private var continuation: [UInt8] {
        typealias Field = FieldNumber.WriteRequest
        var message = ByteBuffer(capacity: databaseName.count + streamID.count + token.count + 16)
        message.writeIfSet(Field.database, bytes: databaseName)
        message.writeIfSet(Field.streamId, bytes: streamID)
        message.writeIfSet(Field.streamToken, bytes: token)
        return head.request(message.bytes)
    }

    func fail(_ error: RequestError) {
        if end == nil { end = .some(error) }
        upstream.take()?.cancel()
        call.resume()
    }

    private func finish() {
        if isOver { return }
        isOver = true
        service.counters.streamsOpen.subtract()
        service.longLivedStreams.remove(self)
        endPause()
        upstream.take()?.cancel()
        link.remove(self)
    }

    // MARK: To the client

    private func waitUntilVisible() {
        guard !isWaiting, !hasFailed, let next = answers.first, next.version > link.visible.through else { return }
        isWaiting = true
        link.visible.when(next.version) { [self] outcome in
            isWaiting = false
            if isOver || hasFailed { return }
            if case .failure(let error) = outcome, error.code != .unavailable { return fail(error) }
            waitUntilVisible()
            call.resume()
        }
    }

    /// Whether the stream ends with an error. Answers that are not visible by then are not sent: the client takes the
    /// stream up where it was.
    private var hasFailed: Bool {
        if case .some(.some) = end { true } else { false }
    }

    func next(into output: inout ByteBuffer) -> SourceStep {
        if let next = answers.first, next.version <= link.visible.through {
            let bytes = answers.removeFirst().bytes
            output.append(ForwardedReply.message(of: bytes.byteSpan))
            waitUntilVisible()
            return .message
        }
        guard let end, answers.isEmpty || hasFailed else { return .waiting }
        defer { finish() }
        guard let error = end ?? endOfService else {
            service.ended(call)
            return .finished
        }
        if error.code == .unavailable { call.noteRetry(afterSeconds: 1) }
        let status = service.requestError(error, call)
        return .failed(status.code, status.message)
    }

    func cancelled() { finish() }
}

extension ForwardedWriteStream: ClientCallHandler {
    func received(_ message: RawSpan, on upstream: ClientCall) {
        guard !isOver, end == nil, upstream === self.upstream else { return }
        guard let version = ForwardedReply.version(of: message),
            let answer = try? WriteResponse(wire: ForwardedReply.message(of: message))
        else { return fail(RequestError(.internal, "The server that takes the writes sent no answer of a stream.")) }
        attempts.restart(call.loop.nowMilliseconds)
        token = answer.streamToken
        if isTakenUp {
            if !unanswered.isEmpty { unansweredBytes -= unanswered.removeFirst().count }
            pauseIfFull()
        } else {
            isTakenUp = true
            if isBegun { return }
            isBegun = true
            if !answer.streamID.isEmpty { streamID = Array(answer.streamID.utf8) }
        }
        answers.append((version, [UInt8](copying: message)))
        waitUntilVisible()
        call.resume()
    }

    func finished(_ outcome: CallOutcome, on upstream: ClientCall) {
        guard !isOver, end == nil, upstream === self.upstream else { return }
        self.upstream = nil
        switch outcome.code {
        case .ok:
            end = .some(nil)
            call.resume()
        // CANCELLED is the end of a connection that this server has closed.
        case .unavailable, .cancelled:
            if isTakenUp { attempts.restart(call.loop.nowMilliseconds) }
            tryLater(outcome.message)
        default: fail(RequestError(outcome.code, outcome.message))
        }
    }
}
