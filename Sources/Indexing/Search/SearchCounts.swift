// How many documents and words an index for searches has: what scores need besides the entries of a word.
//
// Every commit that changes them puts the new numbers with its entries, so each version has its own. While an index is
// built, a commit leaves documents to the build that it has not come to yet; so each document counts once.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines

/// Numbers of an index in one collection, or in a group.
package struct SearchCounts: Sendable, Equatable {
    /// Numbers of a text field.
    package struct Field: Sendable, Equatable {
        /// Documents with a word in the field.
        package var documents: Int64 = 0
        /// Words in the field, in all documents.
        package var words: Int64 = 0

        package init(documents: Int64 = 0, words: Int64 = 0) {
            self.documents = documents
            self.words = words
        }
    }

    /// Documents with a word in any field.
    package var documents: Int64 = 0
    package var fields: [Field]

    package init(fields: Int) { self.fields = [Field](repeating: Field(), count: fields) }

    package mutating func add(_ other: SearchCounts, times factor: Int64 = 1) {
        documents += factor * other.documents
        for index in fields.indices {
            fields[index].documents += factor * other.fields[index].documents
            fields[index].words += factor * other.fields[index].words
        }
    }

    // MARK: Layout

    func append(to writer: inout ByteBuffer) {
        writer.appendVarint(UInt64(clamping: documents))
        for field in fields {
            writer.appendVarint(UInt64(clamping: field.documents))
            writer.appendVarint(UInt64(clamping: field.words))
        }
    }

    /// Reads what `append` wrote; nil when it is something else.
    package init?(_ bytes: RawSpan, fields count: Int) {
        self.init(fields: count)
        var reader = WireReader(bytes)
        guard let documents = try? reader.varint() else { return nil }
        self.documents = Int64(clamping: documents)
        for index in 0..<count {
            guard let documents = try? reader.varint(), let words = try? reader.varint() else { return nil }
            fields[index] = Field(documents: Int64(clamping: documents), words: Int64(clamping: words))
        }
    }
}

/// The numbers of all indexes for searches, as the commit thread keeps them.
struct SearchStatistics {
    /// By the key under which they are stored.
    private var known: [[UInt8]: SearchCounts] = [:]
    /// The numbers before the commit that is being made, of those that it changes.
    private var before: [[UInt8]: SearchCounts] = [:]

    /// Numbers kept in memory between commits.
    private static let knownMax = 4_096

    /// Adds to the numbers of a collection.
    mutating func add(_ change: SearchCounts, to key: [UInt8], latest: LatestReader) throws(StorageError) {
        var counts = SearchCounts(fields: change.fields.count)
        if let known = known[key] {
            counts = known
        } else if let stored = try latest.value(forKey: key.byteSpan) {
            guard let read = SearchCounts(stored.bytes, fields: change.fields.count) else {
                throw StorageError(.corrupt, "the statistics of an index for searches cannot be read")
            }
            counts = read
        }
        if before[key] == nil { before[key] = counts }
        counts.add(change)
        known[key] = counts
    }

    /// Puts what the commit being made has changed.
    mutating func writeChanges(into batch: inout MutationBatch) {
        if before.isEmpty { return }
        var value = ByteBuffer(capacity: 64)
        for key in Array(before.keys).sortedByBytes {
            value.reset()
            known[key]?.append(to: &value)
            batch.put(key: key.byteSpan, value: value.bytes)
        }
    }

    mutating func keepCommit() {
        if before.isEmpty { return }
        before.removeAll(keepingCapacity: true)
        if known.count > Self.knownMax { known.removeAll() }
    }

    mutating func rollBackCommit() {
        for (key, counts) in before { known[key] = counts }
        before.removeAll()
    }

    /// Reads the numbers again when they are needed: an index was dropped, and its number may be given to another.
    mutating func forget() { if before.isEmpty { known.removeAll() } }
}
