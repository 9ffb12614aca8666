// A client of a server process with the few words that these tests need.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient
import TestSupport
import Testing

/// Sets and gets documents with one number each.
final class TestClient: Sendable {
    private let client: HearthClient
    let database: DatabaseName

    init(_ server: ServerProcess) throws {
        client = try HearthClient(HearthClient.Configuration(host: server.host, port: UInt16(server.port)))
        database = try DatabaseName(project: "hearth")
    }

    func close() async { await client.close() }

    private func name(_ path: String) -> String { "\(database.documentsRoot)/\(path)" }

    /// Makes the document `{n: number}`.
    func set(_ path: String, number: Int) async throws { _ = try await commitTime(of: path, number: number) }

    /// Makes the document `{n: number}`.
    /// - Returns: the time of the commit, in microseconds since 1970.
    func commitTime(of path: String, number: Int) async throws -> UInt64 {
        var writer = ByteBuffer()
        writer.withLengthPrefix(field: 2) { entry in
            entry.appendField(1, string: "n")
            entry.withLengthPrefix(field: 2) { Value.integer(Int64(number)).encode(into: &$0) }
        }
        var writes = CommitWrites(database: database)
        writes.set(name(path), fields: writer.copyBytes())
        return UInt64(try await client.commit(writes).commitTime.microseconds)
    }

    /// The time of a read, in microseconds since 1970.
    func readTime(_ path: String) async throws -> UInt64 {
        let request = BatchGetDocumentsRequest(database: "\(database)", documents: [name(path)])
        return UInt64(try #require(await client.batchGet(request).readTime).microseconds)
    }

    func delete(_ path: String) async throws {
        var writes = CommitWrites(database: database)
        writes.delete(name(path))
        try await client.commit(writes)
    }

    /// The number of a document; nil when there is no such document.
    func number(_ path: String) async throws -> Int? {
        guard let document = try await client.getDocument(name(path)) else { return nil }
        guard let span = DocumentBytes.value(at: try DocumentModel.FieldPath("n"), in: document.fields.span.bytes)
        else { return nil }
        guard case .integer(let number) = try Value(wire: span) else { return nil }
        return Int(number)
    }
}
