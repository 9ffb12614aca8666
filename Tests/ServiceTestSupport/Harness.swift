// A service over a store in its own directory, with short functions for what tests do often.

import Basics
package import DocumentModel
package import DocumentStore
import EngineTestSupport
package import FirestoreMessages
package import FirestoreService
import Foundation
import MemoryEngine
package import TestSupport
import Testing

/// One service on one store; the directory goes when the harness goes.
package final class Harness {
    package static let database = "projects/p/databases/d"
    package static let root = "projects/p/databases/d/documents"

    private let directory: TemporaryDirectory
    package let store: DocumentStore
    package let service: FirestoreService
    package let loop = TestLoop()

    /// - Parameter directory: one with the store of an earlier harness, or a new one.
    package init(
        in directory: TemporaryDirectory = TemporaryDirectory("gateway"), limits: ServiceLimits = ServiceLimits(),
        accessControl: (any AccessControl)? = nil, configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        self.directory = directory
        var configuration = StoreConfiguration(directory: directory.path(of: "data"))
        // What is allocated in advance takes longer than most tests.
        configuration.engine.logSegmentBytes = 256 << 10
        configuration.engine.diskReserveBytes = 256 << 10
        // Over the engine in memory, with reads that must wait now and again.
        if let coldKeys = RandomColdKeys.ofEnvironment() {
            configuration.volume = MemoryVolume(replaysRecords: true)
            configuration.engine.coldKeys = coldKeys
        }
        configure(&configuration)
        store = try DocumentStore.open(configuration)
        service = FirestoreService(
            store: store, limits: limits, accessControl: accessControl, log: Log(level: .error) { _ in })
    }

    deinit { store.close() }

    // MARK: Calls

    /// Makes a call and waits for its end.
    package func call(
        _ method: FirestoreMessages.Method, _ request: [UInt8], identifier: RequestIdentifier? = nil,
        authorization: String? = nil, messagesMax: Int? = nil
    ) -> TestAnswer {
        let call = TestCall(
            loop: loop, method: method, requestIdentifier: identifier, authorization: authorization,
            messagesMax: messagesMax)
        service.begin(call, request)
        call.halfClose()
        expect(loop.run { call.answer.status != nil }, "no answer to \(method.name)")
        return call.answer
    }

    package func call(_ method: FirestoreMessages.Method, _ message: some FirestoreMessage) -> TestAnswer {
        call(method, message.encodedBytes())
    }

    /// The one message of a call that must succeed.
    package func message<Message: FirestoreMessage>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, as type: Message.Type = Message.self
    ) throws -> Message {
        let answer = call(method, request)
        expect(answer.isOK, "\(method.name): \(answer.text)")
        let bytes = try #require(answer.messages.first)
        return try Message(wire: bytes.span.bytes)
    }

    /// The messages of a streaming call that must succeed.
    package func messages<Message: FirestoreMessage>(
        _ method: FirestoreMessages.Method, _ request: some FirestoreMessage, as type: Message.Type = Message.self
    ) throws -> [Message] {
        let answer = call(method, request)
        expect(answer.isOK, "\(method.name): \(answer.text)")
        return try answer.messages.map { try Message(wire: $0.span.bytes) }
    }

    // MARK: Documents

    package static func name(_ path: String) -> String { "\(root)/\(path)" }

    /// The entry of one field.
    package static func field(_ name: String, _ value: Value) -> [UInt8] {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: name)
            entry.withLengthPrefix(field: 2) { value.encode(into: &$0) }
        }
        return writer.copyBytes()
    }

    /// Fields in the order given, which must be that of their names.
    package static func fields(_ pairs: KeyValuePairs<String, Value>) -> [UInt8] {
        pairs.flatMap { field($0.key, $0.value) }
    }

    /// Sets documents in one commit, which must succeed.
    package func set(_ documents: KeyValuePairs<String, [UInt8]>) throws {
        try expectEqual(response(setting: documents).writeResults.count, documents.count)
    }

    /// Sets documents in one commit, which must succeed.
    package func response(setting documents: KeyValuePairs<String, [UInt8]>) throws -> CommitResponse {
        var writes = WriteList(database: try DatabaseName(Self.database))
        for (path, fields) in documents {
            try Self.name(path).withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        }
        return try response(committing: writes)
    }

    package func delete(_ paths: String...) throws {
        var writes = WriteList(database: try DatabaseName(Self.database))
        for path in paths { try Self.name(path).withUTF8Span { try writes.delete($0) } }
        try commit(writes)
    }

    /// Makes a commit that must succeed.
    package func commit(_ writes: WriteList, transaction: [UInt8] = []) throws {
        try expectEqual(response(committing: writes, transaction: transaction).writeResults.count, writes.count)
    }

    /// Makes a commit that must succeed.
    package func response(committing writes: WriteList, transaction: [UInt8] = []) throws -> CommitResponse {
        let answer = tryCommit(writes, transaction: transaction)
        expect(answer.isOK, "commit: \(answer.text)")
        let bytes = try #require(answer.messages.first)
        return try CommitResponse(wire: bytes.span.bytes)
    }

    package func tryCommit(
        _ writes: WriteList, transaction: [UInt8] = [], identifier: RequestIdentifier? = nil
    ) -> TestAnswer {
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: transaction))
        return call(.commit, writer.copyBytes(), identifier: identifier)
    }

    package func emptyWrites() throws -> WriteList { WriteList(database: try DatabaseName(Self.database)) }

    /// The document, or nil when it is not found.
    package func get(_ path: String, _ consistency: ReadConsistency = .latest) throws -> DocumentMessage? {
        let answer = call(.getDocument, GetDocumentRequest(name: Self.name(path), consistency: consistency))
        if answer.status == .notFound { return nil }
        expect(answer.isOK, "get: \(answer.text)")
        let bytes = try #require(answer.messages.first)
        return try DocumentMessage(wire: bytes.span.bytes)
    }

    package func begin(_ options: TransactionOptions? = nil) throws -> [UInt8] {
        try message(
            .beginTransaction, BeginTransactionRequest(database: Self.database, options: options),
            as: BeginTransactionResponse.self
        ).transaction
    }
}

extension FirestoreMessage {
    /// Reads a message that must be there.
    package init(wireBytes: [UInt8]?) throws {
        let bytes = try #require(wireBytes)
        try self.init(wire: bytes.span.bytes)
    }
}
