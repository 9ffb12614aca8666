// `hearth indexes`: the indexes that a database is to have beside the automatic ones.

import Basics
import DocumentJSON
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Indexing
import Server
import Storage
import TextAnalysis

/// Applies a `firestore.indexes.json`, or lists what is there.
enum IndexesCommand: AsyncSubcommand {
    static let name = "indexes"
    static let summary = "Applies a firestore.indexes.json to a database, lists its indexes, or suggests some."
    static let words = ["ACTION", "[FILE...]"]
    static let actions = ["apply", "list", "suggest"]

    static let discussion = """
        ACTION is apply, list or suggest. apply replaces the declared indexes of the database by those
        in FILE, which has the format of Firebase's firestore.indexes.json. The server builds
        new indexes in the background and drops indexes that are not in FILE. list prints each
        index with its state: BUILDING, READY or DROPPING, and for indexes over several fields
        or collection groups about how many entries are on disk, and their bytes. An index for
        searches is WAITING if the server lacks the libraries ICU and Snowball. An index is
        FAILED if its build cannot continue, with the reason; it is tried again. The field * of
        the collection group * stands for the entries of all fields while they are being made.

        suggest prints a firestore.indexes.json: the declared indexes, and those that queries
        since the start of the server would have been cheaper with, or were refused without
        (--index-mode strict). The server keeps up to 1,000 of them. Look at the file before
        you apply it: each index makes writes dearer. Standard error says for each suggestion
        how many queries lacked it, and how many documents they read.

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
          hearth indexes suggest --data /var/lib/hearth > firestore.indexes.json
        """

    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory.")
    static let json = Flag(
        switch: "json",
        help: """
            list prints objects with the members state, index, entries and bytes; an index that is FAILED has the \
            reason in failure.
            """)
    static let flagGroups = [
        FlagGroup(
            heading: "Flags",
            flags: [data, json] + ServerFlags.all + ProgressFlags.all)
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let files = arguments.words.dropFirst()
        switch (arguments.words[0], files.count) {
        case ("apply", 1):
            if arguments.given.contains(ServerFlags.address.name) {
                throw UsageError(message: "indexes apply needs --data DIR, on the machine of the server, not --address")
            }
            let file = try IndexFile(json: try InputFile.contents(of: files[1]))
            for note in file.notes { CommandRouter.complain(note) }
            try await apply(file.declaration, database, arguments[data], ProgressFlags.line(arguments))
        case ("list", 0):
            let listing = try await list(database, arguments).filter { $0.state != ListIndexesResponse.wanted }
            for index in listing { try print(index, isJSON: arguments[json]) }
        case ("suggest", 0): try suggest(try await list(database, arguments))
        default:
            throw UsageError(
                message: "usage: hearth indexes apply FILE, hearth indexes list, or hearth indexes suggest")
        }
    }

    private static func print(_ index: ListIndexesResponse.Entry, isJSON: Bool) throws {
        if isJSON {
            let state = JSONText.quoted(index.state)
            let failure = index.failure.isEmpty ? "" : ",\"failure\":\(JSONText.quoted(index.failure))"
            return try StandardOutput.print(
                "{\"state\":\(state),\"index\":\(index.json),\"entries\":\(index.entries),\"bytes\":\(index.bytes)"
                    + "\(failure)}")
        }
        let size = index.entries > 0 ? "\tabout \(index.entries) entries, \(index.bytes) bytes" : ""
        let failure = index.failure.isEmpty ? "" : "\t\(index.failure)"
        try StandardOutput.print("\(index.state)\t\(index.json)\(size)\(failure)")
    }

    /// Prints a `firestore.indexes.json` that has what is declared and what queries lacked.
    private static func suggest(_ listing: [ListIndexesResponse.Entry]) throws {
        for index in listing where index.state == ListIndexesResponse.wanted {
            StandardError.write("\(index.json): \(index.entries) queries read \(index.bytes) documents\n")
        }
        // An override has its field beside its indexes, an index has fields in it.
        let kept = listing.filter { $0.state != DocumentStore.IndexProgress.dropping.rawValue }.map(\.json)
        let overrides = try kept.filter {
            let entry = try JSONObject(Array($0.utf8))
            return try entry.has("fieldPath") && entry.string("collectionGroup") != "*"
        }
        let indexes = try kept.filter { try !JSONObject(Array($0.utf8)).has("fieldPath") }
        let parts = [("indexes", indexes), ("fieldOverrides", overrides)].map { name, entries -> String in
            let lines = entries.map { "\n    \($0)" }.joined(separator: ",")
            return "  \"\(name)\": [\(lines)\(entries.isEmpty ? "" : "\n  ")]"
        }
        try StandardOutput.print("{\n" + parts.joined(separator: ",\n") + "\n}")
    }

