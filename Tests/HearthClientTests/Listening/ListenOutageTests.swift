// What the log says when listeners cannot reach their server: a program that only listens has no other error.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct ListenOutageTests {
    /// The warnings of a client's log.
    private final class Warnings: Sendable {
        private let texts = Mutex<[String]>([])
        func append(_ text: String) { texts.withLock { $0.append(text) } }
        var all: [String] { texts.withLock { $0 } }
    }

    private let database: DatabaseName
    private let warnings = Warnings()

    init() throws { database = try DatabaseName(project: "p") }

    private func client(_ address: String) throws -> HearthClient {
        var configuration = try HearthClient.Configuration(address: address)
        configuration.outageNoticeAfter = .milliseconds(50)
        configuration.log = { [warnings] level, text in
            if level == .warning { warnings.append(text()) }
        }
        return try HearthClient(configuration)
    }

    private func listen(_ client: HearthClient) -> WatchStream {
        let stream = client.makeWatchStream(in: database) { _ in }
        stream.add(1, .documents(["\(database.documentsRoot)/c/d"]))
        return stream
    }

    @Test
    func `A server that cannot be reached is named once with the reason, and so is its return`() async throws {
        let first = try FakeServer { _ in .hold }
        first.cut()
        let client = try client(first.address)
        let stream = listen(client)
        try await eventually("the warning") { !warnings.all.isEmpty }
        expect(warnings.all[0].contains("The server \(first.address) cannot be reached: cannot connect to"))
        var consistent = ByteBuffer()
        ListenResponseWriter.append(.noChange, targets: [], at: 2_000_000_000, to: &consistent)
        let message = consistent.copyBytes()
        let second = try FakeServer(port: first.port) { _ in .stream([message]) }
        try await eventually("the return") { warnings.all.count >= 2 }
        expectEqual(warnings.all[1], "Listeners get snapshots from the server again.")
        stream.close()
        await client.close()
        second.cut()
    }

    @Test
    func `A server that refuses the stream is quoted`() async throws {
        let server = try FakeServer { _ in .fail(.unauthenticated, "This server wants a token.") }
        let client = try client(server.address)
        let stream = listen(client)
        try await eventually("the warning") { !warnings.all.isEmpty }
        expect(warnings.all[0].contains("This server wants a token."))
        stream.close()
        await client.close()
    }

    @Test
    func `A network that the program has switched off is not reported`() async throws {
        let server = try FakeServer { _ in .hold }
        let client = try client(server.address)
        client.switchNetwork(false)
        let offline = Atomic(0)
        let stream = client.makeWatchStream(in: database) { output in
            if case .offline = output { offline.add(1, ordering: .relaxed) }
        }
        stream.add(1, .documents(["\(database.documentsRoot)/c/d"]))
        // The waits between the attempts add up to more than the notice would take.
        try await eventually("some attempts") { offline.load(ordering: .relaxed) >= 8 }
        expect(warnings.all.isEmpty)
        stream.close()
        await client.close()
    }
}
