// Which RPC a REST request means, and which fields of its message stand in the path (google/api/http.proto; the paths
// are those of the public google.firestore.v1 service).
//
//     D = /v1/projects/P/databases/D/documents
//     GET, PATCH, DELETE  D/{collection}/{document}/...     GetDocument, UpdateDocument, DeleteDocument
//     GET, POST           D/.../{collection}                ListDocuments, CreateDocument
//     POST                D:{verb}, D/.../{document}:{verb} everything else
//
// `RESTRoute+Administration.swift` has those of the admin API.

internal import Basics
internal import DocumentModel
internal import FirestoreMessages
internal import FirestoreService
internal import HTTPProtocols

/// One REST request's meaning.
struct RESTRoute: Equatable {
    /// What the body of the request is.
    enum Body: Equatable {
        /// Nothing; it is ignored.
        case none
        /// The RPC's whole message.
        case message
        /// The resource in the message's field of this number, a message of this type.
        case resource(field: Int, type: String)
    }

    /// A string field of the message that the path sets.
    struct Binding: Equatable {
        let field: Int
        let value: String
    }

    let method: Method
    var body = Body.none
    var bindings: [Binding]
    /// The name of the resource in the body, where the path says it.
    var resourceName: String?

    /// What the path names.
    var resource: String { resourceName ?? bindings[0].value }

    /// The field of documents, indexes, fields and databases that has their name.
    static let nameField = FieldNumber.Document.name
    private static let document = "google.firestore.v1.Document"

    /// The route of a request; nil if there is none of the kind, and an error for a path that does not name a resource.
    ///
    /// - Parameter segments: of the path after `/v1`, still encoded.
    init?(_ httpMethod: HTTPMethod, _ segments: [String]) throws(RequestError) {
        var segments = segments
        let verb = httpMethod == .post ? Self.cutVerb(&segments) : nil
        var names: [String] = []
        for segment in segments {
            guard let name = PercentEncoding.decoded(segment) else {
                throw .invalidArgument("The path is not percent-encoded UTF-8.")
            }
            guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")) else {
                throw .invalidArgument("A segment of the path is empty or contains an encoded slash.")
            }
            names.append(name)
        }
        if let route = RESTRoute(administration: httpMethod, names) {
            self = route
            return
        }
        try Self.refuseUnimplemented(names)
        guard names.count >= 5, names[0] == "projects", names[2] == "databases", names[4] == "documents" else {
            return nil
        }
        if let verb {
            self.init(verb: verb, names)
        } else if names.count == 5 {
            return nil
        } else if names.count % 2 == 1 {
            self.init(document: httpMethod, names.joined(separator: "/"))
        } else {
            self.init(collection: httpMethod, parent: names.dropLast().joined(separator: "/"), names[names.count - 1])
        }
    }

    /// Fails with a clear text for the paths of `google.firestore.admin.v1` and `google.longrunning`.
    private static func refuseUnimplemented(_ names: [String]) throws(RequestError) {
        guard names.count >= 3, names[0] == "projects" else { return }
        guard isAdministrative(names) else { return }
        let verb = names[names.count - 1].split(separator: ":").dropFirst().last
        throw unserved(verb.map(String.init) ?? "", of: UnimplementedMethod.firestoreAdmin)
    }

    private static func isAdministrative(_ names: [String]) -> Bool {
        switch names[2] {
        case "databases":
            names.count < 5 || ["backupSchedules", "collectionGroups", "operations", "userCreds"].contains(names[4])
        case "databases:clone", "databases:restore", "locations": true
        default: false
        }
    }

    /// The text of gRPC for a method whose name begins with the verb of a path, if there is one.
    private static func unserved(_ verb: String, of service: String) -> RequestError {
        let name = verb.prefix(1).uppercased() + verb.dropFirst()
        let substitute = ["Clone", "Restore"].contains(name) ? name + "Database" : name
        if !verb.isEmpty, let method = UnimplementedMethod(substitute, of: service) {
            return RequestError(.unimplemented, method.text)
        }
        return RequestError(
            .unimplemented,
            """
            This server has no such REST path of the admin API. It has databases, indexes, fields and operations; use \
            gRPC for others, here or on the socket admin.sock in the data directory.
            """)
    }

    /// Takes a known verb off the last segment. Anything else after a colon belongs to an id.
    ///
    /// Some clients encode the colon. Where it could only stand before a verb, since nothing else is posted to a
    /// document or to the root, that is understood; a collection's id may end in `%3Acommit`.
    private static func cutVerb(_ segments: inout [String]) -> RESTVerb? {
        guard let last = segments.last else { return nil }
        if let (verb, rest) = verb(of: last, after: ":") {
            segments[segments.count - 1] = rest
            return verb
        }
        guard segments.count % 2 == 1, let (verb, rest) = verb(of: last, after: "%3A") ?? verb(of: last, after: "%3a")
        else {
            return nil
        }
        segments[segments.count - 1] = rest
        return verb
    }

    /// The verb after the last `colon` of a segment, and what stands before it.
    private static func verb(of segment: String, after colon: String) -> (verb: RESTVerb, rest: String)? {
        let start = segment.indices.last { segment[$0...].hasPrefix(colon) }
        guard let start, let verb = RESTVerb(rawValue: String(segment[start...].dropFirst(colon.count))) else {
            return nil
        }
        return (verb, String(segment[..<start]))
    }

    private init?(verb: RESTVerb, _ names: [String]) {
        guard verb.isOfDatabase ? names.count == 5 : names.count % 2 == 1 else { return nil }
        let resource = (verb.isOfDatabase ? names.prefix(4) : names[...]).joined(separator: "/")
        method = verb.method
        body = .message
        bindings = [Binding(field: verb.resourceField, value: resource)]
    }

    private init?(document httpMethod: HTTPMethod, _ name: String) {
        switch httpMethod {
        case .get:
            method = .getDocument
            bindings = [Binding(field: FieldNumber.GetDocumentRequest.name, value: name)]
        case .delete:
            method = .deleteDocument
            bindings = [Binding(field: FieldNumber.DeleteDocumentRequest.name, value: name)]
        case .patch:
            method = .updateDocument
            body = .resource(field: FieldNumber.UpdateDocumentRequest.document, type: Self.document)
            bindings = []
            resourceName = name
        default: return nil
        }
    }

    init(_ method: Method, _ bindings: [Binding], body: Body = .none, resourceName: String? = nil) {
        self.method = method
        self.bindings = bindings
        self.body = body
        self.resourceName = resourceName
    }

    private init?(collection httpMethod: HTTPMethod, parent: String, _ id: String) {
        switch httpMethod {
        case .get:
            typealias Field = FieldNumber.ListDocumentsRequest
            method = .listDocuments
            bindings = [Binding(field: Field.parent, value: parent), Binding(field: Field.collectionId, value: id)]
        case .post:
            typealias Field = FieldNumber.CreateDocumentRequest
            method = .createDocument
            body = .resource(field: Field.document, type: Self.document)
            bindings = [Binding(field: Field.parent, value: parent), Binding(field: Field.collectionId, value: id)]
        default: return nil
        }
    }
}

