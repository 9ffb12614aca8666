// Path templates: texts that are read as paths, `path('/users/{user}')`.
//
// The official emulator takes the text for a template, as it does with the path of a `match`: a segment in braces is a
// wildcard, which has a value after `bind`.

internal import Basics
internal import Expressions

extension RulesPath {
    /// The path of a template such as `/a/b`, `a/b` or `/a/{x}/{rest=**}`.
    ///
    /// A slash at the start is left out. White space at the ends of a segment is removed. Percent-encoded bytes are
    /// decoded; what is not UTF-8 becomes U+FFFD.
    /// - Throws: for an empty segment, a wildcard whose brace is not closed, whose name is not one or is used twice,
    ///   and a `%` without two hexadecimal digits.
    static func parse(_ template: String) throws(ExpressionError) -> RulesPath {
        if template.isEmpty { throw .failed("Empty Path Template is not allowed.") }
        var parts = template.slashSeparated
        if parts.count > 1, parts[0].isEmpty { parts.removeFirst() }
        var segments: [Segment] = []
        segments.reserveCapacity(parts.count)
        var names: Set<String> = []
        for part in parts {
            let segment = try segment(part.trimmingWhiteSpace, of: template)
            if let name = segment.name, !names.insert(name).inserted {
                throw .failed("Variable \(name.prefix(100)) already exists in the PathTemplate.")
            }
            segments.append(segment)
        }
        return RulesPath(segments)
    }

    private static func segment(_ text: String, of template: String) throws(ExpressionError) -> Segment {
        if text.isEmpty { throw invalid(template, "Empty segment is not allowed.") }
        guard text.utf8.first == UInt8(ascii: "{") else { return .literal(try decoded(text)) }
        guard text.utf8.last == UInt8(ascii: "}") else { throw invalid(template, "The capture segment is not closed.") }
        // By scalars: a mark after a brace makes one character with it.
        let inner = text.unicodeScalars.dropFirst().dropLast()
        if inner.suffix(3).elementsEqual("=**".unicodeScalars) {
            return .glob(try wildcard(String(inner.dropLast(3)), of: template), nil)
        }
        let isSingle = inner.suffix(2).elementsEqual("=*".unicodeScalars)
        return .capture(try wildcard(String(inner.dropLast(isSingle ? 2 : 0)), of: template), nil)
    }

    /// The name of a wildcard.
    private static func wildcard(_ text: String, of template: String) throws(ExpressionError) -> String {
        let name = text.trimmingControls
        let isName = name.utf8.first.map(Lexer.isIdentifierStart) ?? false
        if isName, name.utf8.allSatisfy({ Lexer.isIdentifierStart($0) || Lexer.isDigit($0) }) { return name }
        throw invalid(
            template,
            "[Identifier [\(name.prefix(100))] should start with letter, dollar sign, or underscore and should not "
                + "start with digit and must not contain spaces.")
    }

    private static func decoded(_ text: String) throws(ExpressionError) -> String {
        guard let bytes = PercentEncoding.decodedBytes(text) else {
            throw .failed("Unable to decode \(text.prefix(100)) to url.")
        }
        return String(repairingUTF8: bytes.byteSpan)
    }

    private static func invalid(_ template: String, _ reason: String) -> ExpressionError {
        .failed("Invalid Path Template \(template.prefix(100)). \(reason)")
    }
}

extension RulesPath.Segment {
    /// The name of the wildcard; nil if the segment is none.
    fileprivate var name: String? {
        switch self {
        case .literal: nil
        case .capture(let name, _), .glob(let name, _): name
        }
    }
}

extension String {
    /// The text without white space (Unicode's property White_Space) at both ends.
    fileprivate var trimmingWhiteSpace: String {
        let scalars = unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
    }
}