    private static func apply(
        _ wanted: IndexDeclaration, _ database: DatabaseName, _ directory: String, _ progress: ProgressLine
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
        var line = progress
        defer { line.clear() }
        var total = 0
        while true {
            let unfinished = store.indexListing(in: database).filter {
                $0.state != .ready && $0.state != .waiting && !$0.isOfAllFields
            }
            if unfinished.isEmpty { break }
            if unfinished.allSatisfy({ $0.state == .failed }) {
                let failures = unfinished.map { "\($0.json): \($0.failure ?? "")" }
                throw CommandFailure(
                    "\(what) applied, but not all are built; a server tries again:\n"
                        + failures.joined(separator: "\n"))
            }
            let left = store.indexWorkLeft(in: database)
            // The entries of an index that is dropped may be more than they were when the work began.
            total = max(total, left)
            line.update(WorkProgress("building indexes", done: total - left, total: total, .entries))
            try await Task.sleep(for: .milliseconds(20))
        }
        line.clear()
        try StandardOutput.print("\(what) applied and built")
    }

    /// Has the server that runs on the directory apply a declaration; false if there is none.
    private static func applyByServer(
        _ wanted: IndexDeclaration, _ database: DatabaseName, _ directory: String
    ) throws -> Bool {
        try PathWords.checkAccess(directory)
        do throws(AdminClient.Failure) {
            try AdminClient.applyIndexes(wanted, in: database, directory: directory)
            return true
        } catch {
            guard case .noServer = error else { throw error }
            return false
        }
    }

    private static func list(
        _ database: DatabaseName, _ arguments: ParsedArguments
    ) async throws -> [ListIndexesResponse.Entry] {
        guard try asksAddress(arguments) else { return try list(database, in: arguments[data]) }
        return try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            try await client.listIndexes(of: database)
        }
    }

    /// Whether a server is named, and no directory. The command line wins over the environment.
    static func asksAddress(_ arguments: ParsedArguments) throws -> Bool {
        let given = (
            address: arguments.given.contains(ServerFlags.address.name), data: arguments.given.contains(data.name)
        )
        if given.address, given.data { throw UsageError(message: "--address and --data cannot be combined") }
        return given.address || !arguments.has(data) && arguments.has(ServerFlags.address)
    }

    private static func list(_ database: DatabaseName, in directory: String) throws -> [ListIndexesResponse.Entry] {
        try PathWords.checkAccess(directory)
        do throws(AdminClient.Failure) {
            return try AdminClient.listIndexes(of: database, directory: directory)
        } catch {
            guard case .noServer = error else { throw error }
        }
        try PathWords.checkDataDirectory(directory)
        let store = try DocumentStore.open(.forTool(directory))
        defer { store.close() }
        return store.indexListing(in: database).map(ListIndexesResponse.Entry.init)
    }
}

/// A `firestore.indexes.json`, read.
struct IndexFile {
    private(set) var declaration = IndexDeclaration()
    /// What the file asks for that is not needed or not possible here.
    private(set) var notes: [String] = []

    init(json: [UInt8]) throws {
        do {
            let file = try JSONObject(commented: json)
            for index in try file.objects("indexes") ?? [] { try add(index: index) }
            for override in try file.objects("fieldOverrides") ?? [] { try add(override: override) }
        } catch let mistake as JSONObject.Mistake {
            throw CommandFailure("invalid firestore.indexes.json: \(mistake)")
        }
    }

    private mutating func add(index: JSONObject) throws {
        let collectionID = try Self.required("collectionGroup", of: index)
        var parts: [IndexShape.Part] = []
        var vector: IndexShape.VectorPart?
        var nameKind: IndexShape.Part.Kind?
        if let search = try Self.search(index, collectionID) {
            return append(
                IndexShape(collectionID: collectionID, isGroup: try Self.isGroup(index), parts: [], search: search))
        }
        guard let fields = try index.objects("fields") else {
            throw JSONObject.Mistake("'fields' of an index of \(collectionID) is missing")
        }
        for field in fields {
            let path = try Self.required("fieldPath", of: field)
            let vectorConfiguration = try field.object("vectorConfig")
            if nameKind != nil, vectorConfiguration == nil {
                throw CommandFailure("index of \(collectionID): no field may follow __name__")
            }
            if vector != nil { throw CommandFailure("index of \(collectionID): the vector must be the last field") }
            if let vectorConfiguration {
                guard let dimension: Int = try vectorConfiguration.integer("dimension"),
                    (1...Limits.vectorDimension).contains(dimension)
                else {
                    throw CommandFailure(
                        "\(collectionID).\(path): a vector must have 1 to \(Limits.vectorDimension) dimensions")
                }
                vector = IndexShape.VectorPart(field: try DocumentModel.FieldPath(path), dimension: dimension)
                continue
            }
            guard let kind = try Self.kind(of: field) else {
                throw CommandFailure(
                    "\(collectionID).\(path): expected order, arrayConfig CONTAINS or vectorConfig")
            }
            if path == "__name__" {
                nameKind = kind
                continue
            }
            parts.append(IndexShape.Part(field: try DocumentModel.FieldPath(path), kind: kind))
        }
        if parts.isEmpty, vector == nil { return }
        append(
            IndexShape(
                collectionID: collectionID, isGroup: try Self.isGroup(index), parts: parts, vector: vector,
                reversesName: nameKind.map { ($0 == .descending) != (parts.last?.kind == .descending) } ?? false))
    }

