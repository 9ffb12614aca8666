// What the log says of one commit: its outcome, from which all its keys are derived.
//
//     | kind, 1 | database, varint | name length, varint | name | item | item | ...
//                                    0: the database is not new
//
//     item    | created  1 | path length | path | fields length | fields |
//             | updated  2 | path length | path | create time, 8 | fields length | fields |
//             | deleted  3 | path length | path |
//             | answer   5 | session, 16 | sequence | oldest pending | slot | length | encoded result |
//             | copied   6 | path length | path | create time, 8 | update time, 8 | fields length | fields |
//             | copied   7 | the same, in place of a document that was there
//
// Kind 4 is an answer without a slot, of builds before 2026-12. The slot is in the record because the choice depends on
// what a server has seen of a session since it started.
//
// Copied documents come from another store, whose times they keep (`Moving/`).
//
// Records of other kinds, which no client asks for, are in `SystemRecords.swift`.
//
// Lengths and numbers are varints; times and the session are fixed-size, little-endian. Documents are logged once and
// whole. Their keys and headers, catalogue counts, index entries and remembered results follow from the record:
// `CommitApplier` derives them, from a commit that has just been decided and from a record read at recovery alike.
// Whether a document existed before is logged too, so that recovery does not need to look.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StoreFormat

/// Constants of the log record.
enum LogRecord {
    /// A commit or batch.
    static let commitKind: UInt8 = 1
    /// Nothing but its version: keeps versions above the read times handed out while nobody wrote.
    static let clockKind: UInt8 = 2
    /// A step of building or clearing the automatic indexes.
    static let indexKind: UInt8 = 3
    /// Definitions of declared indexes and field overrides, and a step of building the first of them.
    static let definitionKind: UInt8 = 4
    /// Sessions whose remembered results are deleted.
    static let sessionsKind: UInt8 = 5
    /// The settings of a database.
    static let databaseKind: UInt8 = 6
    /// The right of the store to a database.
    static let tenureKind: UInt8 = 7

    /// What an item says.
    enum ItemKind: UInt8 {
        case created = 1
        case updated = 2
        case deleted = 3
        case answer = 4
        case answerInSlot = 5
        case copied = 6
        case copiedAgain = 7

        /// Whether a document is there that was not there before.
        var addsDocument: Bool { self == .created || self == .copied }
        /// Whether the document comes from another store.
        var isCopy: Bool { self == .copied || self == .copiedAgain }
    }

    /// The first byte of a record.
    static func kind(of record: RawSpan) -> UInt8? { record.byteCount > 0 ? record[byteAt: 0] : nil }

    /// The record could not be read: it is corrupt, or of a later version of this program.
    struct Malformed: Error, CustomStringConvertible {
        var offset: Int
        var description: String { "a log record is malformed at byte \(offset)" }
    }
}

extension ByteBuffer {
    /// Appends bytes after their count, a varint.
    mutating func append(counted bytes: RawSpan) {
        appendVarint(UInt64(bytes.byteCount))
        append(bytes)
    }
}

/// Writes one record: a commit's item by item, or a whole one of another kind.
struct LogRecordWriter: ~Copyable {
    private var buffer = ByteBuffer(capacity: 4096)
    /// Items in the record so far.
    private(set) var itemCount = 0

    /// Memory kept for the next record; a giant one's is given back.
    private static let keptBytes = 8 << 20

    var bytes: RawSpan { @_lifetime(borrow self) borrowing get { buffer.bytes } }

    /// Starts a commit's record, forgetting the last one.
    mutating func begin(database: UInt32, newDatabaseName: DatabaseName?) {
        buffer.reset(keeping: LogRecordWriter.keptBytes)
        itemCount = 0
        buffer.append(byte: LogRecord.commitKind)
        buffer.appendVarint(UInt64(database))
        buffer.appendVarint(UInt64(newDatabaseName?.utf8.count ?? 0))
        if let newDatabaseName { buffer.append(newDatabaseName.utf8) }
    }

    mutating func append(_ item: borrowing LogItem) {
        itemCount += 1
        buffer.append(byte: item.kind.rawValue)
        if let identifier = item.identifier {
            buffer.append(littleEndian: identifier.sessionHigh)
            buffer.append(littleEndian: identifier.sessionLow)
            buffer.appendVarint(identifier.sequence)
            buffer.appendVarint(identifier.oldestPending)
            if let slot = item.slot { buffer.appendVarint(UInt64(slot)) }
        } else {
            buffer.append(counted: item.path)
            if item.kind == .deleted { return }
            if item.kind != .created { buffer.append(littleEndian: item.createMicroseconds) }
            if item.kind.isCopy { buffer.append(littleEndian: item.updateMicroseconds) }
        }
        buffer.append(counted: item.payload)
    }

    /// Replaces the record by one of another kind, which `body` writes.
    mutating func replace<Output, Failure: Error>(
        _ body: (inout ByteBuffer) throws(Failure) -> Output
    ) throws(Failure) -> Output {
        buffer.reset(keeping: LogRecordWriter.keptBytes)
        itemCount = 0
        return try body(&buffer)
    }
}

