// A client's documents as a source of the server's queries.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import QueryEngine
internal import Storage
internal import StorageEngines

/// The newest state of a client's store, without transactions. Keep it for one call.
struct LocalSource: QuerySource, ~Copyable {
    let latest: LatestReader
    /// The indexes of the store.
    let groups: [[UInt8]: LocalIndexes.Group]
    let indexUsage: (any IndexUsage)?

    var database: UInt32 { LocalKey.database }
    var versionMicroseconds: UInt64 { .max }
    var hasCatalogue: Bool { false }

    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
    ) throws(RequestError) -> LocalCursor {
        do throws(StorageError) {
            return LocalCursor(
                try latest.cursor(from: lower, to: upper, direction: direction == .ascending ? .forward : .backward))
        } catch {
            throw RequestError(error)
        }
    }

    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue? {
        let stored: StoredValue?
        do throws(StorageError) { stored = try latest.value(forKey: key) } catch { throw RequestError(error) }
        guard let stored else { return nil }
        guard key[byteAt: 0] == LocalSpace.documents else { return SourceValue(stored.bytes, versionMicroseconds: 0) }
        guard let offset = LocalRecord.recordOffset(in: stored.bytes) else { throw .damagedDocument }
        return SourceValue(
            stored.bytes.extracting(offset..<stored.bytes.byteCount),
            versionMicroseconds: LocalRecord.updateMicroseconds(in: stored.bytes))
    }
}

extension LocalSource {
    borrowing func indexedFields(of collection: RawSpan) -> IndexedFields {
        if groups.isEmpty { return .none }
        return groups[[UInt8](copying: RelativePath.lastSegment(collection))]?.ready ?? .none
    }
}

/// A cursor over entries of a client's store.
struct LocalCursor: RangeCursor, ~Copyable, ~Escapable {
    private var cursor: EngineCursor

    @_lifetime(copy cursor)
    init(_ cursor: consuming EngineCursor) { self.cursor = cursor }

    @_lifetime(self: copy self)
    mutating func next() throws(RequestError) -> Bool {
        do throws(StorageError) { return try cursor.next() } catch { throw RequestError(error) }
    }

    @_lifetime(self: copy self)
    mutating func seek(to key: RawSpan) throws(RequestError) {
        do throws(StorageError) { try cursor.seek(to: key) } catch { throw RequestError(error) }
    }

    var key: RawSpan { @_lifetime(borrow self) borrowing get { cursor.key } }

    /// The value; of a document the record, empty if the entry is damaged, which the operators report.
    var value: RawSpan {
        @_lifetime(borrow self)
        borrowing get {
            let value = cursor.value
            if cursor.key[byteAt: 0] != LocalSpace.documents { return value }
            return value.extracting((LocalRecord.recordOffset(in: value) ?? value.byteCount)..<value.byteCount)
        }
    }

    var versionMicroseconds: UInt64 {
        cursor.key[byteAt: 0] == LocalSpace.documents ? LocalRecord.updateMicroseconds(in: cursor.value) : 0
    }
}
