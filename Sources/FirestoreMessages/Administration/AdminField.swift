// `google.firestore.admin.v1.Field` and the RPCs of fields.

internal import CFirestoreProto
internal import DocumentModel

/// The settings of a field as the admin API describes them.
package struct AdminField: TableMessage, Equatable, Sendable {
    /// Which indexes of a single field are kept.
    package struct IndexConfig: TableMessage, Equatable, Sendable {
        package var indexes: [AdminIndex]
        /// Whether the field has the indexes of `ancestorField`.
        package var usesAncestorConfig: Bool
        /// The name of the field whose settings hold here.
        package var ancestorField: String
        /// Whether entries are still being removed that the settings before this one asked for.
        package var isReverting: Bool

        package init(
            indexes: [AdminIndex], usesAncestorConfig: Bool = false, ancestorField: String = "",
            isReverting: Bool = false
        ) {
            self.indexes = indexes
            self.usesAncestorConfig = usesAncestorConfig
            self.ancestorField = ancestorField
            self.isReverting = isReverting
        }

        static let table = unsafe MessageTable(
            IndexConfig(indexes: []), held__firestore_admin__field__index_config__init,
            google__firestore__admin__v1__field__index_config__init,
            [
                .messages(\.indexes, \.indexes, \.n_indexes), .flag(\.usesAncestorConfig, \.uses_ancestor_config),
                .text(\.ancestorField, \.ancestor_field), .flag(\.isReverting, \.reverting),
            ])
    }

    /// That documents expire at the time in the field.
    package struct TTLConfig: TableMessage, Equatable, Sendable {
        /// Whether expired documents are found already.
        package enum State: UInt32, Sendable {
            case unspecified = 0
            case creating = 1
            case active = 2
            case needsRepair = 3
        }

        package var state: State

        package init(state: State = .unspecified) { self.state = state }

        static let table = unsafe MessageTable(
            TTLConfig(), held__firestore_admin__field__ttl_config__init,
            google__firestore__admin__v1__field__ttl_config__init,
            [.enumeration(\.state, \.state)])
    }

    /// `projects/P/databases/D/collectionGroups/C/fields/F`
    package var name: String
    package var indexConfig: IndexConfig?
    package var ttlConfig: TTLConfig?

    package init(name: String, indexConfig: IndexConfig? = nil, ttlConfig: TTLConfig? = nil) {
        self.name = name
        self.indexConfig = indexConfig
        self.ttlConfig = ttlConfig
    }

    static let table = unsafe MessageTable(
        AdminField(name: ""), held__firestore_admin__field__init, google__firestore__admin__v1__field__init,
        [
            .text(\.name, \.name), .optional(\.indexConfig, \.index_config, \.n_index_config),
            .optional(\.ttlConfig, \.ttl_config, \.n_ttl_config),
        ])
}

package struct UpdateFieldRequest: TableMessage, Equatable, Sendable {
    package var field: AdminField?
    /// Which of `index_config` and `ttl_config` the request means; nil for both.
    package var mask: [String]?

    package init(field: AdminField?, mask: [String]? = nil) {
        self.field = field
        self.mask = mask
    }

    static let table = unsafe MessageTable(
        UpdateFieldRequest(field: nil), held__firestore_admin__update_field_request__init,
        google__firestore__admin__v1__update_field_request__init,
        [
            .optional(\.field, \.field, \.n_field),
            .mask(\.mask, \.update_mask, \.n_update_mask),
        ])
}

/// `google.protobuf.FieldMask`
struct FieldMask: TableMessage {
    var paths: [String]

    static let table = unsafe MessageTable(
        FieldMask(paths: []), held__protobuf__field_mask__init, google__protobuf__field_mask__init,
        [.texts(\.paths, \.paths, \.n_paths)])
}

/// A page of fields.
package struct AdminFieldPage: TableMessage, Equatable, Sendable {
    package var fields: [AdminField]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(fields: [AdminField], nextPageToken: String = "") {
        self.fields = fields
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        AdminFieldPage(fields: []), held__firestore_admin__list_fields_response__init,
        google__firestore__admin__v1__list_fields_response__init,
        [.messages(\.fields, \.fields, \.n_fields), .text(\.nextPageToken, \.next_page_token)])
}
