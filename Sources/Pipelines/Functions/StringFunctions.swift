// Strings. Lengths and positions count Unicode code points, those of bytes count bytes.

internal import Expressions

enum StringFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("string_concat", 1...PipelineFunction.many, .strict(stringConcat)),
        PipelineFunction("concat", 1...PipelineFunction.many, .strict(concat)),
        PipelineFunction("length", 1, .strict(length)),
        PipelineFunction("char_length", 1, .strict(charLength)),
        PipelineFunction("byte_length", 1, .strict(byteLength)),
        PipelineFunction("to_lower", 1, .strict(lower)),
        PipelineFunction("to_upper", 1, .strict(upper)),
        PipelineFunction("trim", 1...2, .strict(trim)),
        PipelineFunction("ltrim", 1...2, .strict(leftTrim)),
        PipelineFunction("rtrim", 1...2, .strict(rightTrim)),
        PipelineFunction("reverse", 1, .strict(reverse)),
        PipelineFunction("string_reverse", 1, .strict(reverseText)),
        PipelineFunction("string_repeat", 2, .strict(repeated)),
        PipelineFunction("substring", 2...3, .strict(substring)),
        PipelineFunction("starts_with", 2, .strict(startsWith)),
        PipelineFunction("ends_with", 2, .strict(endsWith)),
        PipelineFunction("string_contains", 2, .strict(contains)),
        PipelineFunction("string_index_of", 2, .strict(indexOf)),
        PipelineFunction("string_replace_all", 3, .strict(replaceAll)),
        PipelineFunction("string_replace_one", 3, .strict(replaceOne)),
        PipelineFunction("split", 1...2, .strict(split)),
        PipelineFunction("join", 2...3, .strict(join)),
    ]

    // MARK: Lengths

    private static func length(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        switch operands[0] {
        case .string: return try charLength(evaluation, operands)
        case .bytes(let bytes): return .integer(Int64(bytes.count))
        case .list(let elements): return .integer(Int64(elements.count))
        case .map(let map): return .integer(Int64(map.count))
        case .encodedList(let slice):
            try evaluation.spendWork(slice.byteCount)
            return .integer(Int64(slice.elementCount))
        case .encodedMap(let slice):
            try evaluation.spendWork(slice.byteCount)
            return .integer(Int64(slice.entryCount))
        default: throw .mismatch("length", "a string, bytes, an array or a map", operands[0])
        }
    }

    private static func charLength(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .integer(Int64(try text("char_length", operands[0], evaluation).unicodeScalars.count))
    }

    private static func byteLength(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if case .bytes(let bytes) = operands[0] { return .integer(Int64(bytes.count)) }
        return .integer(Int64(try text("byte_length", operands[0], evaluation).utf8.count))
    }

    // MARK: Building

    private static func stringConcat(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        var result = ""
        for operand in operands { result += try text("string_concat", operand, evaluation) }
        return .string(result)
    }

    /// Strings, bytes or arrays, all of the type of the first.
    private static func concat(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        switch operands[0] {
        case .string: return try stringConcat(evaluation, operands)
        case .bytes:
            var result: [UInt8] = []
            for operand in operands {
                guard case .bytes(let bytes) = operand else { throw .mismatch("concat", "values of one type", operand) }
                try evaluation.spendMemory(bytes.count)
                result += bytes
            }
            return .bytes(result)
        default: return try ArrayFunctions.concat(evaluation, operands)
        }
    }

    private static func repeated(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .integer(let count) = operands[1], count >= 0 else {
            throw .mismatch("string_repeat", "a number that is not negative", operands[1])
        }
        let text = try text("string_repeat", operands[0], evaluation)
        let (size, overflow) = Int64(text.utf8.count).multipliedReportingOverflow(by: count)
        guard !overflow, let size = Int(exactly: size) else {
            throw .exhausted("string_repeat: the result is too long")
        }
        try evaluation.spendMemory(size)
        return .string(text.isEmpty ? "" : repeated(text, Int(count)))
    }

    /// Doubles the text: `String(repeating:count:)` appends each copy by itself, which takes 20 ns.
    private static func repeated(_ text: String, _ count: Int) -> String {
        var (whole, power, rest) = ("", text, count)
        while true {
            if !rest.isMultiple(of: 2) { whole += power }
            rest /= 2
            if rest == 0 { return whole }
            power += power
        }
    }

    private static func reverse(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        switch operands[0] {
        case .list, .encodedList: try ArrayFunctions.reverse(evaluation, operands)
        case .string, .bytes: try reverseText(evaluation, operands)
        default: throw .mismatch("reverse", "a string, bytes or an array", operands[0])
        }
    }

    private static func reverseText(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        if case .bytes(let bytes) = operands[0] {
            try evaluation.spendMemory(bytes.count)
            return .bytes(bytes.reversed())
        }
        let bytes = try bytes("string_reverse", operands[0], asBytes: false, evaluation)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var end = bytes.count
        while end > 0 {
            var start = end - 1
            while start > 0, bytes[start] & 0xC0 == 0x80 { start -= 1 }
            result += bytes[start..<end]
            end = start
        }
        return .string(String(decoding: result, as: UTF8.self))
    }

    private static func lower(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .string(try text("to_lower", operands[0], evaluation).lowercased())
    }

    private static func upper(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .string(try text("to_upper", operands[0], evaluation).uppercased())
    }

    // MARK: Ends

    private static func trim(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try trimmed("trim", operands, evaluation, left: true, right: true)
    }

    private static func leftTrim(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try trimmed("ltrim", operands, evaluation, left: true, right: false)
    }

    private static func rightTrim(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try trimmed("rtrim", operands, evaluation, left: false, right: true)
    }

    /// Takes the characters of the second operand off the ends, white space if there is none.
    private static func trimmed(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation, left: Bool, right: Bool
    ) throws(ExpressionError) -> Operand {
        if case .bytes(let bytes) = operands[0] {
            try evaluation.spendMemory(bytes.count)
            return .bytes(trimmed(bytes, of: try removedBytes(name, operands), left: left, right: right))
        }
        var scalars = try text(name, operands[0], evaluation).unicodeScalars[...]
        let removed = try operands.count == 2 ? RemovedScalars(text(name, operands[1], evaluation)) : .whitespace
        if left { scalars = scalars.drop(while: removed.contains) }
        if right { while let last = scalars.last, removed.contains(last) { scalars.removeLast() } }
        return .string(String(Substring(scalars)))
    }

    /// The bytes that are taken off bytes: those of the second operand, or white space of ASCII.
    private static func removedBytes(_ name: String, _ operands: [Operand]) throws(ExpressionError) -> Set<UInt8> {
        guard operands.count == 2 else { return Set(" \t\n\r\u{b}\u{c}".utf8) }
        guard case .bytes(let removed) = operands[1] else { throw .mismatch(name, "bytes with bytes", operands[1]) }
        return Set(removed)
    }

    private static func trimmed(_ bytes: [UInt8], of removed: Set<UInt8>, left: Bool, right: Bool) -> [UInt8] {
        var rest = bytes[...]
        if left { rest = rest.drop(while: removed.contains) }
        if right { while let last = rest.last, removed.contains(last) { rest.removeLast() } }
        return Array(rest)
    }

    private static func startsWith(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let text = try text("starts_with", operands[0], evaluation)
        return .boolean(text.utf8.starts(with: try self.text("starts_with", operands[1], evaluation).utf8))
    }

    private static func endsWith(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let text = try text("ends_with", operands[0], evaluation)
        let end = try self.text("ends_with", operands[1], evaluation)
        return .boolean(text.utf8.suffix(end.utf8.count).elementsEqual(end.utf8))
    }

    /// From a position on, which counts from the end if it is negative; of a length or to the end.
    private static func substring(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .integer(let start) = operands[1] else { throw .mismatch("substring", "a position", operands[1]) }
        var length = Int64.max
        if operands.count == 3 {
            guard case .integer(let given) = operands[2], given >= 0 else {
                throw .mismatch("substring", "a length that is not negative", operands[2])
            }
            length = given
        }
        if case .bytes(let bytes) = operands[0] {
            try evaluation.spendMemory(bytes.count)
            return .bytes(Array(part(of: bytes, count: bytes.count, start, length)))
        }
        let scalars = try text("substring", operands[0], evaluation).unicodeScalars
        return .string(String(Substring(part(of: scalars, count: scalars.count, start, length))))
    }

    private static func part<Items: Collection>(
        of items: Items, count: Int, _ start: Int64, _ length: Int64
    ) -> Items.SubSequence {
        let first = start < 0 ? max(Int64(count) + max(start, -Int64(count)), 0) : min(start, Int64(count))
        return items.dropFirst(Int(first)).prefix(Int(clamping: length))
    }

    // MARK: Searching

    private static func contains(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .boolean(try TextSearch("string_contains", operands, evaluation).first(from: 0) != nil)
    }

    /// The position in code points, or -1.
    private static func indexOf(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let search = try TextSearch("string_index_of", operands, evaluation)
        guard let offset = search.first(from: 0) else { return .integer(-1) }
        if search.isBytes { return .integer(Int64(offset)) }
        return .integer(Int64(search.text[..<offset].count { $0 & 0xC0 != 0x80 }))
    }

    private static func replaceAll(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try replaced("string_replace_all", operands, evaluation, atMost: .max)
    }

    private static func replaceOne(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try replaced("string_replace_one", operands, evaluation, atMost: 1)
    }

    private static func replaced(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation, atMost count: Int
    ) throws(ExpressionError) -> Operand {
        let search = try TextSearch(name, operands, evaluation)
        let replacement = try bytes(name, operands[2], asBytes: search.isBytes, evaluation)
        guard !search.pattern.isEmpty else { return operands[0] }
        var result: [UInt8] = []
        var start = 0
        var found = 0
        while found < count, let offset = search.first(from: start) {
            try evaluation.spendMemory(offset - start + replacement.count)
            result += search.text[start..<offset]
            result += replacement
            start = offset + search.pattern.count
            found += 1
        }
        result += search.text[start...]
        return search.isBytes ? .bytes(result) : .string(String(decoding: result, as: UTF8.self))
    }

    /// Parts between separators; by a comma if none is given, into characters or bytes if it is empty.
    private static func split(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let search = try TextSearch("split", operands.count == 2 ? operands : operands + [.string(",")], evaluation)
        func part(_ range: Range<Int>) -> Operand {
            let bytes = search.text[range]
            return search.isBytes ? .bytes(Array(bytes)) : .string(String(decoding: bytes, as: UTF8.self))
        }
        var parts: [Operand] = []
        var start = 0
        while let offset = search.firstSeparator(from: start) {
            try evaluation.spendMemory(40 + offset - start)
            parts.append(part(start..<offset))
            start = offset + search.pattern.count
        }
        // An empty text has no characters.
        if !search.pattern.isEmpty || !search.text.isEmpty { parts.append(part(start..<search.text.count)) }
        return .list(parts)
    }

    /// The strings of an array with a separator between them; null elements are left out, or take the third operand.
    private static func join(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let elements = try ArrayFunctions.elements("join", operands[0], evaluation)
        let separator = try text("join", operands[1], evaluation)
        var texts: [String] = []
        for element in elements {
            if !element.isNullOrAbsent {
                texts.append(try text("join", element, evaluation))
            } else if operands.count == 3 {
                texts.append(try text("join", operands[2], evaluation))
            }
            try evaluation.spendMemory(separator.utf8.count)
        }
        return .string(texts.joined(separator: separator))
    }

    // MARK: Operands

    /// The text of an operand; pays for a pass over it.
    static func text(_ name: String, _ operand: Operand, _ evaluation: Evaluation) throws(ExpressionError) -> String {
        guard case .string(let text) = operand else { throw .mismatch(name, "strings", operand) }
        try evaluation.spendMemory(text.utf8.count)
        return text
    }
}

