// A scripted server that keeps documents in memory: enough to see what the SDK sends and to answer what it reads. It
// applies whole documents and deletes only; masks, transforms and preconditions are recorded for the test to look at.

package import Basics
package import DocumentModel
import FirestoreMessages
package import Synchronization
import TestSupport

/// The state of a `FakeServer`, and what was written to it.
package final class ScriptedDatabase: Sendable {
    /// One write as it arrived.
    package struct SeenWrite: Sendable {
        package var kind: Write.Kind
        package var name: String
        package var fields: [UInt8]
        package var mask: [String]?
        package var precondition: Precondition?
        package var transforms: [FieldTransform]
    }

    package struct State {
        package var documents: [UTF8Text: (fields: [UInt8], time: TimestampValue)] = [:]
        /// The time of the last commit.
        package var time = TimestampValue(seconds: 1000, nanoseconds: 0)
        package var writes: [SeenWrite] = []
        package var queries: [StructuredQuery] = []
        package var commitFailures: [RequestError] = []
        package var transactions: UInt8 = 0
    }

    package let state = Mutex(State())

    package init() {}

    private var time: TimestampValue { state.withLock { $0.time } }

    package var writes: [SeenWrite] { state.withLock { $0.writes } }
    package var queries: [StructuredQuery] { state.withLock { $0.queries } }

    /// Lets the next commits fail, one error each.
    package func failCommits(_ errors: [RequestError]) { state.withLock { $0.commitFailures = errors } }

    package func remove(_ name: String) { state.withLock { $0.documents[UTF8Text(name)] = nil } }

    package func put(_ name: String, _ fields: [UInt8]) {
        state.withLock { $0.documents[UTF8Text(name)] = (fields, $0.time) }
    }

    package func react(to call: ScriptedCall) -> Reaction {
        do {
            switch call.method {
            case .commit: return try commit(call)
            case .getDocument:
                let name = try GetDocumentRequest(wire: call.payload.span.bytes).name
                return document(name).map { .respond($0.encodedBytes()) } ?? .fail(.notFound, "no \(name)")
            case .batchGetDocuments:
                let request = try BatchGetDocumentsRequest(wire: call.payload.span.bytes)
                let id = state.withLock { state in
                    state.transactions += 1
                    return state.transactions
                }
                return .stream(
                    request.documents.map { name in
                        BatchGetDocumentsResponse(
                            result: document(name).map { .found($0) } ?? .missing(name), transaction: [id],
                            readTime: time
                        ).encodedBytes()
                    })
            case .beginTransaction:
                let id = state.withLock { state in
                    state.transactions += 1
                    return state.transactions
                }
                return .respond(BeginTransactionResponse(transaction: [id]).encodedBytes())
            case .runQuery: return try query(call)
            case .rollback: return .respond([])
            default: return .fail(.unimplemented, "not scripted")
            }
        } catch {
            return .fail(.invalidArgument, "\(error)")
        }
    }

    private func document(_ name: String) -> DocumentMessage? {
        state.withLock { state in
            state.documents[UTF8Text(name)].map {
                DocumentMessage(name: name, fields: $0.fields, createTime: $0.time, updateTime: $0.time)
            }
        }
    }

    /// The writes of a CommitRequest.
    package static func writes(of request: [UInt8]) throws -> [SeenWrite] {
        let view = try CommitRequestView(request.span.bytes)
        var list = WriteList(database: try DatabaseName(view.database))
        try view.forEachWrite { try list.append(wire: $0) }
        return list.writes.map { write in
            SeenWrite(
                kind: write.kind, name: String(decoding: list.bytes[write.name], as: UTF8.self),
                fields: Array(list.bytes[write.fields]), mask: write.mask?.paths.map(\.description),
                precondition: write.precondition, transforms: write.transforms)
        }
    }

    private func commit(_ call: ScriptedCall) throws -> Reaction {
        let writes = try Self.writes(of: call.payload)
        return state.withLock { state in
            if !state.commitFailures.isEmpty {
                let failure = state.commitFailures.removeFirst()
                return .fail(failure.code, failure.message)
            }
            state.writes += writes
            state.time.seconds += 1
            let time = state.time
            for write in writes {
                switch write.kind {
                case .update where write.mask == nil: state.documents[UTF8Text(write.name)] = (write.fields, time)
                case .delete: state.documents[UTF8Text(write.name)] = nil
                default: break
                }
            }
            return .respond(
                CommitResponse(
                    writeResults: writes.map { _ in WriteResult(updateMicroseconds: UInt64(time.microseconds)) },
                    commitTime: time
                ).encodedBytes())
        }
    }

    private func query(_ call: ScriptedCall) throws -> Reaction {
        let request = try RunQueryRequest(wire: call.payload.span.bytes)
        guard let query = request.query else { return .fail(.invalidArgument, "no query") }
        let prefix = "\(request.parent)/\(query.from[0].collectionID)/"
        return state.withLock { state in
            state.queries.append(query)
            let found = state.documents.filter { $0.key.string.hasUTF8Prefix(prefix) }.sorted { $0.key < $1.key }
            let time = state.time
            return .stream(
                found.map { name, document in
                    RunQueryResponse(
                        document: DocumentMessage(
                            name: name.string, fields: document.fields, createTime: document.time,
                            updateTime: document.time),
                        readTime: time
                    ).encodedBytes()
                } + [RunQueryResponse(readTime: time).encodedBytes()])
        }
    }
}

/// Messages of a server on a Listen stream.
package enum ListenScript {
    /// One message for each closure.
    package static func messages(_ writes: (inout ByteBuffer) -> Void...) -> [[UInt8]] {
        writes.map { write in
            var message = ByteBuffer()
            write(&message)
            return message.copyBytes()
        }
    }

    /// All that a target has at a time. Times are in microseconds.
    ///
    /// - Parameter updated: when the document `c/a` of the project `p` was written, which has no fields; nil if it does
    ///   not exist.
    package static func listing(
        of target: Int32 = 1, updatedAt updated: UInt64? = nil, at time: UInt64
    ) -> [[UInt8]] {
        let document = updated.map { updated in
            messages { message in
                let name = Array("projects/p/databases/(default)/documents/c/a".utf8)
                let none: [UInt8] = []
                ListenResponseWriter.appendChange(
                    .init(prefix: none.byteSpan, path: name.byteSpan), fields: none.byteSpan,
                    createMicroseconds: updated, updateMicroseconds: updated, targets: [target], removed: [],
                    to: &message)
            }
        }
        return (document ?? [])
            + messages(
                { ListenResponseWriter.append(.current, targets: [target], at: time, to: &$0) },
                { ListenResponseWriter.append(.noChange, targets: [], at: time, to: &$0) })
    }
}
