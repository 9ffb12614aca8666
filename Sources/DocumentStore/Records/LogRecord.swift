// What the log promises: the outcome of one commit, from which its keys are derived again after a crash.
//
//     | kind, 1 | database, varint | name length, varint | name | item | item | ...
//                                    0: the database is not new
//
//     item    | created  1 | path length | path | fields length | fields |
//             | updated  2 | path length | path | create time, 8 | fields length | fields |
//             | deleted  3 | path length | path |
//             | answer   4 | session, 16 | sequence | oldest pending | length | encoded result |
//
// A record of kind 3 is one step in the making of indexes: the keys it went over, and the state after it (`IndexState`).
//
//     | kind, 1 | from length | from | to length | to | state |
//
// A record of kind 4 is about declared indexes and overrides of fields: the keys that a step of the first one went over, none if
// there was no step, and definitions as they are afterwards.
//
//     | kind, 1 | from length | from | to length | to | key length | key | dropped?, 1 | value length | value | ...
//
// Lengths and numbers are varints; times and the session are fixed-size, little-endian. Documents are logged once and
// whole; headers, catalogue counts and remembered results follow from them. Whether a document was there before is logged
// too, so that replay need not look.

internal import DocumentModel

/// Constants of the log record.
enum LogRecord {
    /// A commit or batch.
    static let commitKind: UInt8 = 1
    /// Nothing but its version: keeps versions above the read times handed out while nobody wrote.
    static let clockKind: UInt8 = 2
    /// A step in the making of indexes.
    static let indexKind: UInt8 = 3
    /// Definitions of declared indexes, and a step in the making of one.
    static let definitionKind: UInt8 = 4

    /// What an item says.
    enum ItemKind: UInt8 {
        case created = 1
        case updated = 2
        case deleted = 3
        case answer = 4
    }

    /// The record could not be read: it is corrupt, or of a later version of this program.
    struct Malformed: Error, CustomStringConvertible {
        var offset: Int
        var description: String { "a log record is malformed at byte \(offset)" }
    }
}

/// Writes one commit's record, item by item.
struct LogRecordWriter: ~Copyable {
    private var buffer = WireWriter(capacity: 4096)
    /// Items in the record so far.
    private(set) var itemCount = 0
    /// Where the fields or the result of the last item stand in `bytes`.
    private(set) var lastPayload = 0..<0

    /// Memory kept for the next record; a giant one's is given back.
    private static let keptBytes = 8 << 20

    var bytes: RawSpan { @_lifetime(borrow self) borrowing get { buffer.bytes } }

    /// Starts a record, forgetting the last one.
    mutating func begin(database: UInt32, newDatabaseName: DatabaseName?) {
        buffer.reset(keeping: LogRecordWriter.keptBytes)
        itemCount = 0
        buffer.append(byte: LogRecord.commitKind)
        buffer.appendVarint(UInt64(database))
        buffer.appendVarint(UInt64(newDatabaseName?.utf8.count ?? 0))
        if let newDatabaseName { buffer.append(newDatabaseName.utf8) }
    }

    mutating func appendCreated(path: RawSpan, fields: RawSpan) {
        beginItem(.created)
        appendCounted(path)
        appendPayload(fields)
    }

    mutating func appendUpdated(path: RawSpan, createMicroseconds: UInt64, fields: RawSpan) {
        beginItem(.updated)
        appendCounted(path)
        buffer.append(littleEndian: createMicroseconds)
        appendPayload(fields)
    }

    mutating func appendDeleted(path: RawSpan) {
        beginItem(.deleted)
        appendCounted(path)
        lastPayload = 0..<0
    }

    mutating func appendAnswer(to identifier: RequestIdentifier, encodedResult: RawSpan) {
        beginItem(.answer)
        buffer.append(littleEndian: identifier.sessionHigh)
        buffer.append(littleEndian: identifier.sessionLow)
        buffer.appendVarint(identifier.sequence)
        buffer.appendVarint(identifier.oldestPending)
        appendPayload(encodedResult)
    }

    private mutating func beginItem(_ kind: LogRecord.ItemKind) {
        itemCount += 1
        buffer.append(byte: kind.rawValue)
    }

    private mutating func appendCounted(_ bytes: RawSpan) {
        buffer.appendVarint(UInt64(bytes.byteCount))
        buffer.append(bytes)
    }

    private mutating func appendPayload(_ bytes: RawSpan) {
        appendCounted(bytes)
        lastPayload = (buffer.count - bytes.byteCount)..<buffer.count
    }
}

/// A record of kind 3, in place.
struct IndexStepRecord: ~Escapable {
    let from: RawSpan
    let to: RawSpan
    let state: RawSpan

