// The name of a database: projects/{project}/databases/{database}.

package import Basics

/// A project and a database id. Any ids are accepted; databases come into being with their first document.
package struct DatabaseName: Sendable, Hashable {
    /// `projects/{project}/databases/{database}` as UTF-8. Equality and hashing go by these bytes.
    package let utf8: [UInt8]

    /// The ids may be anything that is not empty, has no slash and is at most ``Limits/idBytes`` long.
    package init(project: String, database: String = "(default)") throws(RequestError) {
        try self.init("projects/\(project)/databases/\(database)")
    }

    /// Parses `projects/{project}/databases/{database}`.
    package init(_ name: String) throws(RequestError) {
        self = try name.withUTF8Span { (bytes) throws(RequestError) in try DatabaseName(bytes) }
    }

    /// Parses and copies `projects/{project}/databases/{database}`.
    package init(_ bytes: RawSpan) throws(RequestError) {
        guard DatabaseName.prefixByteCount(of: bytes) == bytes.byteCount, UTF8Validation.isValid(bytes) else {
            throw .invalidArgument(
                "Invalid database name \"\(String(repairingUTF8: bytes))\": "
                    + "it must look like projects/{project}/databases/{database}.")
        }
        utf8 = [UInt8](copying: bytes)
    }

    /// Copies the database part of a name that is already checked.
    package init(of name: borrowing ResourceNameView) {
        utf8 = [UInt8](copying: name.databaseBytes)
    }

    package var project: String { part { $0.project } }
    package var database: String { part { $0.database } }

    private func part(_ pick: ((project: Range<Int>, database: Range<Int>)) -> Range<Int>) -> String {
        let bytes = unsafe utf8.span.bytes
        // The initialisers let no other form in.
        guard let parts = DatabaseName.parts(of: bytes) else { preconditionFailure("malformed DatabaseName") }
        return String(repairingUTF8: bytes.extracting(pick(parts)))
    }

    /// The name of the documents root, `projects/…/databases/…/documents`: the parent of top-level collections.
    package var documentsRoot: String { String(decoding: utf8 + DatabaseName.rootSuffix, as: UTF8.self) }

    private static let rootSuffix = Array("/documents".utf8)

    /// Where project and database id stand in a name that begins with a database name.
    package static func parts(of bytes: RawSpan) -> (project: Range<Int>, database: Range<Int>)? {
        let slash = UInt8(ascii: "/")
        guard bytes.holds(0x7374_6365_6A6F_7270, at: 0), bytes.byteCount > 8, bytes[byteAt: 8] == slash,  // projects/
            let projectEnd = bytes.firstOffset(of: slash, from: 9),
            bytes.holds(0x7361_6261_7461_642F, at: projectEnd),  // /databas
            bytes.holds(0x2F73_6573_6162_6174, at: projectEnd + 3)  // tabases/
        else { return nil }
        let databaseStart = projectEnd + 11
        let databaseEnd = bytes.firstOffset(of: slash, from: databaseStart) ?? bytes.byteCount
        guard projectEnd > 9, projectEnd - 9 <= Limits.idBytes, databaseEnd > databaseStart,
            databaseEnd - databaseStart <= Limits.idBytes
        else { return nil }
        return (9..<projectEnd, databaseStart..<databaseEnd)
    }

    /// Length of the database name that `bytes` begins with, or nil when it begins with none.
    package static func prefixByteCount(of bytes: RawSpan) -> Int? {
        parts(of: bytes)?.database.upperBound
    }
}

extension DatabaseName: CustomStringConvertible {
    package var description: String { unsafe String(repairingUTF8: utf8.span.bytes) }
}

extension RawSpan {
    /// Whether the bytes are those of a literal.
    func equalsUTF8(_ text: StaticString) -> Bool {
        byteCount == text.utf8CodeUnitCount && startsWith(utf8: text)
    }

    /// Whether the first bytes are those of a literal.
    func startsWith(utf8 text: StaticString) -> Bool {
        // The bytes of a literal live as long as the process and are as many as it says.
        let literal = unsafe RawSpan(_unsafeStart: UnsafeRawPointer(text.utf8Start), byteCount: text.utf8CodeUnitCount)
        return startsWith(literal)
    }
}
