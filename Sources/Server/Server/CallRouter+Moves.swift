// Databases that move from one store of a cluster to another: what an operator asks, and what the leader of one store
// asks that of the other.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService

extension CallRouter {
    /// Begins a move, gives one up, or says how far one is.
    func moveDatabase(_ call: Call, _ payload: RawSpan) throws {
        let request = try MoveDatabaseRequest(wire: payload)
        let database = try DatabaseName(request.database)
        guard let places = stores.places else {
            throw RequestError(
                .failedPrecondition, "This server has one store. Databases move between those of --cluster-stores.")
        }
        let service = stores.first.firestore
        places.move(
            request, of: database,
            completion: service.continuation(call) { service, moved in service.succeed(call) { moved.encode(into: &$0) }
            }
        )
    }

    /// Applies a chunk of a database that moves to a store which this server leads, or says how far the store is.
    func receiveDatabase(_ call: Call, _ payload: RawSpan) throws {
        let request = try ReceiveDatabaseRequest(wire: payload)
        let database = try DatabaseName(request.database)
        guard let target = stores.named(request.store) else {
            throw RequestError(.notFound, "This server does not serve a store \(request.store).")
        }
        try target.checkServes()
        if let error = target.refusal(ofCallFor: request.identity) { throw error }
        let (service, store) = (target.firestore, target.firestore.store)
        func answer(_ service: FirestoreService, _ tenure: DatabaseTenure) {
            var received = ReceivedDatabase(tenure)
            received.indexWork = UInt64(store.indexWorkLeft(in: database))
            service.succeed(call) { received.encode(into: &$0) }
        }
        // What is over and durable needs no commit for its answer, which stays true.
        let known = store.tenure(of: database)
        if known.isAnswer(to: request.generation), known.version <= store.publishedVersion.microseconds {
            return answer(service, known)
        }
        let completion: @Sendable (Result<DatabaseTenure, RequestError>) -> Void = service.continuation(call, answer)
        if !request.chunk.isEmpty {
            return store.applyMove(
                chunk: request.chunk, to: database, generation: request.generation, completion: completion)
        }
        store.receive(database, generation: request.generation, completion: completion)
    }
}

extension DatabaseTenure {
    /// Whether a move has come to its end here, or a later one was heard of.
    fileprivate func isAnswer(to generation: UInt64) -> Bool {
        switch state {
        case .owned: true
        case .receiving: self.generation > generation
        case .released, .discarded: self.generation >= generation
        case .absent: false
        }
    }
}

extension ReceivedDatabase {
    fileprivate init(_ tenure: DatabaseTenure) {
        switch tenure.state {
        case .owned: self.init(.owned, generation: tenure.generation)
        case .receiving: self.init(.receiving, generation: tenure.generation, progress: tenure.progress)
        case .absent, .released, .discarded: self.init(.none, generation: tenure.generation)
        }
    }
}
