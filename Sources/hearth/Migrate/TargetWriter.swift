import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// Writes documents to the target of a migration, in commits of bounded size, one after the other.
///
/// A commit that was begun is completed also if its task is cancelled, so that what is counted as written is.
struct TargetWriter {
    private let client: HearthClient
    private let patience: Patience
    private var writes: CommitWrites
    private var names: [String] = []
    private(set) var count = 0

    private static let writesMax = 500
    private static let bytesMax = 2 << 20

    init(_ client: HearthClient, _ database: DatabaseName, _ patience: Patience) {
        self.client = client
        self.patience = patience
        writes = CommitWrites(database: database)
    }

    mutating func set(_ name: String, fields: [UInt8]) async throws {
        writes.set(name, fields: fields)
        try await added(name)
    }

    mutating func delete(_ name: String) async throws {
        writes.delete(name)
        try await added(name)
    }

    private mutating func added(_ name: String) async throws {
        names.append(name)
        count += 1
        if writes.count >= Self.writesMax || writes.bytes.count >= Self.bytesMax { try await flush() }
    }

    /// Returns when all that was added is durable.
    mutating func flush() async throws {
        if writes.isEmpty { return }
        let (client, patience, writes, names) = (client, patience, writes, names)
        try await Task {
            do {
                try await patience.call { _ = try await client.commit(writes) }
            } catch let error as RequestError where error.code == .invalidArgument {
                // Something in it is refused: each write is sent separately to find it.
                let response = try await client.batchWrite(writes)
                for (name, status) in zip(names, response.statuses) where status.code != .ok {
                    throw CommandFailure("the target refuses \(name): \(status.message)")
                }
            }
        }.value
        self.writes.removeAll()
        self.names.removeAll(keepingCapacity: true)
    }
}
