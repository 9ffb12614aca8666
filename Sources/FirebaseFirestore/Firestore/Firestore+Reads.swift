// How reads reach the server: after the pending writes that they must see, and not at all while the network is off.

import Basics
import Dispatch
import DocumentCoding
import DocumentModel
import FirestoreMessages
import Foundation

extension Firestore {
    typealias ReadCompletion<Value> = @Sendable (Result<Value, RequestError>) -> Void

    /// Reads one document. The completion runs on a thread of the library.
    func read(
        _ reference: DocumentReference, source: FirestoreSource, cancellation: Cancellation? = nil,
        completion: @escaping ReadCompletion<DocumentSnapshot>
    ) {
        checkUsable()
        guard source != .cache else {
            return completion(
                .failure(
                    RequestError(
                        .unavailable, "Failed to get document from cache. (This version has no local cache.)")))
        }
        afterPendingWrites(to: .document(reference.name), cancellation) {
            self.withClient(completion) { client in
                client.getDocument(reference.name, options: .impatientRead.cancelled(by: cancellation)) { result in
                    completion(result.map { DocumentSnapshot(reference: reference, stored: $0) })
                }
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
        guard source != .cache else { return completion(.success(QuerySnapshot(query: query, documents: []))) }
        let request = RunQueryRequest(
            parent: parentName(of: definition), query: definition.structuredQuery())
        afterPendingWrites(to: .collection(definition.collectionID), cancellation) {
            self.withClient(completion) { client in
                client.collectQuery(request, options: .impatientRead.cancelled(by: cancellation)) { result in
                    completion(result.flatMap { self.snapshot(of: query, $0) })
                }
            }
        }
    }

    private func snapshot(
        of query: Query, _ documents: [NamedDocument]
    ) -> Result<QuerySnapshot, RequestError> {
        var snapshots: [QueryDocumentSnapshot] = []
        snapshots.reserveCapacity(documents.count)
        for document in documents {
            guard let reference = DocumentReference(name: document.name, owner: self) else {
                return .failure(RequestError(.internal, "The server sent a malformed name: \(document.name)"))
            }
            snapshots.append(QueryDocumentSnapshot(reference: reference, found: document.content))
        }
        if query.definition.isReversed { snapshots.reverse() }
        return .success(QuerySnapshot(query: query, documents: snapshots))
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
    private static let pendingWritePatience = DispatchTimeInterval.seconds(10)

    func afterPendingWrites(
        to place: PendingWrites.Place, _ cancellation: Cancellation?, _ body: @escaping @Sendable () -> Void
    ) {
        guard pendingWrites.mustWait(for: place) else { return body() }
        guard let waiter = pendingWrites.whenSettled(place, body) else { return }
        let pendingWrites = pendingWrites
        // `body` runs then, and its call ends as cancelled.
        cancellation?.onCancel { pendingWrites.stopWaiting(waiter) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.pendingWritePatience) {
            pendingWrites.stopWaiting(waiter)
        }
    }
}
