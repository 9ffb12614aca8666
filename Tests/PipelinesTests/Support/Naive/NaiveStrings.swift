// Strings and patterns, for the naive evaluator. Texts are arrays of code points.

import DocumentModel
import Foundation

extension NaiveEvaluator {
    private static let either = texts + byteValues

    static let strings: [NaiveFunction] = [
        NaiveFunction("string_concat", [1, 2, 3], [texts]) { allTexts($0) { .string($0.joined()) } },
        NaiveFunction("concat", [1, 2, 3], [texts + byteValues + arrayValues]) { arguments in
            switch arguments[0] {
            case .string: allTexts(arguments) { .string($0.joined()) }
            case .bytes: .known(arguments.joinedBytes.map { .bytes($0) })
            default: appended(arguments)
            }
        },
        NaiveFunction("length", [1], [texts + byteValues + arrayValues + mapValues]) { arguments in
            switch arguments[0] {
            case .string(let text): .integer(text.unicodeScalars.count)
            case .bytes(let bytes): .integer(bytes.count)
            case .array(let elements): .integer(elements.count)
            case .map(let map): .integer(map.entries.count)
            default: .failed
            }
        },
        NaiveFunction("char_length", [1], [texts]) { allTexts($0) { .integer($0[0].unicodeScalars.count) } },
        NaiveFunction("byte_length", [1], [either]) { arguments in
            if case .bytes(let bytes) = arguments[0] { return .integer(bytes.count) }
            return allTexts(arguments) { .integer($0[0].utf8.count) }
        },
        NaiveFunction("to_upper", [1], [texts]) { allTexts($0) { .string($0[0].uppercased()) } },
        NaiveFunction("to_lower", [1], [texts]) { allTexts($0) { .string($0[0].lowercased()) } },
        NaiveFunction("trim", [1, 2], [either, parts + byteValues]) { trimmed($0, left: true, right: true) },
        NaiveFunction("ltrim", [1, 2], [either, parts + byteValues]) { trimmed($0, left: true, right: false) },
        NaiveFunction("rtrim", [1, 2], [either, parts + byteValues]) { trimmed($0, left: false, right: true) },
        NaiveFunction("string_reverse", [1], [either]) { arguments in
            units(arguments[0]).map { $0.with($0.items.reversed()) } ?? .failed
        },
        NaiveFunction("reverse", [1], [either + arrayValues]) { arguments in
            if case .array(let elements) = arguments[0] { return .array(elements.reversed()) }
            return units(arguments[0]).map { $0.with($0.items.reversed()) } ?? .failed
        },
        NaiveFunction("string_repeat", [2], [texts, [0, 1, 2, 5, -1]]) { arguments in
            guard let text = string(arguments[0]), let count = count(arguments[1]) else { return .failed }
            if !text.isEmpty, count > 1 << 20 { return .exhausted }
            return .string(text.isEmpty ? "" : Array(repeating: text, count: count).joined())
        },
        NaiveFunction("substring", [2, 3], [either, smallIntegers]) { arguments in
            guard let units = units(arguments[0]), let range = range(arguments, of: units.items.count) else {
                return .failed
            }
            return units.with(Array(units.items[range]))
        },
        NaiveFunction("starts_with", [2], [texts, parts]) {
            allTexts($0) { .boolean(scalars($0[0]).starts(with: scalars($0[1]))) }
        },
        NaiveFunction("ends_with", [2], [texts, parts]) {
            allTexts($0) { .boolean(scalars($0[0]).reversed().starts(with: scalars($0[1]).reversed())) }
        },
        NaiveFunction("string_contains", [2], [either, parts + byteValues]) { arguments in
            searched(arguments) { .boolean(!places(of: $1, in: $0).isEmpty) }
        },
        NaiveFunction("string_index_of", [2], [either, parts + byteValues]) { arguments in
            searched(arguments) { .integer(places(of: $1, in: $0).first ?? -1) }
        },
        NaiveFunction("string_replace_all", [3], [either, parts + byteValues, parts + byteValues]) {
            replaced($0, atMost: .max)
        },
        NaiveFunction("string_replace_one", [3], [either, parts + byteValues, parts + byteValues]) {
            replaced($0, atMost: 1)
        },
        NaiveFunction("split", [1, 2], [either, parts + byteValues]) { arguments in
            guard let text = units(arguments[0]) else { return .failed }
            return searched(arguments.count == 2 ? arguments : arguments + [.string(",")]) { items, separator in
                let parts = separator.isEmpty ? items.map { [$0] } : pieces(items, by: separator)
                return .array(parts.map { text.value($0) })
            }
        },
        NaiveFunction("join", [2, 3], [arrayValues, parts, parts]) { arguments in
            guard case .array(let elements) = arguments[0], let separator = string(arguments[1]) else { return .failed }
            var texts: [String] = []
            for element in elements {
                if isNull(element), arguments.count == 2 { continue }
                guard let text = string(isNull(element) ? arguments[2] : element) else { return .failed }
                texts.append(text)
            }
            return .string(texts.joined(separator: separator))
        },
    ]

