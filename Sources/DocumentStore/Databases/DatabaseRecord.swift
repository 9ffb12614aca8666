internal import Basics
internal import Storage

/// What the log and the store keep about one database.
protocol DatabaseRecordContents {
    /// Of the records that have it.
    static var recordKind: UInt8 { get }

    /// Reads what ``append(to:)`` wrote; nil if it is something else.
    init?(_ bytes: RawSpan)

    func append(to writer: inout ByteBuffer)
}

/// A record about one database: `| kind | number, 4 | contents |`.
struct DatabaseRecord<Contents: DatabaseRecordContents> {
    let number: UInt32
    let contents: Contents

    init(number: UInt32, _ contents: Contents) {
        self.number = number
        self.contents = contents
    }

    /// Reads a record of the kind of the contents.
    init(_ record: RawSpan) throws(StorageError) {
        guard record.byteCount > 5, let contents = Contents(record.extracting(5..<record.byteCount)) else {
            throw StorageError(LogRecord.Malformed(offset: 0))
        }
        // In bounds by the check above.
        number = record.littleEndian32(at: 1)
        self.contents = contents
    }

    func write(into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: Contents.recordKind)
        writer.append(littleEndian: number)
        contents.append(to: &writer)
    }
}
