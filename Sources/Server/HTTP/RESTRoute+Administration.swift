// The REST paths of `google.firestore.admin.v1` and `google.longrunning`.
//
//     GET, POST           projects/P/databases                                   list, create
//     GET, PATCH, DELETE  projects/P/databases/D                                 get, update, delete
//     GET, POST           projects/P/databases/D/collectionGroups/C/indexes      list, create
//     GET, DELETE         projects/P/databases/D/collectionGroups/C/indexes/I
//     GET                 projects/P/databases/D/collectionGroups/C/fields
//     GET, PATCH          projects/P/databases/D/collectionGroups/C/fields/F
//     GET                 projects/P/databases/D/operations
//     GET, DELETE         projects/P/databases/D/operations/O
//     POST                projects/P/databases/D/operations/O:cancel             also :wait

internal import DocumentModel
internal import FirestoreMessages
internal import HTTPProtocols

private typealias Fields = FieldNumber.FirestoreAdmin

extension RESTRoute {
    /// Nil for other paths.
    /// - Parameter names: the segments of the path, decoded.
    init?(administration httpMethod: HTTPMethod, _ names: [String]) {
        guard names.count >= 3, names[0] == "projects", names[2] == "databases" else { return nil }
        let path = names.joined(separator: "/")
        switch names.count {
        case 3: self.init(databases: httpMethod, parent: names[..<2].joined(separator: "/"))
        case 4 where !names[3].contains(":"): self.init(database: httpMethod, path)
        case 5...6 where names[4] == "operations": self.init(operations: httpMethod, names)
        case 7...8 where names[4] == "collectionGroups":
            let parent = names[..<6].joined(separator: "/")
            if names.count == 7 {
                self.init(group: httpMethod, names[6], parent: parent)
            } else {
                self.init(inGroup: httpMethod, names[6], path)
            }
        default: return nil
        }
    }

    private static func named(_ method: Method, _ name: String) -> RESTRoute {
        // All requests with a name have it in the same field.
        RESTRoute(method, [Binding(field: Fields.GetIndexRequest.name, value: name)])
    }

    private init?(databases httpMethod: HTTPMethod, parent: String) {
        switch httpMethod {
        case .get:
            self.init(.listDatabases, [Binding(field: Fields.ListDatabasesRequest.parent, value: parent)])
        case .post:
            typealias Field = Fields.CreateDatabaseRequest
            self.init(
                .createDatabase, [Binding(field: Field.parent, value: parent)],
                body: .resource(field: Field.database, type: AdminDatabase.type))
        default: return nil
        }
    }

    private init?(database httpMethod: HTTPMethod, _ name: String) {
        switch httpMethod {
        case .get: self = Self.named(.getDatabase, name)
        case .delete: self = Self.named(.deleteDatabase, name)
        case .patch:
            self.init(
                .updateDatabase, [],
                body: .resource(field: Fields.UpdateDatabaseRequest.database, type: AdminDatabase.type),
                resourceName: name)
        default: return nil
        }
    }

    private init?(operations httpMethod: HTTPMethod, _ names: [String]) {
        let path = names.joined(separator: "/")
        if names.count == 5 {
            guard httpMethod == .get else { return nil }
            self.init(
                .listOperations, [Binding(field: FieldNumber.Longrunning.ListOperationsRequest.name, value: path)])
            return
        }
        switch httpMethod {
        case .get: self = Self.named(.getOperation, path)
        case .delete: self = Self.named(.deleteOperation, path)
        case .post:
            guard let colon = path.lastIndex(of: ":") else { return nil }
            let name = String(path[..<colon])
            switch path[path.index(after: colon)...] {
            case "cancel": self = Self.named(.cancelOperation, name)
            case "wait": self = Self.named(.waitOperation, name)
            default: return nil
            }
        default: return nil
        }
    }

    private init?(group httpMethod: HTTPMethod, _ kind: String, parent: String) {
        // Both lists have their parent in the same field.
        let bindings = [Binding(field: Fields.ListIndexesRequest.parent, value: parent)]
        switch (httpMethod, kind) {
        case (.get, "indexes"): self.init(.listIndexes, bindings)
        case (.get, "fields"): self.init(.listFields, bindings)
        case (.post, "indexes"):
            typealias Field = Fields.CreateIndexRequest
            self.init(
                .createIndex, [Binding(field: Field.parent, value: parent)],
                body: .resource(field: Field.index, type: "google.firestore.admin.v1.Index"))
        default: return nil
        }
    }

    private init?(inGroup httpMethod: HTTPMethod, _ kind: String, _ name: String) {
        switch (httpMethod, kind) {
        case (.get, "indexes"): self = Self.named(.getIndex, name)
        case (.delete, "indexes"): self = Self.named(.deleteIndex, name)
        case (.get, "fields"): self = Self.named(.getField, name)
        case (.patch, "fields"):
            self.init(
                .updateField, [],
                body: .resource(
                    field: Fields.UpdateFieldRequest.field, type: "google.firestore.admin.v1.Field"),
                resourceName: name)
        default: return nil
        }
    }
}
