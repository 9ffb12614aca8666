// The value of a document's key.
//
//     | flags, 1 | create time, 8 | update time, 8 | path length, varint | path | fields ... |
//                  if bit 0         if bit 2         if bit 1
//
// Mostly the update time is not there: it is the version of the entry itself. A document that was never changed since
// it was created, which most are, has that as create time too and needs one byte of header. One that was copied from
// another store has the times that it had there. The full relative path is kept where the key holds only a part of it.

package import Basics
import DocumentModel

/// The header of a stored document.
package enum StoredRecord {
    static let createTimeFlag: UInt8 = 1
    static let pathFlag: UInt8 = 2
    static let updateTimeFlag: UInt8 = 4

    /// Writes the header that goes before the fields into an empty writer.
    ///
    /// - Parameters:
    ///   - createMicroseconds: nil when the document is created by this very commit.
    ///   - updateMicroseconds: of a document that was copied from another store, with its create time; nil for all
    ///     others.
    ///   - path: the full relative path; written only when the key is cut.
    package static func writeHeader(
        createMicroseconds: UInt64?, updateMicroseconds: UInt64? = nil, path: RawSpan, isCut: Bool,
        into writer: inout ByteBuffer
    ) {
        precondition(updateMicroseconds == nil || createMicroseconds != nil, "an update time follows a create time")
        writer.reset()
        writer.append(
            byte: (createMicroseconds == nil ? 0 : createTimeFlag) | (isCut ? pathFlag : 0)
                | (updateMicroseconds == nil ? 0 : updateTimeFlag))
        if let createMicroseconds { writer.append(littleEndian: createMicroseconds) }
        if let updateMicroseconds { writer.append(littleEndian: updateMicroseconds) }
        if isCut {
            writer.appendVarint(UInt64(path.byteCount))
            writer.append(path)
        }
    }
}

/// A stored document taken apart in place.
package struct StoredRecordView: ~Escapable {
    /// Microseconds since 1970, as the next.
    package let createMicroseconds: UInt64
    /// The version of the commit that wrote the record, in this store or in the one that it was copied from.
    package let updateMicroseconds: UInt64
    /// The full relative path, if the key does not hold it; else empty.
    package let path: RawSpan
    /// The canonical `fields` entries of the `Document` message.
    package let fields: RawSpan

    /// Reads the value of a document key; nil when they are not a record.
    @_lifetime(copy bytes)
    package init?(_ bytes: RawSpan, versionMicroseconds: UInt64) {
        guard bytes.byteCount > 0 else { return nil }
        let flags = bytes[byteAt: 0]
        guard
            flags <= StoredRecord.createTimeFlag | StoredRecord.pathFlag | StoredRecord.updateTimeFlag
        else { return nil }
        var (created, updated) = (versionMicroseconds, versionMicroseconds)
        var offset = 1
        if flags & StoredRecord.createTimeFlag != 0 {
            guard bytes.byteCount >= 9 else { return nil }
            // In bounds by the check above.
            created = bytes.littleEndian64(at: 1)
            offset = 9
        }
        if flags & StoredRecord.updateTimeFlag != 0 {
            guard offset == 9, bytes.byteCount >= 17 else { return nil }
            // In bounds by the check above.
            updated = bytes.littleEndian64(at: 9)
            offset = 17
        }
        createMicroseconds = created
        updateMicroseconds = updated
        if flags & StoredRecord.pathFlag == 0 {
            path = bytes.extracting(0..<0)
            fields = bytes.extracting(offset..<bytes.byteCount)
            return
        }
        var reader = WireReader(bytes)
        reader.position = offset
        guard let path = try? reader.lengthDelimited() else { return nil }
        self.path = path
        fields = bytes.extracting(reader.position..<bytes.byteCount)
    }
}