/// One item of a record, in place.
struct LogItem: ~Escapable {
    let kind: LogRecord.ItemKind
    /// The document's relative path; empty for an answer.
    let path: RawSpan
    /// The document's fields, or the encoded result of an answer.
    let payload: RawSpan
    /// When an updated or copied document was created.
    let createMicroseconds: UInt64
    /// When a copied document was changed last.
    let updateMicroseconds: UInt64
    /// The request that an answer is for; nil for documents.
    let identifier: RequestIdentifier?
    /// The slot of the session that the answer takes; nil for documents, and for answers of kind 4.
    let slot: UInt32?

    @_lifetime(copy path, copy payload)
    init(
        _ kind: LogRecord.ItemKind, path: RawSpan, payload: RawSpan, createMicroseconds: UInt64 = 0,
        updateMicroseconds: UInt64 = 0, identifier: RequestIdentifier? = nil, slot: UInt32? = nil
    ) {
        self.kind = kind
        self.path = path
        self.payload = payload
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.identifier = identifier
        self.slot = slot
    }

    /// A document that is created (`isNew`) or updated.
    @_lifetime(copy path, copy fields)
    init(put path: RawSpan, fields: RawSpan, createMicroseconds: UInt64, isNew: Bool) {
        self.init(isNew ? .created : .updated, path: path, payload: fields, createMicroseconds: createMicroseconds)
    }

    /// A document that is copied from another store.
    /// - Parameter isNew: whether none was there before.
    @_lifetime(copy path, copy fields)
    init(copy path: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, isNew: Bool) {
        self.init(
            isNew ? .copied : .copiedAgain, path: path, payload: fields, createMicroseconds: createMicroseconds,
            updateMicroseconds: updateMicroseconds)
    }

    @_lifetime(copy path)
    init(deleted path: RawSpan) {
        self.init(.deleted, path: path, payload: path.extracting(0..<0))
    }
}

extension LogItem {
    /// Writes the header of the stored document into an empty writer.
    ///
    /// - Parameters:
    ///   - version: of the commit.
    ///   - isCut: see `DocumentKey.Parts`.
    func writeHeader(at version: CommitVersion, isCut: Bool, into writer: inout ByteBuffer) {
        let isNew = kind == .created || !kind.isCopy && createMicroseconds == version.microseconds
        StoredRecord.writeHeader(
            createMicroseconds: isNew ? nil : createMicroseconds,
            updateMicroseconds: kind.isCopy ? updateMicroseconds : nil, path: path, isCut: isCut, into: &writer)
    }
}

/// Reads a commit's record, item by item.
struct LogRecordReader: ~Escapable {
    let database: UInt32
    /// Empty unless the record brings the database into being.
    let newDatabaseName: RawSpan
    private var reader: WireReader

    @_lifetime(copy record)
    init(_ record: RawSpan) throws(LogRecord.Malformed) {
        reader = WireReader(record)
        do throws(InvalidDocument) {
            guard record.byteCount > 0 else { throw InvalidDocument(.truncated, offset: 0) }
            reader.position = 1
            guard record[byteAt: 0] == LogRecord.commitKind, let number = UInt32(exactly: try reader.varint()) else {
                throw InvalidDocument(.invalidTag, offset: 0)
            }
            database = number
            newDatabaseName = try reader.lengthDelimited()
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }

    /// The next item, or nil at the end.
    @_lifetime(copy self)
    mutating func next() throws(LogRecord.Malformed) -> LogItem? {
        if reader.isAtEnd { return nil }
        do throws(InvalidDocument) {
            let start = reader.position
            guard let kind = LogRecord.ItemKind(rawValue: reader.bytes[byteAt: start]) else {
                throw InvalidDocument(.invalidTag, offset: start)
            }
            reader.position = start + 1
            let nothing = reader.bytes.extracting(0..<0)
            switch kind {
            case .created:
                let path = try documentPath()
                return LogItem(kind, path: path, payload: try reader.lengthDelimited())
            case .updated:
                let path = try documentPath()
                let created = try reader.fixed64()
                return LogItem(kind, path: path, payload: try reader.lengthDelimited(), createMicroseconds: created)
            case .copied, .copiedAgain:
                let path = try documentPath()
                let created = try reader.fixed64()
                let updated = try reader.fixed64()
                return LogItem(
                    kind, path: path, payload: try reader.lengthDelimited(), createMicroseconds: created,
                    updateMicroseconds: updated)
            case .deleted:
                return LogItem(kind, path: try documentPath(), payload: nothing)
            case .answer, .answerInSlot:
                let high = try reader.fixed64()
                let low = try reader.fixed64()
                let sequence = try reader.varint()
                let oldest = try reader.varint()
                let identifier = RequestIdentifier(
                    sessionHigh: high, sessionLow: low, sequence: sequence, oldestPending: oldest)
                let slot = kind == .answerInSlot ? try UInt32(exactly: reader.varint()) : nil
                if kind == .answerInSlot, slot == nil { throw InvalidDocument(.invalidTag, offset: start) }
                return LogItem(
                    kind, path: nothing, payload: try reader.lengthDelimited(), identifier: identifier, slot: slot)
            }
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }

    /// Reads a document's path, which has at least two segments.
    @_lifetime(copy self)
    private mutating func documentPath() throws(InvalidDocument) -> RawSpan {
        let start = reader.position
        let path = try reader.lengthDelimited()
        guard path.firstOffset(of: UInt8(ascii: "/")) ?? 0 > 0 else { throw InvalidDocument(.truncated, offset: start) }
        return path
    }
}
