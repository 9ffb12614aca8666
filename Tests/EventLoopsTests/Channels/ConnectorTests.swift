// Hosts with several addresses, of which some do not answer.

import Basics
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct ConnectorTests {
    /// A socket that listens.
    private final class Server: Sendable {
        let descriptor: Int32
        let port: UInt16

        init() throws {
            let address = try #require(ResolvedAddress(numericHost: "127.0.0.1", port: 0))
            (descriptor, port) = try SocketAddress.listen(on: address, port: 0, sharesPort: false, backlog: 0)
        }

        deinit { close(descriptor) }

        var address: ResolvedAddress {
            get throws { try #require(ResolvedAddress(numericHost: "127.0.0.1", port: port)) }
        }

        /// Takes the next connection, and closes it.
        ///
        /// - Returns: whether there was one.
        func accept() -> Bool {
            let connection = Glibc.accept(descriptor, nil, nil)
            if connection >= 0 { close(connection) }
            return connection >= 0
        }
    }

    /// A server whose queue of connections is full: the system answers no further one, as if a packet were lost.
    private final class SilentServer {
        let server: Server
        private var clients: [Int32] = []

        init() throws {
            server = try Server()
            // The queue holds one more than its limit.
            for _ in 0..<2 {
                let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                _ = try server.address.withSockaddr { Glibc.connect(client, $0, $1) }
                clients.append(client)
            }
        }

        deinit { for client in clients { close(client) } }
    }

    /// What a connector has reported. It has a separate loop.
    private final class Attempt: Sendable {
        /// The time after which a client gives up. The system tries an address for two minutes.
        private static let patienceMilliseconds: UInt64 = 30_000
        private let loop = EventLoop()
        private let results = Mutex<[String]>([])
        var all: [String] { results.withLock { $0 } }

        init(_ addresses: [ResolvedAddress]) {
            loop.start()
            loop.execute { [self] in
                let connector = Connector(host: "test", port: 1, loop: loop, limits: ChannelLimits()) { [self] result in
                    switch result {
                    case .success(let channel):
                        channel.close(.finished)
                        results.withLock { $0.append("connected") }
                    case .failure(let error): results.withLock { $0.append(error.reason) }
                    }
                }
                connector.connect(to: addresses)
                loop.schedule(afterMilliseconds: Self.patienceMilliseconds) { [self] in
                    connector.cancel()
                    results.withLock { $0.append("gave up") }
                }
            }
        }

        func end() { loop.stop() }
    }

    /// An address that refuses connections.
    private static func refusing() throws -> ResolvedAddress { try Server().address }

    @Test func `An address that does not answer does not hold up the next one`() async throws {
        let (silent, live) = (try SilentServer(), try Server())
        let attempt = Attempt([try silent.server.address, try Self.refusing(), try live.address])
        try await eventually("it is connected") { !attempt.all.isEmpty }
        expect(attempt.all == ["connected"] && live.accept())
        attempt.end()
    }

    @Test func `An address that refuses gives way to the next one, and the last error is reported`() async throws {
        let live = try Server()
        let success = Attempt([try Self.refusing(), try Self.refusing(), try live.address])
        let failure = Attempt([try Self.refusing(), try Self.refusing()])
        let none = Attempt([])
        for attempt in [success, failure, none] {
            try await eventually("it has ended") { !attempt.all.isEmpty }
            attempt.end()
        }
        expect(success.all == ["connected"] && live.accept())
        expectEqual(failure.all, ["connection refused"])
        expectEqual(none.all.count, 1)
    }
}
