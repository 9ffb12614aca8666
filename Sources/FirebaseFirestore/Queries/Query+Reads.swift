// Running a query once.

import Foundation

extension Query {
    /// Runs the query.
    ///
    /// - Parameter completion: called on the queue of the settings with a snapshot or an error.
    public func getDocuments(completion: @escaping (QuerySnapshot?, (any Error)?) -> Void) {
        getDocuments(source: .default, completion: completion)
    }

    /// Runs the query against the given source. A result of the cache has the documents that the cache knows, maybe
    /// none.
    public func getDocuments(
        source: FirestoreSource, completion: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) {
        let firestore = firestore
        let box = UncheckedBox(completion)
        firestore.run(self, source: source) { result in
            firestore.callBack {
                switch result {
                case .success(let snapshot): box.value(snapshot, nil)
                case .failure(let error): box.value(nil, error.asNSError)
                }
            }
        }
    }

    /// Runs the query.
    @discardableResult
    nonisolated(nonsending) public func getDocuments() async throws -> QuerySnapshot {
        try await getDocuments(source: .default)
    }

    /// Runs the query against the given source.
    @discardableResult
    nonisolated(nonsending) public func getDocuments(source: FirestoreSource) async throws -> QuerySnapshot {
        try await firestore.awaitRead { self.firestore.run(self, source: source, cancellation: $0, completion: $1) }
    }
}