    /// The fields of an index for searches; nil for another index.
    private static func search(_ index: JSONObject, _ collectionID: String) throws -> IndexShape.SearchPart? {
        let fields = try index.objects("fields") ?? []
        guard try fields.contains(where: { try $0.object("searchConfig") != nil }) else { return nil }
        let tag = try index.object("searchIndexOptions")?.string("textLanguage")
        var search = IndexShape.SearchPart(texts: [], language: try tag.map { try TextLanguage(tag: $0) } ?? .english)
        for field in fields {
            let path = try required("fieldPath", of: field)
            // Each index of the cloud ends with the name; it says nothing about a search.
            if path == "__name__" { continue }
            guard let configuration = try field.object("searchConfig") else {
                throw CommandFailure("\(collectionID).\(path): all fields of an index for searches have a searchConfig")
            }
            let (isText, isPoint) = (
                try configuration.object("textSpec") != nil, try configuration.object("geoSpec") != nil
            )
            guard isText != isPoint else {
                throw CommandFailure("\(collectionID).\(path): a searchConfig has either textSpec or geoSpec")
            }
            let field = try DocumentModel.FieldPath(path)
            if isText { search.texts.append(field) } else { search.points.append(field) }
        }
        return search
    }

    private mutating func add(override: JSONObject) throws {
        let collectionID = try Self.required("collectionGroup", of: override)
        let path = try Self.required("fieldPath", of: override)
        let field = path == "*" ? nil : try DocumentModel.FieldPath(path)
        let modes = try override.objects("indexes").map { indexes in
            try indexes.reduce(into: FieldOverride.Modes()) { $0.formUnion(try Self.mode($1)) }
        }
        if field == nil, let modes, modes != modes.intersection(.automatic) {
            notes.append(
                "\(collectionID).\(path): an index with scope COLLECTION_GROUP needs the name of a field; * is ignored")
        }
        declaration.fieldOverrides.append(
            FieldOverride(
                collectionID: collectionID, field: field, indexes: modes,
                expires: try override.boolean("ttl") ?? false))
    }

    private mutating func append(_ shape: IndexShape) {
        if !declaration.indexes.contains(shape) { declaration.indexes.append(shape) }
    }

    private static func required(_ name: String, of object: JSONObject) throws -> String {
        guard let text = try object.string(name) else {
            throw JSONObject.Mistake("'\(name)' is missing")
        }
        return text
    }

    private static func isGroup(_ index: JSONObject) throws -> Bool {
        switch try index.string("queryScope") {
        case "COLLECTION_GROUP": true
        case "COLLECTION", nil: false
        case let scope?:
            throw JSONObject.Mistake(
                "'queryScope' must be COLLECTION or COLLECTION_GROUP, not \(JSONText.quoted(scope))")
        }
    }

    private static func mode(_ index: JSONObject) throws -> FieldOverride.Modes {
        let isGroup = try isGroup(index)
        return switch try kind(of: index) {
        case .ascending: isGroup ? .groupAscending : .ascending
        case .descending: isGroup ? .groupDescending : .descending
        case .contains: isGroup ? .groupContains : .contains
        case nil where index.has("vectorConfig") || index.has("searchConfig"): []
        case nil: throw JSONObject.Mistake("an index of a field override has neither order nor arrayConfig CONTAINS")
        }
    }

    private static func kind(of field: JSONObject) throws -> IndexShape.Part.Kind? {
        switch (try field.string("order"), try field.string("arrayConfig")) {
        case ("ASCENDING", nil): .ascending
        case ("DESCENDING", nil): .descending
        case (nil, "CONTAINS"): .contains
        default: nil
        }
    }
}
