// Requests of the admin API that have a name or a parent only.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// The requests that consist of the name of a resource: GetIndex, DeleteIndex, GetField, GetDatabase, GetOperation,
/// CancelOperation and DeleteOperation. All have it in the same field.
package struct NamedRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__get_index_request__init, google__firestore__admin__v1__get_index_request__init)

    package var name: String

    package init(name: String) { self.name = name }

    package init(wire: RawSpan) throws {
        name = try unsafe Self.layout.read(wire) { unsafe $0.name.text }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in unsafe message.name = arena.bytes(name) }
    }
}

/// The requests for a page of a collection of resources: ListIndexes and ListFields, which have the same fields.
package struct AdminListRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__list_indexes_request__init, google__firestore__admin__v1__list_indexes_request__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe AdminListRequest(
                parent: message.parent.text, filter: message.filter.text, pageSize: message.page_size,
                pageToken: message.page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe message.filter = arena.bytes(filter)
            unsafe message.page_size = pageSize
            unsafe message.page_token = arena.bytes(pageToken)
        }
    }
}