extension StringFunctions {
    /// The bytes of an operand, which is bytes or a string as is said.
    fileprivate static func bytes(
        _ name: String, _ operand: Operand, asBytes: Bool, _ evaluation: Evaluation
    ) throws(ExpressionError) -> [UInt8] {
        guard asBytes else { return Array(try text(name, operand, evaluation).utf8) }
        guard case .bytes(let bytes) = operand else { throw .mismatch(name, "bytes with bytes", operand) }
        try evaluation.spendMemory(bytes.count)
        return bytes
    }
}

/// What is taken off the ends of a text. Most characters are of ASCII, for which a set or the Unicode properties would
/// take most of the time.
private struct RemovedScalars {
    /// A bit for each character of ASCII.
    private var ascii: UInt128 = 0
    /// The others; nil for white space.
    private var others: Set<Unicode.Scalar>?

    /// The characters with the Unicode property White_Space.
    static let whitespace: RemovedScalars = {
        var set = RemovedScalars(" \t\n\u{b}\u{c}\r")
        set.others = nil
        return set
    }()

    /// The characters of a text.
    init(_ text: String) {
        others = []
        for scalar in text.unicodeScalars {
            if scalar.isASCII { ascii |= 1 << UInt128(scalar.value) } else { others?.insert(scalar) }
        }
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return ascii >> UInt128(scalar.value) & 1 == 1 }
        return others?.contains(scalar) ?? scalar.properties.isWhitespace
    }
}

