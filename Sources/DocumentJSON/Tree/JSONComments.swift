/// Comments in JSON, which the Firebase CLI skips in its files: `// …` to the end of the line, and `/* … */`.
package enum JSONComments {
    /// The text with spaces in place of its comments and of a byte order mark: every other byte keeps its place.
    package static func blanked(_ text: [UInt8]) -> [UInt8] {
        var result = text
        var position = 0
        while position < text.count {
            let rest = text[position...]
            guard let end = end(of: rest) else {
                position += 1
                continue
            }
            if rest.first != UInt8(ascii: "\"") {
                for place in position..<end { result[place] = UInt8(ascii: " ") }
            }
            position = end
        }
        return result
    }

    /// The place after the string, the comment or the byte order mark with which a text begins; nil if it begins with
    /// something else.
    private static func end(of text: ArraySlice<UInt8>) -> Int? {
        if text.first == UInt8(ascii: "\"") { return endOfString(text) }
        if text.starts(with: "//".utf8) { return text.firstIndex { $0 == 0x0A || $0 == 0x0D } ?? text.endIndex }
        if text.starts(with: "/*".utf8) {
            let ends = zip(text.indices.dropFirst(3), zip(text.dropFirst(2), text.dropFirst(3)))
            return ends.first { $1 == (UInt8(ascii: "*"), UInt8(ascii: "/")) }.map { $0.0 + 1 } ?? text.endIndex
        }
        return text.startIndex == 0 && text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : nil
    }

    private static func endOfString(_ text: ArraySlice<UInt8>) -> Int {
        var isEscaped = false
        for place in text.indices.dropFirst() {
            if text[place] == UInt8(ascii: "\""), !isEscaped { return place + 1 }
            isEscaped = !isEscaped && text[place] == UInt8(ascii: "\\")
        }
        return text.endIndex
    }
}
