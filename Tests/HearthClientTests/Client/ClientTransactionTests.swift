// Transactions of the lower-level client against a scripted server.

import Basics
import Calls
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct ClientTransactionTests {
    private let database: DatabaseName

    init() throws { database = try DatabaseName(project: "p") }

    /// A server whose commits are aborted so many times before one succeeds.
    private func server(abortingFirst aborts: Int, code: StatusCode = .aborted) throws -> FakeServer {
        let state = Mutex((begun: UInt8(0), commits: 0))
        return try FakeServer { call in
            state.withLock { state in
                switch call.method {
                case .batchGetDocuments:
                    state.begun += 1
                    return .stream([
                        BatchGetDocumentsResponse(
                            result: .missing("n"), transaction: [state.begun],
                            readTime: TimestampValue(seconds: 1, nanoseconds: 0)
                        ).encodedBytes()
                    ])
                case .beginTransaction:
                    state.begun += 1
                    return .respond(BeginTransactionResponse(transaction: [state.begun]).encodedBytes())
                case .getDocument: return .fail(.notFound, "none")
                case .commit:
                    state.commits += 1
                    guard state.commits > aborts else { return .fail(code, "conflict") }
                    return .respond(
                        CommitResponse(writeResults: [], commitTime: TimestampValue(seconds: 2, nanoseconds: 0))
                            .encodedBytes())
                default: return .respond([])
                }
            }
        }
    }

    private func run(_ server: FakeServer, attemptsMax: Int = 5) async throws -> Int {
        let client = try HearthClient(try .init(address: server.address))
        defer { Task { await client.close() } }
        let name = "\(database.documentsRoot)/a/b"
        var attempts = 0
        try await client.runTransaction(database: database, attemptsMax: attemptsMax) { transaction in
            attempts += 1
            let found = try await transaction.get(name)
            expectNil(found)
            transaction.writes.set(name, fields: [])
        }
        return attempts
    }

    @Test
    func `The first read begins the transaction, and the commit names it`() async throws {
        let server = try server(abortingFirst: 0)
        try await expectEqual(run(server), 1)
        expectEqual(server.calls.map(\.method), [.batchGetDocuments, .commit])
        let commit = server.calls[1].payload
        let request = try CommitRequestView(commit.span.bytes)
        let transaction = [UInt8](copying: request.transaction)
        expectEqual(transaction, [1])
    }

    @Test
    func `A conflict leads to another attempt that names the one before`() async throws {
        let server = try server(abortingFirst: 2)
        try await expectEqual(run(server), 3)
        expectEqual(
            server.calls.map(\.method),
            [
                .batchGetDocuments, .commit, .beginTransaction, .getDocument, .commit, .beginTransaction, .getDocument,
                .commit,
            ])
        let second = server.calls[5].payload
        let begin = try BeginTransactionRequest(wire: second.span.bytes)
        expectEqual(begin.options, .readWrite(retryTransaction: [2], concurrency: .unspecified))
    }

    @Test
    func `After the last attempt the conflict is reported`() async throws {
        let server = try server(abortingFirst: 100)
        await #expect(throws: RequestError(.aborted, "conflict")) { _ = try await run(server, attemptsMax: 3) }
        expectEqual(server.calls.count { $0.method == .commit }, 3)
    }

    @Test
    func `While the server does not say whether the commit was applied, it is sent again, and no other`() async throws {
        let server = try server(abortingFirst: 8, code: .unavailable)
        try await expectEqual(run(server), 1)
        let commits = server.calls.filter { $0.method == .commit }
        expect(commits.count == 9 && Set(commits.map(\.requestID!.sequence)).count == 1)
    }

    @Test
    func `A commit that may have been applied ends the transaction`() async throws {
        let server = try server(abortingFirst: 100, code: .deadlineExceeded)
        await #expect(throws: RequestError(.deadlineExceeded, "conflict")) { _ = try await run(server) }
        expectEqual(server.calls.count { $0.method == .commit }, 1)
    }

    @Test
    func `A final error of the commit ends the transaction`() async throws {
        let server = try server(abortingFirst: 100, code: .notFound)
        await #expect(throws: RequestError(.notFound, "conflict")) { _ = try await run(server) }
        expectEqual(server.calls.count { $0.method == .commit }, 1)
    }

    @Test
    func `An error of the body rolls back and is thrown as it is`() async throws {
        struct Refusal: Error, Equatable {}
        let server = try server(abortingFirst: 0)
        let client = try HearthClient(try .init(address: server.address))
        await #expect(throws: Refusal()) {
            try await client.runTransaction(database: database) { transaction in
                _ = try await transaction.get("x")
                throw Refusal()
            }
        }
        await server.waitForCalls(2)
        expectEqual(server.calls.map(\.method), [.batchGetDocuments, .rollback])
        await client.close()
    }
}
