package import Basics

/// The path of a field in a document, through nested maps. A path cannot enter an array.
///
///     address.city            two segments
///     `first name`.`a\`b`     segments that are not simple names are quoted with backticks; \ escapes a character
///     __name__                the key of the document, which is not a field
package struct FieldPath: Sendable, Hashable {
    /// The UTF-8 bytes of each segment, by which paths are compared and hashed. At least one segment, none empty.
    package let utf8Segments: [[UInt8]]

    /// Checks literal segments, in which nothing is quoted.
    package init(segments: [String]) throws(RequestError) {
        try self.init(utf8Segments: segments.map { Array($0.utf8) })
    }

    /// Checks literal segments, valid UTF-8 each.
    package init(utf8Segments: [[UInt8]]) throws(RequestError) {
        self.utf8Segments = utf8Segments
        if utf8Segments.isEmpty { throw .invalidArgument("A field path is empty.") }
        if isDocumentName { return }
        for segment in utf8Segments {
            switch unsafe FieldName.problem(segment.span.bytes) {
            case nil: continue
            case .fieldNameReserved:
                let name = String(decoding: segment, as: UTF8.self)
                throw .invalidArgument("Invalid reserved name in field path \(name)")
            case .fieldNameTooLong: throw RequestError(InvalidDocument.Reason.fieldPathTooLong)
            case let reason?: throw .invalidArgument("Invalid field path \(self): \(reason.text)")
            }
        }
        // The text form quotes a segment with two backticks and at most one backslash for each byte.
        let byteCountMax = utf8Segments.reduce(0) { $0 + 2 * $1.count + 3 }
        if byteCountMax > Limits.fieldPathBytes, description.utf8.count > Limits.fieldPathBytes {
            throw RequestError(InvalidDocument.Reason.fieldPathTooLong)
        }
    }

    /// Parses the text form of a path in a query or a mask, which has at most 20 segments.
    package init(_ text: String) throws(RequestError) {
        try self.init(ofTransform: text)
        if count > Limits.fieldPathElements {
            throw .invalidArgument("paths must have at most \(Limits.fieldPathElements) elements")
        }
    }

    /// Parses the text form of a path in a transform, which may be as deep as documents are.
    package init(ofTransform text: String) throws(RequestError) {
        try self.init(utf8Segments: FieldPath.parse(Array(text.utf8)))
    }

    init(unchecked utf8Segments: [[UInt8]]) {
        self.utf8Segments = utf8Segments
    }

    /// The top-level field of a name that has been checked (``FieldName/check(_:as:)``); nothing in it is quoted.
    package init(fieldName name: String) {
        utf8Segments = [Array(name.utf8)]
    }

    /// The document's key, `__name__`, as used in filters, orders and projections.
    package static let documentName = FieldPath(unchecked: [Array("__name__".utf8)])

    package var isDocumentName: Bool { self == .documentName }

    package var segments: [String] { utf8Segments.map { String(decoding: $0, as: UTF8.self) } }

    package var count: Int { utf8Segments.count }

    /// Whether this path is `other` or leads to it.
    package func isPrefix(of other: FieldPath) -> Bool {
        other.utf8Segments.starts(with: utf8Segments)
    }

    /// The path above, or nil for a top-level field.
    package var parent: FieldPath? {
        utf8Segments.count > 1 ? FieldPath(unchecked: utf8Segments.dropLast()) : nil
    }
}

extension FieldPath: CustomStringConvertible {
    /// The text form: simple segments as they are, others in backticks.
    package var description: String {
        utf8Segments.map { String(decoding: FieldPath.quoted($0), as: UTF8.self) }.joined(separator: ".")
    }
}

extension FieldPath: Comparable {
    /// Segment by segment by UTF-8 bytes, prefix first.
    package static func < (left: FieldPath, right: FieldPath) -> Bool { left.precedes(right) }
}

// MARK: Text form

extension FieldPath {
    private static let backtick = UInt8(ascii: "`")
    private static let backslash = UInt8(ascii: "\\")
    private static let dot = UInt8(ascii: ".")

