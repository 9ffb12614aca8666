import Basics

/// The elements of a JSON array as lines: one element a line, in order. It finds where elements end, and does not judge
/// what they are. Memory is bounded by a buffer.
final class ArrayLines: InputBytes {
    private let source: any InputBytes
    private let path: String
    private var place = Place.before
    /// Open brackets in the element.
    private var depth = 0
    private var isInString = false
    private var isEscaped = false
    /// Elements that have begun.
    private var count = 0

    private enum Place {
        case before
        /// Before the first element or the end.
        case first
        /// After a comma.
        case next
        case inside
        case after
    }

    init(_ source: any InputBytes, path: String) {
        self.source = source
        self.path = path
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        let start = bytes.count
        var part: [UInt8] = []
        while bytes.count == start {
            part.removeAll(keepingCapacity: true)
            guard try source.read(into: &part, atMost: count) else {
                if place != .after { throw CommandFailure("\(path): the JSON array has no end") }
                return false
            }
            var offset = 0
            while offset < part.count {
                let end = plainEnd(part, from: offset)
                bytes.append(contentsOf: part.byteSpan.extracting(offset..<end))
                if end < part.count { try take(part[end], &bytes) }
                offset = end + 1
            }
        }
        return true
    }

    /// Bytes that begin, end or separate something in a string, and in a value.
    private static let marksInStrings = ByteSet("\"\\".utf8)
    private static let marksInside = ByteSet("\"{}[],\r\n".utf8)

    /// The end of the bytes from an offset on that are taken as they are, whatever follows them.
    private func plainEnd(_ part: [UInt8], from offset: Int) -> Int {
        if place != .inside || isEscaped { return offset }
        let marks = isInString ? Self.marksInStrings : Self.marksInside
        return part.byteSpan.firstOffset(in: marks, from: offset) ?? part.count
    }

    private func take(_ byte: UInt8, _ output: inout [UInt8]) throws(CommandFailure) {
        if place == .inside, isInString { return takeInString(byte, &output) }
        let isSpace = byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
        switch place {
        // There may be a byte order mark.
        case .before: if byte == UInt8(ascii: "[") { place = .first }
        case .first where isSpace, .next where isSpace, .after where isSpace: break
        case .after: throw CommandFailure("\(path): there is more after the JSON array")
        case .first where byte == UInt8(ascii: "]"): place = .after
        case .first, .next:
            count += 1
            // A line that begins with # would be a comment.
            if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "#") {
                throw CommandFailure("\(path):\(count): expected a value")
            }
            place = .inside
            takeInside(byte, &output)
        case .inside: takeInside(byte, &output)
        }
    }

    private func takeInString(_ byte: UInt8, _ output: inout [UInt8]) {
        output.append(byte)
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
        }
    }

    private func takeInside(_ byte: UInt8, _ output: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "]") where depth == 0:
            place = .after
            return output.append(0x0A)
        case UInt8(ascii: ",") where depth == 0:
            place = .next
            return output.append(0x0A)
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth = max(depth - 1, 0)
        // A line has one element. The bytes beside the line feed may be parts of two numbers.
        case 0x0A, 0x0D: return output.append(0x20)
        default: break
        }
        output.append(byte)
    }
}
