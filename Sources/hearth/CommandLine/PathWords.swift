// Paths as people write them: a leading slash means the same place.

import Basics
import DocumentJSON
import DocumentModel
import FileSystem
import FirestoreService
import Glibc

enum PathWords {
    /// The path below the database's documents.
    static func path(_ word: String) -> String { word.hasPrefix("/") ? String(word.dropFirst()) : word }

    /// A path as a part of a line of output: as it is, or in quotes as JSON has it if it has characters to be escaped,
    /// begins with a quotation mark, or ends with a mark that says something else there.
    static func printed(_ path: String, without mark: String = "\"") -> String {
        let isPlain = PlainText.escaped(path) == path && !path.hasPrefix("\"") && !path.hasSuffix(mark)
        return isPlain ? path : PlainText.escaped(JSONText.quoted(path))
    }

    /// The path from the root, since a server's working directory is another.
    static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        guard let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }

    /// Fields of a flag, separated by commas.
    static func fields(_ text: String, of flag: String) throws -> [DocumentModel.FieldPath] {
        try OrderText.split(text).map { try field($0.trimmingSpaces, of: flag) }
    }

    /// A field of a flag or a condition.
    /// - Parameter place: where it stands, for example `--select`.
    static func field(_ text: String, of place: String) throws -> DocumentModel.FieldPath {
        do throws(RequestError) {
            return try DocumentModel.FieldPath(text)
        } catch {
            throw UsageError(
                message:
                    "\"\(text)\" in \(place) is not a field: write its name, with dots before the fields of a map, "
                    + "and in backticks if it has other characters than letters, digits and _")
        }
    }

    /// The orders of `year:desc,title`; a space may stand for the colon. The name comes last.
    static func orders(_ text: String) throws -> [Order] {
        var orders = try OrderText.split(text).map { try order($0.trimmingSpaces) }
        if !orders.contains(where: { $0.field.isDocumentName }) {
            orders.append(Order(field: .documentName, direction: orders.last?.direction ?? .ascending))
        }
        return orders
    }

    private static func order(_ text: String) throws -> Order {
        var quotes = BackquoteScanner()
        let name = text.unicodeScalars.prefix { quotes.covers($0) || ($0 != ":" && $0 != " ") }
        let direction: SortDirection
        let rest = text.unicodeScalars[name.endIndex...].drop { $0 == ":" || $0 == " " }
        switch String(rest).lowercased() {
        case "", "asc": direction = .ascending
        case "desc": direction = .descending
        case let other:
            throw UsageError(
                message:
                    "\"\(other)\" in \"\(text)\" of --order-by is not a direction: write FIELD, FIELD:asc or FIELD:desc"
            )
        }
        return Order(field: try field(String(name), of: "--order-by"), direction: direction)
    }

    /// Refuses a directory that this user must not look into: what is in it seems to be missing.
    static func checkAccess(_ directory: String) throws(CommandFailure) {
        let status = Directory.status(of: directory)
        guard status.isDirectory, let owner = status.owner, access(directory, X_OK) != 0, errno == EACCES else {
            return
        }
        throw CommandFailure(
            "\(directory) belongs to the user \(Directory.nameOfUser(owner)) alone: run the command as this user")
    }

    /// Refuses a directory that holds no database, which a command that only reads must not create.
    static func checkDataDirectory(_ directory: String) throws {
        if Directory.exists("\(directory)/FORMAT") { return }
        try checkAccess(directory)
        var reason = Directory.exists(directory) ? "it has no FORMAT file" : "it does not exist"
        if directory == "./hearth-data" { reason += "; --data names another" }
        throw CommandFailure("\(directory) is not a Hearth data directory: \(reason)")
    }
}