    /// Whether a segment may stand without backticks: `[A-Za-z_][A-Za-z0-9_]*`.
    static func isSimple(_ segment: some Collection<UInt8>) -> Bool {
        guard let first = segment.first, isSimpleStart(first) else { return false }
        return segment.allSatisfy { isSimpleStart($0) || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9")) }
    }

    private static func isSimpleStart(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_")
    }

    /// The segment as the text form writes it.
    package static func quoted(_ segment: [UInt8]) -> [UInt8] {
        if isSimple(segment) { return segment }
        var text = [backtick]
        for byte in segment {
            if byte == backtick || byte == backslash { text.append(backslash) }
            text.append(byte)
        }
        text.append(backtick)
        return text
    }

    private static func parse(_ text: [UInt8]) throws(RequestError) -> [[UInt8]] {
        if text.isEmpty { throw .emptyFieldPath }
        // Twice the limit leaves room for escapes; more cannot be a path, however it is quoted.
        if text.count > 2 * Limits.fieldPathBytes { throw RequestError(InvalidDocument.Reason.fieldPathTooLong) }
        var segments: [[UInt8]] = []
        var at = 0
        while true {
            guard let segment = nextSegment(of: text, at: &at), !segment.isEmpty else { throw malformed(text) }
            segments.append(segment)
            if at == text.count { return segments }
            guard text[at] == dot else { throw malformed(text) }
            at += 1
        }
    }

    /// Moves past one segment, quoted or not; nil if it breaks the rules of quoting.
    private static func nextSegment(of text: [UInt8], at: inout Int) -> [UInt8]? {
        if at < text.count, text[at] == backtick { return quotedSegment(of: text, at: &at) }
        let end = text[at...].firstIndex(of: dot) ?? text.count
        defer { at = end }
        return isSimple(text[at..<end]) ? Array(text[at..<end]) : nil
    }

    /// Moves past a segment in backticks; nil if it does not end.
    private static func quotedSegment(of text: [UInt8], at: inout Int) -> [UInt8]? {
        var segment: [UInt8] = []
        at += 1
        while at < text.count, text[at] != backtick {
            if text[at] == backslash { at += 1 }
            guard at < text.count else { return nil }
            segment.append(text[at])
            at += 1
        }
        guard at < text.count else { return nil }
        at += 1
        return segment
    }

    /// The error for a text that is not a field path, in the cloud's words. It shows the beginning of a long text.
    private static func malformed(_ text: [UInt8]) -> RequestError {
        let shown = String(decoding: text.prefix(200), as: UTF8.self) + (text.count > 200 ? "…" : "")
        return .invalidArgument(
            "Invalid property path \"\(shown)\". Unquoted property paths must match regex "
                + "([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)")
    }
}

extension RequestError {
    /// `INVALID_ARGUMENT` for a rule that something other than a document breaks.
    fileprivate init(_ reason: InvalidDocument.Reason) {
        self.init(.invalidArgument, reason.text)
    }
}

/// The rules of field names.
package enum FieldName {
    /// Judges one name, valid UTF-8; nil means that it may be used.
    package static func problem(_ name: RawSpan) -> InvalidDocument.Reason? {
        if name.isEmpty { return .fieldNameEmpty }
        if name.byteCount > Limits.fieldNameBytes { return .fieldNameTooLong }
        if ResourceID.isReserved(name) { return .fieldNameReserved }
        return nil
    }

    /// Throws unless the name may be used, in the cloud's words.
    ///
    /// - Parameter property: what the message calls the name, `property.name`.
    package static func check(_ name: String, as property: String) throws(RequestError) {
        switch name.withUTF8Span({ problem($0) }) {
        case nil: return
        case .fieldNameEmpty: throw .invalidArgument("The \(property) is the empty string.")
        case .fieldNameTooLong: throw .invalidArgument("The \(property) is longer than \(Limits.fieldNameBytes) bytes.")
        case .fieldNameReserved: throw .invalidArgument("The \(property) \"\(name)\" is reserved.")
        case let reason?: throw .invalidArgument(reason.text)
        }
    }
}
