// Requests of the admin API that have a name or a parent only.

internal import CFirestoreProto
internal import DocumentModel

/// The requests that consist of the name of a resource: GetIndex, DeleteIndex, GetField, GetDatabase, GetOperation,
/// CancelOperation and DeleteOperation. All have it in the same field.
package struct NamedRequest: TableMessage, Equatable, Sendable {
    package var name: String

    package init(name: String) { self.name = name }

    static let table = unsafe MessageTable(
        NamedRequest(name: ""), held__firestore_admin__get_index_request__init,
        google__firestore__admin__v1__get_index_request__init,
        [.text(\.name, \.name)])
}

/// The requests for a page of a collection of resources: ListIndexes and ListFields, which have the same fields.
package struct AdminListRequest: TableMessage, Equatable, Sendable {
    /// `projects/P/databases/D/collectionGroups/C`; `-` as the collection group means all.
    package var parent: String
    package var filter: String
    /// 0 or less means the server's choice.
    package var pageSize: Int32
    package var pageToken: String

    package init(parent: String, filter: String = "", pageSize: Int32 = 0, pageToken: String = "") {
        self.parent = parent
        self.filter = filter
        self.pageSize = pageSize
        self.pageToken = pageToken
    }

    static let table = unsafe MessageTable(
        AdminListRequest(parent: ""), held__firestore_admin__list_indexes_request__init,
        google__firestore__admin__v1__list_indexes_request__init,
        [
            .text(\.parent, \.parent), .text(\.filter, \.filter), .number(\.pageSize, \.page_size),
            .text(\.pageToken, \.page_token),
        ])
}
