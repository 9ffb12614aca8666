// The entries of documents in indexes for searches.

internal import Basics
internal import DocumentModel
package import Storage
package import StorageEngines
internal import StoreFormat
package import TextAnalysis

/// Derives entries and statistics. Belongs to one thread.
package struct SearchDerivation: ~Copyable {
    private let findLibraries: @Sendable () -> TextLibraries
    private var analyzers: [TextLanguage: TextAnalyzer] = [:]
    private var statistics = SearchStatistics()
    private var key = ByteBuffer(capacity: 512)
    private var value = ByteBuffer(capacity: 256)

    /// - Parameter libraries: called when there is an index for searches.
    package init(libraries: @escaping @Sendable () -> TextLibraries) { findLibraries = libraries }

    /// The libraries of this machine; the first use loads them.
    package var libraries: TextLibraries { findLibraries() }

    /// Brings the entries of a document up to date in all indexes of its collection that are kept.
    ///
    /// - Parameters:
    ///   - indexes: those of the document's collection, of all kinds.
    ///   - old: the fields that the document had; empty if it was not there.
    ///   - new: the fields that it has; empty if it goes.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ indexes: [DeclaredIndex], _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink, latest: LatestReader
    ) throws(StorageError) {
        for index in indexes where index.state.isKept && index.shape.search != nil {
            // The build comes to this document later.
            if index.state.phase == .building, document.key.compareBytes(index.state.position.byteSpan) >= 0 {
                continue
            }
            try derive(index, document, from: old, to: new, into: &sink, latest: latest)
        }
    }

    /// The same for one index.
    package mutating func derive<Sink: IndexEntrySink & ~Copyable>(
        _ index: DeclaredIndex, _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink, latest: LatestReader
    ) throws(StorageError) {
        guard let change = entries(index, document, from: old, to: new, into: &sink) else { return }
        SearchKey.begin(.statistics, of: index, collection: document.collection, into: &key)
        try statistics.add(change, to: key.copyBytes(), latest: latest)
    }

    /// Brings the entries of a document in one index up to date.
    /// - Returns: what it changes about the statistics; nil for nothing.
    package mutating func entries<Sink: IndexEntrySink & ~Copyable>(
        _ index: DeclaredIndex, _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan,
        into sink: inout Sink
    ) -> SearchCounts? {
        // Entries of other versions of the libraries are not kept: the index is about to be made again.
        guard let search = index.shape.search, libraries.version == index.analysis,
            !SearchDerivation.haveSameFields(old, new, search), let analyzer = analyzer(search.language)
        else { return nil }
        let before = DocumentTerms(old, search, analyzer)
        let after = DocumentTerms(new, search, analyzer)
        // In an order that is the same in every process: servers compare what they derive.
        for middle in before.entries.keys.filter({ after.entries[$0] == nil }).sortedByBytes {
            _ = SearchDerivation.write(middle, index, document, into: &key)
            sink.remove(entry: key.bytes)
        }
        for middle in after.entries.keys.filter({ before.entries[$0] != after.entries[$0] }).sortedByBytes {
            let isCut = SearchDerivation.write(middle, index, document, into: &key)
            value.reset()
            value.appendVarint(UInt64(isCut ? document.key.byteCount : 0))
            if isCut { value.append(document.key) }
            value.append(after.entries[middle] ?? [])
            sink.put(entry: key.bytes, value: value.bytes)
        }
        var change = after.counts
        change.add(before.counts, times: -1)
        return change == SearchCounts(fields: search.texts.count) ? nil : change
    }

    /// The key under which the statistics of a document's collection are stored.
    package mutating func statisticsKey(_ index: DeclaredIndex, _ document: borrowing IndexedDocument) -> [UInt8] {
        SearchKey.begin(.statistics, of: index, collection: document.collection, into: &key)
        return key.copyBytes()
    }

    /// - Returns: whether the document's path had to be cut.
    private static func write(
        _ middle: [UInt8], _ index: DeclaredIndex, _ document: borrowing IndexedDocument, into key: inout ByteBuffer
    ) -> Bool {
        SearchKey.begin(.statistics, of: index, collection: document.collection, into: &key)
        // The middle has the kind.
        key.truncate(to: key.count - 1)
        key.append(middle)
        return SearchKey.append(document, isGroup: index.shape.isGroup, to: &key)
    }

    private mutating func analyzer(_ language: TextLanguage) -> TextAnalyzer? {
        if let known = analyzers[language] { return known }
        let analyzer = TextAnalyzer(language)
        analyzers[language] = analyzer
        return analyzer
    }

    /// Whether the fields of the index are the same in two states of a document that exists in both.
    private static func haveSameFields(_ old: RawSpan, _ new: RawSpan, _ search: IndexShape.SearchPart) -> Bool {
        for field in search.texts + search.points {
            let before = DocumentBytes.value(at: field, in: old)
            let after = DocumentBytes.value(at: field, in: new)
            if let before, let after {
                if !before.equalsBytes(after) { return false }
            } else if before != nil || after != nil {
                return false
            }
        }
        return true
    }

    // MARK: One commit

    /// Puts the statistics that the commit being made has changed.
    package mutating func writeChanges(into batch: inout MutationBatch) { statistics.writeChanges(into: &batch) }

    /// The commit is staged.
    package mutating func keepCommit() { statistics.keepCommit() }

    /// The commit came to nothing.
    package mutating func rollBackCommit() { statistics.rollBackCommit() }

    /// An index was dropped.
    package mutating func forgetDropped() { statistics.forget() }
}

extension [[UInt8]] {
    /// In the order of the bytes.
    var sortedByBytes: [[UInt8]] { sorted { $0.byteSpan.compareBytes($1.byteSpan) < 0 } }
}
