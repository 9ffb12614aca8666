/// Checks UTF-8, fast for ASCII, which most strings are.
@safe @usableFromInline package enum UTF8Validation {
    /// Whether the bytes are well-formed UTF-8 (Unicode table 3-7: no overlong forms, no surrogates, at most U+10FFFF).
    @inlinable
    package static func isValid(_ bytes: RawSpan) -> Bool {
        unsafe bytes.withUnsafeBytes { buffer in
            guard let start = buffer.baseAddress else { return true }
            // The pointers bound the span's own bytes.
            return unsafe isValid(start, end: start + buffer.count)
        }
    }

    /// Whether the bytes from `start` up to `end` are well-formed UTF-8. Both must bound one allocation.
    @unsafe
    @inlinable @inline(__always)
    static func isValid(_ start: UnsafeRawPointer, end: UnsafeRawPointer) -> Bool {
        var at = unsafe start
        let highBits: UInt64 = 0x8080_8080_8080_8080
        while unsafe end - at >= 32 {
            let first = unsafe at.loadUnaligned(as: UInt64.self) | at.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            let last =
                unsafe at.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
                | at.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
            if (first | last) & highBits != 0 { return unsafe isValidSlow(at, end: end) }
            unsafe at += 32
        }
        while unsafe end - at >= 8 {
            if unsafe at.loadUnaligned(as: UInt64.self) & highBits != 0 {
                return unsafe isValidSlow(at, end: end)
            }
            unsafe at += 8
        }
        while unsafe at < end {
            if unsafe at.load(as: UInt8.self) >= 0x80 { return unsafe isValidSlow(at, end: end) }
            unsafe at += 1
        }
        return true
    }

    @unsafe
    @inline(never) @usableFromInline
    static func isValidSlow(_ start: UnsafeRawPointer, end: UnsafeRawPointer) -> Bool {
        var at = unsafe start
        while unsafe at < end {
            let lead = unsafe at.load(as: UInt8.self)
            if lead < 0x80 {
                unsafe at += 1
                continue
            }
            let available = unsafe end - at
            // The range of the second byte excludes overlong forms, surrogates and what is above U+10FFFF.
            let length: Int
            var second: ClosedRange<UInt8> = 0x80...0xbf
            switch lead {
            case 0xc2...0xdf: length = 2
            case 0xe0...0xef:
                length = 3
                if lead == 0xe0 { second = 0xa0...0xbf }
                if lead == 0xed { second = 0x80...0x9f }
            case 0xf0...0xf4:
                length = 4
                if lead == 0xf0 { second = 0x90...0xbf }
                if lead == 0xf4 { second = 0x80...0x8f }
            default: return false
            }
            if available < length { return false }
            if unsafe !second.contains((at + 1).load(as: UInt8.self)) { return false }
            for offset in 2..<max(2, length) {
                if unsafe (at + offset).load(as: UInt8.self) & 0xc0 != 0x80 { return false }
            }
            unsafe at += length
        }
        return true
    }
}
