// Replies of the server to pending batches.

package import DocumentModel

/// What the server has replied to a batch.
package struct BatchReply: Sendable {
    package enum Outcome: Sendable {
        /// The server has committed the batch.
        ///
        /// - results: one for each write of the batch.
        /// - commitMicroseconds: the time of the commit, since 1970.
        case acknowledged(results: [WriteResult], commitMicroseconds: UInt64)
        /// The server has refused the batch: its changes are undone.
        case rejected
    }

    package let number: UInt64
    package let outcome: Outcome

    /// - Parameter number: the number of the batch.
    package init(_ number: UInt64, _ outcome: Outcome) {
        self.number = number
        self.outcome = outcome
    }
}

/// What follows from replies of the server.
package struct SettledBatches: Sendable {
    /// How many replies were taken, from the first on.
    package internal(set) var replyCount = 0
    /// What has changed for the program, each document once.
    package internal(set) var changes: [LocalChange] = []
    /// The full names of the documents that the server has changed.
    package internal(set) var acknowledgedNames: [String] = []
}

/// A document with the batches that leave its queue.
struct SettledDocument {
    let path: [UInt8]
    var batches: [(LocalBatch, BatchReply.Outcome)] = []

    var isAcknowledged: Bool {
        batches.contains { if case .acknowledged = $0.1 { true } else { false } }
    }
}

/// The documents of several batches, in the order of their first batches.
struct SettledDocuments {
    private(set) var all: [SettledDocument] = []
    private var indexes: [[UInt8]: Int] = [:]

    mutating func append(_ batch: LocalBatch, _ outcome: BatchReply.Outcome, at path: [UInt8]) {
        if let index = indexes[path] {
            all[index].batches.append((batch, outcome))
        } else {
            indexes[path] = all.count
            all.append(SettledDocument(path: path, batches: [(batch, outcome)]))
        }
    }
}
