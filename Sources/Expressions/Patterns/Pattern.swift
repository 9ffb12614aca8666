// Regular expressions.

internal import Basics
internal import CRE2

/// A regular expression in the syntax of RE2: linear time in the text, bounded memory, no look-around.
///
/// Thread-safe. Named groups may be written `(?<name>…)` as well as `(?P<name>…)`. `\C` is refused, since it matches
/// single bytes of a character.
@safe package final class Pattern: Sendable {
    // Owner: this object, from init to deinit. RE2 allows concurrent matches.
    private nonisolated(unsafe) let compiled: OpaquePointer
    /// Instructions of the compiled program.
    let instructionCount: Int
    /// What the search of one byte may cost; see ``searchCost(_:)``.
    private let byteCost: Int
    /// How far a search may look beyond the end of a match; nil for as far as the text goes.
    private let lookAhead: Int?

    /// Bytes that the program of a pattern and the caches of its matches may take.
    package static let memoryMax: Int64 = 1 << 20
    /// Bytes of the text of a pattern.
    package static let sourceBytesMax = 64 << 10

    /// Compiles a pattern; nil if it is not valid or too large.
    package convenience init?(_ source: String) {
        var isTooLarge = false
        self.init(source, &isTooLarge)
    }

    /// - Parameter isTooLarge: is set if that is why there is no pattern.
    init?(_ source: String, _ isTooLarge: inout Bool) {
        guard source.utf8.count <= Pattern.sourceBytesMax, var text = PatternSyntax.translated(source) else {
            return nil
        }
        let compiled = text.withUTF8 { bytes in
            // The bytes are only read during the call.
            unsafe bytes.withMemoryRebound(to: CChar.self) {
                unsafe cre2_compile($0.baseAddress, $0.count, Pattern.memoryMax, &isTooLarge)
            }
        }
        guard let compiled = unsafe compiled else { return nil }
        unsafe self.compiled = compiled
        instructionCount = max(1, Int(unsafe cre2_program_size(compiled)))
        byteCost = min(8 * instructionCount, Pattern.byteCostMax)
        // Only these characters repeat a part of a pattern.
        lookAhead = source.utf8.contains { "*+{".utf8.contains($0) } ? nil : source.utf8.count
    }

    deinit { unsafe cre2_delete(compiled) }

    /// What a search of so many bytes may cost, in bytes that could be copied meanwhile.
    ///
    /// Most searches take a step for each byte. A pattern such as `.*a.{900}x` with a text that is made for it takes a
    /// step for each instruction of its program and each byte. A pattern of many classes of characters has many
    /// instructions, few of which are tried for one byte: hence the maximum.
    package func searchCost(_ byteCount: Int) -> Int { byteCount * byteCost }

    /// The same for what a search reads again that begins after a match, with so many bytes left of a text that was
    /// paid for once: `a(.*x)?` looks for an x in all of them.
    package func furtherSearchCost(_ byteCount: Int) -> Int { min(byteCount, lookAhead ?? byteCount) * byteCost / 8 }

    private static let byteCostMax = 16 << 10

    /// The number of capturing groups, without the whole match.
    package var groupCount: Int { Int(unsafe cre2_group_count(compiled)) }

    /// The number of the group with a name, or nil.
    package func group(named name: String) -> Int? {
        var name = name
        let number = name.withUTF8 { bytes in
            // The bytes are only read during the call.
            unsafe bytes.withMemoryRebound(to: CChar.self) {
                unsafe cre2_group_named(compiled, $0.baseAddress, $0.count)
            }
        }
        return number < 0 ? nil : Int(number)
    }

    /// Whether the whole text matches.
    package func matchesWhole(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            // The bytes are only read during the call.
            unsafe bytes.withMemoryRebound(to: CChar.self) {
                unsafe cre2_matches_whole(compiled, $0.baseAddress, $0.count)
            }
        }
    }

    /// The first match at or after an offset: the ranges of the whole match and of each group, in UTF-8 bytes; nil for
    /// a
    /// group that took no part.
    package func firstMatch(in text: String, from start: Int = 0) -> [Range<Int>?]? {
        var text = text
        let count = groupCount + 1
        return text.withUTF8 { bytes -> [Range<Int>?]? in
            guard start >= 0, start <= bytes.count else { return nil }
            return unsafe withUnsafeTemporaryAllocation(of: Int64.self, capacity: 2 * count) { spans in
                // The spans have room for two offsets of each group; the bytes are only read during the call.
                let isFound = unsafe bytes.withMemoryRebound(to: CChar.self) {
                    unsafe cre2_find(compiled, $0.baseAddress, $0.count, start, spans.baseAddress, Int32(count))
                }
                guard isFound else { return nil }
                return (0..<count).map { index in
                    let (lower, upper) = unsafe (spans[2 * index], spans[2 * index + 1])
                    return lower < 0 ? nil : Int(lower)..<Int(upper)
                }
            }
        }
    }

    /// Calls `body` with every match from the start on, none overlapping another, as in ``firstMatch(in:from:)``. After
    /// an empty match the search continues one character later.
    package func forEachMatch<Failure: Error>(
        in text: String, _ body: ([Range<Int>?]) throws(Failure) -> Void
    ) throws(Failure) {
        let utf8 = Array(text.utf8)
        var start = 0
        while start <= utf8.count, let match = firstMatch(in: text, from: start), let whole = match[0] {
            try body(match)
            start = whole.upperBound
            if whole.isEmpty {
                start += 1
                while start < utf8.count, utf8[start] & 0xC0 == 0x80 { start += 1 }
            }
        }
    }
}

/// The differences between the syntax of patterns in Firestore and that of RE2.
enum PatternSyntax {
    /// The pattern as RE2 reads it; nil if it uses what Firestore does not have.
    static func translated(_ source: String) -> String? {
        let bytes = Array(source.utf8)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 8)
        var at = 0
        var isInClass = false
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\\"), at + 1 < bytes.count {
                let escaped = bytes[at + 1]
                if escaped == UInt8(ascii: "C"), !isInClass { return nil }
                output += [byte, escaped]
                at += 2
                if escaped == UInt8(ascii: "Q"), !isInClass { copyQuoted(bytes, &at, to: &output) }
                continue
            }
            if !isInClass, byte == UInt8(ascii: "["), isNamedGroup(bytes, at: at) == false {
                isInClass = true
                output.append(byte)
                at += 1
                // A bracket that comes first in a class is a member of it.
                if at < bytes.count, bytes[at] == UInt8(ascii: "^") {
                    output.append(bytes[at])
                    at += 1
                }
                if at < bytes.count, bytes[at] == UInt8(ascii: "]") {
                    output.append(bytes[at])
                    at += 1
                }
                continue
            }
            if isInClass, byte == UInt8(ascii: "]") { isInClass = false }
            if !isInClass, isNamedGroup(bytes, at: at) {
                output += Array("(?P".utf8)
                at += 2
                continue
            }
            output.append(byte)
            at += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Whether there is `(?<` at an offset.
    private static func isNamedGroup(_ bytes: [UInt8], at: Int) -> Bool {
        bytes[at...].starts(with: "(?<".utf8)
    }

    /// Copies literal text up to `\E`.
    private static func copyQuoted(_ bytes: [UInt8], _ at: inout Int, to output: inout [UInt8]) {
        while at < bytes.count, !bytes[at...].starts(with: "\\E".utf8) {
            output.append(bytes[at])
            at += 1
        }
    }
}
