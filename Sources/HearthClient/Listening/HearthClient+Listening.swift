import Basics
package import DocumentModel
package import FirestoreMessages
import Synchronization

extension HearthClient {
    /// A new Listen stream of a database.
    ///
    /// - Parameter handler: called on the loop's thread; must not block.
    package func makeWatchStream(
        in database: DatabaseName, _ handler: @escaping @Sendable (WatchStream.Output) -> Void
    ) -> WatchStream {
        let stream = WatchStream(
            database: "\(database)", on: watchLoop, log: configuration.log,
            noticeAfter: configuration.outageNoticeAfter,
            start: { [weak self] call in self?.startListening(call) }, handler)
        watchStreams.withLock { $0.append(stream) }
        return stream
    }

    /// Ends a stream for good.
    package func close(_ stream: WatchStream) {
        stream.close()
        watchStreams.withLock { $0.removeAll { $0 === stream } }
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
    /// which the server refuses the target, or the credential. Ending the iteration ends the watch. The configuration's
    /// outage notice is given once for each lost connection that cannot be made again at once.
    package func watch(
        _ kind: ListenTarget.Kind, in database: DatabaseName
    ) -> AsyncThrowingStream<[WatchedDocument], any Error> {
        AsyncThrowingStream { continuation in
            let known = Mutex<Set<UTF8Text>?>(nil)
            let isOffline = Atomic<Bool>(false)
            let stream = makeWatchStream(in: database) { [configuration] output in
                let step: WatchState.Step
                switch output {
                case .step(let next): step = next
                case .online: return isOffline.store(false, ordering: .relaxed)
                // The pool has shown a new token, if there is one.
                case .offline(let refusal) where refusal.code == .unauthenticated:
                    return continuation.finish(throwing: refusal)
                case .offline(let reason):
                    if isOffline.exchange(true, ordering: .relaxed) { return }
                    configuration.outageNotice?(reason.message)
                    return
                }
                for (_, event) in step.events {
                    switch event {
                    case .snapshot(let snapshot):
                        if let changes = known.withLock({ Self.changes(of: snapshot, &$0) }) {
                            continuation.yield(changes)
                        }
                    case .mismatch: break
                    case .failure(let error): continuation.finish(throwing: error)
                    }
                }
            }
            stream.add(1, kind)
            continuation.onTermination = { [weak self] _ in self?.close(stream) }
        }
    }

    /// The changes of a target's documents, by name.
    ///
    /// - Parameter known: the names of the documents before; nil before the first snapshot.
    /// - Returns: nil if nothing has changed.
    private static func changes(
        of snapshot: WatchedSnapshot, _ known: inout Set<UTF8Text>?
    ) -> [WatchedDocument]? {
        let isFirst = known == nil
        var names = known ?? []
        var changes: [WatchedDocument] = []
        for (name, change) in snapshot.changes {
            if case .found(let document) = change {
                names.insert(name)
                changes.append(WatchedDocument(name: name.string, content: document))
            } else if names.remove(name) != nil {
                changes.append(WatchedDocument(name: name.string, content: nil))
            }
        }
        known = names
        return changes.isEmpty && !isFirst ? nil : changes.sorted { $0.name.compareUTF8($1.name) < 0 }
    }
}
