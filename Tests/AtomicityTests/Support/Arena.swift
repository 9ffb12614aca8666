// A real server on its own directory, its clients, and the operations that the tests consist of.

import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import TestSupport
import Testing

/// What a test runs against. Servers come and go; the directory and the database stay.
final class Arena: Sendable {
    static let database = try! DatabaseName(project: "atomicity")

    /// Rounds, tasks and so on are multiplied by this: 1, or 20 in a soak.
    static let scale = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 1 : 20

    let directory = TemporaryDirectory("hearth-atomicity", on: .disk)
    var data: String { directory.path(of: "data") }

    /// Starts a server, with `port` nil on one that is reserved for it.
    func start(port: Int? = nil, _ arguments: [String] = []) throws -> ServerProcess {
        try ServerProcess(data: data, port: port, arguments: arguments)
    }

    /// A client that gives up on a call after `timeout`.
    static func client(of server: ServerProcess, timeout: Duration = .seconds(60)) throws -> HearthClient {
        var configuration = HearthClient.Configuration(host: server.host, port: UInt16(server.port))
        configuration.callTimeout = timeout
        return try HearthClient(configuration)
    }

    /// Verifies every invariant of the data directory, which no server may be using.
    func expectSound(_ comment: Comment? = nil) throws {
        let outcome = try HearthBinary.run(["check", "--data", data])
        expectEqual(outcome.status, 0, comment ?? "\(outcome.output)\(outcome.errors)")
    }

    /// Runs `hearth indexes` on the test's database, whether a server has the directory or not.
    static func indexes(_ words: [String], data: String) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["indexes"] + words + ["--data", data, "--project", database.project])
    }

    /// The full name of a document.
    static func name(_ path: String) -> String { "\(database.documentsRoot)/\(path)" }

    static func fields(_ map: MapValue) -> [UInt8] { Value.map(map).documentFields }
}

extension Value {
    /// The document bytes of a map.
    var documentFields: [UInt8] {
        guard case .map(let map) = self else { return [] }
        return map.documentBytes
    }
}

extension StoredDocument {
    /// The integer in a top-level field.
    func integer(_ field: String) throws -> Int64 {
        let map = try MapValue(documentBytes: fields.span.bytes)
        guard case .integer(let number)? = map[field] else { throw Unexpected("no integer in \(field): \(map)") }
        return number
    }
}

extension HearthClient {
    /// One state of several documents, in the order of their paths; throws for one that is missing.
    func snapshot(_ paths: [String]) async throws -> [StoredDocument] {
        let reply = try await batchGet(
            BatchGetDocumentsRequest(database: Arena.database.description, documents: paths.map(Arena.name)))
        let found = Dictionary(reply.results.map { ($0.name, $0.content) }, uniquingKeysWith: { first, _ in first })
        return try paths.map { path in
            guard let content = found[Arena.name(path)] ?? nil else { throw Unexpected("\(path) is missing") }
            return content
        }
    }

    /// Commits whole documents.
    func commit(_ documents: [(path: String, fields: MapValue)]) async throws {
        var writes = CommitWrites(database: Arena.database)
        for (path, fields) in documents { writes.set(Arena.name(path), fields: Arena.fields(fields)) }
        try await commit(writes)
    }
}

/// Something a test found that must not be.
struct Unexpected: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
