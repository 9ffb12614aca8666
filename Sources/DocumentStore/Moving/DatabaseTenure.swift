// The right of a store to a database, which moves give and take.
//
//     source    owned ──► released                       writes and reads end; the copy is deleted later
//     target    receiving ──► owned                      nothing is read or written before
//                   └──────► discarded                   the move was given up; what was received is deleted
//
// It is a record of the log (kind 7) and a separate key, so every server of the store has it, and a crash does not
// change it. Each move has a generation, above those of all moves of the database before. A step that is repeated with
// the same generation changes nothing, and one of a lower generation is refused. The right of a database that has left
// a store is never forgotten: a caller with an old table must not create the database there again.
//
//     | state, 1 | generation, 8 | version, 8 | create time, 8 | target length | target | progress |
//
// Numbers are little-endian, the length is a varint.

internal import Basics
internal import DocumentModel
internal import Storage

/// What a store knows of its right to a database.
package struct DatabaseTenure: Equatable, Sendable {
    package enum State: UInt8, Sendable {
        /// The store never had it.
        case absent = 0
        /// The store has it.
        case owned = 1
        /// The store is given its documents; every call is refused.
        case receiving = 2
        /// Another store has it; every call is refused, until it is received again.
        case released = 3
        /// What the store had received is deleted, or is being deleted; every call is refused, until it is received
        /// again.
        case discarded = 4
    }

    package internal(set) var state: State
    /// Of the move that has made the state; 0 if there was none.
    package internal(set) var generation: UInt64 = 0
    /// Of the commit that has made the state, in microseconds. Owned: reads below it are refused.
    package internal(set) var version: UInt64 = 0
    /// When the database came into being in the first store that had it, in microseconds; 0 if it was here.
    var createMicroseconds: UInt64 = 0
    /// Released: the store that gets it.
    package internal(set) var target = ""
    /// Receiving: up to where the source's documents are here, in the words of the source; empty at first.
    package internal(set) var progress: [UInt8] = []
    /// Released or discarded: documents may still be here. Not stored.
    package internal(set) var isCopyLeft = false

    init(_ state: State, generation: UInt64 = 0) {
        self.state = state
        self.generation = generation
    }

    /// The right to a database of which something is known.
    init(_ entry: DatabaseDirectory.Entry) {
        self = entry.tenure ?? DatabaseTenure(entry.isStored ? .owned : .absent)
        isCopyLeft = entry.isElsewhere && entry.hasCopy
    }

    /// - Returns: the version from which on reads are possible.
    /// - Throws: see `DatabaseDirectory.number(of:at:)`.
    func checkRead(at version: UInt64, of name: DatabaseName) throws(RequestError) -> UInt64 {
        switch state {
        case .absent: return 0
        case .owned:
            if version < self.version { throw .snapshotTooOld }
            return self.version
        case .released:
            // What was read before stays readable, as far as the retention reaches.
            if version >= self.version { throw .databaseIsElsewhere(name) }
            return 0
        case .receiving, .discarded: throw .databaseIsElsewhere(name)
        }
    }
}

extension DatabaseTenure: DatabaseRecordContents {
    static var recordKind: UInt8 { LogRecord.tenureKind }

    init?(_ bytes: RawSpan) {
        var reader = WireReader(bytes)
        guard bytes.byteCount > 25, let state = State(rawValue: bytes[byteAt: 0]), state != .absent else { return nil }
        self.state = state
        reader.position = 1
        guard let generation = try? reader.fixed64(), let version = try? reader.fixed64(),
            let created = try? reader.fixed64(), let target = try? reader.lengthDelimited()
        else { return nil }
        (self.generation, self.version, createMicroseconds) = (generation, version, created)
        self.target = String(repairingUTF8: target)
        progress = [UInt8](copying: bytes.extracting(reader.position..<bytes.byteCount))
    }

    func append(to writer: inout ByteBuffer) {
        writer.append(byte: state.rawValue)
        writer.append(littleEndian: generation)
        writer.append(littleEndian: version)
        writer.append(littleEndian: createMicroseconds)
        writer.appendVarint(UInt64(target.utf8.count))
        writer.append(utf8: target)
        writer.append(progress)
    }
}
