// The name of a field, possibly inside maps, as the public API takes it.

import DocumentModel
public import Foundation

/// A path to a field: one or more names, each literal (a dot in a name is part of the name).
public final class FieldPath: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked because `NSObject` is not Sendable; the stored properties are constants.

    /// The names, outermost first; never empty, none of them empty.
    package let segments: [String]

    /// Creates a path of literal names. No names at all, or an empty one, is a programming error.
    public init(_ fieldNames: [String]) {
        guard !fieldNames.isEmpty else {
            programmingError("Invalid field path. Provided names must not be empty.")
        }
        if let position = fieldNames.firstIndex(where: \.isEmpty) {
            programmingError("Invalid field name at index \(position). Field names must not be empty.")
        }
        segments = fieldNames
    }

    private static let documentIDPath = FieldPath(["__name__"])

    /// The path that stands for a document's own name in queries.
    @discardableResult
    public static func documentID() -> FieldPath { documentIDPath }

    /// Whether this is `documentID()`.
    package var isDocumentID: Bool { segments.count == 1 && segments[0] == "__name__" }

    /// Reads a dotted path: names between dots, which may hold any character but `~ * / [ ]`.
    ///
    /// - Throws: `InvalidFieldPath` for those characters and for empty names.
    package convenience init(dotted path: String) throws(InvalidFieldPath) {
        let dot = UInt8(ascii: ".")
        var isNested = false
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "~"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "["), UInt8(ascii: "]"):
                throw InvalidFieldPath(path: path, reason: "Paths must not contain '~', '*', '/', '[', or ']'")
            case dot: isNested = true
            default: break
            }
        }
        let names =
            isNested
            ? path.utf8.split(separator: dot, omittingEmptySubsequences: false).map { String(Substring($0)) } : [path]
        if names.contains(where: \.isEmpty) {
            throw InvalidFieldPath(
                path: path, reason: "Paths must not be empty, begin with '.', end with '.', or contain '..'")
        }
        self.init(names)
    }

    /// A path given as a dotted `String` or as a `FieldPath`.
    ///
    /// - Throws: `InvalidFieldPath` for a bad dotted path and for values of any other type.
    package static func reading(_ value: Any) throws(InvalidFieldPath) -> FieldPath {
        if let path = value as? String { return try FieldPath(dotted: path) }
        if let path = value as? FieldPath { return path }
        throw InvalidFieldPath(
            path: "\(value)", reason: "Field paths must be String or FieldPath, not \(type(of: value))")
    }

    /// The path in the server's notation: names joined by dots, those that are not plain identifiers in backticks.
    package var serverFormat: String { FieldPath.serverFormat(segments) }

    /// Formats names as a path in the server's notation.
    package static func serverFormat(_ segments: some Sequence<String>) -> String {
        segments.map { name in
            String(decoding: DocumentModel.FieldPath.quoted(Array(name.utf8)), as: UTF8.self)
        }.joined(separator: ".")
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? FieldPath else { return false }
        // By bytes: Swift's == of strings takes different spellings of a letter for one.
        return segments.elementsEqual(other.segments) { $0.utf8.elementsEqual($1.utf8) }
    }

    public override var hash: Int { segments.hashValue }

    public override var description: String { "<FieldPath: \(serverFormat)>" }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A text or value that is not a field path.
package struct InvalidFieldPath: Error, Equatable, CustomStringConvertible {
    package let path: String
    package let reason: String

    package var description: String { "Invalid field path (\(path)). \(reason)" }
}
