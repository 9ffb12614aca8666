// Clients of the servers that lead stores: one for each server, however many stores are followed there.

import HearthClient
import Synchronization

/// Thread-safe. The streams of all stores that a server leads share a connection and a thread; a stream that is not
/// read does not hold up the others.
final class LeaderClients: Sendable {
    private struct Entry {
        let client: HearthClient
        /// Streams that use it.
        var count: Int
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// The client of a server, to be given back with ``release(_:)``.
    /// - Parameter configuration: of a client that is made.
    func take(
        _ address: String, _ configuration: (String) throws -> HearthClient.Configuration
    ) throws -> HearthClient {
        try entries.withLock { entries in
            let client = try entries[address]?.client ?? HearthClient(configuration(address))
            entries[address] = Entry(client: client, count: (entries[address]?.count ?? 0) + 1)
            return client
        }
    }

    /// A stream does not use the client of a server any more. The last one closes it.
    func release(_ address: String) async {
        let last = entries.withLock { entries -> HearthClient? in
            guard let entry = entries[address] else { return nil }
            entries[address] = entry.count > 1 ? Entry(client: entry.client, count: entry.count - 1) : nil
            return entry.count > 1 ? nil : entry.client
        }
        await last?.close()
    }
}
