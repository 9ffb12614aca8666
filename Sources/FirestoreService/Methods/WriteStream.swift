// Write: a client's stream of commits, answered in order. Mobile SDKs write through it.
//
//     client                                server
//     database                     ──▶
//                                  ◀──      stream_id, stream_token 0
//     token 0, writes A            ──▶
//     token 0, writes B            ──▶
//                                  ◀──      stream_token 1, results of A, commit_time
//                                  ◀──      stream_token 2, results of B, commit_time
//     token 2, no writes           ──▶      the client leaves; the stream ends with OK
//
// Every message with writes is a separate commit, which begins when the one before it is durable. So commits keep their
// order whatever a lock blocks, and after a failure, which ends the stream, nothing that followed has been applied.
//
// A stream is one of the store's writers' sessions (docs/commits.md, "Repeated requests"): its id names the session,
// and its commits are numbered. A token is the number of the last commit that got its reply. A client whose connection
// broke may name both in the first message of a new stream, and send the commits without replies again. An applied one
// gets its first result, also after a restart of the server, and is not applied a second time.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages

extension FirestoreService {
    /// The first message of a stream.
    func write(_ call: Call, _ request: RawSpan) throws {
        let view = try WriteRequestView(request)
        let database = try database(view.database)
        let access = try StreamAccess(self, call, database)
        guard view.writeCount == 0 else {
            throw RequestError.invalidArgument("The first message of a write stream must not have writes.")
        }
        let stream = WriteStream(
            self, call, database: database, session: try WriteSession(view), permittedBy: access)
        counters.streamsOpen.add()
        call.open(stream)
        longLivedStreams.insert(stream)
    }
}

/// The writer of a stream, and its position.
private struct WriteSession {
    /// Sixteen bytes that nobody guesses.
    let high: UInt64
    let low: UInt64
    /// The stream is a new one, so the client needs its id.
    let isNew: Bool
    /// The last commit that got its reply.
    var answered: UInt64 = 0
    /// The last commit whose answer the client has.
    var acknowledged: UInt64 = 0

    /// A stream has fewer commits; a token above is none of a server's.
    private static let commitsMax: UInt64 = 1 << 62

    /// Begins a session, or takes up the one that the first message names.
    init(_ view: borrowing WriteRequestView) throws(RequestError) {
        if view.streamID.isEmpty {
            high = .random(in: .min ... .max)
            low = .random(in: .min ... .max)
            isNew = true
            return
        }
        let text = String(repairingUTF8: view.streamID)
        guard text.utf8.count == 32, let high = UInt64(text.prefix(16), radix: 16),
            let low = UInt64(text.suffix(16), radix: 16), let token = Self.number(view.streamToken),
            token <= Self.commitsMax
        else { throw .invalidArgument("There is no write stream \"\(text)\" that can be resumed with this token.") }
        self.high = high
        self.low = low
        isNew = false
        answered = token
        acknowledged = token
    }

    var id: String { Hexadecimal.text(high) + Hexadecimal.text(low) }

    /// The token that stands for everything answered so far.
    var token: [UInt8] { Array(Hexadecimal.text(answered).utf8) }

    /// Notes what the client says it has received. A token of another form means that it has received everything sent.
    mutating func acknowledge(_ token: RawSpan) {
        let number = Self.number(token) ?? answered
        acknowledged = min(max(acknowledged, number), answered)
    }

    /// Names the next commit.
    var next: RequestIdentifier {
        RequestIdentifier(sessionHigh: high, sessionLow: low, sequence: answered + 1, oldestPending: acknowledged + 1)
    }

    private static func number(_ token: RawSpan) -> UInt64? {
        token.byteCount == 16 ? Hexadecimal.number(token) : nil
    }
}

/// One stream: takes the client's messages and is the source of the server's.
private final class WriteStream: CallStream, LongLivedStream {
    /// A message of the client that waits for its turn.
    private struct Waiting {
        let writes: WriteList
        let acknowledged: [UInt8]
    }

    private enum End {
        case left
        case failed(RequestError)
    }

    /// Messages and bytes that may wait before the client is asked to hold on.
    private static var waitingMax: Int { 32 }
    private static var waitingBytesMax: Int { 16 << 20 }

    private let service: FirestoreService
    private let call: Call
    private let database: DatabaseName
    private let access: StreamAccess
    private var session: WriteSession
    private var waiting: [Waiting] = []
    private var waitingBytes = 0
    private var isPaused = false
    /// A commit is on its way.
    private var isCommitting = false
    /// Answers that are not sent yet.
    private var answers: [WriteResponse] = []
    /// The client sends no more.
    private var isLeaving = false
    private var end: End?

