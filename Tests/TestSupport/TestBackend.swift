import Foundation

/// Where the documents of a client's test are: the tests of calls run over each.
package enum TestBackend: String, CaseIterable, Sendable {
    /// A server process.
    case server
    /// A data directory that the test's process opens.
    case directory
    /// Memory of the test's process.
    case memory

    /// A new, empty database.
    package func start() throws -> TestDatabase { try TestDatabase(self) }
}

/// A database of a test, until `stop`.
package final class TestDatabase: Sendable {
    /// What `FirestoreSettings.host` must be.
    package let host: String
    private let directory = TemporaryDirectory("client")
    private let server: ServerProcess?

    fileprivate init(_ backend: TestBackend) throws {
        switch backend {
        case .server:
            let server = try ServerProcess(data: directory.path)
            self.server = server
            host = "127.0.0.1:\(server.port)"
        case .directory:
            server = nil
            host = "file://\(directory.path(of: "data"))"
        case .memory:
            server = nil
            host = "file::memory:\(UUID().uuidString)"
        }
    }

    /// Ends the server, if there is one, after its clients.
    ///
    /// - Returns: whether it ended in order.
    package func stop() -> Bool { server.map { $0.stop() == 0 } ?? true }
}
