internal import Authorization
internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FileSystem
internal import FirestoreMessages
internal import FirestoreService
internal import Identity
internal import Indexing
internal import Storage
internal import Synchronization

/// `hearth.admin.v1.Admin` on one loop: what an operator's tools ask over the socket in the data directory. Confined to
/// the loop.
///
/// Over the socket the permissions of the directory and the socket decide who may ask; no access policy is consulted.
/// The TCP port serves the listing of indexes and the methods of rules, to callers that may administer the server.
final class AdminService {
    /// What all loops share.
    struct Context: Sendable {
        /// The stores of the server; the first has what no other one has.
        let stores: [ServedStore]
        /// The one of this service.
        var served: ServedStore
        let log: Log
        let address: ServerAddress
        /// The rules of the data directory; nil if the server has nothing to do with them.
        let rules: RulesKeeper?
        /// Revokes users; nil if the server has nothing to do with them.
        let revocations: RevocationKeeper?
        /// Asked again and again whether a replica may still follow; nil permits everything.
        let authorization: Authorization?

        var store: DocumentStore { served.store }
    }

    /// Requests that may block threads at once.
    private static let blockingMax = 4

    private let context: Context
    private let service: FirestoreService
    private var blocking = 0
    private var followers = 0
    /// Streams to replicas of one loop.
    private static let followersMax = 16

    init(_ context: Context, _ service: FirestoreService) {
        self.context = context
        self.service = service
    }

    func begin(_ call: Call, _ request: RawSpan) throws {
        switch call.method {
        case .adminGetServer:
            _ = try EmptyMessage(wire: request)
            let server = ServerInformation(address: context.address.text)
            service.succeed(call) { server.encode(into: &$0) }
        case .adminBackup: try backup(call, BackupRequest(wire: request))
        case .adminFork: try fork(call, ForkRequest(wire: request))
        case .adminCheckpoint:
            _ = try EmptyMessage(wire: request)
            try onThread(call) { context in
                for served in context.stores { try served.store.checkpoint() }
                return EmptyMessage()
            }
        case .adminApplyIndexes: try applyIndexes(call, ApplyIndexesRequest(wire: request))
        case .adminListIndexes: try listIndexes(call, ListIndexesRequest(wire: request))
        case .adminApplyRules, .adminRollbackRules, .adminListRules, .adminGetRules: try rules(call, request)
        case .adminRevokeUser: try revokeUser(call, RevokeUserRequest(wire: request))
        case .adminFollow: try follow(call, FollowRequest(wire: request))
        case .adminStepDown: try stepDown(call, StepDownRequest(wire: request))
        default: throw RequestError(.unimplemented, "\(call.method.name) is not an administrative method.")
        }
    }

    private func follow(_ call: Call, _ message: FollowRequest) throws {
        let isMember = message.place != nil
        guard followers < Self.followersMax else {
            throw RequestError(.resourceExhausted, "\(Self.followersMax) replicas follow on this event loop already.")
        }
        let stream = FollowStream(call, service, context.authorization) { [weak self] in self?.followers -= 1 }
        // The servers of a cluster have rules and revocations in common.
        try stream.start(
            message, context.store, isMember ? nil : context.rules, isMember ? nil : context.revocations, context.log)
        followers += 1
        call.stream(stream)
        service.longLivedStreams.insert(stream)
    }

    private func stepDown(_ call: Call, _ message: StepDownRequest) throws {
        let context = context
        if let leader = context.store.configuration.leader {
            throw RequestError(.failedPrecondition, "This server is a replica of \(leader), and cannot step down.")
        }
        let directory = context.store.configuration.directory
        do throws(StorageError) {
            try context.store.checkPlace()
            try SupersededFile.prepare(in: directory)
        } catch {
            throw RequestError(error)
        }
        let completion = service.continuation(call) { (service, version: CommitVersion) in
            try SupersededFile.write(in: directory)
            context.log(.warning, "stepped_down", ["version": "\(version)"])
            let reply = StepDownResponse(version: version.microseconds)
            service.succeed(call) { reply.encode(into: &$0) }
        }
        context.store.stepDown(for: message.successor) { result in
            if case .failure = result { SupersededFile.discard(in: directory) }
            completion(result)
        }
    }

    private func backup(_ call: Call, _ message: BackupRequest) throws {
        let target = try Self.target(message.directory)
        let control = CopyControl()
        try onThread(call) { context in
            try context.logging("backup", to: target) {
                try context.copyEach(to: target) { try $0.backup(to: $1, control) }
            }
            return EmptyMessage()
        }
        call.stream(CopyWatch(control))
    }

