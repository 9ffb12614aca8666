package import DocumentModel
package import FirestoreMessages

extension HearthClient {
    /// The Listen stream of a database, which all its listeners share.
    func watchStream(in database: DatabaseName) -> WatchStream {
        watchStreams.withLock { streams in
            if let stream = streams[database] { return stream }
            let stream = WatchStream(database: "\(database)", on: watchLoop) { [weak self] call in
                self?.startListening(call)
            }
            streams[database] = stream
            return stream
        }
    }
}

/// A change of a document that is watched.
package struct WatchedDocument: Sendable {
    /// The full resource name.
    package let name: String
    /// `nil` if the document does not exist or matches no more.
    package let content: StoredDocument?
}

extension HearthClient {
    /// Watches documents or a query: what matches now, then every change, each consistent state at once.
    ///
    /// A lost connection is made again; the sequence then continues with what has changed. It ends with the error with
    /// which the server refuses the target. Ending the iteration ends the watch.
    package func watch(
        _ kind: ListenTarget.Kind, in database: DatabaseName
    ) -> AsyncThrowingStream<[WatchedDocument], any Error> {
        let stream = watchStream(in: database)
        return AsyncThrowingStream { continuation in
            let target = stream.add(kind, offline: {}) { event in
                switch event {
                case .snapshot(let changes):
                    continuation.yield(
                        changes.map { WatchedDocument(name: $0.key, content: $0.value) }.sorted { $0.name < $1.name })
                case .failure(let error): continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in stream.remove(target) }
        }
    }
}
