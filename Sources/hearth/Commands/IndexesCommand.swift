// `hearth indexes`: the indexes that a database is to have beside the automatic ones.

import Basics
import DocumentModel
import DocumentStore
import FirestoreService
import Foundation
import Indexing
import Server

/// Applies a `firestore.indexes.json`, or lists what is there.
enum IndexesCommand: Subcommand {
    static let name = "indexes"
    static let summary = "Applies a firestore.indexes.json to a database, or lists its indexes."
    static let words = ["ACTION", "[FILE...]"]

    static let discussion = """
        ACTION is apply or list. apply replaces the declared indexes of the database by those
        in FILE, which has the format of Firebase's firestore.indexes.json. The server builds
        new indexes in the background and drops indexes that are not in FILE. list prints each
        index with its state: BUILDING, READY or DROPPING, and for indexes over several fields
        or collection groups about how many entries are on disk, and their bytes.

        Single fields are indexed without a declaration. fieldOverrides change this for a
        field, for the fields of a map, or for * (all other fields of a collection group): only
        the listed indexes are kept, and none if the list is empty. The scope COLLECTION_GROUP
        adds an index over the whole group. "ttl": true deletes a document when the time in the
        field has passed. No query needs a declared index; hearth query --explain names an
        index that would make the query cheaper.

        If no server uses the directory, apply builds the indexes itself. list can also ask a
        server by its address; apply needs the directory, whose owner may change indexes.

        Examples:

          hearth indexes apply firestore.indexes.json --data /var/lib/hearth
          hearth indexes list --data /var/lib/hearth
          hearth indexes list --address 10.0.0.5:8080
        """

    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory.")
    static let flagGroups = [
        FlagGroup(
            heading: "Flags",
            flags: [data, ServerFlags.address, ServerFlags.project, ServerFlags.database, ServerFlags.timeout])
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let files = arguments.words.dropFirst()
        switch (arguments.words[0], files.count) {
        case ("apply", 1):
            if arguments.given.contains(ServerFlags.address.name) {
                throw UsageError(message: "indexes apply needs --data DIR, on the machine of the server, not --address")
            }
            guard let text = FileManager.default.contents(atPath: files[1]) else {
                throw CommandFailure("cannot read \(files[1])")
            }
            let file = try IndexFile(json: text)
            for note in file.notes { CommandRouter.complain(note) }
            try await apply(file.declaration, database, arguments[data])
        case ("list", 0):
            for index in try await list(database, arguments) {
                let size = index.entries > 0 ? "\tabout \(index.entries) entries, \(index.bytes) bytes" : ""
                try StandardOutput.print("\(index.state)\t\(index.json)\(size)")
            }
        default: throw UsageError(message: "usage: hearth indexes apply FILE, or hearth indexes list")
        }
    }

    private static func apply(
        _ wanted: IndexDeclaration, _ database: DatabaseName, _ directory: String
    ) async throws {
        let what = "\(wanted.indexes.count) indexes and \(wanted.fieldOverrides.count) field overrides"
        if try applyByServer(wanted, database, directory) {
            return try StandardOutput.print("\(what) applied; new indexes are being built")
        }
        try PathWords.checkDataDirectory(directory)
        let store = try DocumentStore.open(.forTool(directory))
        defer { store.close() }
        let result: Result<Void, RequestError> = await withCheckedContinuation { continuation in
            store.declareIndexes(wanted, in: database) { continuation.resume(returning: $0) }
        }
        try result.get()
        while store.indexListing(in: database).contains(where: { $0.state != .ready }) {
            try await Task.sleep(for: .milliseconds(20))
        }
        try StandardOutput.print("\(what) applied and built")
    }

    /// Has the server that runs on the directory apply a declaration; false if there is none.
    private static func applyByServer(
        _ wanted: IndexDeclaration, _ database: DatabaseName, _ directory: String
    ) throws -> Bool {
        do throws(AdminClient.Failure) {
            try AdminClient.applyIndexes(wanted, in: database, directory: directory)
            return true
        } catch {
            guard case .noServer = error else { throw error }
            return false
        }
    }

    private typealias Listing = [(state: String, json: String, entries: Int, bytes: Int)]

    private static func list(_ database: DatabaseName, _ arguments: ParsedArguments) async throws -> Listing {
        guard try asksAddress(arguments) else { return try list(database, in: arguments[data]) }
        return try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            try await client.listIndexes(of: database).map {
                ($0.state, $0.json, Int(clamping: $0.entries), Int(clamping: $0.bytes))
            }
        }
    }

    /// Whether a server is named, and no directory. The command line wins over the environment.
    private static func asksAddress(_ arguments: ParsedArguments) throws -> Bool {
        let given = (
            address: arguments.given.contains(ServerFlags.address.name), data: arguments.given.contains(data.name)
        )
        if given.address, given.data { throw UsageError(message: "--address and --data cannot be combined") }
        return given.address || !arguments.has(data) && arguments.has(ServerFlags.address)
    }

    private static func list(_ database: DatabaseName, in directory: String) throws -> Listing {
        do throws(AdminClient.Failure) {
            return try AdminClient.listIndexes(of: database, directory: directory)
        } catch {
            guard case .noServer = error else { throw error }
        }
        try PathWords.checkDataDirectory(directory)
        let store = try DocumentStore.open(.forTool(directory))
        defer { store.close() }
        return store.indexListing(in: database).map {
            ($0.state.rawValue, $0.json, $0.size?.entries ?? 0, $0.size?.bytes ?? 0)
        }
    }
}

