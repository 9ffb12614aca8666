// Names of resources of the admin API.
//
//     projects/P/databases/D/collectionGroups/C
//     projects/P/databases/D/collectionGroups/C/indexes/I
//     projects/P/databases/D/collectionGroups/C/fields/F      F is a field path, or * for all other fields
//     projects/P/databases/D/operations/index-I-V             V is the version of the change
//     projects/P/databases/D/operations/field-H-V             H is C/F in hexadecimal
//     projects/P/databases/D/operations/create-V              also update-V, delete-V
//
// An index or a field has no V if it was declared by a version of the program that did not note it.

internal import Basics
internal import DocumentModel
internal import Indexing

/// A collection group of a database.
struct AdminGroup: CustomStringConvertible {
    let database: DatabaseName
    let collectionID: String

    /// Stands for all collection groups in a listing.
    static let all = "-"
    /// Its field `*` has the settings of all fields that have none.
    static let defaults = "__default__"

    init(database: DatabaseName, collectionID: String) {
        self.database = database
        self.collectionID = collectionID
    }

    init(_ name: String) throws(RequestError) {
        self = try Self.split(name, kind: nil).group
    }

    var description: String { "\(database)/collectionGroups/\(collectionID)" }

    /// Whether a listing of this group has a group of the database.
    func covers(_ id: String) -> Bool { collectionID == Self.all || collectionID.hasSameUTF8(as: id) }

    /// The group at the beginning of a name, and what is after `/{kind}/`.
    fileprivate static func split(
        _ name: String, kind: String?
    ) throws(RequestError) -> (group: AdminGroup, rest: String) {
        let parts = name.split(separator: "/", maxSplits: 7, omittingEmptySubsequences: false)
        let count = kind == nil ? 6 : 8
        guard parts.count == count, parts[4] == "collectionGroups", !parts[5].isEmpty,
            kind.map({ parts[6] == $0 && !parts[7].isEmpty }) ?? true
        else {
            let form = "projects/{project}/databases/{database}/collectionGroups/{collection}"
            throw .invalidArgument(
                "Invalid name \"\(name)\": it must look like \(form)\(kind.map { "/\($0)/{id}" } ?? "").")
        }
        let database = try DatabaseName(parts[..<4].joined(separator: "/"))
        return (AdminGroup(database: database, collectionID: String(parts[5])), kind == nil ? "" : String(parts[7]))
    }
}

/// An index by its name.
struct AdminIndexName: CustomStringConvertible {
    let group: AdminGroup
    let identifier: String

    init(_ name: String) throws(RequestError) {
        (group, identifier) = try AdminGroup.split(name, kind: "indexes")
    }

    init(_ shape: IndexShape, in database: DatabaseName) {
        group = AdminGroup(database: database, collectionID: shape.collectionID)
        identifier = shape.identifier
    }

    var description: String { "\(group)/indexes/\(identifier)" }

    func names(_ shape: IndexShape) -> Bool {
        shape.collectionID.hasSameUTF8(as: group.collectionID) && shape.identifier == identifier
    }
}

/// A field by its name.
struct AdminFieldName: CustomStringConvertible {
    let group: AdminGroup
    /// Nil is `*`.
    let field: FieldPath?

    init(_ name: String) throws(RequestError) {
        let (group, path) = try AdminGroup.split(name, kind: "fields")
        try self.init(group, path: path)
    }

    init(_ group: AdminGroup, path: String) throws(RequestError) {
        self.group = group
        field = path == "*" ? nil : try FieldPath(path)
    }

    init(_ group: AdminGroup, _ field: FieldPath?) {
        self.group = group
        self.field = field
    }

    var path: String { field.map { "\($0)" } ?? "*" }
    var description: String { "\(group)/fields/\(path)" }
}

/// What an operation works on, which its name says.
enum AdminOperation {
    /// The build of an index that was declared with a version, in microseconds; 0 if that was not noted.
    case index(DatabaseName, identifier: String, version: UInt64)
    /// A change of a field that was made with a version, in microseconds; 0 if that was not noted.
    case field(AdminFieldName, version: UInt64)
    /// A change of a database, which was made with a version, in microseconds.
    case database(DatabaseName, DatabaseOperation, version: UInt64)

    init(_ name: String) throws(RequestError) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[4] == "operations" else {
            throw .invalidArgument(
                "Invalid name \"\(name)\": it must look like projects/{project}/databases/{database}/operations/{id}.")
        }
        let database = try DatabaseName(parts[..<4].joined(separator: "/"))
        let identifier = parts[5]
        let words = identifier.split(separator: "-", omittingEmptySubsequences: false)
        if words[0] == Self.indexWord, (2...3).contains(words.count),
            let version = words.count == 2 ? 0 : UInt64(words[2])
        {
            self = .index(database, identifier: String(words[1]), version: version)
            return
        }
        if words.count == 2, let change = DatabaseOperation(rawValue: String(words[0])),
            let version = UInt64(words[1])
        {
            self = .database(database, change, version: version)
            return
        }
        guard words[0] == Self.fieldWord, (2...3).contains(words.count),
            let version = words.count == 2 ? 0 : UInt64(words[2]), let bytes = Hexadecimal.bytes(String(words[1])),
            let text = String(validating: bytes, as: UTF8.self), let slash = text.firstIndex(of: "/")
        else { throw RequestError(.notFound, "There is no operation \(name).") }
        let group = AdminGroup(database: database, collectionID: String(text[..<slash]))
        self = .field(
            try AdminFieldName(group, path: String(text[text.index(after: slash)...])), version: version)
    }

    private static let indexWord = "index"
    private static let fieldWord = "field"

    var name: String {
        switch self {
        case .index(let database, let identifier, let version):
            "\(database)/operations/\(Self.indexWord)-\(identifier)\(Self.suffix(version))"
        case .field(let field, let version):
            "\(field.group.database)/operations/\(Self.fieldWord)-"
                + Hexadecimal.text(Array("\(field.group.collectionID)/\(field.path)".utf8).byteSpan)
                + Self.suffix(version)
        case .database(let database, let change, let version):
            "\(database)/operations/\(change.rawValue)-\(version)"
        }
    }

    private static func suffix(_ version: UInt64) -> String { version == 0 ? "" : "-\(version)" }
}

/// What is done to a database.
enum DatabaseOperation: String {
    case create, update, delete

    /// The type of the metadata of its operations, which are empty messages.
    var metadataType: String {
        let verb = rawValue.prefix(1).uppercased() + rawValue.dropFirst()
        return "google.firestore.admin.v1.\(verb)DatabaseMetadata"
    }
}
