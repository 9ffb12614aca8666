// `google.firestore.admin.v1.Field` and the RPCs of fields.

package import Basics
internal import CFirestoreProto
internal import DocumentModel

/// The settings of a field as the admin API describes them.
package struct AdminField: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__field__init, google__firestore__admin__v1__field__init)

    /// Which indexes of a single field are kept.
    package struct IndexConfig: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__firestore_admin__field__index_config__init, google__firestore__admin__v1__field__index_config__init)

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

        package init(wire: RawSpan) throws {
            self = try unsafe Self.layout.read(wire) { message in
                unsafe IndexConfig(
                    indexes: try elements(message.indexes, message.n_indexes) {
                        try unsafe $0.lend { try AdminIndex(wire: $0) }
                    },
                    usesAncestorConfig: message.uses_ancestor_config != 0, ancestorField: message.ancestor_field.text,
                    isReverting: message.reverting != 0)
            }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, arena in
                unsafe (message.n_indexes, message.indexes) = arena.list(indexes) { unsafe arena.bytes($0.encode) }
                unsafe message.uses_ancestor_config = usesAncestorConfig ? 1 : 0
                unsafe message.ancestor_field = arena.bytes(ancestorField)
                unsafe message.reverting = isReverting ? 1 : 0
            }
        }
    }

    /// That documents expire at the time in the field.
    package struct TTLConfig: FirestoreMessage, Equatable, Sendable {
        private static let layout = unsafe MessageLayout(
            held__firestore_admin__field__ttl_config__init, google__firestore__admin__v1__field__ttl_config__init)

        /// Whether expired documents are found already.
        package enum State: UInt32, Sendable {
            case unspecified = 0
            case creating = 1
            case active = 2
            case needsRepair = 3
        }

        package var state: State

        package init(state: State = .unspecified) { self.state = state }

        package init(wire: RawSpan) throws {
            state = try unsafe Self.layout.read(wire) { unsafe State(rawValue: $0.state.rawValue) ?? .unspecified }
        }

        package func encode(into writer: inout ByteBuffer) {
            unsafe Self.layout.write(into: &writer) { message, _ in
                unsafe message.state = Held__FirestoreAdmin__Field__TtlConfig__State(rawValue: state.rawValue)
            }
        }
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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe AdminField(
                name: message.name.text,
                indexConfig: try lendLast(message.index_config, message.n_index_config) {
                    try IndexConfig(wire: $0)
                },
                ttlConfig: try lendLast(message.ttl_config, message.n_ttl_config) { try TTLConfig(wire: $0) })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe (message.n_index_config, message.index_config) = arena.optional(indexConfig) {
                $0.encode(into: &$1)
            }
            unsafe (message.n_ttl_config, message.ttl_config) = arena.optional(ttlConfig) { $0.encode(into: &$1) }
        }
    }
}

package struct UpdateFieldRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__update_field_request__init, google__firestore__admin__v1__update_field_request__init)

    package var field: AdminField?
    /// Which of `index_config` and `ttl_config` the request means; nil for both.
    package var mask: [String]?

    package init(field: AdminField?, mask: [String]? = nil) {
        self.field = field
        self.mask = mask
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe UpdateFieldRequest(
                field: try lendLast(message.field, message.n_field) { try AdminField(wire: $0) },
                mask: try lendLast(message.update_mask, message.n_update_mask) { try FieldMask(wire: $0).paths })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_field, message.field) = arena.optional(field) { $0.encode(into: &$1) }
            unsafe (message.n_update_mask, message.update_mask) = arena.optional(mask) {
                FieldMask(paths: $0).encode(into: &$1)
            }
        }
    }
}

/// `google.protobuf.FieldMask`
struct FieldMask: FirestoreMessage {
    private static let layout = unsafe MessageLayout(
        held__protobuf__field_mask__init, google__protobuf__field_mask__init)

    var paths: [String]

    init(paths: [String]) { self.paths = paths }

    init(wire: RawSpan) throws {
        paths = try unsafe Self.layout.read(wire) { message in
            unsafe elements(message.paths, message.n_paths) { unsafe $0.text }
        }
    }

    func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_paths, message.paths) = arena.list(paths) { unsafe arena.bytes($0) }
        }
    }
}

/// A page of fields.
package struct AdminFieldPage: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__firestore_admin__list_fields_response__init, google__firestore__admin__v1__list_fields_response__init)

    package var fields: [AdminField]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(fields: [AdminField], nextPageToken: String = "") {
        self.fields = fields
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe AdminFieldPage(
                fields: try elements(message.fields, message.n_fields) {
                    try unsafe $0.lend { try AdminField(wire: $0) }
                },
                nextPageToken: message.next_page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_fields, message.fields) = arena.list(fields) { unsafe arena.bytes($0.encode) }
            unsafe message.next_page_token = arena.bytes(nextPageToken)
        }
    }
}
