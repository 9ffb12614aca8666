// `google.firestore.admin.v1.FirestoreAdmin` and `google.longrunning.Operations`.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import FirestoreService
internal import Indexing

/// Indexes, fields and databases on one loop, as Google's admin API has them. Confined to the loop.
///
/// Nothing is kept here: names of indexes and operations follow from what the store declares, so that an operation is
/// found after a restart too. Changes are decided on the commit thread.
final class IndexAdminService {
    let store: DocumentStore
    /// All stores of the server.
    let stores: [ServedStore]
    let log: Log
    let service: FirestoreService

    /// - Parameter stores: whose databases are listed.
    init(_ store: DocumentStore, _ stores: [ServedStore], _ log: Log, _ service: FirestoreService) {
        self.store = store
        self.stores = stores
        self.log = log
        self.service = service
    }

    func begin(_ call: Call, _ request: RawSpan) throws {
        switch call.method {
        case .createIndex: try createIndex(call, CreateIndexRequest(wire: request))
        case .listIndexes: reply(call, try indexes(AdminListRequest(wire: request)))
        case .getIndex: reply(call, try index(AdminIndexName(NamedRequest(wire: request).name)))
        case .deleteIndex: try deleteIndex(call, AdminIndexName(NamedRequest(wire: request).name))
        case .getField: reply(call, try field(AdminFieldName(NamedRequest(wire: request).name)))
        case .updateField: try updateField(call, UpdateFieldRequest(wire: request))
        case .listFields: reply(call, try fields(AdminListRequest(wire: request)))
        case .createDatabase: try createDatabase(call, CreateDatabaseRequest(wire: request))
        case .updateDatabase: try updateDatabase(call, UpdateDatabaseRequest(wire: request))
        case .deleteDatabase: try deleteDatabase(call, DeleteDatabaseRequest(wire: request))
        case .getDatabase: reply(call, try database(NamedRequest(wire: request).name))
        case .listDatabases: reply(call, try databases(ListDatabasesRequest(wire: request)))
        case .listOperations: reply(call, try operations(ListOperationsRequest(wire: request)))
        case .getOperation: reply(call, try operation(AdminOperation(NamedRequest(wire: request).name)))
        case .waitOperation: try waitOperation(call, WaitOperationRequest(wire: request))
        case .cancelOperation: try cancelOperation(call, AdminOperation(NamedRequest(wire: request).name))
        case .deleteOperation: try deleteOperation(AdminOperation(NamedRequest(wire: request).name))
        default: throw RequestError(.unimplemented, "\(call.method.name) is not a method of the admin API.")
        }
    }

    func reply(_ call: Call, _ message: some FirestoreMessage) {
        service.succeed(call) { message.encode(into: &$0) }
    }

    // MARK: Indexes

    /// The indexes over several fields: all that are not there because of the settings of a single field.
    func declaredIndexes(in database: DatabaseName) -> [DocumentStore.PresentIndex] {
        let implied = Set(store.fieldSettings(in: database).flatMap(\.declared).flatMap(\.shapes))
        return store.declaredIndexes(in: database).filter { !implied.contains($0.shape) }
    }

    private func createIndex(_ call: Call, _ request: CreateIndexRequest) throws {
        let group = try AdminGroup(request.parent)
        guard let message = request.index else { throw RequestError.invalidArgument("The index is missing.") }
        let shape = try IndexShape(message, in: group)
        guard shape.parts.count > 1 || shape.vector != nil || shape.search != nil || shape.reversesName else {
            throw RequestError.invalidArgument(
                "This index is not necessary, configure using single field index controls.")
        }
        let name = AdminIndexName(shape, in: group.database)
        change(call, in: group.database, "create", of: "\(name)") {
            (declaration) throws(RequestError) in
            if declaration.indexes.contains(shape) { throw RequestError(.alreadyExists, "The index already exists.") }
            declaration.indexes.append(shape)
        } completion: { admin in
            admin.reply(call, try admin.newestBuild(of: shape, in: group.database))
        }
    }

    private func deleteIndex(_ call: Call, _ name: AdminIndexName) throws {
        change(call, in: name.group.database, "delete", of: "\(name)") {
            (declaration) throws(RequestError) in
            guard let position = declaration.indexes.firstIndex(where: { name.names($0) }) else {
                throw RequestError(.notFound, "There is no index \(name).")
            }
            declaration.indexes.remove(at: position)
        } completion: {
            $0.service.succeed(call) { _ in }
        }
    }

    private func index(_ name: AdminIndexName) throws(RequestError) -> AdminIndex {
        let found = declaredIndexes(in: name.group.database).first { name.names($0.shape) && $0.state != .dropping }
        guard let found else { throw RequestError(.notFound, "There is no index \(name).") }
        return found.shape.adminMessage(in: name.group.database, AdminIndex.State(found.state))
    }

    private func indexes(_ request: AdminListRequest) throws(RequestError) -> AdminIndexPage {
        let group = try AdminGroup(request.parent)
        guard request.filter.isEmpty else { throw .invalidArgument("Indexes cannot be filtered.") }
        let all = declaredIndexes(in: group.database)
            .filter { $0.state != .dropping && group.covers($0.shape.collectionID) }
            .map { $0.shape.adminMessage(in: group.database, AdminIndex.State($0.state)) }
        let (page, next) = Self.page(of: all, \.name, size: request.pageSize, after: request.pageToken)
        return AdminIndexPage(indexes: page, nextPageToken: next)
    }

    // MARK: Changes

    /// Changes what a database declares, and continues on the loop when the change is durable.
    func change(
        _ call: Call, in database: DatabaseName, _ kind: String, of resource: String,
        _ change: @escaping @Sendable (inout IndexDeclaration) throws(RequestError) -> Void,
        completion: @escaping (IndexAdminService) throws -> Void
    ) {
        let log = log
        let bound = LoopBound((admin: self, completion: completion))
        store.changeIndexes(
            in: database, change,
            completion: service.continuation(call) { _, _ in
                log(.info, "indexes_changed", ["resource": resource, "change": kind])
                try bound.value.completion(bound.value.admin)
            })
    }

    // MARK: Pages

    private static let pageSizeMax = 1_000

    /// A page of resources in the order of their names, and the token of the next page: the last name of this one.
    static func page<Element>(
        of all: [Element], _ name: (Element) -> String, size: Int32, after token: String
    ) -> (page: [Element], next: String) {
        let limit = size > 0 ? min(Int(size), pageSizeMax) : pageSizeMax
        let left = all.filter { token.isEmpty || name($0).compareUTF8(token) > 0 }
            .sorted { name($0).compareUTF8(name($1)) < 0 }
        let page = Array(left.prefix(limit))
        return (page, left.count > limit ? page.last.map(name) ?? "" : "")
    }
}
