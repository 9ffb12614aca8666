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
            /// For searches: by words, by place, or both.
            case search(text: Bool, geo: Bool)
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
                    case .search(let text, let geo):
                        unsafe held.value_mode_case =
                            HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_SEARCH_CONFIG
                        unsafe held.search_config = arena.bytes(AdminSearchConfig(text: text, geo: geo).encode)
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
            case HELD__FIRESTORE_ADMIN__INDEX__INDEX_FIELD__VALUE_MODE_SEARCH_CONFIG:
                let search = try unsafe message.search_config.lend { try AdminSearchConfig(wire: $0) }
                return .search(text: search.text != nil, geo: search.geo != nil)
            default: return .unspecified
            }
        }
    }

    /// `projects/P/databases/D/collectionGroups/C/indexes/I`; empty in a request that creates the index.
    package var name: String
    package var queryScope: QueryScope
    package var fields: [Field]
    package var state: State
    /// The language of the texts of an index for searches (BCP 47); else empty.
    package var textLanguage: String

    package init(
        name: String = "", queryScope: QueryScope, fields: [Field], state: State = .unspecified,
        textLanguage: String = ""
    ) {
        self.name = name
        self.queryScope = queryScope
        self.fields = fields
        self.state = state
        self.textLanguage = textLanguage
    }

    static let table = unsafe MessageTable(
        AdminIndex(queryScope: .unspecified, fields: []), held__firestore_admin__index__init,
        google__firestore__admin__v1__index__init,
        [
            .check { held in
                guard unsafe held.api_scope.rawValue == 0 else {
                    throw RequestError.invalidArgument("Only indexes of the native API are possible.")
                }
            },
            .text(\.name, \.name), .enumeration(\.queryScope, \.query_scope), .messages(\.fields, \.fields, \.n_fields),
            .enumeration(\.state, \.state),
            .custom { held, message in
                let options = try unsafe lendLast(held.search_index_options, held.n_search_index_options) {
                    try AdminSearchOptions(wire: $0)
                }
                message.textLanguage = options?.textLanguage ?? ""
            } write: { message, held, arena in
                let options = message.textLanguage.isEmpty ? nil : AdminSearchOptions(message.textLanguage)
                unsafe (held.n_search_index_options, held.search_index_options) = arena.optional(options) {
                    $0.encode(into: &$1)
                }
            },
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

/// How a field is indexed for searches: by words, by place, or both.
struct AdminSearchConfig: TableMessage {
    /// Words are indexed in one way, which is the only one that the API has.
    struct TextIndex: TableMessage {
        static let table = unsafe MessageTable(
            TextIndex(), held__firestore_admin__index__index_field__search_config__search_text_index_spec__init,
            google__firestore__admin__v1__index__index_field__search_config__search_text_index_spec__init,
            [
                .custom { held, _ in
                    guard unsafe held.index_type.rawValue == 1, unsafe held.match_type.rawValue == 1 else {
                        throw RequestError.invalidArgument(
                            "Words are indexed as TOKENIZED and matched by MATCH_GLOBALLY.")
                    }
                } write: { _, held, _ in
                    unsafe held.index_type = Held__FirestoreAdmin__Index__IndexField__SearchConfig__TextIndexType(
                        rawValue: 1)
                    unsafe held.match_type = Held__FirestoreAdmin__Index__IndexField__SearchConfig__TextMatchType(
                        rawValue: 1)
                }
            ])
    }

    struct Text: TableMessage {
        var indexes = [TextIndex()]

        static let table = unsafe MessageTable(
            Text(), held__firestore_admin__index__index_field__search_config__search_text_spec__init,
            google__firestore__admin__v1__index__index_field__search_config__search_text_spec__init,
            [.messages(\.indexes, \.index_specs, \.n_index_specs)])
    }

    /// Points in GeoJSON are not indexed, so the message's only field makes no difference.
    struct Geo: TableMessage {
        static let table = unsafe MessageTable(
            Geo(), held__firestore_admin__index__index_field__search_config__search_geo_spec__init,
            google__firestore__admin__v1__index__index_field__search_config__search_geo_spec__init, [])
    }

    var text: Text?
    var geo: Geo?

    init(text: Bool, geo: Bool) {
        self.text = text ? Text() : nil
        self.geo = geo ? Geo() : nil
    }

    static let table = unsafe MessageTable(
        AdminSearchConfig(text: false, geo: false), held__firestore_admin__index__index_field__search_config__init,
        google__firestore__admin__v1__index__index_field__search_config__init,
        [.optional(\.text, \.text_spec, \.n_text_spec), .optional(\.geo, \.geo_spec, \.n_geo_spec)])
}

/// What holds for all texts of an index for searches. A language that each document names is not served.
struct AdminSearchOptions: TableMessage {
    var textLanguage: String

    init(_ textLanguage: String) { self.textLanguage = textLanguage }

    static let table = unsafe MessageTable(
        AdminSearchOptions(""), held__firestore_admin__index__search_index_options__init,
        google__firestore__admin__v1__index__search_index_options__init,
        [
            .text(\.textLanguage, \.text_language),
            .check { held in
                guard unsafe held.text_language_override_field_path.len == 0 else {
                    throw RequestError(
                        .unimplemented, "The option text_language_override_field_path of indexes is not implemented.")
                }
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
