// Links into the console of a server, at the end of errors that a view of it explains.

import Basics
import DocumentModel

/// An address in the console.
enum ConsoleLink {
    /// The view that explains an error of a call; nil if none does.
    ///
    /// - Parameter server: such as `http://127.0.0.1:8080`.
    static func text(for error: RequestError, server: String, _ database: DatabaseName) -> String? {
        let view: String
        var query = "db=\(encoded("\(database)"))"
        if error.code == .permissionDenied {
            view = "rules"
        } else if error.code == .failedPrecondition, error.message.contains(" index") {
            view = "indexes"
        } else if let path = path(in: error.documentName ?? error.message, database) {
            view = "data"
            query += "&path=\(encoded(path))"
        } else {
            return nil
        }
        return "\(server)/console#/\(view)?\(query)"
    }

    /// What follows the name of the documents root in a text; nil if it is not there.
    private static func path(in text: String, _ database: DatabaseName) -> String? {
        guard let root = text.firstRange(of: database.documentsRoot + "/") else { return nil }
        return String(text[root.upperBound...])
    }

    /// Percent-encoded, except for what a fragment may have (RFC 3986, section 3.5) and no parser of parameters takes.
    static func encoded(_ text: String) -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/()".utf8)
        return text.utf8.map { byte in
            if plain.contains(byte) { return String(UnicodeScalar(byte)) }
            return (byte < 0x10 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
