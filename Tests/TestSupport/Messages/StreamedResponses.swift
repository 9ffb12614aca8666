// The messages of streams as values that tests compare: read with the shipped views, written with the shipped writers.

package import Basics
package import DocumentModel
package import FirestoreMessages

/// A `RunQueryResponse`.
package struct RunQueryResponse: FirestoreMessage, Equatable, Sendable {
    package var document: DocumentMessage?
    package var transaction: [UInt8]
    package var readTime: TimestampValue?
    package var skippedResults: Int32
    package var isDone: Bool

    package init(
        document: DocumentMessage? = nil, transaction: [UInt8] = [], readTime: TimestampValue?,
        skippedResults: Int32 = 0, isDone: Bool = false
    ) {
        self.document = document
        self.transaction = transaction
        self.readTime = readTime
        self.skippedResults = skippedResults
        self.isDone = isDone
    }

    package init(wire: RawSpan) throws {
        let view = try RunQueryResponseView(wire)
        document = view.hasDocument ? try DocumentMessage(wire: view.document) : nil
        transaction = [UInt8](copying: view.transaction)
        readTime = view.readTime
        skippedResults = view.skippedResults
        isDone = view.isDone
    }

    package func encode(into writer: inout ByteBuffer) {
        if let document {
            // Servers write documents from the store; a document without times is the tests' own.
            writer.withLengthPrefix(field: FieldNumber.RunQueryResponse.document) { document.encode(into: &$0) }
        }
        if !transaction.isEmpty { RunQueryResponseWriter.append(transaction: transaction, to: &writer) }
        if let readTime { RunQueryResponseWriter.appendReadTime(UInt64(readTime.microseconds), to: &writer) }
        RunQueryResponseWriter.append(skippedResults: Int(skippedResults), to: &writer)
        if isDone { RunQueryResponseWriter.appendDone(to: &writer) }
    }
}

/// A `BatchGetDocumentsResponse`.
package struct BatchGetDocumentsResponse: FirestoreMessage, Equatable, Sendable {
    /// The oneof of the message.
    package enum Result: Equatable, Sendable {
        case none
        case found(DocumentMessage)
        case missing(String)
    }

    package var result: Result
    package var transaction: [UInt8]
    package var readTime: TimestampValue?

    package init(result: Result, transaction: [UInt8] = [], readTime: TimestampValue?) {
        self.result = result
        self.transaction = transaction
        self.readTime = readTime
    }

    package init(wire: RawSpan) throws {
        let view = try BatchGetDocumentsResponseView(wire)
        switch view.kind {
        case .none: result = .none
        case .found: result = .found(try DocumentMessage(wire: view.body))
        case .missing:
            guard let name = String(validatingUTF8: view.body) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
            result = .missing(name)
        }
        transaction = [UInt8](copying: view.transaction)
        readTime = view.readTime
    }

    package func encode(into writer: inout ByteBuffer) {
        switch result {
        case .none: break
        case .found(let document):
            writer.withLengthPrefix(field: FieldNumber.BatchGetDocumentsResponse.found) { document.encode(into: &$0) }
        case .missing(let name):
            name.withUTF8Span { BatchGetDocumentsResponseWriter.append(missing: $0, to: &writer) }
        }
        BatchGetDocumentsResponseWriter.append(transaction: transaction, to: &writer)
        if let readTime { BatchGetDocumentsResponseWriter.appendReadTime(UInt64(readTime.microseconds), to: &writer) }
    }
}
