// The changes of one event, which the engine applies as one commit.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage

/// Puts and deletes, with the log record from which the engine derives them again after a crash.
///
///     record:  | kind, 1 | key length, varint | key | value length, varint | value |  for each;  kind 0 deletes
struct LocalDraft: ~Copyable {
    private(set) var mutations = MutationBatch()
    private(set) var record = ByteBuffer(capacity: 1 << 12)

    var isEmpty: Bool { mutations.isEmpty }

    mutating func put(_ key: [UInt8], _ value: [UInt8]) { put(key.byteSpan, value.byteSpan) }

    mutating func delete(_ key: [UInt8]) { delete(key.byteSpan) }

    private mutating func put(_ key: RawSpan, _ value: RawSpan) {
        mutations.put(key: key, value: value)
        record.append(byte: 1)
        append(key)
        append(value)
    }

    private mutating func delete(_ key: RawSpan) {
        mutations.delete(key: key)
        record.append(byte: 0)
        append(key)
    }

    private mutating func append(_ bytes: RawSpan) {
        record.appendVarint(UInt64(bytes.byteCount))
        record.append(bytes)
    }

    mutating func removeAll() {
        mutations.removeAll()
        record.reset(keeping: 1 << 20)
    }

    /// Derives the mutations of a record.
    static func replay(_ record: RawSpan, into mutations: inout MutationBatch) throws(InvalidDocument) {
        var reader = WireReader(record)
        while !reader.isAtEnd {
            let isPut = try reader.varint() != 0
            let key = try reader.lengthDelimited()
            guard key.byteCount > 0, key.byteCount <= EngineLimits.keyBytesMax else {
                throw InvalidDocument(.invalidTag, offset: reader.position)
            }
            if isPut {
                mutations.put(key: key, value: try reader.lengthDelimited())
            } else {
                mutations.delete(key: key)
            }
        }
    }
}

/// The index entries that change with a document, in order. Some are put that are there already, and the same one may
/// be put twice.
struct LocalEntryChanges: IndexEntrySink {
    /// The value is nil for entries that are removed.
    private(set) var all: [(key: [UInt8], value: [UInt8]?)] = []

    mutating func put(entry key: RawSpan) { all.append(([UInt8](copying: key), [])) }
    mutating func remove(entry key: RawSpan) { all.append(([UInt8](copying: key), nil)) }
    mutating func put(entry key: RawSpan, value: RawSpan) {
        all.append(([UInt8](copying: key), [UInt8](copying: value)))
    }
}
