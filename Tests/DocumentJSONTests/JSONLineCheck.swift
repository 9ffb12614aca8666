// What must hold for a line of JSON, whatever its bytes. Called by tests and by the fuzzer.

import Basics
import DocumentModel

#if canImport(DocumentJSON)
    import DocumentJSON
#endif

enum JSONLineCheck {
    private static let database = "projects/p/databases/(default)"

    /// The broken property, or nil.
    ///
    /// Nothing traps. The bytes of a line that is accepted are canonical if they are a valid document; then they are
    /// written as
    /// a line that is read as the same bytes and the same name, and that is written as itself.
    static func violation(_ line: [UInt8]) -> String? {
        var byField = JSONLineParser(database: database, idField: "a")
        _ = try? byField.parse(line.span)
        var parser = JSONLineParser(database: database)
        guard let name = try? parser.parse(line.span) else { return nil }
        let document = parser.documentBytes
        guard let result = try? DocumentValidator.validate(fields: document.span.bytes) else { return nil }
        guard result.isCanonical else { return "a line became bytes that are not canonical" }

        guard let written = write(document, name) else { return "what was read cannot be written" }
        guard let nameAgain = try? parser.parse(written.span) else {
            return "what was written cannot be read: \(String(decoding: written, as: UTF8.self))"
        }
        if parser.documentBytes != document { return "the document changes on its way round" }
        if name != .none, nameAgain != name { return "the name changes on its way round" }
        if write(parser.documentBytes, nameAgain) != written { return "the line changes on its way round" }
        return nil
    }

    private static func write(_ document: [UInt8], _ name: JSONLineParser.Name) -> [UInt8]? {
        var writer = JSONLineWriter(database: database)
        var path = "n"
        if case .path(let named) = name { path = named }
        return try? writer.line(name: path, fields: document.span.bytes)
    }
}