/// What may follow a colon at the end of a path.
enum RESTVerb: String {
    case batchGet, batchWrite, beginTransaction, commit, rollback, executePipeline
    case runQuery, runAggregationQuery, partitionQuery, listCollectionIds

    /// Whether it is said to a database and not to a parent of collections.
    var isOfDatabase: Bool {
        switch self {
        case .batchGet, .batchWrite, .beginTransaction, .commit, .rollback, .executePipeline: true
        case .runQuery, .runAggregationQuery, .partitionQuery, .listCollectionIds: false
        }
    }

    /// The field of the RPC's message that takes the database or the parent.
    var resourceField: Int {
        switch self {
        case .batchGet: FieldNumber.BatchGetDocumentsRequest.database
        case .batchWrite: FieldNumber.BatchWriteRequest.database
        case .beginTransaction: FieldNumber.BeginTransactionRequest.database
        case .commit: FieldNumber.CommitRequest.database
        case .rollback: FieldNumber.RollbackRequest.database
        case .executePipeline: FieldNumber.ExecutePipelineRequest.database
        case .runQuery: FieldNumber.RunQueryRequest.parent
        case .runAggregationQuery: FieldNumber.RunAggregationQueryRequest.parent
        case .partitionQuery: FieldNumber.PartitionQueryRequest.parent
        case .listCollectionIds: FieldNumber.ListCollectionIdsRequest.parent
        }
    }

    var method: Method {
        switch self {
        case .batchGet: .batchGetDocuments
        case .batchWrite: .batchWrite
        case .beginTransaction: .beginTransaction
        case .commit: .commit
        case .rollback: .rollback
        case .executePipeline: .executePipeline
        case .runQuery: .runQuery
        case .runAggregationQuery: .runAggregationQuery
        case .partitionQuery: .partitionQuery
        case .listCollectionIds: .listCollectionIds
        }
    }
}
