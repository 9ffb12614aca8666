// Files of the system's time zones, in the format TZif (RFC 9636). Numbers are big-endian.
//
//     header, block of 32-bit times, header, block of 64-bit times, newline, rule, newline
//     header: "TZif", version, 15 bytes, counts: UTC flags, standard flags, leap seconds, times, types, name bytes
//     block:  times, a type for each, types (offset: 4, saving: 1, name: 1), names, leap seconds, flags

/// The offsets of a time zone from UTC.
struct ZoneFile: Sendable {
    /// When the offset changes, in seconds since 1970, ascending.
    private let times: [Int64]
    /// The offset from each of the times on, in seconds east of UTC.
    private let offsets: [Int]
    /// The offset before the first time.
    private let initialOffset: Int
    /// What holds after the last time; nil for its offset.
    private let rule: ZoneRule?

    /// Bytes of a file; real ones have less than 4 KiB.
    static let bytesMax = 64 << 10

    /// Reads a file; nil for bytes that are not one.
    init?(_ bytes: [UInt8]) {
        guard let old = ZoneHeader(bytes[...]), old.version >= UInt8(ascii: "2") else { return nil }
        let skipped = bytes.dropFirst(ZoneHeader.byteCount + old.blockBytes(timeBytes: 4))
        guard let header = ZoneHeader(skipped) else { return nil }
        let block = skipped.dropFirst(ZoneHeader.byteCount)
        let size = header.blockBytes(timeBytes: 8)
        guard block.count >= size, header.types > 0 else { return nil }
        let indexes = block.dropFirst(8 * header.times).prefix(header.times)
        let types = block.dropFirst(9 * header.times)
        let known = (0..<header.types).map { Int(Int32(truncatingIfNeeded: types.number(at: 6 * $0, bytes: 4))) }
        guard indexes.allSatisfy({ Int($0) < header.types }) else { return nil }
        times = (0..<header.times).map { block.number(at: 8 * $0, bytes: 8) }
        offsets = indexes.map { known[Int($0)] }
        initialOffset = known[0]
        guard zip(times, times.dropFirst()).allSatisfy({ $0 < $1 }) else { return nil }
        let footer = block.dropFirst(size).dropFirst()
        rule = ZoneRule(footer.prefix { $0 != UInt8(ascii: "\n") })
    }

    /// A zone with one offset, in seconds east of UTC.
    init(offset: Int) {
        times = []
        offsets = []
        initialOffset = offset
        rule = nil
    }

    /// Seconds east of UTC at a time in seconds since 1970.
    func offset(at time: Int64) -> Int {
        let after = times.partitioningIndex { $0 > time }
        if after == times.count, let rule { return rule.offset(at: time) }
        return after == 0 ? initialOffset : offsets[after - 1]
    }

    /// The time at which local clocks show a time: the first one if they show it twice. If they leave it out, the time
    /// that the clock would show it without the change.
    func time(ofLocal local: Int64) -> Int64 {
        let before = local - Int64(offset(at: local - 86_400))
        let after = local - Int64(offset(at: local + 86_400))
        for candidate in [min(before, after), max(before, after)]
        where candidate + Int64(offset(at: candidate)) == local { return candidate }
        return before
    }
}

/// The counts at the head of a block.
private struct ZoneHeader {
    static let byteCount = 44

    let version: UInt8
    let times: Int
    let types: Int
    private let rest: Int
    private let leapSeconds: Int

    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count >= Self.byteCount, bytes.prefix(4).elementsEqual("TZif".utf8) else { return nil }
        version = bytes[bytes.startIndex + 4]
        let counts = (0..<6).map { Int(bytes.number(at: 20 + 4 * $0, bytes: 4)) }
        guard counts.allSatisfy({ $0 <= ZoneFile.bytesMax }) else { return nil }
        (leapSeconds, times, types) = (counts[2], counts[3], counts[4])
        rest = counts[0] + counts[1] + counts[5]
    }

    func blockBytes(timeBytes: Int) -> Int {
        times * (timeBytes + 1) + types * 6 + leapSeconds * (timeBytes + 4) + rest
    }
}

extension ArraySlice<UInt8> {
    /// A big-endian number at an offset; bytes beyond the end count as 0.
    fileprivate func number(at offset: Int, bytes: Int) -> Int64 {
        var result: Int64 = 0
        for index in (startIndex + offset)..<(startIndex + offset + bytes) {
            result = result << 8 | Int64(index < endIndex ? self[index] : 0)
        }
        return result
    }
}