    // MARK: Texts and bytes

    /// The code points of a text, or bytes, as numbers.
    private struct Units {
        var items: [UInt32]
        let isText: Bool

        func with(_ items: [UInt32]) -> NaiveOutcome { .value(value(items)) }

        func value(_ items: [UInt32]) -> Value {
            isText ? .string(text(items)) : .bytes(items.map { UInt8($0) })
        }
    }

    private static func units(_ value: Value) -> Units? {
        switch value {
        case .string(let text): Units(items: scalars(text), isText: true)
        case .bytes(let bytes): Units(items: bytes.map { UInt32($0) }, isText: false)
        default: nil
        }
    }

    private static func scalars(_ text: String) -> [UInt32] { text.unicodeScalars.map(\.value) }

    private static func text(_ scalars: [UInt32]) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars { if let scalar = Unicode.Scalar(scalar) { text.append(scalar) } }
        return String(text)
    }

    private static func allTexts(_ values: [Value], _ body: ([String]) -> NaiveOutcome) -> NaiveOutcome {
        let texts = values.compactMap(string)
        return texts.count < values.count ? .failed : body(texts)
    }

    /// The range that a start and perhaps a length name; nil if they name none.
    static func range(_ arguments: [Value], of count: Int) -> Range<Int>? {
        guard case .integer(let start) = arguments[1] else { return nil }
        var length = count
        if arguments.count == 3 {
            guard let given = Self.count(arguments[2]) else { return nil }
            length = given
        }
        let first = start >= 0 ? min(Int(start), count) : start <= -count ? 0 : count + Int(start)
        return first..<(first + min(length, count - first))
    }

    private static func trimmed(_ arguments: [Value], left: Bool, right: Bool) -> NaiveOutcome {
        guard var units = units(arguments[0]) else { return .failed }
        var removed = Set([9, 10, 11, 12, 13, 32] as [UInt32])
        if arguments.count == 2 {
            guard let given = self.units(arguments[1]), given.isText == units.isText else { return .failed }
            removed = Set(given.items)
        }
        while left, let first = units.items.first, removed.contains(first) { units.items.removeFirst() }
        while right, let last = units.items.last, removed.contains(last) { units.items.removeLast() }
        return units.with(units.items)
    }

    /// Two texts, or bytes and bytes.
    private static func searched(_ arguments: [Value], _ body: ([UInt32], [UInt32]) -> NaiveOutcome) -> NaiveOutcome {
        guard let text = units(arguments[0]), let part = units(arguments[1]), text.isText == part.isText else {
            return .failed
        }
        return body(text.items, part.items)
    }

    /// Where a part begins, overlaps included.
    private static func places(of part: [UInt32], in text: [UInt32]) -> [Int] {
        (0...text.count).filter { text[$0...].starts(with: part) }
    }

    private static func pieces(_ text: [UInt32], by separator: [UInt32], atMost count: Int = .max) -> [[UInt32]] {
        var pieces: [[UInt32]] = []
        var rest = text[...]
        var current: [UInt32] = []
        while !rest.isEmpty {
            if rest.starts(with: separator), pieces.count < count {
                pieces.append(current)
                current = []
                rest = rest.dropFirst(separator.count)
            } else {
                current.append(rest.removeFirst())
            }
        }
        return pieces + [current]
    }

    private static func replaced(_ arguments: [Value], atMost count: Int) -> NaiveOutcome {
        guard let text = units(arguments[0]), let part = units(arguments[1]), let other = units(arguments[2]),
            text.isText == part.isText, text.isText == other.isText
        else { return .failed }
        if part.items.isEmpty { return .value(arguments[0]) }
        return text.with(Array(pieces(text.items, by: part.items, atMost: count).joined(separator: other.items)))
    }

    // MARK: Patterns

    private static let expressions: [Value] = [
        "a", "b+", "[a-c]+", "^a", "c$", "a(b)c", "(?i)A", "\\d", ".", "x*", "(", "(a)(b)", "a|b", "[^a]", "\\s",
    ]
    private static let likes: [Value] = ["%", "_", "a%", "%b%", "a_c", "100\\%", "a\\_b", "a", "", "%a", "__", "\\"]

    static let patterns: [NaiveFunction] = [
        NaiveFunction("regex_contains", [2], [texts, expressions]) { matched($0) { .boolean(!$1.isEmpty) } },
        NaiveFunction("regex_match", [2], [texts, expressions]) { arguments in
            guard let pattern = string(arguments[1]), (try? NSRegularExpression(pattern: "(?:\(pattern))")) != nil
            else {
                return .failed
            }
            return matched([arguments[0], .string("\\A(?:\(pattern))\\z")]) { .boolean(!$1.isEmpty) }
        },
        NaiveFunction("regex_find", [2], [texts, expressions]) { arguments in
            matched(arguments, groupsMax: 1) { text, matches in
                matches.first.flatMap { found(in: $0, text) }.map { .string($0) } ?? .null
            }
        },
        NaiveFunction("regex_find_all", [2], [texts, expressions]) { arguments in
            matched(arguments, groupsMax: 1) { text, matches in
                .array(matches.compactMap { found(in: $0, text) }.map { .string($0) })
            }
        },
        NaiveFunction("like", [2], [texts, likes]) { arguments in
            allTexts(arguments) { .boolean(isLike(scalars($0[0])[...], scalars($0[1])[...])) }
        },
    ]

    private static func matched(
        _ arguments: [Value], groupsMax: Int = .max, _ body: (String, [NSTextCheckingResult]) -> NaiveOutcome
    ) -> NaiveOutcome {
        guard let text = string(arguments[0]), let pattern = string(arguments[1]),
            let expression = try? NSRegularExpression(pattern: "(?:\(pattern))"),
            expression.numberOfCaptureGroups <= groupsMax
        else { return .failed }
        return body(text, expression.matches(in: text, range: NSRange(location: 0, length: text.utf16.count)))
    }

    /// The group of a match, or the match if the pattern has no group.
    private static func found(in match: NSTextCheckingResult, _ text: String) -> String? {
        let range = match.range(at: match.numberOfRanges > 1 ? 1 : 0)
        if range.location == NSNotFound { return nil }
        let units = Array(text.utf16)[range.location..<(range.location + range.length)]
        return String(decoding: units, as: UTF16.self)
    }

    /// `%` is any text, `_` one code point, and a backslash takes what follows literally.
    private static func isLike(_ text: ArraySlice<UInt32>, _ pattern: ArraySlice<UInt32>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch (Unicode.Scalar(first), rest.first) {
        case ("%", _): return isLike(text, rest) || !text.isEmpty && isLike(text.dropFirst(), pattern)
        case ("_", _): return !text.isEmpty && isLike(text.dropFirst(), rest)
        case ("\\", let next?): return text.first == next && isLike(text.dropFirst(), rest.dropFirst())
        default: return text.first == first && isLike(text.dropFirst(), rest)
        }
    }
}

extension [Value] {
    /// The bytes of all values after one another; nil if one is not bytes.
    fileprivate var joinedBytes: [UInt8]? {
        var result: [UInt8] = []
        for value in self {
            guard case .bytes(let bytes) = value else { return nil }
            result += bytes
        }
        return result
    }
}
