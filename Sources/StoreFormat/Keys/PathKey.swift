// Order-preserving bytes of paths, and back.
//
// A segment becomes
//
//     __id<n>__   02 | n as eight bytes, big-endian, sign flipped
//     any other   03 | its bytes, 00 -> 01 01, 01 -> 01 02 | 00
//
// so that bytes sort as ids do (numbers first, then UTF-8 bytes), no segment's bytes begin another's, and a path's
// bytes are a prefix of exactly those of the paths below it. Strings do not end in 00 alone, because ids may contain
// that byte, and "a\0b" must sort after "a". The length does not come first, because "b" would sort before "aa".
//
// What exceeds `KeyLayout.plainBytesMax` is cut there; the cut marker and the SHA-256 of the whole take the rest's
// place. Things cut to the same plain part lie side by side, in no useful order; readers sort them by the full path
// that their records carry. Everything else is in order as it lies.

package import Basics
internal import COpenSSL
internal import DocumentModel

extension ByteBuffer {
    /// Appends one id's segment bytes.
    mutating func appendSegment(_ id: RawSpan) {
        if id.byteCount > 0, id[byteAt: 0] == UInt8(ascii: "_"), let number = ResourceID.numericID(id) {
            append(byte: KeyLayout.numberMarker)
            append(bigEndian: UInt64(bitPattern: number) ^ (1 << 63))
            return
        }
        reserve(id.byteCount + 2)
        append(byte: KeyLayout.stringMarker)
        let start = count
        append(id)
        if let offset = id.firstOffsetToEscape() {
            truncate(to: start + offset)
            appendEscaped(id.extracting(offset..<id.byteCount))
        }
        append(byte: KeyLayout.terminator)
    }

    private mutating func appendEscaped(_ text: RawSpan) {
        for offset in 0..<text.byteCount {
            let byte = text[byteAt: offset]
            if byte <= KeyLayout.escape {
                append(byte: KeyLayout.escape)
                append(byte: byte + 1)
            } else {
                append(byte: byte)
            }
        }
    }

    /// Appends the segments of a relative path, which may be empty. Not cut.
    package mutating func appendPathSegments(_ path: RawSpan) {
        var segments = PathSegments(path)
        while let id = segments.next() { appendSegment(id) }
    }

    /// Cuts everything from `start` on if it is longer than a key's part may be.
    /// - Returns: whether it was.
    @discardableResult
    package mutating func cutKeyPart(from start: Int) -> Bool {
        if count - start <= KeyLayout.plainBytesMax { return false }
        let digest = SHA256Digest(of: bytes.extracting(start..<count))
        truncate(to: start + KeyLayout.plainBytesMax)
        append(byte: KeyLayout.cutMarker)
        digest.append(to: &self)
        return true
    }
}

extension ByteBuffer {
    /// Appends what makes these bytes greater than every key that begins with them.
    package mutating func appendAfterGroup() {
        for _ in 0...KeyLayout.cutTailBytes { append(byte: KeyLayout.afterEverything) }
    }
}

extension RawSpan {
    /// Offset of the first byte that a segment must escape.
    fileprivate func firstOffsetToEscape() -> Int? {
        // A byte below 2 borrows into its high bit, and the lowest such bit is right: only what is above it can be
        // borrowed from.
        let ones: UInt64 = 0x0101_0101_0101_0101
        let limit = UInt64(KeyLayout.escape) + 1
        var offset = 0
        while byteCount - offset >= 8 {
            // In bounds by the comparison.
            let word = UInt64(
                littleEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
            let below = (word &- ones &* limit) & ~word & (ones &<< 7)
            if below != 0 { return offset + below.trailingZeroBitCount / 8 }
            offset += 8
        }
        if byteCount >= 8, offset < byteCount {
            // The last eight bytes, without those seen before; zeros that are shifted in stand above all others.
            let seen = UInt64(8 - (byteCount - offset)) * 8
            let word =
                UInt64(
                    littleEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: byteCount - 8, as: UInt64.self))
                &>> seen
            let below = (word &- ones &* limit) & ~word & (ones &<< 7)
            let found = offset + below.trailingZeroBitCount / 8
            return found < byteCount ? found : nil
        }
        while offset < byteCount {
            if self[byteAt: offset] <= KeyLayout.escape { return offset }
            offset += 1
        }
        return nil
    }
}

/// The SHA-256 of some bytes.
struct SHA256Digest {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    init(of bytes: RawSpan) {
        unsafe withUnsafeMutableBytes(of: &words) { digest in
            unsafe bytes.withUnsafeBytes { source in
                // The digest has the 32 bytes that OpenSSL writes; the source is valid for its count.
                _ = unsafe SHA256(
                    source.baseAddress?.assumingMemoryBound(to: UInt8.self), source.count,
                    digest.baseAddress?.assumingMemoryBound(to: UInt8.self))
            }
        }
    }

    package func append(to writer: inout ByteBuffer) {
        var copy = words
        unsafe withUnsafeBytes(of: &copy) { digest in
            // The copy outlives the closure.
            writer.append(unsafe RawSpan(_unsafeBytes: digest))
        }
    }
}

/// Reading one segment back from a key.
package enum KeySegment {
    /// Appends the id whose segment begins at `offset` of the key, which is one of ours.
    /// - Returns: the offset after the segment, or nil when it does not end within `end`: it was cut.
    static func appendID(of key: RawSpan, at offset: Int, end: Int, to writer: inout ByteBuffer) -> Int? {
        guard offset < end else { return nil }
        if key[byteAt: offset] == KeyLayout.numberMarker {
            guard offset + 9 <= end else { return nil }
            // In bounds by the check above.
            let bits = UInt64(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: offset + 1, as: UInt64.self))
            writer.append(utf8: "__id\(Int64(bitPattern: bits ^ (1 << 63)))__")
            return offset + 9
        }
        guard let stop = endOfString(in: key, from: offset + 1, end: end) else { return nil }
        var from = offset + 1
        while let escape = key.firstOffset(of: KeyLayout.escape, from: from), escape < stop {
            writer.append(key.extracting(from..<escape))
            writer.append(byte: key[byteAt: escape + 1] &- 1)
            from = escape + 2
        }
        writer.append(key.extracting(from..<stop))
        return stop + 1
    }

    /// Where the last of some whole segments begins; nil when they are none.
    package static func last(of segments: RawSpan) -> Int? {
        var last: Int?
        var offset = 0
        while offset < segments.byteCount {
            guard let next = skip(in: segments, at: offset, end: segments.byteCount) else { return nil }
            last = offset
            offset = next
        }
        return last
    }

    /// The offset after the segment at `offset`, or nil when it does not end within `end`.
    static func skip(in key: RawSpan, at offset: Int, end: Int) -> Int? {
        guard offset < end else { return nil }
        if key[byteAt: offset] == KeyLayout.numberMarker { return offset + 9 <= end ? offset + 9 : nil }
        guard let stop = endOfString(in: key, from: offset + 1, end: end) else { return nil }
        return stop + 1
    }

    private static func endOfString(in key: RawSpan, from start: Int, end: Int) -> Int? {
        guard start <= end, let stop = key.firstOffset(of: KeyLayout.terminator, from: start), stop < end else {
            return nil
        }
        return stop
    }
}
