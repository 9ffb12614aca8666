// Reads of documents and collections, in callback and async forms.

package import Basics
package import DocumentModel
package import FirestoreMessages

/// A document with its name.
package struct NamedDocument: Sendable, Equatable {
    /// The full resource name.
    package var name: String
    /// What the document held.
    package var content: StoredDocument
}

/// What a read of several documents found.
package struct BatchGetReply: Sendable {
    /// One result for each distinct name, in the order of arrival; `content` is `nil` for a missing document.
    package var results: [(name: String, content: StoredDocument?)] = []
    /// The id of the transaction that the read began; empty if it began none.
    package var transaction: [UInt8] = []
    package var readTime: TimestampValue?
}

extension HearthClient {
    /// Waits until the server answers, with a call that needs nothing else.
    ///
    /// - Throws: `unavailable` with the reason if it cannot be reached.
    nonisolated(nonsending) package func waitForServer() async throws(RequestError) {
        _ = try await call(.healthCheck, [], kind: .repeatable, options: .standard)
    }

    /// Reads one document.
    ///
    /// - Parameter completion: called on the loop's thread; `nil` for a document that does not exist.
    package func getDocument(
        _ name: String, consistency: ReadConsistency = .latest, mask: DocumentMask? = nil,
        options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<StoredDocument?, RequestError>) -> Void
    ) {
        let request = GetDocumentRequest(name: name, mask: mask, consistency: consistency).encodedBytes()
        call(.getDocument, request, kind: .repeatable, options: options) { result in
            completion(Self.document(from: result))
        }
    }

    /// Reads one document; `nil` if it does not exist.
    nonisolated(nonsending) package func getDocument(
        _ name: String, consistency: ReadConsistency = .latest, mask: DocumentMask? = nil,
        options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> StoredDocument? {
        let request = GetDocumentRequest(name: name, mask: mask, consistency: consistency).encodedBytes()
        let result: Result<[UInt8], RequestError>
        do throws(RequestError) {
            result = .success(try await call(.getDocument, request, kind: .repeatable, options: options))
        } catch {
            result = .failure(error)
        }
        return try Self.document(from: result).get()
    }

    private static func document(from result: Result<[UInt8], RequestError>) -> Result<StoredDocument?, RequestError> {
        switch result {
        case .success(let bytes): return decode { try NamedDocument(message: bytes.span.bytes).content }
        case .failure(let error): return error.code == .notFound ? .success(nil) : .failure(error)
        }
    }

    /// Reads several documents.
    package func collectBatchGet(
        _ request: BatchGetDocumentsRequest, options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<BatchGetReply, RequestError>) -> Void
    ) {
        collect(
            .batchGetDocuments, request.encodedBytes(), options: options, into: BatchGetReply(),
            add: { try $0.add($1) }, completion: completion)
    }

    /// Reads several documents of one state of the database.
    nonisolated(nonsending) package func batchGet(
        _ request: BatchGetDocumentsRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> BatchGetReply {
        try await waiting { cancellation, completion in
            collectBatchGet(request, options: options.cancelled(by: cancellation), completion: completion)
        }.get()
    }

    /// Lists a page of a collection.
    nonisolated(nonsending) package func listDocuments(
        _ request: ListDocumentsRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> ListDocumentsResponse {
        let bytes = try await call(.listDocuments, request.encodedBytes(), kind: .repeatable, options: options)
        return try Self.decode { try ListDocumentsResponse(wire: bytes.span.bytes) }.get()
    }

    /// Lists a page of the ids of the collections below a document or the root.
    nonisolated(nonsending) package func listCollectionIds(
        _ request: ListCollectionIdsRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> ListCollectionIdsResponse {
        let bytes = try await call(.listCollectionIds, request.encodedBytes(), kind: .repeatable, options: options)
        return try Self.decode { try ListCollectionIdsResponse(wire: bytes.span.bytes) }.get()
    }

    /// Lists a page of the names at which a query can be cut into parts of about the same size.
    nonisolated(nonsending) package func partitionQuery(
        _ request: PartitionQueryRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> PartitionQueryResponse {
        let bytes = try await call(.partitionQuery, request.encodedBytes(), kind: .repeatable, options: options)
        return try Self.decode { try PartitionQueryResponse(wire: bytes.span.bytes) }.get()
    }

    /// The indexes and overrides of a database: the state and the entry of `firestore.indexes.json`.
    nonisolated(nonsending) package func listIndexes(
        of database: DatabaseName
    ) async throws(RequestError) -> [ListIndexesResponse.Entry] {
        let request = ListIndexesRequest(database: "\(database)").encodedBytes()
        let bytes = try await call(.adminListIndexes, request, kind: .repeatable, options: .standard)
        return try Self.decode { try ListIndexesResponse(wire: bytes.span.bytes).entries }.get()
    }

    /// Reads a message of the server; bytes that are none are INTERNAL.
    package static func decode<Message>(_ body: () throws -> Message) -> Result<Message, RequestError> {
        do {
            return .success(try body())
        } catch {
            return .failure(RequestError(.internal, "The server sent a message that cannot be read: \(error)"))
        }
    }
}

extension BatchGetReply {
    mutating func add(_ message: RawSpan) throws {
        let view = try BatchGetDocumentsResponseView(message)
        switch view.kind {
        case .none: break
        case .found:
            let document = try NamedDocument(message: view.body)
            results.append((document.name, document.content))
        case .missing:
            guard let name = String(validatingUTF8: view.body) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
            results.append((name, nil))
        }
        if !view.transaction.isEmpty { transaction = [UInt8](copying: view.transaction) }
        if let time = view.readTime { readTime = time }
    }
}

extension StoredDocument {
    /// Copies the parts of a `Document` message.
    init(message: RawSpan, name: inout String) throws {
        let view = try DocumentMessageView(message)
        guard let text = String(validatingUTF8: view.name) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
        name = text
        self.init(
            fields: view.copyFields(), createTime: view.createTime ?? TimestampValue(seconds: 0, nanoseconds: 0),
            updateTime: view.updateTime ?? TimestampValue(seconds: 0, nanoseconds: 0))
    }
}

extension NamedDocument {
    /// Copies the parts of a `Document` message.
    package init(message: RawSpan) throws {
        var name = ""
        content = try StoredDocument(message: message, name: &name)
        self.name = name
    }
}
