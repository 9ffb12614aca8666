// ListCollectionIds: the collections below a document or the root.

internal import CFirestoreProto
internal import DocumentModel

/// A request for the ids of the collections below a parent.
package struct ListCollectionIdsRequest: TableMessage, Equatable, Sendable {
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

    static let table = unsafe MessageTable(
        ListCollectionIdsRequest(parent: ""), held__list_collection_ids_request__init,
        google__firestore__v1__list_collection_ids_request__init,
        [
            .text(\.parent, \.parent), .number(\.pageSize, \.page_size), .text(\.pageToken, \.page_token),
            .consistency(
                \.consistency, \.consistency_selector_case,
                readTime: HELD__LIST_COLLECTION_IDS_REQUEST__CONSISTENCY_SELECTOR_READ_TIME, \.read_time),
        ])
}

/// A page of collection ids, ordered by their UTF-8 bytes.
package struct ListCollectionIdsResponse: TableMessage, Equatable, Sendable {
    package var collectionIDs: [String]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(collectionIDs: [String] = [], nextPageToken: String = "") {
        self.collectionIDs = collectionIDs
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        ListCollectionIdsResponse(), held__list_collection_ids_response__init,
        google__firestore__v1__list_collection_ids_response__init,
        [.texts(\.collectionIDs, \.collection_ids, \.n_collection_ids), .text(\.nextPageToken, \.next_page_token)])
}
