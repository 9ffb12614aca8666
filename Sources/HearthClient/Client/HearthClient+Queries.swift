// Queries: as one result, or as a stream that is read as fast as its consumer takes it.

package import Basics
package import DocumentModel
package import FirestoreMessages

/// The documents that a query has found.
package struct QueryReply: Sendable {
    package var documents: [NamedDocument] = []
    /// Bytes of the messages with them.
    package var byteCount = 0
    /// The state that was read.
    package var readTime: TimestampValue?
}

extension HearthClient {
    /// Runs a query and gathers its documents.
    ///
    /// - Parameters:
    ///   - bytesMax: the query ends, with the documents so far, once their messages have so many bytes.
    ///   - completion: called on the loop's thread.
    package func collectQuery(
        _ request: RunQueryRequest, bytesMax: Int = .max, options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<QueryReply, RequestError>) -> Void
    ) {
        collect(
            .runQuery, request.encodedBytes(), options: options, into: QueryReply(),
            add: { reply, message in
                let view = try RunQueryResponseView(message)
                reply.byteCount += message.byteCount
                if view.hasDocument { reply.documents.append(try NamedDocument(message: view.document)) }
                if let time = view.readTime { reply.readTime = time }
            }, isEnough: { $0.byteCount >= bytesMax }, completion: completion)
    }

    /// Computes totals; the result holds the bytes of a `Value` message for each alias.
    package func collectAggregation(
        _ request: RunAggregationQueryRequest, options: CallOptions,
        completion: @escaping @Sendable (Result<[String: [UInt8]], RequestError>) -> Void
    ) {
        collect(
            .runAggregationQuery, request.encodedBytes(), options: options, into: [:],
            add: { totals, message in
                for total in try RunAggregationQueryResponse(wire: message).totals {
                    totals[total.alias] = total.value.bytes
                }
            }, completion: completion)
    }

    /// Computes totals; the result holds the bytes of a `Value` message for each alias.
    nonisolated(nonsending) package func runAggregation(
        _ request: RunAggregationQueryRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> [String: [UInt8]] {
        try await waiting { cancellation, completion in
            collectAggregation(request, options: options.cancelled(by: cancellation), completion: completion)
        }.get()
    }

    /// Runs a query and gathers its documents in memory; for results that may be large use `queryStream`.
    nonisolated(nonsending) package func runQuery(
        _ request: RunQueryRequest, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> [NamedDocument] {
        try await runQuery(request, bytesMax: .max, options: options).documents
    }

    /// Runs a query and gathers its first documents in memory.
    ///
    /// - Parameter bytesMax: the query ends, with the documents so far, once their messages have so many bytes.
    nonisolated(nonsending) package func runQuery(
        _ request: RunQueryRequest, bytesMax: Int, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> QueryReply {
        try await waiting { cancellation, completion in
            collectQuery(
                request, bytesMax: bytesMax, options: options.cancelled(by: cancellation), completion: completion)
        }.get()
    }
}

// MARK: - Streams

/// The documents of a query as they arrive. Reading slowly slows the server down; memory stays bounded.
///
/// One iteration only. Ending the iteration early, or letting go of the stream, cancels the query.
package struct QueryStream: AsyncSequence, Sendable {
    package typealias Element = NamedDocument
    package typealias Failure = RequestError

    fileprivate let messages: MessageStream

    package func makeAsyncIterator() -> Iterator { Iterator(messages: messages) }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let messages: MessageStream

        package mutating func next() async throws(RequestError) -> NamedDocument? {
            try await nextDocument()
        }

        package mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(RequestError) -> NamedDocument? {
            try await nextDocument()
        }

        nonisolated(nonsending) private func nextDocument() async throws(RequestError) -> NamedDocument? {
            // Messages without a document tell progress only.
            while let message = try await messages.next() {
                let document = try HearthClient.decode { () -> NamedDocument? in
                    let view = try RunQueryResponseView(message.span.bytes)
                    return view.hasDocument ? try NamedDocument(message: view.document) : nil
                }.get()
                if let document { return document }
            }
            return nil
        }
    }
}

extension HearthClient {
    /// Unread bytes of a stream beyond which the client asks the server to pause.
    private static var streamBufferBytes: Int { 1 << 20 }

    /// Runs a query whose documents are read one by one.
    package func queryStream(_ request: RunQueryRequest, options: CallOptions = .standard) -> QueryStream {
        QueryStream(messages: stream(.runQuery, request.encodedBytes(), options: options))
    }

    /// The plan of a query and, if it is to be analyzed, what its execution took; the results are discarded.
    package func explain(
        _ request: RunQueryRequest, options: CallOptions = .standard
    ) async throws(RequestError) -> ExplainMetrics {
        let messages = stream(.runQuery, request.encodedBytes(), options: options)
        var found: ExplainMetrics?
        while let message = try await messages.next() {
            let metrics = try HearthClient.decode { () -> ExplainMetrics? in
                let view = try RunQueryResponseView(message.span.bytes)
                return view.explainMetrics.isEmpty ? nil : try ExplainMetrics(wire: view.explainMetrics)
            }.get()
            if let metrics { found = metrics }
        }
        guard let found else { throw RequestError(.internal, "The server sent no explain metrics.") }
        return found
    }

    /// The same for totals.
    package func explain(
        _ request: RunAggregationQueryRequest, options: CallOptions = .standard
    ) async throws(RequestError) -> ExplainMetrics {
        let messages = stream(.runAggregationQuery, request.encodedBytes(), options: options)
        var found: ExplainMetrics?
        while let message = try await messages.next() {
            let metrics = try HearthClient.decode { () -> ExplainMetrics? in
                try RunAggregationQueryResponse(wire: message.span.bytes).explainMetrics
            }.get()
            if let metrics { found = metrics }
        }
        guard let found else { throw RequestError(.internal, "The server sent no explain metrics.") }
        return found
    }

    /// Makes a call with a stream of replies.
    func stream(
        _ method: Method, _ request: [UInt8], kind: CallKind = .repeatable, options: CallOptions
    ) -> MessageStream {
        let call = StreamingCall(
            method, request: request, kind: kind, options: options,
            timeoutMilliseconds: milliseconds(options.timeout ?? configuration.streamTimeout),
            bytesMax: Self.streamBufferBytes)
        start(call)
        return MessageStream(call: call)
    }
}
