// Records of commits that no client asks for.
//
//     clock       | kind 2 |
//     index       | kind 3 | from length | from | to length | to | state |
//     definition  | kind 4 | from length | from | to length | to | definition | definition | ...
//                      definition  | key length | key | dropped?, 1 | value length | value |
//     sessions    | kind 5 | session, 16 | session, 16 | ...
//     database    | kind 6 | number, 4 | settings                    see `DatabaseSettings`
//     tenure      | kind 7 | number, 4 | tenure                      see `DatabaseTenure`
//
// `from` and `to` are the range of keys that a step of an index build covers, both empty if the record is not a step.
// `state` is the `IndexState` after the step. Definitions are keys and values as they are stored after the commit;
// the step builds or clears the first of them. Lengths are varints; a session is two little-endian words.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage

/// The range of keys with which the records of index builds begin, and what follows it.
private struct StepRange: ~Escapable {
    let from: RawSpan
    let to: RawSpan
    let rest: WireReader

    @_lifetime(copy record)
    init(_ record: RawSpan) throws(StorageError) {
        var reader = WireReader(record)
        reader.position = 1
        do throws(InvalidDocument) {
            from = try reader.lengthDelimited()
            to = try reader.lengthDelimited()
            rest = reader
        } catch {
            throw StorageError(LogRecord.Malformed(offset: error.offset))
        }
    }

    /// Begins a record with its kind and range.
    static func write(_ kind: UInt8, from: [UInt8], to: [UInt8], into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: kind)
        writer.append(counted: from.byteSpan)
        writer.append(counted: to.byteSpan)
    }
}

/// A record of kind `indexKind`, in place.
struct IndexStepRecord: ~Escapable {
    let from: RawSpan
    let to: RawSpan
    let state: RawSpan

    /// Reads a record whose kind is `indexKind`.
    @_lifetime(copy record)
    init(_ record: RawSpan) throws(StorageError) {
        let range = try StepRange(record)
        from = range.from
        to = range.to
        state = record.extracting(range.rest.position..<record.byteCount)
    }

    static func write(from: [UInt8], to: [UInt8], state: borrowing IndexState, into writer: inout ByteBuffer) {
        StepRange.write(LogRecord.indexKind, from: from, to: to, into: &writer)
        state.append(to: &writer)
    }
}

/// A record of kind `definitionKind`, in place.
struct DefinitionRecord: ~Escapable {
    let from: RawSpan
    let to: RawSpan
    private var reader: WireReader

    /// Reads a record whose kind is `definitionKind`.
    @_lifetime(copy record)
    init(_ record: RawSpan) throws(StorageError) {
        let range = try StepRange(record)
        from = range.from
        to = range.to
        reader = range.rest
    }

    /// The next definition, or nil at the end.
    @_lifetime(self: copy self)
    mutating func next() throws(StorageError) -> IndexDefinition? {
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
            throw StorageError(LogRecord.Malformed(offset: error.offset))
        }
    }

    static func write(
        from: [UInt8], to: [UInt8], _ definitions: [IndexDefinition], into writer: inout ByteBuffer
    ) {
        var key = ByteBuffer(capacity: 64)
        var value = ByteBuffer(capacity: 128)
        StepRange.write(LogRecord.definitionKind, from: from, to: to, into: &writer)
        for definition in definitions {
            definition.write(key: &key, value: &value)
            writer.append(counted: key.bytes)
            writer.append(byte: definition.isDropped ? 1 : 0)
            writer.append(counted: value.bytes)
        }
    }
}

/// A record of kind `sessionsKind`.
enum SessionsRecord {
    static func write(_ sessions: [SessionTable.SessionName], into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: LogRecord.sessionsKind)
        for session in sessions {
            writer.append(littleEndian: session.high)
            writer.append(littleEndian: session.low)
        }
    }

    /// Reads a record whose kind is `sessionsKind`.
    static func read(_ record: RawSpan) throws(StorageError) -> [SessionTable.SessionName] {
        var reader = WireReader(record)
        reader.position = 1
        var sessions: [SessionTable.SessionName] = []
        do throws(InvalidDocument) {
            while !reader.isAtEnd {
                sessions.append(SessionTable.SessionName(high: try reader.fixed64(), low: try reader.fixed64()))
            }
            return sessions
        } catch {
            throw StorageError(LogRecord.Malformed(offset: error.offset))
        }
    }
}

extension StorageError {
    /// A log record that cannot be read.
    init(_ malformed: LogRecord.Malformed) {
        self.init(.corrupt, malformed.description)
    }
}
