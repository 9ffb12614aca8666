package import Basics

/// Writes the records of a LevelDB log, one after the other.
package struct LevelDBLogWriter {
    /// Bytes of the log so far.
    package private(set) var byteCount = 0

    package init() {}

    /// Appends a record.
    ///
    /// - Parameter output: takes the bytes that follow those of the records before.
    package mutating func append(_ record: RawSpan, to output: inout ByteBuffer) {
        var start = 0
        // Not by the start: a header that just fits into a block is a first fragment without data.
        var isFirst = true
        repeat {
            var room = LogFragment.blockBytes - byteCount % LogFragment.blockBytes
            if room < LogFragment.headerBytes {
                for _ in 0..<room { output.append(byte: 0) }
                byteCount += room
                room = LogFragment.blockBytes
            }
            let end = min(record.byteCount, start + room - LogFragment.headerBytes)
            let kind: LogFragment.Kind =
                switch (isFirst, end == record.byteCount) {
                case (true, true): .full
                case (true, false): .first
                case (false, false): .middle
                case (false, true): .last
                }
            let data = record.extracting(start..<end)
            output.append(littleEndian: CRC32C.masked(CRC32C.checksum(kind.rawValue, data)))
            output.append(littleEndian: UInt16(data.byteCount))
            output.append(byte: kind.rawValue)
            output.append(data)
            byteCount += LogFragment.headerBytes + data.byteCount
            start = end
            isFirst = false
        } while start < record.byteCount
    }
}
