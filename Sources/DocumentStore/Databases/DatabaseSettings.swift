// What is stored about a database that was created, or is being deleted.
//
//     | state, 1 | protected, 1 | update time, 8 | delete time, 8 | location, the rest |
//
// Times are versions in microseconds, little-endian. A database that came into being with its first document has none.

internal import Basics
internal import DocumentModel
internal import Storage

/// The settings of a database.
package struct DatabaseSettings: Equatable, Sendable {
    package enum State: UInt8, Sendable {
        /// It exists, also without documents.
        case created = 1
        /// It is empty for readers, takes no writes, and its documents are being removed.
        case deleting = 2
        /// Nothing of it is left but its name.
        case deleted = 3
    }

    package var state: State
    /// Whether it can only be deleted after this was changed.
    package var isProtected: Bool
    /// The version of the last change, in microseconds.
    package internal(set) var updateMicroseconds: UInt64 = 0
    /// The version with which the deletion began, in microseconds; 0 if it was not deleted.
    package internal(set) var deleteMicroseconds: UInt64 = 0
    /// The location that the client named. It has no effect.
    package var location: String

    package init(state: State, isProtected: Bool = false, location: String = "") {
        self.state = state
        self.isProtected = isProtected
        self.location = location
    }
}

extension DatabaseSettings: DatabaseRecordContents {
    static var recordKind: UInt8 { LogRecord.databaseKind }

    init?(_ bytes: RawSpan) {
        var reader = WireReader(bytes)
        guard bytes.byteCount >= 18, let state = State(rawValue: bytes[byteAt: 0]) else { return nil }
        self.state = state
        isProtected = bytes[byteAt: 1] == 1
        reader.position = 2
        guard let update = try? reader.fixed64(), let deletion = try? reader.fixed64() else { return nil }
        (updateMicroseconds, deleteMicroseconds) = (update, deletion)
        location = String(repairingUTF8: bytes.extracting(reader.position..<bytes.byteCount))
    }

    func append(to writer: inout ByteBuffer) {
        writer.append(byte: state.rawValue)
        writer.append(byte: isProtected ? 1 : 0)
        writer.append(littleEndian: updateMicroseconds)
        writer.append(littleEndian: deleteMicroseconds)
        writer.append(utf8: location)
    }
}
