// What the tests of the local store share.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import QueryEngine
import TestSupport

/// Documents `c/{id}` with a number `n` each.
protocol LocalStoreFixture {}

/// The fixture's functions for code outside the suites.
private enum Fixture: LocalStoreFixture {}

/// What a test writes to a document.
enum LocalEdit {
    case set(Int64)
    case add(Int64)
    case delete
    case stamp

    func append(to writes: inout CommitWrites, _ id: String, mustExist: Bool = false) {
        let name = Fixture.name(id)
        let precondition: Precondition? = mustExist ? .exists(true) : nil
        switch self {
        case .set(let number): writes.set(name, fields: Fixture.fields(number))
        case .delete: writes.delete(name)
        case .add(let number): transform(.increment(.integer(number)), "n")
        case .stamp: transform(.requestTime, "at")
        }
        func transform(_ operation: FieldTransform.Operation, _ path: String) {
            var encoded = ByteBuffer()
            FieldTransform(path: try! FieldPath(path), operation: operation).encode(into: &encoded)
            // The path is a part of what `encode` has written.
            var reader = WireReader(encoded.bytes)
            _ = try! reader.nextTag()
            _ = try! reader.lengthDelimited()
            let bytes = encoded.copyBytes()
            writes.set(
                name, fields: [], mask: [], precondition: precondition,
                transforms: [EncodedTransform(path: path, operation: Array(bytes[reader.position...]))])
        }
    }
}

extension LocalStoreFixture {
    static var database: DatabaseName { try! DatabaseName(project: "p") }

    static func name(_ id: String) -> String { "\(database.documentsRoot)/c/\(id)" }

    static func open(
        _ directory: String? = nil, bytesMax: Int? = nil, isEager: Bool = false
    ) throws -> LocalStore {
        var configuration = LocalStore.Configuration(database: database, directory: directory, bytesMax: bytesMax)
        configuration.isEager = isEager
        // Closing makes everything durable.
        return try LocalStore(configuration) { _ in }
    }

    // MARK: Documents and writes

    /// The `fields` entries of a document with one number.
    static func fields(_ number: Int64) -> [UInt8] {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: "n")
            entry.withLengthPrefix(field: 2) { Value.integer(number).encode(into: &$0) }
        }
        return writer.copyBytes()
    }

    static func found(_ id: String, _ number: Int64, at time: UInt64) -> RemoteUpdate {
        RemoteUpdate(
            name: name(id),
            content: .found(fields: fields(number), createMicroseconds: time, updateMicroseconds: time))
    }

    /// A document with any fields.
    static func found(_ id: String, _ values: [String: Value], at time: UInt64) -> RemoteUpdate {
        var writer = ByteBuffer()
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            writer.withLengthPrefix(field: 2) { entry in
                entry.appendField(1, string: key)
                entry.withLengthPrefix(field: 2) { value.encode(into: &$0) }
            }
        }
        return RemoteUpdate(
            name: name(id),
            content: .found(fields: writer.copyBytes(), createMicroseconds: time, updateMicroseconds: time))
    }

    static func number(_ state: MaybeDocument) -> Int64? {
        guard let document = state.document,
            let value = DocumentBytes.value(at: try! FieldPath("n"), in: document.fields.byteSpan),
            case .integer(let number) = try! Value(wire: value)
        else { return nil }
        return number
    }

    static func request(_ edits: [(String, LocalEdit)], mustExist: Bool = false) -> [UInt8] {
        var writes = CommitWrites(database: database)
        for (id, edit) in edits { edit.append(to: &writes, id, mustExist: mustExist) }
        return writes.request()
    }

    static func identity(_ sequence: UInt64) -> BatchIdentity {
        BatchIdentity(sessionHigh: 1, sessionLow: 2, sequence: sequence)
    }

    static func value(_ path: FieldPath, _ fields: [UInt8]) -> Value? {
        guard let bytes = DocumentBytes.value(at: path, in: fields.byteSpan) else { return nil }
        return try? Value(wire: bytes)
    }

    static func plan(_ limit: Int32? = nil) throws -> QueryPlan {
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "c")],
            orderBy: [Order(field: try FieldPath("n"), direction: .ascending)], limit: limit)
        return try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan)
    }

    /// The names of the results, in order.
    static func names(
        _ store: LocalStore, _ plan: QueryPlan, usingIndexes usesIndexes: Bool = true
    ) throws -> [String] {
        var names: [String] = []
        try store.run(plan, usingIndexes: usesIndexes) { name, _ in names.append(name) }
        return names
    }

    static func results(_ store: LocalStore, _ plan: QueryPlan) throws -> [Int64] {
        var numbers: [Int64] = []
        try store.run(plan) { _, document in numbers.append(number(.found(document)) ?? -1) }
        return numbers
    }
}

extension LocalStore {
    /// The server has committed a batch.
    func acknowledge(
        _ number: UInt64, results: [WriteResult], commitMicroseconds: UInt64
    ) throws -> [LocalChange] {
        let outcome = BatchReply.Outcome.acknowledged(results: results, commitMicroseconds: commitMicroseconds)
        return try settle([BatchReply(number, outcome)]).changes
    }

    /// Applies a bundle.
    func load(_ bundle: LocalBundle) throws -> [LocalChange] {
        var changes: [LocalChange] = []
        try load(bundle, changing: &changes)
        return changes
    }

    /// The server has refused a batch.
    func reject(_ number: UInt64) throws -> [LocalChange] { try settle([BatchReply(number, .rejected)]).changes }
}
