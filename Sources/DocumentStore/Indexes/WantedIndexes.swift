// Which indexes would have made the queries cheaper that were run.

package import DocumentModel
internal import Synchronization

/// A bounded table of indexes that queries lacked, by database. Lost when the process ends. Thread-safe.
package final class WantedIndexes: Sendable {
    /// An index that is not declared.
    package struct Entry: Equatable, Sendable {
        /// The entry of `firestore.indexes.json`.
        package let json: String
        /// Queries that would have used it.
        package var queries = 0
        /// Documents that these queries read.
        package var documents = 0
    }

    private struct Key: Hashable {
        let database: DatabaseName
        let json: String
    }

    /// Entries of all databases. When the table is full, the entry with the fewest documents gives way.
    package static let entriesMax = 1_000
    /// Bytes of an entry; longer ones are not kept.
    package static let entryBytesMax = 4_096

    private let entries = Mutex<[Key: Entry]>([:])

    package init() {}

    /// Notes a query that has run.
    /// - Parameters:
    ///   - json: the index that it lacked, as `firestore.indexes.json` writes it.
    ///   - documents: those that it read.
    package func note(_ json: String, in database: DatabaseName, documents: Int) {
        guard json.utf8.count <= Self.entryBytesMax else { return }
        let key = Key(database: database, json: json)
        entries.withLock { entries in
            if entries[key] == nil, entries.count >= Self.entriesMax,
                let least = entries.min(by: { $0.value.documents < $1.value.documents })
            {
                entries[least.key] = nil
            }
            entries[key, default: Entry(json: json)].queries += 1
            entries[key]?.documents += documents
        }
    }

    /// The entries of a database, those of the most documents first.
    package func all(in database: DatabaseName) -> [Entry] {
        entries.withLock { entries in entries.filter { $0.key.database == database }.map(\.value) }
            .sorted { ($1.documents, $1.queries, $0.json) < ($0.documents, $0.queries, $1.json) }
    }
}
