// Paths as values.

internal import Basics
internal import Expressions

/// A path: `/databases/$(database)/documents/users/{user}`.
///
/// Wildcards of a path have no value until `bind` gives them one.
final class RulesPath: LanguageValue {
    enum Segment: Sendable {
        case literal(String)
        /// `{name}` and its value, if it has one.
        case capture(String, String?)
        /// `{name=**}` and its value, if it has one.
        case glob(String, [String]?)
    }

    let segments: [Segment]

    init(_ segments: [Segment]) { self.segments = segments }

    init(literals: some Sequence<String>) { segments = literals.map { .literal($0) } }

    /// The path of a document, or of a collection.
    ///
    /// - Parameter path: its segments below `documents`.
    init(database: String, below path: [String]) {
        var segments: [Segment] = []
        segments.reserveCapacity(3 + path.count)
        segments.append(.literal("databases"))
        segments.append(.literal(database))
        segments.append(.literal("documents"))
        for segment in path { segments.append(.literal(segment)) }
        self.segments = segments
    }

    var operandTypes: OperandTypes { .language(0) }

    /// What a segment costs beside its text, wherever all segments are read, copied or made.
    static let segmentBytes = 64

    /// An estimate of the bytes of memory that the path holds, as ``Expressions/Operand/memoryBytes``.
    var memoryBytes: Int { 32 + Self.segmentBytes * valueCount + byteCount }

    /// The path that an operand is: a path, or a reference in a document, whose project is left out.
    convenience init?(reference name: String) {
        let parts = name.slashSeparated
        guard parts.count > 2, parts[0] == "projects" else { return nil }
        self.init(literals: parts.dropFirst(2))
    }

    /// The path that an operand is, if it is one.
    static func from(_ operand: Operand) -> RulesPath? {
        switch operand {
        case .object(let object): object as? RulesPath
        case .reference(let name): RulesPath(reference: name)
        default: nil
        }
    }

    /// What it costs to read the path of a text.
    static func readingBytes(_ text: String) -> Int {
        2 * text.utf8.count + segmentBytes * text.utf8.count { $0 == UInt8(ascii: "/") }
    }

    /// The values of all segments; nil if a wildcard has none.
    var values: [String]? { try? boundValues() }

    /// The values of all segments; throws for a wildcard without one.
    func boundValues() throws(ExpressionError) -> [String] {
        var values: [String] = []
        values.reserveCapacity(segments.count)
        try forEachValue { values.append($0) }
        return values
    }

    /// One segment for each value; throws for a wildcard without a value. Those of a `**` have no name any more.
    func boundSegments() throws(ExpressionError) -> [Segment] {
        var bound: [Segment] = []
        bound.reserveCapacity(segments.count)
        for segment in segments {
            switch segment {
            case .literal, .capture(_, .some): bound.append(segment)
            case .glob(_, let texts?): bound += texts.map(Segment.literal)
            case .capture(let name, nil), .glob(let name, nil): throw .unbound(name)
            }
        }
        return bound
    }

    /// Calls a closure with the value of each segment, in order; throws for a wildcard without one.
    func forEachValue(_ body: (String) -> Void) throws(ExpressionError) {
        for segment in segments {
            switch segment {
            case .literal(let text), .capture(_, let text?): body(text)
            case .glob(_, let texts?): texts.forEach(body)
            case .capture(let name, nil), .glob(let name, nil): throw .unbound(name)
            }
        }
    }

    /// The path of the same values without wildcards, all of which have values.
    var unnamed: RulesPath {
        let isLiteral = segments.allSatisfy { if case .literal = $0 { true } else { false } }
        return isLiteral ? self : RulesPath(literals: values ?? [])
    }

    /// Values of all segments, about.
    private var valueCount: Int {
        segments.reduce(0) { sum, segment in
            if case .glob(_, let texts?) = segment { sum + texts.count } else { sum + 1 }
        }
    }

    /// Bytes of all values, about.
    var byteCount: Int {
        segments.reduce(0) { sum, segment in
            switch segment {
            case .literal(let text): sum + text.utf8.count + 1
            case .capture(_, let text): sum + (text?.utf8.count ?? 0) + 1
            case .glob(_, let texts): sum + (texts ?? []).reduce(0) { $0 + $1.utf8.count + 1 }
            }
        }
    }

    /// The text of the path, a slash for one without segments; wildcards without a value are empty.
    var text: String {
        if segments.isEmpty { return "/" }
        return segments.map { segment in
            switch segment {
            case .literal(let text): "/" + text
            case .capture(_, let text): "/" + (text ?? "")
            case .glob(_, let texts): "/" + (texts ?? []).joined(separator: "/")
            }
        }.joined()
    }

    /// The value of the wildcard with a name.
    func value(of name: String) throws(ExpressionError) -> Operand {
        for segment in segments {
            switch segment {
            case .capture(name, let text):
                guard let text else { throw .unbound(name) }
                return .string(text)
            case .glob(name, let texts):
                guard let texts else { throw .unbound(name) }
                return .object(RulesPath(literals: texts))
            default: continue
            }
        }
        throw .undefinedProperty(name)
    }

    /// The path with values for its wildcards. Wildcards without an entry are removed. One with an entry must not have
    /// a value.
    func binding(_ values: OperandMap) throws(ExpressionError) -> RulesPath {
        var bound: [Segment] = []
        var unknown = values.keys
        for segment in segments {
            switch segment {
            case .literal: bound.append(segment)
            case .capture(let name, let known):
                guard let value = values[name] else { continue }
                if known != nil { throw .bound(name) }
                let text = try Conversions.text(value)
                if text.isEmpty { throw .failed("Cannot bind empty value to path template variable \(name).") }
                bound.append(.capture(name, text))
                unknown.removeAll { $0.hasSameUTF8(as: name) }
            case .glob(let name, let known):
                guard let value = values[name] else { continue }
                if known != nil { throw .bound(name) }
                guard let path = RulesPath.from(value) else {
                    throw .failed("Type error. Received: [\(RulesType(value).rawValue)] Expected: [path].")
                }
                bound.append(.glob(name, try path.boundValues()))
                unknown.removeAll { $0.hasSameUTF8(as: name) }
            }
        }
        if !unknown.isEmpty {
            throw .failed(
                "Variable(s) \(unknown.joined(separator: ", ").prefix(200)) do not exist in the path template.")
        }
        return RulesPath(bound)
    }
}

extension String {
    /// The text without spaces and control characters at both ends.
    var trimmingControls: String {
        guard let first = utf8.firstIndex(where: { $0 > 0x20 }), let last = utf8.lastIndex(where: { $0 > 0x20 }) else {
            return ""
        }
        // Bytes up to 0x20 are whole characters, so the cut lies between characters.
        return String(decoding: utf8[first...last], as: UTF8.self)
    }
}

extension ExpressionError {
    static func unbound(_ name: String) -> ExpressionError {
        .failed("Variable \(name) is not bound in path template.")
    }

    fileprivate static func bound(_ name: String) -> ExpressionError { .failed("Variable \(name) is already bound.") }

    static func undefinedProperty(_ name: String) -> ExpressionError {
        .failed("Property \(name.prefix(200)) is undefined on object.")
    }

    /// A part of null was asked for, or a variable does not exist.
    static let nullValue = ExpressionError.failed("Null value error.")
}
