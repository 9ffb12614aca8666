// What must hold for messages that protobuf-c unpacks, whatever bytes arrive. Called by tests and by the fuzzer.

import Basics
import DocumentModel

#if canImport(FirestoreMessages)
    import FirestoreMessages
#endif

enum MessageReadingCheck {
    /// Reads the bytes as a message; nil if they are none, else the message as it is written again.
    private typealias Reader = @Sendable (RawSpan) throws -> [UInt8]

    private static func reader<Message: FirestoreMessage & Sendable>(_ type: Message.Type) -> Reader {
        { wire in try Message(wire: wire).encodedBytes() }
    }

    /// Every message that is read with generated code; the last has no writer.
    private static let readers: [Reader] = [
        reader(BeginTransactionRequest.self), reader(BeginTransactionResponse.self), reader(RollbackRequest.self),
        reader(ListCollectionIdsRequest.self), reader(ListCollectionIdsResponse.self),
        reader(ListDocumentsRequest.self), reader(CreateDocumentRequest.self), reader(UpdateDocumentRequest.self),
        reader(DeleteDocumentRequest.self), reader(PartitionQueryRequest.self), reader(PartitionQueryResponse.self),
        reader(HealthCheckRequest.self), reader(HealthCheckResponse.self),
        { wire in Array(try ServerReflectionRequest(wire: wire).host.utf8) },
    ]

    /// The broken property, or nil. The first byte chooses the message.
    static func violation(_ bytes: RawSpan) -> String? {
        guard bytes.byteCount > 0 else { return nil }
        let choice = Int(bytes[byteAt: 0]) % readers.count
        guard let first = try? readers[choice](bytes.extracting(droppingFirst: 1)) else { return nil }
        // It has no writer.
        guard choice != readers.count - 1 else { return nil }
        guard let second = try? readers[choice](first.byteSpan) else { return "message \(choice) cannot be read again" }
        return second == first ? nil : "message \(choice) changes on its way round"
    }
}
