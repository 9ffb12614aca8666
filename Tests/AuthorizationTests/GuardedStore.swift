// A service under rules, and short functions for what users do with it.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

/// A service under rules, with a user that the rules are about.
struct GuardedStore {
    let harness: Harness
    let authorization: Authorization
    let log = TestLog()

    init(
        _ rules: String, clock: (any StoreClock)? = nil, configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        authorization = try TestAuthorization.make(rules, log: log.log)
        harness = try Harness(accessControl: authorization) { configuration in
            if let clock { configuration.clock = clock }
            configure(&configuration)
        }
    }

    /// Makes a call as a user; nil for `owner`, who may do everything.
    func call(
        _ method: FirestoreMessages.Method, _ request: [UInt8], as uid: String? = "alice",
        identifier: RequestIdentifier? = nil
    ) -> TestAnswer {
        harness.call(
            method, request, identifier: identifier,
            authorization: uid.map { TestAuthorization.user($0) } ?? "Bearer owner")
    }

    func get(
        _ path: String, as uid: String? = "alice", _ consistency: ReadConsistency = .latest
    ) -> StatusCode? {
        let request = GetDocumentRequest(name: Harness.name(path), consistency: consistency)
        return call(.getDocument, request.encodedBytes(), as: uid).status
    }

    func commit(
        as uid: String? = "alice", identifier: RequestIdentifier? = nil, _ build: (inout WriteList) throws -> Void
    ) throws -> StatusCode? {
        var writes = WriteList(database: try DatabaseName(Harness.database))
        try build(&writes)
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: []))
        return call(.commit, writer.copyBytes(), as: uid, identifier: identifier).status
    }

    /// Sets a document without regard to rules.
    func set(_ path: String, _ fields: KeyValuePairs<String, Value>) throws {
        try expectEqual(commit(as: nil) { try $0.set(path, Harness.fields(fields)) }, .ok)
    }

    func query(_ query: StructuredQuery, as uid: String? = "alice") -> TestAnswer {
        call(.runQuery, RunQueryRequest(parent: Harness.root, query: query).encodedBytes(), as: uid)
    }
}

extension WriteList {
    mutating func set(_ path: String, _ fields: [UInt8], precondition: Precondition? = nil) throws {
        try Harness.name(path).withUTF8Span {
            try update($0, fields: fields.span.bytes, precondition: precondition)
        }
    }

    mutating func remove(_ path: String) throws {
        try Harness.name(path).withUTF8Span { try delete($0) }
    }
}

extension GuardedStore {
    /// An integer of a document.
    func count(_ path: String, _ field: String) throws -> Int64? {
        let answer = call(.getDocument, GetDocumentRequest(name: Harness.name(path)).encodedBytes(), as: nil)
        let bytes = try #require(answer.messages.first)
        let fields = try DocumentMessage(wire: bytes.span.bytes).fields
        guard let value = DocumentBytes.value(at: FieldPath(fieldName: field), in: fields.span.bytes) else {
            return nil
        }
        let found = EncodedValue(copying: value)
        return (0...1_000).first { EncodedValue(.integer($0)) == found }
    }
}

/// A clock that is not that of this machine, until it is corrected.
final class OtherClock: StoreClock {
    private let offset: Atomic<Int64>

    /// - Parameter offset: how far it is ahead, in microseconds.
    init(_ offset: Int64) { self.offset = Atomic(offset) }

    var nowMicroseconds: UInt64 {
        UInt64(Int64(SystemClock.microseconds()) + offset.load(ordering: .relaxed))
    }
    var elapsedMilliseconds: UInt64 { SystemClock.monotonicMilliseconds() }

    func correct() { offset.store(0, ordering: .relaxed) }
}