    private func fork(_ call: Call, _ message: ForkRequest) throws {
        let target = try Self.target(message.directory)
        try onThread(call) { context in
            var copied = 0
            try context.logging("fork", to: target) {
                try context.copyEach(to: target) { copied += try $0.fork(to: $1) }
            }
            return ForkResponse(copiedBytes: Int64(copied))
        }
    }

    /// The directory of a copy.
    private static func target(_ path: String) throws -> String {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw RequestError.invalidArgument("The directory of a copy must be an absolute path.")
        }
        return path
    }

    private func applyIndexes(_ call: Call, _ message: ApplyIndexesRequest) throws {
        let database = try DatabaseName(message.database)
        let wanted = try IndexDeclaration(message)
        let log = context.log
        context.store.declareIndexes(
            wanted, in: database,
            completion: service.continuation(call) { service, _ in
                log(
                    .info, "indexes_declared",
                    [
                        "database": "\(database)", "indexes": "\(wanted.indexes.count)",
                        "overrides": "\(wanted.fieldOverrides.count)",
                    ])
                service.succeed(call) { _ in }
            })
    }

    private func listIndexes(_ call: Call, _ message: ListIndexesRequest) throws {
        let database = try DatabaseName(message.database)
        let present = context.store.indexListing(in: database).map(ListIndexesResponse.Entry.init)
        let declared = Set(present.map(\.json))
        let wanted = context.store.wantedIndexes.all(in: database).filter { !declared.contains($0.json) }
        let entries =
            present
            + wanted.map {
                ListIndexesResponse.Entry(
                    state: ListIndexesResponse.wanted, json: $0.json, entries: Int64($0.queries),
                    bytes: Int64($0.documents))
            }
        service.succeed(call) { ListIndexesResponse(entries: entries).encode(into: &$0) }
    }

    /// Does blocking work in a separate thread, then replies with what it returns, or with the text of the error.
    func onThread<Reply: FirestoreMessage & Sendable>(
        _ call: Call, _ work: @escaping @Sendable (Context) throws -> Reply
    ) throws {
        guard blocking < Self.blockingMax else {
            throw RequestError(.resourceExhausted, "\(Self.blockingMax) administrative requests are being carried out.")
        }
        let bound = LoopBound(self)
        try SystemThread(name: "admin") { [context] in
            let outcome = Result { try work(context) }
            call.loop.execute { bound.value.ended(call, outcome) }
        }.detach()
        blocking += 1
    }

    private func ended(_ call: Call, _ outcome: Result<some FirestoreMessage, any Error>) {
        blocking -= 1
        switch outcome {
        case .success(let reply): service.succeed(call) { reply.encode(into: &$0) }
        case .failure(let error as RequestError): service.fail(call, error)
        case .failure(let error): service.fail(call, RequestError(.failedPrecondition, "\(error)"))
        }
    }
}

/// Gives up a copy that nobody waits for any more: the tool has ended.
private final class CopyWatch: ResponseSource {
    private let control: CopyControl

    init(_ control: CopyControl) { self.control = control }

    /// The reply comes from elsewhere.
    func next(into output: inout ByteBuffer) -> SourceStep { .waiting }

    func cancelled() { control.cancel() }
}

extension AdminService.Context {
    /// Writes a copy of each store: to a directory, or to one with its name in it if there are several. When this
    /// throws, none is left.
    func copyEach(to target: String, _ copy: (DocumentStore, String) throws -> Void) throws {
        if stores.count == 1 { return try copy(stores[0].store, target) }
        let isNew = !Directory.exists(target)
        try Directory.create(target)
        var written: [String] = []
        do {
            for served in stores {
                try copy(served.store, "\(target)/\(served.name)")
                written.append("\(target)/\(served.name)")
            }
        } catch {
            for directory in written { try? Directory.removeAll(directory) }
            if isNew { try? Directory.remove(target) }
            throw error
        }
    }

    /// Writes a copy of the store, and logs what came of it.
    fileprivate func logging<Output>(
        _ noun: StaticString, to target: String, _ write: () throws -> Output
    ) throws -> Output {
        do {
            let output = try write()
            log(.info, "copy_written", ["form": "\(noun)", "directory": target])
            return output
        } catch {
            log(.error, "copy_failed", ["form": "\(noun)", "directory": target, "message": "\(error)"])
            throw error
        }
    }
}

/// Where the server listens, known when it does. Thread-safe.
final class ServerAddress: Sendable {
    private let state = Mutex("")

    var text: String {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
