// The address of a field in a document: names of nested maps, and the text form with its quoting.
//
//     address.city            two segments
//     `first name`.`a\`b`     segments that are not simple names stand in backticks; \ escapes the next character
//     __name__                the document's key, no field

package import Basics

/// A path of field names through nested maps; arrays cannot be entered.
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
            if let reason = unsafe FieldName.problem(segment.span.bytes) {
                throw .invalidArgument("Invalid field path \(self): \(reason.text)")
            }
        }
        if description.utf8.count > Limits.fieldPathBytes {
            throw .invalidArgument(InvalidDocument.Reason.fieldPathTooLong.text)
        }
    }

    /// Parses the text form.
    package init(_ text: String) throws(RequestError) {
        try self.init(utf8Segments: FieldPath.parse(Array(text.utf8)))
    }

    init(unchecked utf8Segments: [[UInt8]]) {
        self.utf8Segments = utf8Segments
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

    /// The path one segment deeper.
    package func appending(_ segment: String) throws(RequestError) -> FieldPath {
        try FieldPath(utf8Segments: utf8Segments + [Array(segment.utf8)])
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
    package static func < (left: FieldPath, right: FieldPath) -> Bool {
        left.utf8Segments.lexicographicallyPrecedes(right.utf8Segments) { $0.lexicographicallyPrecedes($1) }
    }
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
    static func quoted(_ segment: [UInt8]) -> [UInt8] {
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
        func invalid(_ reason: String) -> RequestError {
            let shown = String(decoding: text.prefix(200), as: UTF8.self)
            return .invalidArgument("Invalid field path \"\(shown)\": \(reason)")
        }
        // Twice the limit leaves room for escapes; more cannot be a path, however it is quoted.
        if text.count > 2 * Limits.fieldPathBytes { throw invalid("it is too long.") }
        var segments: [[UInt8]] = []
        var at = 0
        while true {
            var segment: [UInt8] = []
            if at < text.count, text[at] == backtick {
                at += 1
                while true {
                    guard at < text.count else { throw invalid("a backtick is not closed.") }
                    let byte = text[at]
                    at += 1
                    if byte == backtick { break }
                    if byte == backslash {
                        guard at < text.count else { throw invalid("it ends with a backslash.") }
                        segment.append(text[at])
                        at += 1
                    } else {
                        segment.append(byte)
                    }
                }
            } else {
                while at < text.count, text[at] != dot {
                    segment.append(text[at])
                    at += 1
                }
                if segment.isEmpty { throw invalid("a segment is empty.") }
                if !isSimple(segment) {
                    throw invalid(
                        "segment \"\(String(decoding: segment, as: UTF8.self))\" must be quoted with backticks.")
                }
            }
            segments.append(segment)
            if at == text.count { return segments }
            guard text[at] == dot else { throw invalid("a dot must follow a closing backtick.") }
            at += 1
        }
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
}
