package import Basics

/// Reads the records of a LevelDB log, one after the other. Memory is bounded by a part of the file and a record.
///
/// The first damage ends the reading: what follows it cannot be trusted.
package struct LevelDBLogReader {
    /// Returns up to so many bytes of the log from an offset on; fewer at its end alone.
    package typealias Source = (_ offset: Int, _ count: Int) throws(LogDamage) -> [UInt8]

    /// The offset after the last record, at which another reader may begin.
    package private(set) var offset: Int

    private let source: Source
    /// Whole blocks, the last one perhaps in part.
    private var part: [UInt8] = []
    private var partOffset: Int
    private var isAtEnd = false

    private static let partBytes = 32 * LogFragment.blockBytes

    /// - Parameter offset: 0, or the ``offset`` of an earlier reader.
    package init(from offset: Int = 0, source: @escaping Source) {
        self.offset = offset
        self.source = source
        partOffset = offset - offset % LogFragment.blockBytes
    }

    /// Appends the next record to `output`.
    ///
    /// - Returns: false after the last record.
    /// - Throws: the damage; `output` may then have a part of the record.
    package mutating func next(into output: inout ByteBuffer) throws(LogDamage) -> Bool {
        let start = output.count
        var position = offset
        var isInside = false
        while true {
            guard let fragment = try fragment(at: &position, isInside: isInside) else { return false }
            if fragment.kind.beginsRecord == isInside { throw LogDamage(.order, offset: position) }
            if output.count - start + fragment.data.count > LogFragment.recordBytesMax {
                throw LogDamage(.recordTooLong, offset: offset)
            }
            output.append(part.byteSpan.extracting(fragment.data))
            isInside = true
            position = partOffset + fragment.data.upperBound
            if fragment.kind.endsRecord { break }
        }
        offset = position
        return true
    }

    /// Reads and checks the fragment at a position, or at the start of the next block.
    ///
    /// - Returns: where its data is in `part`; nil at the end of the log between two records.
    private mutating func fragment(
        at position: inout Int, isInside: Bool
    ) throws(LogDamage) -> (kind: LogFragment.Kind, data: Range<Int>)? {
        let room = LogFragment.blockBytes - position % LogFragment.blockBytes
        if room < LogFragment.headerBytes { position += room }
        try fill(for: position)
        let start = position - partOffset
        if start >= part.count {
            if isInside { throw LogDamage(.truncated, offset: part.count + partOffset) }
            return nil
        }
        guard part.count - start >= LogFragment.headerBytes else { throw LogDamage(.truncated, offset: position) }
        let header = part.byteSpan.extracting(start..<(start + LogFragment.headerBytes))
        let length = Int(header[byteAt: 4]) | Int(header[byteAt: 5]) << 8
        let blockRoom = LogFragment.blockBytes - position % LogFragment.blockBytes - LogFragment.headerBytes
        guard length <= blockRoom else { throw LogDamage(.length, offset: position) }
        let data = (start + LogFragment.headerBytes)..<(start + LogFragment.headerBytes + length)
        guard data.upperBound <= part.count else { throw LogDamage(.truncated, offset: position) }
        let type = header[byteAt: 6]
        var stored: UInt32 = 0
        for index in (0..<4).reversed() { stored = stored << 8 | UInt32(header[byteAt: index]) }
        guard stored == CRC32C.masked(CRC32C.checksum(type, part.byteSpan.extracting(data))) else {
            throw LogDamage(.checksum, offset: position)
        }
        guard let kind = LogFragment.Kind(rawValue: type) else { throw LogDamage(.kind(type), offset: position) }
        return (kind, data)
    }

    /// Makes `part` begin at the block of a position, if that is after its end.
    private mutating func fill(for position: Int) throws(LogDamage) {
        while position >= partOffset + part.count, !isAtEnd {
            partOffset = position - position % LogFragment.blockBytes
            part = try source(partOffset, Self.partBytes)
            isAtEnd = part.count < Self.partBytes
        }
    }
}
