// The text of a ruleset and places in it.

/// A half-open range of UTF-8 offsets in the text.
package struct SourceRange: Hashable, Sendable {
    package var start: Int32
    package var end: Int32

    package init(_ start: Int, _ end: Int) {
        self.start = Int32(start)
        self.end = Int32(end)
    }

    /// The range from the start of this one to the end of another.
    func to(_ other: SourceRange) -> SourceRange { SourceRange(Int(start), Int(other.end)) }
}

/// A line and a column, both from 1. Columns count Unicode scalars.
package struct SourcePosition: Hashable, Sendable {
    package let line: Int
    package let column: Int
}

/// The text of a ruleset.
package struct SourceText: Sendable {
    let bytes: [UInt8]
    /// The offset at which each line starts.
    private let lineStarts: [Int32]

    /// - Parameter text: at most ``RulesLimits/sourceBytes`` bytes, which the caller checks.
    package init(_ text: String) {
        let bytes = Array(text.utf8)
        lineStarts = [0] + bytes.indices.filter { bytes[$0] == UInt8(ascii: "\n") }.map { Int32($0) + 1 }
        self.bytes = bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The part of the text in a range.
    package func text(in range: SourceRange) -> String {
        String(decoding: bytes[Int(range.start)..<Int(range.end)], as: UTF8.self)
    }

    /// Where an offset lies.
    package func position(of offset: Int32) -> SourcePosition {
        let line = lineIndex(of: offset)
        let before = bytes[Int(lineStarts[line])..<min(Int(offset), bytes.count)]
        return SourcePosition(line: line + 1, column: before.count { $0 & 0xC0 != 0x80 } + 1)
    }

    /// The text of the line with a number, from 1, without its end.
    package func line(_ number: Int) -> String {
        let start = Int(lineStarts[number - 1])
        let end = number < lineStarts.count ? Int(lineStarts[number]) - 1 : bytes.count
        return String(decoding: bytes[start..<max(start, end)], as: UTF8.self)
    }

    private func lineIndex(of offset: Int32) -> Int {
        var low = 0
        var high = lineStarts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if lineStarts[middle] <= offset { low = middle } else { high = middle }
        }
        return low
    }
}