    init(
        _ service: FirestoreService, _ call: Call, database: DatabaseName, session: WriteSession,
        permittedBy access: StreamAccess
    ) {
        self.access = access
        self.service = service
        self.call = call
        self.database = database
        self.session = session
        answers = [WriteResponse(streamID: session.isNew ? session.id : "", streamToken: session.token)]
    }

    // MARK: From the client

    func received(_ request: RawSpan) {
        if end != nil || isLeaving { return }
        do {
            let view = try WriteRequestView(request)
            try checkDatabase(view.database)
            if view.writeCount == 0 { return leave() }
            var writes = WriteList(database: database)
            writes.reserveCapacity(byteCount: request.byteCount)
            try view.forEachWrite { try writes.append(wire: $0) }
            try writes.checkTransformLimit()
            waitingBytes += writes.bytes.count
            waiting.append(Waiting(writes: writes, acknowledged: [UInt8](copying: view.streamToken)))
        } catch {
            // In its turn: what came before is still answered.
            return fail(after: error)
        }
        pauseIfFull()
        commitNext()
    }

    /// A message after the first one need not name the database, but may name no other.
    private func checkDatabase(_ name: RawSpan) throws(RequestError) {
        let expected = database.utf8
        if name.isEmpty || name.equalsBytes(expected.byteSpan) { return }
        throw .invalidArgument(
            "Request specified a database (\(String(repairingUTF8: name))) that did not match the expected database "
                + "(\(database))")
    }

    func halfClosed() { leave() }

    /// The client sends no more: what waits is still committed and answered.
    private func leave() {
        isLeaving = true
        settle()
    }

    /// What came is not a message: the stream ends with the error after the replies to everything before it.
    private func fail(after error: any Error) {
        isLeaving = true
        failure = service.requestError(error, call)
        settle()
    }

    func stopServing() {
        if !isLeaving { fail(after: RequestError(.unavailable, "the server is draining")) }
    }

    func checkAccess() {
        if isLeaving { return }
        do throws(RequestError) { _ = try access.renew() } catch { fail(after: error) }
    }

    /// How the stream ends after the replies to everything before; nil for OK.
    private var failure: RequestError?

    private func pauseIfFull() {
        let isFull = waiting.count >= Self.waitingMax || waitingBytes >= Self.waitingBytesMax
        if isFull == isPaused { return }
        isPaused = isFull
        if isFull { call.pauseMessages() } else { call.resumeMessages() }
    }

    // MARK: To the store

    private func commitNext() {
        guard !isCommitting, end == nil, !waiting.isEmpty, answers.count < Self.waitingMax else { return }
        let next = waiting.removeFirst()
        waitingBytes -= next.writes.bytes.count
        pauseIfFull()
        session.acknowledge(next.acknowledged.span.bytes)
        isCommitting = true
        service.counters.countWrites(next.writes)
        let stream = LoopBound(self)
        let request = CommitRequest(writes: next.writes, identifier: session.next)
        service.commit(call, request, permittedBy: access.current) { [call] outcome in
            call.loop.execute { stream.value.finish(outcome) }
        }
    }

    private func finish(_ outcome: Result<CommitResult, RequestError>) {
        isCommitting = false
        if case .failed = end { return }
        switch outcome {
        case .success(let result):
            session.answered += 1
            answers.append(
                WriteResponse(
                    streamToken: session.token, writeResults: result.writeResults,
                    commitTime: TimestampValue(microseconds: Int64(clamping: result.commitMicroseconds))))
            call.resume()
            commitNext()
        case .failure(let error):
            waiting = []
            end = .failed(service.requestError(error, call))
            return call.resume()
        }
        settle()
    }

    /// Ends the stream if the client has left and has all answers.
    private func settle() {
        guard isLeaving, !isCommitting, waiting.isEmpty, end == nil else { return }
        end = failure.map(End.failed) ?? .left
        call.resume()
    }

    // MARK: To the client

    func next(into output: inout ByteBuffer) -> SourceStep {
        if !answers.isEmpty {
            answers.removeFirst().encode(into: &output)
            commitNext()
            return .message
        }
        switch end {
        case nil: return .waiting
        case .left:
            service.ended(call)
            over()
            return .finished
        case .failed(let error):
            over()
            return .failed(error.code, error.message)
        }
    }

    private func over() {
        service.counters.streamsOpen.subtract()
        service.longLivedStreams.remove(self)
    }

    func cancelled() {
        over()
        // The commit under way is finished; what waits after it got no reply and is dropped.
        waiting = []
        end = .left
    }
}