/// A `firestore.indexes.json`, read.
struct IndexFile {
    private(set) var declaration = IndexDeclaration()
    /// What the file asks for that is not needed or not possible here.
    private(set) var notes: [String] = []

    private struct Contents: Decodable {
        struct Index: Decodable {
            var collectionGroup: String
            var queryScope: String?
            var fields: [Field]
        }
        struct Field: Decodable {
            var fieldPath: String
            var order: String?
            var arrayConfig: String?
            var vectorConfig: Vector?
        }
        struct Vector: Decodable {
            var dimension: Int
        }
        struct Override: Decodable {
            struct Index: Decodable {
                var queryScope: String?
                var order: String?
                var arrayConfig: String?
            }
            var collectionGroup: String
            var fieldPath: String
            var indexes: [Index]?
            var ttl: Bool?
        }
        var indexes: [Index]?
        var fieldOverrides: [Override]?
    }

    init(json: Data) throws {
        let contents: Contents
        do {
            contents = try JSONDecoder().decode(Contents.self, from: json)
        } catch {
            throw CommandFailure("invalid firestore.indexes.json: \(ErrorText.describe(error))")
        }
        for index in contents.indexes ?? [] { try add(index) }
        for override in contents.fieldOverrides ?? [] { try add(override) }
    }

    private mutating func add(_ index: Contents.Index) throws {
        var parts: [IndexShape.Part] = []
        var vector: IndexShape.VectorPart?
        var nameKind: IndexShape.Part.Kind?
        for field in index.fields {
            if nameKind != nil, field.vectorConfig == nil {
                throw CommandFailure("index of \(index.collectionGroup): no field may follow __name__")
            }
            if vector != nil {
                throw CommandFailure("index of \(index.collectionGroup): the vector must be the last field")
            }
            if let configuration = field.vectorConfig {
                guard (1...Limits.vectorDimension).contains(configuration.dimension) else {
                    let path = "\(index.collectionGroup).\(field.fieldPath)"
                    throw CommandFailure("\(path): a vector must have 1 to \(Limits.vectorDimension) dimensions")
                }
                vector = IndexShape.VectorPart(
                    field: try DocumentModel.FieldPath(field.fieldPath), dimension: configuration.dimension)
                continue
            }
            guard let kind = Self.kind(field.order, field.arrayConfig) else {
                throw CommandFailure(
                    "\(index.collectionGroup).\(field.fieldPath): expected order, arrayConfig CONTAINS or vectorConfig")
            }
            if field.fieldPath == "__name__" {
                nameKind = kind
                continue
            }
            parts.append(IndexShape.Part(field: try DocumentModel.FieldPath(field.fieldPath), kind: kind))
        }
        if parts.isEmpty, vector == nil { return }
        append(
            IndexShape(
                collectionID: index.collectionGroup, isGroup: index.queryScope == "COLLECTION_GROUP", parts: parts,
                vector: vector,
                reversesName: nameKind.map { ($0 == .descending) != (parts.last?.kind == .descending) } ?? false))
    }

    private mutating func add(_ override: Contents.Override) throws {
        let name = "\(override.collectionGroup).\(override.fieldPath)"
        let field = override.fieldPath == "*" ? nil : try DocumentModel.FieldPath(override.fieldPath)
        let modes = override.indexes.map { $0.reduce(into: FieldOverride.Modes()) { $0.formUnion(Self.mode($1)) } }
        if field == nil, let modes, modes != modes.intersection(.automatic) {
            notes.append("\(name): an index with scope COLLECTION_GROUP needs the name of a field; * is ignored")
        }
        declaration.fieldOverrides.append(
            FieldOverride(
                collectionID: override.collectionGroup, field: field, indexes: modes, expires: override.ttl ?? false))
    }

    private mutating func append(_ shape: IndexShape) {
        if !declaration.indexes.contains(shape) { declaration.indexes.append(shape) }
    }

    private static func mode(_ index: Contents.Override.Index) -> FieldOverride.Modes {
        let isGroup = index.queryScope == "COLLECTION_GROUP"
        return switch kind(index.order, index.arrayConfig) {
        case .ascending: isGroup ? .groupAscending : .ascending
        case .descending: isGroup ? .groupDescending : .descending
        case .contains: isGroup ? .groupContains : .contains
        case nil: []
        }
    }

    private static func kind(_ order: String?, _ arrayConfig: String?) -> IndexShape.Part.Kind? {
        switch (order, arrayConfig) {
        case ("ASCENDING", nil): .ascending
        case ("DESCENDING", nil): .descending
        case (nil, "CONTAINS"): .contains
        default: nil
        }
    }
}
