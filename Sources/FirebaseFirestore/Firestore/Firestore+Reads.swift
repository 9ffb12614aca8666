// Reads of the SDK: from the server with the pending writes applied, or from the cache. Totals are computed by the
// server, after the pending writes that they must see.

import Basics
import ClientCache
import Dispatch
import DocumentCoding
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
internal import QueryEngine

extension Firestore {
    typealias ReadCompletion<Value> = @Sendable (Result<Value, RequestError>) -> Void

    /// Reads one document. The completion runs on a thread of the library.
    func read(
        _ reference: DocumentReference, source: FirestoreSource, cancellation: Cancellation? = nil,
        completion: @escaping ReadCompletion<DocumentSnapshot>
    ) {
        checkUsable()
        withEngine(completion) { engine in
            engine.read(reference.name, source: source, cancellation: cancellation) { result in
                completion(
                    result.map { found in
                        let document = found.rows.first?.document
                        return DocumentSnapshot(
                            reference: reference, stored: document,
                            metadata: .of(
                                hasPendingWrites: document?.hasPendingWrites ?? false, isFromCache: found.isFromCache))
                    })
            }
        }
    }

    /// Runs a query. The completion runs on a thread of the library.
    func run(
        _ query: Query, source: FirestoreSource, cancellation: Cancellation? = nil,
        completion: @escaping ReadCompletion<QuerySnapshot>
    ) {
        checkUsable()
        let definition = query.definition
        enforcing { () throws(RuleViolation) in try QueryRules.checkExecutable(definition) }
        let (parent, structured) = (parentName(of: definition), definition.structuredQuery())
        withEngine(completion) { engine in
            let plan: QueryPlan
            do throws(RequestError) {
                plan = try QueryPlan(structured, parent: Array(parent.utf8).byteSpan)
            } catch {
                return completion(.failure(error))
            }
            let read = SyncEngine.QueryRead(
                request: RunQueryRequest(parent: parent, query: structured), plan: plan,
                isReversed: definition.isReversed)
            engine.run(read, source: source, cancellation: cancellation) { result in
                completion(
                    result.map { found in
                        let isPending = found.rows.contains { $0.document.hasPendingWrites }
                        return QuerySnapshot(
                            query: query, rows: RowList(found.rows),
                            metadata: .of(hasPendingWrites: isPending, isFromCache: found.isFromCache))
                    })
            }
        }
    }

    /// The parent of a query's collection: the documents root or a document.
    func parentName(of query: QueryDescription) -> String {
        query.parent.isEmpty ? documentsRoot : resourceName(query.parent)
    }

    /// Runs a read with an async caller, whose cancellation ends it; the error is an `NSError`.
    nonisolated(nonsending) func awaitRead<Value: Sendable>(
        _ start: (Cancellation, @escaping ReadCompletion<Value>) -> Void
    ) async throws -> Value {
        if Task.isCancelled { throw NSError.taskWasCancelled }
        switch await waiting(start) {
        case .success(let value): return value
        case .failure(let error): throw error.asNSError
        }
    }

    /// Calls `body` with the engine, or reports why there is none.
    func withEngine<Value>(_ completion: ReadCompletion<Value>, _ body: (SyncEngine) -> Void) {
        do throws(RequestError) {
            body(try engine())
        } catch {
            completion(.failure(error))
        }
    }

    /// Calls `body` with the client, or reports why there is none.
    func withClient<Value>(_ completion: ReadCompletion<Value>, _ body: (HearthClient) -> Void) {
        do throws(RequestError) {
            body(try client())
        } catch {
            completion(.failure(error))
        }
    }

    /// How long a read waits for pending writes before it goes to the server without them: the SDK's 10 s for a server
    /// that may not be reachable.
    private static let pendingWriteTimeout = DispatchTimeInterval.seconds(10)

    /// Calls `body` when the pending writes of the user to what a read depends on are settled, those of earlier
    /// processes included; at once while they cannot be sent.
    func afterPendingWrites(
        in scope: ReadScope, _ cancellation: Cancellation?, _ body: @escaping @Sendable () -> Void
    ) {
        // Opening the cache counts the writes in it. Why it cannot be opened is what the read fails with.
        guard let engine = try? engine(), pendingWrites.count > 0, canSend else { return body() }
        let wait = engine.whenWritesAreSettled(in: scope, within: Self.pendingWriteTimeout) { _ in body() }
        // `body` runs then, and its call ends as cancelled.
        cancellation?.onCancel { engine.stopWaiting(for: wait) }
    }
}
