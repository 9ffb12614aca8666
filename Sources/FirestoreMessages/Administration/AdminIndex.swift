// `google.firestore.admin.v1.Index` and the RPCs of indexes.

internal import Basics
internal import CFirestoreProto
internal import DocumentModel

/// An index as the admin API describes it.
package struct AdminIndex: TableMessage, Equatable, Sendable {
    /// Which collections a query over the index reads.
    package enum QueryScope: UInt32, Sendable {
        case unspecified = 0
        case collection = 1
        case collectionGroup = 2
        case collectionRecursive = 3
    }

    /// How far an index is.
    package enum State: UInt32, Sendable {
        case unspecified = 0
        case creating = 1
        case ready = 2
        case needsRepair = 3
    }

    /// A field of an index.
    package struct Field: TableMessage, Equatable, Sendable {
        /// How the field is indexed; `unspecified` if the message has none, or one that is not known.
        package enum Mode: Equatable, Sendable {
            case unspecified
            case ascending
            case descending
            case contains
            /// Of this number of dimensions.
            case vector(Int32)
        }

        /// With backquotes where a segment needs them; `__name__` is the name of the document.
        package var path: String
        package var mode: Mode

        package init(path: String, mode: Mode) {
            self.path = path
            self.mode = mode
        }

        static let table = unsafe MessageTable(
            Field(path: "", mode: .unspecified), held__firestore_admin__index__index_field__init,
            google__firestore__admin__v1__index__index_field__init,
            [
                .text(\.path, \.field_path),
                .custom { held, message in
                    message.mode = try unsafe mode(held)
                } write: { message, held, arena in
                    switch message.mode {
                    case .unspecified: break
                    case .ascending, .descending:
                        unsafe held.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER
                        unsafe held.order = Held__FirestoreAdmin__Index__IndexField__Order(
                            rawValue: message.mode == .ascending ? 1 : 2)
                    case .contains:
                        unsafe held.value_mode_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ARRAY_CONFIG
                        unsafe held.array_config = Held__FirestoreAdmin__Index__IndexField__ArrayConfig(rawValue: 1)
                    case .vector(let dimension):
                        unsafe held.value_mode_case =
                            HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_VECTOR_CONFIG
                        unsafe held.vector_config = arena.bytes(AdminVectorConfig(dimension: dimension).encode)
                    }
                },
            ])

        private static func mode(_ message: Held__FirestoreAdmin__Index__IndexField) throws -> Mode {
            switch unsafe message.value_mode_case {
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ORDER:
                switch unsafe message.order.rawValue {
                case 1: return .ascending
                case 2: return .descending
                default: return .unspecified
                }
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_ARRAY_CONFIG:
                return unsafe message.array_config.rawValue == 1 ? .contains : .unspecified
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_VECTOR_CONFIG:
                return .vector(try unsafe message.vector_config.lend { try AdminVectorConfig(wire: $0).dimension })
            default: return .unspecified
            }
        }
    }

    /// `projects/P/databases/D/collectionGroups/C/indexes/I`; empty in a request that creates the index.
    package var name: String
    package var queryScope: QueryScope
    package var fields: [Field]
    package var state: State

    package init(name: String = "", queryScope: QueryScope, fields: [Field], state: State = .unspecified) {
        self.name = name
        self.queryScope = queryScope
        self.fields = fields
        self.state = state
    }

    static let table = unsafe MessageTable(
        AdminIndex(queryScope: .unspecified, fields: []), held__firestore_admin__index__init,
        google__firestore__admin__v1__index__init,
        [
            .custom { held, _ in
                guard unsafe held.api_scope.rawValue == 0 else {
                    throw RequestError.invalidArgument("Only indexes of the native API are possible.")
                }
            } write: { _, _, _ in
            },
            .text(\.name, \.name), .enumeration(\.queryScope, \.query_scope), .messages(\.fields, \.fields, \.n_fields),
            .enumeration(\.state, \.state),
        ])
}

/// The vector of an index; `flat` is the only type.
struct AdminVectorConfig: TableMessage {
    private static let flat = unsafe MessageLayout(
        held__firestore_admin__index__index_field__vector_config__flat_index__init,
        google__firestore__admin__v1__index__index_field__vector_config__flat_index__init)

    var dimension: Int32

    static let table = unsafe MessageTable(
        AdminVectorConfig(dimension: 0), held__firestore_admin__index__index_field__vector_config__init,
        google__firestore__admin__v1__index__index_field__vector_config__init,
        [
            .number(\.dimension, \.dimension),
            .custom { _, _ in
            } write: { _, held, arena in
                unsafe held.type_case = HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VECTOR_CONFIG__TYPE_FLAT
                unsafe held.flat = flat.make(in: arena) { _, _ in }
            },
        ])
}

package struct CreateIndexRequest: TableMessage, Equatable, Sendable {
    /// `projects/P/databases/D/collectionGroups/C`
    package var parent: String
    package var index: AdminIndex?

    package init(parent: String, index: AdminIndex?) {
        self.parent = parent
        self.index = index
    }

    static let table = unsafe MessageTable(
        CreateIndexRequest(parent: "", index: nil), held__firestore_admin__create_index_request__init,
        google__firestore__admin__v1__create_index_request__init,
        [.text(\.parent, \.parent), .optional(\.index, \.index, \.n_index)])
}

/// A page of indexes.
package struct AdminIndexPage: TableMessage, Equatable, Sendable {
    package var indexes: [AdminIndex]
    /// Empty after the last page.
    package var nextPageToken: String

    package init(indexes: [AdminIndex], nextPageToken: String = "") {
        self.indexes = indexes
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        AdminIndexPage(indexes: []), held__firestore_admin__list_indexes_response__init,
        google__firestore__admin__v1__list_indexes_response__init,
        [.messages(\.indexes, \.indexes, \.n_indexes), .text(\.nextPageToken, \.next_page_token)])
}