    /// Reads a record whose kind is `indexKind`.
    @_lifetime(copy record)
    init(_ record: RawSpan) throws(LogRecord.Malformed) {
        var reader = WireReader(record)
        reader.position = 1
        do throws(InvalidDocument) {
            from = try reader.lengthDelimited()
            to = try reader.lengthDelimited()
            state = record.extracting(reader.position..<record.byteCount)
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }

    static func write(from: [UInt8], to: [UInt8], state: borrowing IndexState, into writer: inout WireWriter) {
        writer.reset()
        writer.append(byte: LogRecord.indexKind)
        writer.appendVarint(UInt64(from.count))
        writer.append(from)
        writer.appendVarint(UInt64(to.count))
        writer.append(to)
        state.append(to: &writer)
    }
}

/// A record of kind 4, in place.
struct DefinitionRecord: ~Escapable {
    let from: RawSpan
    let to: RawSpan
    private var reader: WireReader

    /// Reads a record whose kind is `definitionKind`.
    @_lifetime(copy record)
    init(_ record: RawSpan) throws(LogRecord.Malformed) {
        reader = WireReader(record)
        reader.position = 1
        do throws(InvalidDocument) {
            from = try reader.lengthDelimited()
            to = try reader.lengthDelimited()
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }

    /// The next definition, or nil at the end.
    @_lifetime(self: copy self)
    mutating func next() throws(LogRecord.Malformed) -> IndexDefinition? {
        if reader.isAtEnd { return nil }
        do throws(InvalidDocument) {
            let key = try reader.lengthDelimited()
            let isDropped = try reader.varint() == 1
            let value = try reader.lengthDelimited()
            guard let definition = IndexDefinition(key: key, value: value, isDropped: isDropped) else {
                throw InvalidDocument(.truncated, offset: reader.position)
            }
            return definition
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }

    static func write(
        from: [UInt8], to: [UInt8], _ definitions: [IndexDefinition], into writer: inout WireWriter
    ) {
        var key = WireWriter(capacity: 64)
        var value = WireWriter(capacity: 128)
        writer.reset()
        writer.append(byte: LogRecord.definitionKind)
        writer.appendVarint(UInt64(from.count))
        writer.append(from)
        writer.appendVarint(UInt64(to.count))
        writer.append(to)
        for definition in definitions {
            definition.write(key: &key, value: &value)
            writer.appendVarint(UInt64(key.count))
            writer.append(key.bytes)
            writer.append(byte: definition.isDropped ? 1 : 0)
            writer.appendVarint(UInt64(value.count))
            writer.append(value.bytes)
        }
    }
}

/// One item of a record, in place.
struct LogItem: ~Escapable {
    let kind: LogRecord.ItemKind
    /// The document's relative path; empty for an answer.
    let path: RawSpan
    /// The document's fields, or the encoded result of an answer.
    let payload: RawSpan
    /// When an updated document was created.
    let createMicroseconds: UInt64
    /// Whom an answer is for.
    let identifier: RequestIdentifier?

    @_lifetime(copy path, copy payload)
    init(
        _ kind: LogRecord.ItemKind, path: RawSpan, payload: RawSpan, createMicroseconds: UInt64 = 0,
        identifier: RequestIdentifier? = nil
    ) {
        self.kind = kind
        self.path = path
        self.payload = payload
        self.createMicroseconds = createMicroseconds
        self.identifier = identifier
    }
}

/// Reads a record, item by item.
struct LogRecordReader: ~Escapable {
    let kind: UInt8
    let database: UInt32
    /// Empty unless the record brings the database into being.
    let newDatabaseName: RawSpan
    private var reader: WireReader

    @_lifetime(copy record)
    init(_ record: RawSpan) throws(LogRecord.Malformed) {
        reader = WireReader(record)
        do throws(InvalidDocument) {
            guard record.byteCount > 0 else { throw InvalidDocument(.truncated, offset: 0) }
            kind = record[byteAt: 0]
            reader.position = 1
            if kind == LogRecord.clockKind || kind == LogRecord.indexKind || kind == LogRecord.definitionKind {
                database = 0
                newDatabaseName = record.extracting(0..<0)
                return
            }
            guard kind == LogRecord.commitKind, let number = UInt32(exactly: try reader.varint()) else {
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
                let path = try reader.lengthDelimited()
                return LogItem(kind, path: path, payload: try reader.lengthDelimited())
            case .updated:
                let path = try reader.lengthDelimited()
                let created = try reader.fixed64()
                return LogItem(kind, path: path, payload: try reader.lengthDelimited(), createMicroseconds: created)
            case .deleted:
                return LogItem(kind, path: try reader.lengthDelimited(), payload: nothing)
            case .answer:
                let high = try reader.fixed64()
                let low = try reader.fixed64()
                let sequence = try reader.varint()
                let oldest = try reader.varint()
                let identifier = RequestIdentifier(
                    sessionHigh: high, sessionLow: low, sequence: sequence, oldestPending: oldest)
                return LogItem(
                    kind, path: nothing, payload: try reader.lengthDelimited(), identifier: identifier)
            }
        } catch {
            throw LogRecord.Malformed(offset: error.offset)
        }
    }
}