/// A search for a text within another, or for bytes within bytes. The work is linear in both (Knuth, Morris, Pratt).
private struct TextSearch {
    let text: [UInt8]
    let pattern: [UInt8]
    /// Whether both are bytes, not strings.
    let isBytes: Bool
    /// For each prefix of the pattern the length of its longest proper prefix that is also its suffix.
    private let borders: [Int]

    init(_ name: String, _ operands: [Operand], _ evaluation: Evaluation) throws(ExpressionError) {
        if case .bytes = operands[0] { isBytes = true } else { isBytes = false }
        text = try StringFunctions.bytes(name, operands[0], asBytes: isBytes, evaluation)
        pattern = try StringFunctions.bytes(name, operands[1], asBytes: isBytes, evaluation)
        var borders = [Int](repeating: 0, count: pattern.count)
        var length = 0
        for index in pattern.indices.dropFirst() {
            while length > 0, pattern[index] != pattern[length] { length = borders[length - 1] }
            if pattern[index] == pattern[length] { length += 1 }
            borders[index] = length
        }
        self.borders = borders
    }

    /// The first occurrence at or after an offset.
    func first(from start: Int) -> Int? {
        if pattern.isEmpty { return start }
        var matched = 0
        for index in start..<text.count {
            while matched > 0, text[index] != pattern[matched] { matched = borders[matched - 1] }
            if text[index] == pattern[matched] { matched += 1 }
            if matched == pattern.count { return index + 1 - matched }
        }
        return nil
    }

    /// Where the part ends that begins at an offset; nil if it is the last one. Without a pattern each part is a
    /// character, or a byte of bytes.
    func firstSeparator(from start: Int) -> Int? {
        if !pattern.isEmpty { return first(from: start) }
        var end = start + 1
        while !isBytes, end < text.count, text[end] & 0xC0 == 0x80 { end += 1 }
        return end < text.count ? end : nil
    }
}
