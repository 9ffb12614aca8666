// Listen: a client's stream of live targets. `ListenSession` is the stream's state; here it meets the transport.
//
//     commit ──► change feed ──► wake-up ──► (loop) hub.advance ──► sessions ──► call.resume ──► next(into:)
//
// The transport asks for messages while the client reads. The session of a client that does not read holds the names of
// changed documents, within a bound. When the client reads again, it gets the newest snapshot.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Listening

extension FirestoreService {
    /// The first message of a stream.
    func listen(_ call: Call, _ request: RawSpan) throws {
        var first = try ListenRequest(wire: request)
        let database = try database(ofStream: first)
        let condition = first.resolvePipeline(of: request, in: database)
        let stream = ListenStream(self, call, database: database)
        try stream.begin(first, condition)
        counters.streamsOpen.add()
        call.open(stream)
        longLivedStreams.insert(stream)
    }

    /// The database that a request names, or that its target lies in.
    private func database(ofStream request: ListenRequest) throws -> DatabaseName {
        if !request.database.isEmpty { return try database(Array(request.database.utf8).byteSpan) }
        let name: String? =
            switch request.change {
            case .add(let target):
                switch target.kind {
                case .query(let parent, _), .invalidQuery(let parent, _): parent
                case .documents(let names): names.first
                case .pipeline, nil: nil
                }
            case .remove, nil: nil
            }
        guard let name else { throw RequestError.invalidArgument("A listen request must name its database.") }
        let bytes = Array(name.utf8)
        return try database(try ResourceNameView(resource: bytes.byteSpan, rules: .request).databaseBytes)
    }
}

/// One stream between a client and its session. Confined to its loop.
private final class ListenStream: CallStream, LongLivedStream {
    private let service: FirestoreService
    private let call: Call
    private let database: DatabaseName
    private var session: ListenSession?
    private var access: StreamAccess?
    /// How the stream ends; nil while it lasts.
    private var end: SourceStep?
    private var isPaused = false
    private let began = Int64(clamping: SystemClock.microseconds())
    private var messages: UInt64 = 0
    private var documentsRead = HourlyCount()

    /// Requests that may wait before the client is asked to stop sending.
    private static var waitingMax: Int { 256 }

    init(_ service: FirestoreService, _ call: Call, database: DatabaseName) {
        self.service = service
        self.call = call
        self.database = database
    }

    /// Opens the session with the first request.
    func begin(_ first: ListenRequest, _ condition: TargetCondition?) throws {
        let call = self.call
        let access = try StreamAccess(service, call, database)
        let session = ListenSession(
            service.listeners(on: call.loop).hub, database: database,
            judge: service.accessControl == nil ? nil : access, whenNewest: service.whenNewest(call),
            wake: { call.resume() })
        do throws(RequestError) {
            try session.receive(first, condition)
        } catch {
            session.close()
            throw error
        }
        service.listeners(on: call.loop).noteMemory()
        self.session = session
        self.access = access
    }

    // MARK: From the client

    func received(_ message: RawSpan) {
        guard let session, end == nil else { return }
        do {
            var request = try ListenRequest(wire: message)
            let condition = request.resolvePipeline(of: message, in: database)
            try session.receive(request, condition)
        } catch {
            return finish(with: error)
        }
        service.listeners(on: call.loop).noteMemory()
        hold(session.waitingCommands >= Self.waitingMax)
        call.resume()
    }

    func halfClosed() {
        if end != nil { return }
        closeSession()
        end = .finished
        call.resume()
    }

    func stopServing() {
        if end == nil { finish(with: RequestError(.unavailable, "the server is draining")) }
    }

    func checkAccess() {
        if end != nil { return }
        do throws(RequestError) {
            if try access?.renew() == true { session?.judgeAgain() }
        } catch {
            finish(with: error)
        }
    }

    private func finish(with error: any Error) {
        closeSession()
        let error = service.requestError(error, call)
        end = .failed(error.code, error.message)
        call.resume()
    }

    private func hold(_ isFull: Bool) {
        if isFull == isPaused { return }
        isPaused = isFull
        if isFull { call.pauseMessages() } else { call.resumeMessages() }
    }

    // MARK: To the client

    func next(into output: inout ByteBuffer) -> SourceStep {
        if let end {
            if case .finished = end { service.ended(call) }
            over()
            return end
        }
        guard let session else { return .waiting }
        let (stepsBefore, readBefore) = (session.steps, session.documentsRead)
        let step = session.next(into: &output)
        if session.steps != stepsBefore { call.noteStep() }
        if session.documentsRead != readBefore {
            documentsRead.add(session.documentsRead &- readBefore, at: SystemClock.monotonicMilliseconds())
        }
        if isPaused { hold(session.waitingCommands >= Self.waitingMax) }
        switch step {
        case .message:
            service.counters.listenMessages.add()
            messages &+= 1
            return .message
        case .waiting: return .waiting
        case .yielding:
            call.resumeLater()
            return .waiting
        case .failed(let error):
            if error.code == .unavailable { call.noteRetry(afterSeconds: 1) }
            closeSession()
            over()
            let status = service.requestError(error, call)
            return .failed(status.code, status.message)
        }
    }

    var listener: ListenerDescription? {
        session.map {
            ListenerDescription(
                client: call.origin.client, caller: access?.current?.callerName ?? "", database: "\(database)",
                sinceMicroseconds: began, messages: messages,
                documentsRead: $0.documentsRead,
                documentsLastHour: documentsRead.total(at: SystemClock.monotonicMilliseconds()),
                targets: $0.targetTexts)
        }
    }

    var hasMessageReady: Bool { session?.hasMessageReady ?? false }
    var heldBytes: Int { session?.heldBytes ?? 0 }

    func cancelled() {
        closeSession()
        over()
    }

    private func closeSession() {
        session?.close()
        session = nil
    }

    private func over() {
        service.counters.streamsOpen.subtract()
        service.longLivedStreams.remove(self)
    }
}
