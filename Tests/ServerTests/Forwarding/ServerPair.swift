// Two servers in this process: one takes the writes, the other follows it.

import Authorization
import Basics
import Calls
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import NativeProtocol
import Server
import ServiceTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

/// Brings records from one store to another, on a thread, until it is stopped.
private final class Pump: Sendable {
    private struct State {
        var isPaused = false
        var isStopped = false
        var isOver = false
    }

    private let state = Monitor(State())

    init(from source: DocumentStore, to follower: DocumentStore) throws {
        try SystemThread(name: "pump") { [self] in
            while true {
                let isStopped = state.wait { state -> Bool? in
                    if state.isStopped { return true }
                    return state.isPaused ? nil : false
                }
                if isStopped { break }
                do { try Self.bring(from: source, to: follower) } catch { Issue.record(error) }
                SystemThread.sleep(microseconds: 2_000)
            }
            state.update { $0.isOver = true }
        }.detach()
    }

    private static func bring(from source: DocumentStore, to follower: DocumentStore) throws {
        let closed = source.currentReadTime
        let records = try source.records(after: follower.publishedVersion)
        var batch = FollowedRecords()
        while try records.next() { batch.append(records.record, version: records.version) }
        let done = DispatchSemaphore(value: 0)
        let outcome = Mutex<Result<Void, RequestError>?>(nil)
        follower.follow(batch) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        try outcome.withLock { $0 }?.get()
        follower.closeTimes(through: closed)
    }

    func pause(_ isPaused: Bool) { state.update { $0.isPaused = isPaused } }

    func stop() {
        state.update { $0.isStopped = true }
        _ = state.wait { $0.isOver ? true : nil }
    }
}

/// A server and its follower, which forwards. Each has its own directory.
final class ServerPair {
    let source: LiveDatabaseServer
    let follower: LiveDatabaseServer
    let leader: KnownLeader
    private let pump: Pump

    /// - Parameters:
    ///   - token: what the follower shows to the source.
    ///   - change: changes both configurations.
    init(
        readsAreStrict: Bool = false, token: String? = nil,
        source changeSource: (inout DatabaseServerConfiguration) -> Void = { _ in },
        follower changeFollower: (inout DatabaseServerConfiguration) -> Void = { _ in }
    ) throws {
        source = try LiveDatabaseServer {
            $0.store.engine.logKeptBytes = 16 << 20
            changeSource(&$0)
        }
        let leader = KnownLeader(
            .at(KnownLeader.Server(host: source.gateway.host, port: source.gateway.port, token: token)))
        self.leader = leader
        follower = try LiveDatabaseServer {
            $0.store.leader = "source"
            $0.leader = leader
            $0.readsAreStrict = readsAreStrict
            changeFollower(&$0)
        }
        pump = try Pump(from: source.gateway.store, to: follower.gateway.store)
    }

    deinit { stop() }

    /// Whether nothing reaches the follower.
    func cut(_ isCut: Bool) { pump.pause(isCut) }

    func stop() {
        pump.stop()
        follower.stop()
        source.stop()
    }
}

extension LiveDatabaseServer {
    /// The integer field `a` of a document; nil if there is none.
    func number(_ path: String, _ consistency: ReadConsistency = .latest) throws -> Int64? {
        let request = GetDocumentRequest(name: Harness.name(path), consistency: consistency)
        let (outcome, reply) = call(.getDocument, request.encodedBytes())
        if outcome.code == .notFound { return nil }
        expectEqual(outcome.code, .ok, "\(outcome.message)")
        let fields = try DocumentMessage(wire: reply.byteSpan).fields
        guard let span = DocumentBytes.value(at: try FieldPath("a"), in: fields.byteSpan),
            case .integer(let number) = try Value(wire: span)
        else { return nil }
        return number
    }

    func begin(_ options: TransactionOptions) throws -> [UInt8] {
        let request = BeginTransactionRequest(database: Harness.database, options: options)
        let (outcome, reply) = call(.beginTransaction, request.encodedBytes())
        expectEqual(outcome.code, .ok, "\(outcome.message)")
        return try BeginTransactionResponse(wire: reply.byteSpan).transaction
    }

    func commit(_ path: String, _ number: Int64, in transaction: [UInt8] = []) throws -> CallOutcome {
        var writes = WriteList(database: try DatabaseName(Harness.database))
        let fields = Harness.fields(["a": .integer(number)])
        try Harness.name(path).withUTF8Span { try writes.update($0, fields: fields.byteSpan) }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: transaction))
        return call(.commit, writer.copyBytes()).outcome
    }
}
