// ListCollectionIds: the collections below a document or the root.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// A request for the ids of the collections below a parent.
package struct ListCollectionIdsRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__list_collection_ids_request__init, google__firestore__v1__list_collection_ids_request__init)

    /// The documents root of a database, or a document.
    package var parent: String
    /// The most ids wanted; 0 leaves the number to the server.
    package var pageSize: Int32
    /// The token of the page before, or empty.
    package var pageToken: String
    /// `.latest` or `.readTime`.
    package var consistency: ReadConsistency

    package init(parent: String, pageSize: Int32 = 0, pageToken: String = "", consistency: ReadConsistency = .latest) {
        self.parent = parent
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ListCollectionIdsRequest(
                parent: message.parent.text, pageSize: message.page_size, pageToken: message.page_token.text,
                consistency: message.consistency_selector_case
                    == HELD__LIST_COLLECTION_IDS_REQUEST__CONSISTENCY_SELECTOR_READ_TIME
                    ? .readTime(TimestampValue(message.read_time)) : .latest)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe message.page_size = pageSize
            unsafe message.page_token = arena.bytes(pageToken)
            if case .readTime(let time) = consistency {
                unsafe message.consistency_selector_case =
                    HELD__LIST_COLLECTION_IDS_REQUEST__CONSISTENCY_SELECTOR_READ_TIME
                unsafe message.read_time = arena.timestamp(time)
            }
        }
    }
}

/// A page of collection ids, ordered by their UTF-8 bytes.
package struct ListCollectionIdsResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__list_collection_ids_response__init, google__firestore__v1__list_collection_ids_response__init)

    package var collectionIDs: [String]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(collectionIDs: [String] = [], nextPageToken: String = "") {
        self.collectionIDs = collectionIDs
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe ListCollectionIdsResponse(
                collectionIDs: elements(message.collection_ids, message.n_collection_ids) { unsafe $0.text },
                nextPageToken: message.next_page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_collection_ids, message.collection_ids) = arena.list(collectionIDs) {
                unsafe arena.bytes($0)
            }
            unsafe message.next_page_token = arena.bytes(nextPageToken)
        }
    }
}
