internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import EventLoops
internal import FirestoreMessages
internal import FirestoreService
internal import NativeProtocol

/// A call with one request message that another server answers. Confined to its loop.
///
/// It is the source of the reply also where that is one message: so it learns that its client has cancelled the call,
/// and cancels it at the other server.
final class ForwardedCall: ForwardedWork, ResponseSource, @unchecked Sendable {
    // Sendable: used on the loop's thread alone; the connection calls back there too.

    let link: LeaderLink
    private let service: FirestoreService
    private let call: Call
    private let request: [UInt8]
    private let forwarding: FirestoreMessages.Method.Forwarding
    private let isInTransaction: Bool
    private let method: FirestoreMessages.Method
    /// Names the request in all attempts; nil if its client has named it, or nothing changes.
    private let ticket: CommitSequence.Ticket?
    var attempts: ForwardedAttempts
    private var upstream: ClientCall?
    var pause: EventLoop.Timer?
    /// Messages that are not sent yet, each with the version that must be visible first.
    private var messages: [(version: UInt64, bytes: [UInt8])] = []
    private var waitingBytes = 0
    private var isPaused = false
    private var isWaiting = false
    private var hasSent = false
    private var isOver = false
    /// How the stream ends after its messages.
    private var end: Result<Void, RequestError>?

    /// Bytes of replies that wait for a slow client before the other server is asked to pause.
    private static let waitingBytesMax = 256 << 10

    var requestBytes: Int { request.count }
    private var isStream: Bool { call.rpc.shape == .serverStreaming }
    private var changes: Bool { forwarding != .reads }

    init(_ link: LeaderLink, _ call: Call, _ head: ForwardedHead, _ message: RawSpan, isInTransaction: Bool) {
        self.link = link
        service = link.service
        self.call = call
        self.isInTransaction = isInTransaction
        method = head.method
        // Writes that a pipeline leaves to its transaction have no identifier.
        forwarding = isInTransaction && head.method == .executePipeline ? .changes : head.method.forwarding
        let isNamed = call.head.requestID != nil
        ticket = forwarding == .changesOnce && !isNamed ? link.makeTicket() : nil
        attempts = ForwardedAttempts(of: call)
        request = head.request(message, suffix: Self.suffix(head.method, message))
    }

    /// A repetition must create the same document, so its id is chosen here.
    private static func suffix(_ method: FirestoreMessages.Method, _ message: RawSpan) -> [UInt8] {
        guard method == .createDocument, let request = try? CreateDocumentRequest(wire: message),
            request.documentID.isEmpty
        else { return [] }
        return CreateDocumentRequest.suffix(documentID: GeneratedID.random())
    }

    var database: DatabaseName? {
        let bytes = request
        do {
            let message = try ForwardRequestView(bytes.byteSpan).message
            guard let range = method.nameRange(in: message) else { return nil }
            let name = message.extracting(range)
            guard let count = DatabaseName.prefixByteCount(of: name) else { return nil }
            return try DatabaseName(name.extracting(first: count))
        } catch {
            return nil
        }
    }

    func begin() {
        link.add(self)
        if isStream { service.counters.streamsOpen.add() }
        call.stream(self)
        attempt()
    }

    // MARK: Attempts

    func attempt() {
        pause = nil
        guard !isOver else { return }
        guard call.isOpen else { return finish() }
        let now = call.loop.nowMilliseconds
        guard !attempts.isOver(now) else { return fail(.noLeader("")) }
        guard let connection = link.connect() else { return tryLater("") }
        let options = RequestOptions(
            deadlineMilliseconds: UInt32(clamping: attempts.endsAt - now),
            requestID: ticket.map { link.requestID($0) } ?? call.head.requestID)
        upstream = connection.stream(
            FirestoreMessages.Method.adminForward.rpc, request, isComplete: true, options, handler: self)
    }

    /// An attempt has failed.
    private func failed(_ outcome: CallOutcome) {
        // CANCELLED is the end of a connection that this server has closed.
        let isLost = outcome.code == .unavailable || outcome.code == .cancelled
        guard isLost else { return fail(RequestError(outcome.code, outcome.message)) }
        if !hasSent, messages.isEmpty, outcome.isUnprocessed || forwarding != .changes {
            return tryLater(outcome.message)
        }
        fail(isInTransaction ? .transactionLost : .noLeader(outcome.message))
    }

    // MARK: Replies

    private func waitUntilVisible() {
        guard !isWaiting, changes, let next = messages.first, next.version > link.visible.through else { return }
        isWaiting = true
        link.visible.when(next.version) { [self] in waited($0) }
    }

    private func waited(_ outcome: Result<Void, RequestError>) {
        isWaiting = false
        if case .failure(let error) = outcome {
            // The commit is acknowledged, and not here yet.
            if attempts.isOver(call.loop.nowMilliseconds) || error.code != .unavailable { return fail(error) }
        }
        guard call.isOpen else { return finish() }
        waitUntilVisible()
        call.resume()
    }

    /// Whether the first message may be sent: its client then sees here what it says, and a reply of one message is
    /// whole.
    private var isFirstReady: Bool {
        guard let first = messages.first else { return false }
        return (!changes || first.version <= link.visible.through) && (isStream || end != nil)
    }

    func fail(_ error: RequestError) {
        if error.code == .unavailable { call.noteRetry(afterSeconds: 1) }
        end = .failure(error)
        call.resume()
    }

    /// Nothing is sent any more.
    private func finish() {
        if isOver { return }
        isOver = true
        if isStream { service.counters.streamsOpen.subtract() }
        if let ticket { link.finish(ticket) }
        endPause()
        upstream.take()?.cancel()
        link.remove(self)
    }

    // MARK: The client

    func next(into output: inout ByteBuffer) -> SourceStep {
        if isFirstReady {
            let bytes = messages.removeFirst().bytes
            output.append(ForwardedReply.message(of: bytes.byteSpan))
            guard isStream else {
                service.ended(call)
                finish()
                return .lastMessage
            }
            hasSent = true
            waitingBytes -= bytes.count
            if isPaused, waitingBytes <= Self.waitingBytesMax / 2 {
                isPaused = false
                upstream?.resumeMessages()
            }
            waitUntilVisible()
            return .message
        }
        switch end {
        case .success where messages.isEmpty:
            service.ended(call)
            finish()
            return .finished
        case .failure(let error):
            let status = service.requestError(error, call)
            finish()
            return .failed(status.code, status.message)
        default: return .waiting
        }
    }

    var heldBytes: Int { waitingBytes }

    func cancelled() { finish() }
}

extension ForwardedCall: ClientCallHandler {
    func received(_ message: RawSpan, on upstream: ClientCall) {
        guard !isOver, let version = ForwardedReply.version(of: message) else { return }
        messages.append((version, [UInt8](copying: message)))
        waitingBytes += message.byteCount
        if isStream, !isPaused, waitingBytes > Self.waitingBytesMax {
            isPaused = true
            upstream.pauseMessages()
        }
        waitUntilVisible()
        // A reply of one message is sent when the call has ended well.
        if isStream { call.resume() }
    }

    func finished(_ outcome: CallOutcome, on upstream: ClientCall) {
        guard !isOver else { return }
        self.upstream = nil
        guard call.isOpen else { return finish() }
        guard outcome.code == .ok else { return failed(outcome) }
        if !isStream, messages.isEmpty {
            return fail(RequestError(.internal, "The server that takes the writes sent no reply."))
        }
        end = .success(())
        call.resume()
    }
}
